"""polars: group_by and join, in memory and streaming, and windows."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, REAL_WORKS, SMOOTH
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_CLASSES, Array, Rows

WINDOWED = ("mean", "mean-real", "ordered", "leave-one-out", "count")
JOINED = ("mean", "mean-real", "folds", "folds-real", "leave-one-out", "count", "classes", "codes")


def frame_of(rows: Rows) -> Any:
    """Rows as a lazy frame."""
    import polars as pl

    keys = pl.from_arrow(rows.arrow) if rows.keys in ("text", "category") else pl.Series(rows.integers)
    folds = {"fold": rows.folds} if rows.work in FOLD_WORKS else {}
    return pl.DataFrame({"key": keys, "y": rows.target, **folds}).lazy()


def shrunk(total: Any, count: Any) -> Any:
    """Mean of a category and the mean of all rows."""
    import polars as pl

    return (total + SMOOTH * pl.col("y").mean()) / (count + SMOOTH)


def windowed(frame: Any, work: str) -> Array:
    """Codes by over()."""
    import polars as pl

    y = pl.col("y")
    if work == "count":
        code = pl.len().over("key").cast(pl.Float64)
    elif work == "ordered":
        code = shrunk(y.cum_sum().over("key") - y, y.cum_count().over("key") - 1)
    elif work == "leave-one-out":
        code = shrunk(y.sum().over("key") - y, pl.len().over("key") - 1)
    else:
        code = shrunk(y.sum().over("key"), pl.len().over("key"))
    found: Array = frame.select(code.alias("code")).collect()["code"].to_numpy()
    return found


def joined(frame: Any, work: str, engine: str) -> Array:
    """Codes by group_by and join."""
    import polars as pl

    if work in FOLD_WORKS:
        return joined_by_fold(frame, work, engine)
    y = pl.col("y")
    if work == "codes":
        table, code = frame.select("key").unique().with_row_index("code"), pl.col("code")
    else:
        table = frame.group_by("key").agg(
            pl.len().cast(pl.Float64).alias("n"), *([] if work == "count" else [y.sum().alias("sum")])
        )
        code = pl.col("n")
        if work == "leave-one-out":
            code = shrunk(pl.col("sum") - y, pl.col("n") - 1)
        elif work != "count":
            code = shrunk(pl.col("sum"), pl.col("n"))
    both = frame.join(table, on="key", how="left", maintain_order="left")
    found: Array = both.select(code.alias("code")).collect(engine=engine)["code"].to_numpy()
    return found


def joined_by_fold(frame: Any, work: str, engine: str) -> Array:
    """Totals less a row's own fold."""
    import polars as pl

    y = pl.col("y")
    sums = {"sum": y.sum()}
    if work == "classes":
        sums = {f"sum{label}": (y == label).sum().cast(pl.Float64) for label in range(N_CLASSES)}
    table = frame.group_by("key", "fold").agg(
        pl.len().cast(pl.Float64).alias("n"), *(each.alias(name) for name, each in sums.items())
    )
    seen = [(pl.col(name).sum().over("key") - pl.col(name)).alias(name) for name in ("n", *sums)]
    table = table.with_columns(seen)
    priors = (
        frame.select((y == label).mean().alias(f"prior{label}") for label in range(N_CLASSES)).collect()
        if work == "classes"
        else None
    )
    both = frame.join(table, on=("key", "fold"), how="left", maintain_order="left")
    if priors is None:
        chosen = [shrunk(pl.col("sum"), pl.col("n")).alias("code")]
    else:
        shares = zip(sums, priors.row(0), strict=True)
        chosen = [((pl.col(name) + SMOOTH * share) / (pl.col("n") + SMOOTH)).alias(name) for name, share in shares]
    found = both.select(chosen).collect(engine=engine)
    return np.asarray(found.to_numpy() if priors is not None else found["code"].to_numpy())


def prepare(rows: Rows, form: str) -> Prepared:
    """One form of polars."""
    frame = frame_of(rows)
    # Window sums of reals are no more exact than running ones.
    changes = {"tolerance": 1e-8} if rows.work in REAL_WORKS else {}
    if form == "over":
        return Prepared(partial(windowed, frame, rows.work), expected_of(rows, **changes))
    return Prepared(partial(joined, frame, rows.work, form), expected_of(rows, **changes))


CONTENDERS = (
    Contender("polars-over", "engine", partial(prepare, form="over"), {"work": WINDOWED}, ("polars",)),
    Contender("polars-join", "engine", partial(prepare, form="in-memory"), {"work": JOINED}, ("polars",)),
    Contender("polars-streaming", "engine", partial(prepare, form="streaming"), {"work": JOINED}, ("polars",)),
)
