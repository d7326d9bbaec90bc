"""pandas: groupby.transform, maps, factorize and dummies."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.contenders import hand_written
from benchmarks.cpu.contenders.hand_written import grouped, pandas
from benchmarks.cpu.contenders.libraries import series_of
from benchmarks.cpu.grid import SMOOTH
from benchmarks.family.indicators import MOST_DENSE, Indicators
from benchmarks.family.judge import STATISTICS, expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_FOLDS, Array, Rows

MAPPED = ("count", "ordinal", "ordinal-frequency")
TRANSFORMED = ("count", "evidence", "evidence-folds", "statistics", "median", "impact-folds")


def log_ratio(n: Any, s: Any, n_all: Any, s_all: Any, r: float = 1.0) -> Array:
    """Weight of evidence, 0 where there is nothing."""
    ratio = np.log((s + r) / (s_all + 2 * r) / ((n - s + r) / (n_all - s_all + 2 * r)))
    return np.where(n > 0, ratio, 0.0)


def transformed(keys: Any, y: Any, work: str, folds: Any) -> Array:
    """groupby.transform, for folds less that of the row's own."""
    groups = grouped(keys, y)
    if work == "median":
        return np.asarray(groups.transform("median"))
    if work == "statistics":
        return np.column_stack([groups.transform(each) for each in STATISTICS])
    if work == "evidence":
        return log_ratio(groups.transform("count"), groups.transform("sum"), len(y), y.sum())
    codes, _ = keys.factorize()
    sums = [
        whole - own
        for name in ("count", "sum")
        for whole, own in [(y.groupby(codes).transform(name), y.groupby(codes * N_FOLDS + folds).transform(name))]
    ]
    of_folds = y.groupby(folds)
    totals = [len(y) - of_folds.transform("count"), y.sum() - of_folds.transform("sum")]
    return log_ratio(*sums, *totals) if work == "evidence-folds" else impact(*sums, *totals)


def impact(n: Any, s: Any, n_all: Any, s_all: Any) -> Array:
    """Impact, deviation and prevalence."""
    mean = s_all / n_all
    most = np.sqrt(s_all * (n_all - s_all) / (n_all * (n_all - 1)))
    deviation = np.where(n > 1, np.sqrt(s * (n - s) / np.maximum(n * (n - 1), 1)), most)
    return np.column_stack([(s + SMOOTH * mean) / (n + SMOOTH) - mean, deviation, n / n_all])


def mapped(keys: Any, work: str) -> Array:
    """Codes of sorted values, or a map from values to places."""
    import pandas as pd

    if work == "ordinal":
        return np.asarray(pd.factorize(keys, sort=True)[0])
    counts = keys.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    return np.asarray(keys.map(pd.Series(np.arange(len(counts)), index=counts.index)))


def prepare(rows: Rows, form: str, keys: Callable[[Rows], Any] = lambda rows: rows.series) -> Prepared:
    """One form of pandas, on one kind of text."""
    import pandas as pd

    if rows.work == "count":
        return hand_written.prepare(rows, form, keys)
    column = keys(rows)
    if form == "map":
        return Prepared(partial(mapped, column, rows.work), expected_of(rows))
    real = rows.work in ("statistics", "median")
    y = pd.Series(rows.values) if real else series_of(rows)
    return Prepared(partial(transformed, column, y, rows.work, rows.folds), expected_of(rows))


def dummies(rows: Rows) -> Prepared:
    """A dense column for each category, of bytes."""
    import pandas as pd

    keys = rows.series
    return Prepared(lambda: Indicators(pd.get_dummies(keys)), expected_of(rows))


DENSE = {"work": ("one-hot",), "categories": range(MOST_DENSE + 1)}
CONTENDERS = (
    pandas("pandas-map", MAPPED, "map", prepare=prepare),
    pandas("pandas-map-str", MAPPED, "map", "text", prepare=prepare),
    pandas("pandas-transform", TRANSFORMED, "transform", prepare=prepare),
    pandas("pandas-transform-str", TRANSFORMED[1:], "transform", "text", prepare=prepare),
    Contender("pandas-dummies", "hand-written", dummies, DENSE, ("pandas",)),
)
