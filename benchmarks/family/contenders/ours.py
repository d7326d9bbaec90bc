"""The encoders of the family as users call them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks.cpu.contenders.base import Prepared
from benchmarks.cpu.contenders.ours import matrix, table_of
from benchmarks.cpu.grid import N_FOLDS, SMOOTH
from benchmarks.cpu.rows import Rows
from benchmarks.family.contenders.base import STATISTICS, Bounded, expected_of, values_of
from benchmarks.family.grid import N_COMPONENTS, WORKS
from benchmarks.family.judge import Indicators
from cpu_fallback.row_numbers import FoldPattern, fold_numbers
from gpu_encode import (
    GLMM,
    CountEncoder,
    HashingEncoder,
    ImpactEncoder,
    OneHotEncoder,
    OrdinalEncoder,
    StatisticEncoder,
    TargetEncoder,
    WeightOfEvidenceEncoder,
)
from gpu_encode.schemes.base import seed_of

# Works whose rows have a column of reals beside the keys, and those whose new rows are encoded.
OF_VALUES = ("statistics", "median")
IN_TWO_CALLS = ("evidence", "glmm")
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
    "impact-folds": partial(ImpactEncoder, smooth=SMOOTH, cv=N_FOLDS, target_type="binary"),
    "hashing": partial(HashingEncoder, N_COMPONENTS),
    "glmm": partial(TargetEncoder, smooth=GLMM(), target_type="continuous"),
}


def given(rows: Rows, objects: bool) -> Any:
    """Keys, and where needed values, in the container of a user."""
    if rows.work in OF_VALUES:
        values = values_of(rows)
        return rows.frame.assign(value=values) if objects else pa.table({"key": rows.arrow, "value": values})
    return rows.matrix if objects else table_of(rows)


def prepared(rows: Rows, objects: bool = False) -> Prepared:
    """Our encoder, judged with its own folds."""
    X = given(rows, objects)
    y = values_of(rows) if rows.work == "glmm" else rows.target
    made, shown = ENCODERS[rows.work], Indicators if rows.work in OF_MATRICES else matrix
    folds = fold_numbers(FoldPattern("random", N_FOLDS, seed_of(0, "KFold")), 0, rows.n_rows)

    def call() -> Any:
        encoder = made(device="cpu")
        if rows.work in IN_TWO_CALLS:
            return shown(encoder.fit(X, y).transform(X))
        return shown(encoder.fit_transform(X, y) if rows.work.endswith("-folds") else encoder.fit_transform(X))

    return Prepared(call, expected_of(rows, folds))


CONTENDERS = [
    Bounded("ours", "ours", prepared, tuple(WORKS), compiles=True),
    Bounded("ours-objects", "ours", partial(prepared, objects=True), tuple(WORKS), ("text",), compiles=True),
]
