"""pandas: factorize and maps, groupby.transform, and dummies."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.libraries import series_of
from benchmarks.cpu.grid import SMOOTH
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_FOLDS, Array, Rows
from studies.family.indicators import MOST_DENSE, Indicators
from studies.family.judge import STATISTICS, expected_of

WORKS = ("count", "ordinal", "ordinal-frequency", "evidence", "evidence-folds", "statistics", "median", "impact-folds")


def log_ratio(n: Any, s: Any, n_all: Any, s_all: Any, r: float = 1.0) -> Array:
    """Give the weight of evidence; 0 without rows."""
    ratio = np.log((s + r) / (s_all + 2 * r) / ((n - s + r) / (n_all - s_all + 2 * r)))
    return np.where(n > 0, ratio, 0.0)


def impact(n: Any, s: Any, n_all: Any, s_all: Any) -> Array:
    """Give impact and prevalence."""
    mean = s_all / n_all
    return np.column_stack([(s + SMOOTH * mean) / (n + SMOOTH) - mean, n / n_all])


def encode(keys: Any, y: Any, work: str) -> Array:
    """Encode with sorted values, a map from values to numbers, or groupby.transform."""
    import pandas as pd

    groups = y.groupby(keys, sort=False)
    if work == "count":
        return groups.transform("count").to_numpy(np.float64)
    if work == "ordinal":
        return np.asarray(pd.factorize(keys, sort=True)[0])
    if work == "ordinal-frequency":
        counts = keys.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
        return np.asarray(keys.map(pd.Series(np.arange(len(counts)), index=counts.index)))
    if work == "evidence":
        return log_ratio(groups.transform("count"), groups.transform("sum"), len(y), y.sum())
    return np.column_stack([groups.transform(name) for name in (("median",) if work == "median" else STATISTICS)])


def encode_by_fold(keys: Any, y: Any, work: str, folds: Array) -> Array:
    """Encode with sums by groupby.transform, minus the sums of the row's own fold."""
    codes, _ = keys.factorize()
    whole, part, own = y.groupby(codes), y.groupby(codes * N_FOLDS + folds), y.groupby(folds)
    sums = [whole.transform(name) - part.transform(name) for name in ("count", "sum")]
    totals = [len(y) - own.transform("count"), y.sum() - own.transform("sum")]
    return (log_ratio if work == "evidence-folds" else impact)(*sums, *totals)


def prepare(rows: Rows) -> Prepared:
    """Prepare the form of pandas that does the work; text has pandas' own type."""
    import pandas as pd

    keys = pd.Series(rows.arrow.to_pandas(), dtype="str") if rows.keys == "text" else rows.series
    y = pd.Series(rows.values) if rows.work in ("statistics", "median") else series_of(rows)
    if rows.work.endswith("-folds"):
        return Prepared(partial(encode_by_fold, keys, y, rows.work, rows.folds), expected_of(rows))
    return Prepared(partial(encode, keys, y, rows.work), expected_of(rows))


def dummies(rows: Rows) -> Prepared:
    """Prepare a dense column of bytes for each category."""
    import pandas as pd

    keys = rows.series
    return Prepared(lambda: Indicators(pd.get_dummies(keys)), expected_of(rows))


DENSE = {"work": ("one-hot",), "categories": range(MOST_DENSE + 1)}
CONTENDERS = (
    Contender("pandas", "hand-written", prepare, {"work": WORKS}, ("pandas",)),
    Contender("pandas-dummies", "hand-written", dummies, DENSE, ("pandas",)),
)
