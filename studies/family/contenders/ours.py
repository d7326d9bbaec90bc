"""The encoders of the family as users call them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks.cpu.contenders.ours import matrix, own_folds, table_of
from benchmarks.cpu.grid import SMOOTH
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_FOLDS, Rows
from gpu_encode import (
    CountEncoder,
    HashingEncoder,
    ImpactEncoder,
    OneHotEncoder,
    OrdinalEncoder,
    StatisticEncoder,
    WeightOfEvidenceEncoder,
)
from studies.family.indicators import Indicators
from studies.family.judge import STATISTICS, expected_of
from studies.family.words import N_COMPONENTS

# Works that need a column of reals in addition to the keys, and works that encode new rows.
OF_VALUES = ("statistics", "median")
OF_MATRICES = ("one-hot", "hashing")

ENCODERS: dict[str, Callable[..., Any]] = {
    "count": CountEncoder,
    "ordinal": OrdinalEncoder,
    "ordinal-frequency": partial(OrdinalEncoder, order="frequency"),
    "one-hot": OneHotEncoder,
    "evidence": partial(WeightOfEvidenceEncoder, target_type="binary"),
    "evidence-folds": partial(WeightOfEvidenceEncoder, cv=N_FOLDS, target_type="binary"),
    "statistics": partial(StatisticEncoder, STATISTICS, values=["value"]),
    "median": partial(StatisticEncoder, ("median",), values=["value"]),
    "impact-folds": partial(ImpactEncoder, ["impact", "prevalence"], smooth=SMOOTH, cv=N_FOLDS, target_type="binary"),
    "hashing": partial(HashingEncoder, N_COMPONENTS),
}


def given(rows: Rows, objects: bool) -> Any:
    """Give the keys, and values if they are needed, in a container that users have."""
    if rows.work in OF_VALUES:
        values = rows.values
        return rows.frame.assign(value=values) if objects else pa.table({"key": rows.arrow, "value": values})
    return rows.matrix if objects else table_of(rows)


def prepare(rows: Rows, objects: bool = False) -> Prepared:
    """Prepare our encoder, judged with its own folds."""
    X = given(rows, objects)
    y, make, show = rows.target, ENCODERS[rows.work], Indicators if rows.work in OF_MATRICES else matrix

    def call() -> Any:
        encoder = make(device="cpu")
        if rows.work == "evidence":
            return show(encoder.fit(X, y).transform(X))
        return show(encoder.fit_transform(X, y) if rows.work.endswith("-folds") else encoder.fit_transform(X))

    return Prepared(call, expected_of(rows, own_folds(rows.n_rows)))


CONTENDERS = (
    Contender("ours", "ours", prepare, compiles=True),
    Contender("ours-objects", "ours", partial(prepare, objects=True), {"keys": ("text",)}, compiles=True),
)
