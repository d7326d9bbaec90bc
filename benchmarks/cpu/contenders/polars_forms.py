"""polars: windows if they can do the work, otherwise group_by and join, which is slower if both can do it."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, REAL_WORKS, SMOOTH
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_CLASSES, Array, Rows


def frame_of(rows: Rows) -> Any:
    """Give rows as a lazy frame."""
    import polars as pl

    keys = pl.from_arrow(rows.arrow)
    folds = {"fold": rows.folds} if rows.work.endswith("-folds") or rows.work in FOLD_WORKS else {}
    return pl.DataFrame({"key": keys, "y": rows.target, **folds}).lazy()


def shrink(total: Any, count: Any) -> Any:
    """Give the mean of a category, shrunk towards the mean of all rows."""
    import polars as pl

    return (total + SMOOTH * pl.col("y").mean()) / (count + SMOOTH)


def encode_by_windows(frame: Any, work: str) -> Array:
    """Encode with over()."""
    import polars as pl

    y = pl.col("y")
    if work == "count":
        encoding = pl.len().over("key").cast(pl.Float64)
    elif work == "ordered":
        encoding = shrink(y.cum_sum().over("key") - y, y.cum_count().over("key") - 1)
    elif work == "leave-one-out":
        encoding = shrink(y.sum().over("key") - y, pl.len().over("key") - 1)
    else:
        encoding = shrink(y.sum().over("key"), pl.len().over("key"))
    return frame.select(encoding.alias("encoding")).collect()["encoding"].to_numpy()


def number(frame: Any, _: str) -> Array:
    """Number the keys with unique and join."""
    table = frame.select("key").unique().with_row_index("code")
    return frame.join(table, on="key", how="left", maintain_order="left").collect()["code"].to_numpy()


def encode_by_fold(frame: Any, work: str) -> Array:
    """Encode with a join of the sums by category, minus the sums of the row's own fold."""
    import polars as pl

    y = pl.col("y")
    sums = {"sum": y.sum()}
    if work == "classes":
        sums = {f"sum{label}": (y == label).sum().cast(pl.Float64) for label in range(N_CLASSES)}
    table = frame.group_by("key", "fold").agg(pl.len().cast(pl.Float64).alias("n"), **sums)
    table = table.with_columns((pl.col(name).sum().over("key") - pl.col(name)).alias(name) for name in ("n", *sums))
    both = frame.join(table, on=("key", "fold"), how="left", maintain_order="left")
    if work != "classes":
        return both.select(shrink(pl.col("sum"), pl.col("n"))).collect().to_series().to_numpy()
    priors = frame.select((y == label).mean().alias(f"prior{label}") for label in range(N_CLASSES)).collect().row(0)
    shares = zip(sums, priors, strict=True)
    shrunk = [((pl.col(name) + SMOOTH * prior) / (pl.col("n") + SMOOTH)).alias(name) for name, prior in shares]
    return np.asarray(both.select(shrunk).collect().to_numpy())


def prepare(rows: Rows) -> Prepared:
    """Prepare the form of polars that does the work."""
    # Window sums of reals are as inexact as running sums.
    expected = expected_of(rows, **({"tolerance": 1e-8} if rows.work in REAL_WORKS else {}))
    call = encode_by_fold if rows.work in FOLD_WORKS else number if rows.work == "codes" else encode_by_windows
    return Prepared(partial(call, frame_of(rows), rows.work), expected)


CONTENDERS = (Contender("polars", "engine", prepare, needs=("polars",)),)
