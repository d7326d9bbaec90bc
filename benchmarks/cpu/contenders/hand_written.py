"""What people write by hand: pandas' groupby, and NumPy's bincount after pd.factorize or straight on the keys."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, MEANS, SMOOTH
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_CLASSES, N_FOLDS, Array, Rows

MAPPED = (*MEANS, "count")
COUNTED = (*MEANS, *FOLD_WORKS, "leave-one-out", "count")
TRANSFORMED = (*MEANS, "ordered", "leave-one-out", "count")


def grouped(keys: Any, y: Any) -> Any:
    """Rows by category."""
    return y.groupby(keys, sort=False, observed=True)


def mapped(keys: Any, y: Any, work: str) -> Array:
    """groupby.agg, then map."""
    if work == "count":
        return np.asarray(keys.map(keys.value_counts(sort=False)), dtype=np.float64)
    sums = grouped(keys, y).agg(["sum", "count"])
    codes = (sums["sum"] + SMOOTH * y.mean()) / (sums["count"] + SMOOTH)
    return np.asarray(keys.map(codes), dtype=np.float64)


def transformed(keys: Any, y: Any, work: str) -> Array:
    """groupby.transform, cumsum and cumcount."""
    groups, prior = grouped(keys, y), y.mean()
    if work == "count":
        return groups.transform("count").to_numpy(dtype=np.float64)
    if work == "ordered":
        sums, counts = groups.cumsum() - y, groups.cumcount()
    elif work == "leave-one-out":
        sums, counts = groups.transform("sum") - y, groups.transform("count") - 1
    else:
        sums, counts = groups.transform("sum"), groups.transform("count")
    return np.asarray((sums + SMOOTH * prior) / (counts + SMOOTH))


def by_fold(keys: Any, y: Any, folds: Any, work: str) -> Array:
    """Totals of a category less those of the row's fold, by groupby.transform."""
    if work == "classes":
        return np.column_stack(
            [by_fold(keys, (y == label).astype(np.float64), folds, "") for label in range(N_CLASSES)]
        )
    codes, _ = keys.factorize()
    whole, part = y.groupby(codes), y.groupby(codes * N_FOLDS + folds)
    sums = whole.transform("sum") - part.transform("sum")
    counts = whole.transform("count") - part.transform("count")
    return np.asarray((sums + SMOOTH * y.mean()) / (counts + SMOOTH))


def factorized(keys: Any) -> tuple[Array, int]:
    """Codes of keys, and how many there are."""
    import pandas as pd

    if isinstance(keys, pd.Series) and isinstance(keys.dtype, pd.CategoricalDtype):
        return keys.cat.codes.to_numpy(), len(keys.cat.categories)
    codes, values = pd.factorize(keys)
    return codes, len(values)


def counted(keys: Any, y: Array, work: str, folds: Array | None) -> Array:
    """pd.factorize, then bincount."""
    codes, size = factorized(keys)
    return codes if work == "codes" else binned(codes, size, y, work, folds)


def ranged(keys: Array, y: Array, work: str, folds: Array | None) -> Array:
    """Bincount straight on keys that are small numbers from zero on."""
    return binned(keys, int(keys.max()) + 1, y, work, folds)


def binned(codes: Array, size: int, y: Array, work: str, folds: Array | None) -> Array:
    """Bincount and a look-up."""
    if work == "classes":
        return classes(codes, size, y, folds)
    counts = np.bincount(codes, minlength=size)
    if work == "count":
        return counts.astype(np.float64)[codes]
    sums, prior = np.bincount(codes, y, minlength=size), y.mean()
    if work == "leave-one-out":
        return (sums[codes] - y + SMOOTH * prior) / (counts[codes] - 1 + SMOOTH)
    if work in FOLD_WORKS:
        cells = codes * np.int64(N_FOLDS) + folds
        seen = counts[:, None] - np.bincount(cells, minlength=size * N_FOLDS).reshape(-1, N_FOLDS)
        part = sums[:, None] - np.bincount(cells, y, minlength=size * N_FOLDS).reshape(-1, N_FOLDS)
        return ((part + SMOOTH * prior) / (seen + SMOOTH)).ravel()[cells]
    return ((sums + SMOOTH * prior) / (counts + SMOOTH))[codes]


def classes(codes: Array, size: int, y: Array, folds: Array | None) -> Array:
    """Shares of ten classes in other folds."""
    cells = codes * np.int64(N_FOLDS) + folds
    found = np.bincount(cells * N_CLASSES + y, minlength=size * N_FOLDS * N_CLASSES)
    found = found.reshape(size, N_FOLDS, N_CLASSES)
    seen = found.sum(axis=1, keepdims=True) - found
    prior = np.bincount(y, minlength=N_CLASSES) / len(y)
    table = (seen + SMOOTH * prior) / (seen.sum(axis=2, keepdims=True) + SMOOTH)
    return table.reshape(-1, N_CLASSES)[cells]


def dictionary(keys: Any) -> Array:
    """Arrow's dictionary_encode."""
    return keys.dictionary_encode().indices.to_numpy()


def texts(rows: Rows) -> Any:
    """Text as pandas' own type of text, which lies in Arrow's memory."""
    import pandas as pd

    return pd.Series(rows.arrow.to_pandas(), dtype="str", name="key")


def prepare(rows: Rows, form: str, keys: Callable[[Rows], Any] = lambda rows: rows.series) -> Prepared:
    """One form, on one kind of container."""
    import pandas as pd

    expected = expected_of(rows, tolerance=1e-8)
    if form == "arrow":
        return Prepared(partial(dictionary, rows.arrow), expected)
    if form == "range":
        return Prepared(partial(ranged, rows.integers, rows.target, rows.work, rows.folds), expected)
    column, y = keys(rows), pd.Series(rows.target, copy=False)
    if form == "numpy":
        values = column if rows.keys == "category" else column.array if column.dtype == "str" else column.to_numpy()
        return Prepared(partial(counted, values, rows.target, rows.work, rows.folds), expected)
    if form == "by fold":
        return Prepared(partial(by_fold, column, y, rows.folds, rows.work), expected)
    return Prepared(partial(mapped if form == "map" else transformed, column, y, rows.work), expected)


def pandas(
    name: str, works: tuple[str, ...], form: str, *keys: str, prepare: Callable[..., Prepared] = prepare
) -> Contender:
    """Give a contender that pandas has a part in; `-str` reads pandas' own type of text."""
    call = partial(prepare, form=form, **({"keys": texts} if name.endswith("-str") else {}))
    return Contender(name, "hand-written", call, {"work": works, **({"keys": keys} if keys else {})}, ("pandas",))


CONTENDERS = (
    pandas("pandas-map", MAPPED, "map"),
    pandas("pandas-map-str", MAPPED, "map", "text"),
    pandas("pandas-transform", TRANSFORMED, "transform"),
    pandas("pandas-folds", FOLD_WORKS, "by fold"),
    pandas("numpy", (*COUNTED, "codes"), "numpy"),
    pandas("numpy-str", (*COUNTED, "codes"), "numpy", "text"),
    pandas("numpy-range", COUNTED, "range", "int"),
    pandas("arrow", ("codes",), "arrow", "int", "sparse", "text"),
)
