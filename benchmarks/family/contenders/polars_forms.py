"""polars: group_by and join, windows, ranks and dummies."""

from functools import partial
from typing import Any

from benchmarks.cpu.contenders import polars_forms as of_targets
from benchmarks.cpu.contenders.polars_forms import frame_of
from benchmarks.cpu.grid import SMOOTH
from benchmarks.family.indicators import MOST_DENSE, Indicators
from benchmarks.family.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Numbering
from benchmarks.harness.rows import Array, Rows

WINDOWED = ("count", "ordinal", "evidence", "statistics", "median")
JOINED = ("count", "ordinal", "ordinal-frequency", "evidence", "evidence-folds", "statistics", "median", "impact-folds")


def whole(rows: Rows) -> Any:
    """Rows as a lazy frame, with folds and reals where they are needed."""
    frame = frame_of(rows)
    if rows.work.endswith("-folds"):
        frame = frame.with_columns(fold=rows.folds)
    if rows.work in ("statistics", "median"):
        frame = frame.with_columns(value=rows.values)
    return frame.collect().lazy()


def array(frame: Any) -> Array:
    """NumPy array of the columns called code."""
    import polars.selectors

    found = frame.select(polars.selectors.starts_with("code")).collect()
    values: Array = (found.to_series() if found.width == 1 else found).to_numpy()
    return values


def log_ratio(n: Any, s: Any, n_all: Any, s_all: Any, r: float = 1.0) -> Any:
    """Weight of evidence, 0 where there is nothing."""
    import polars as pl

    ratio = ((s + r) / (s_all + 2 * r) / ((n - s + r) / (n_all - s_all + 2 * r))).log()
    return pl.when(n > 0).then(ratio).otherwise(0.0).alias("code")


def aggregates(work: str) -> list[Any]:
    """What is asked of a column of reals."""
    import polars as pl

    value = pl.col("value")
    if work == "median":
        return [value.median().alias("code")]
    return [value.mean().alias("code0"), value.std().alias("code1"), pl.len().cast(pl.Float64).alias("code2")]


def windowed(frame: Any, work: str) -> Array:
    """Codes by over() and rank()."""
    import polars as pl

    y = pl.col("y")
    if work == "ordinal":
        return array(frame.select((pl.col("key").rank("dense") - 1).alias("code")))
    if work == "evidence":
        n, s = (each.over("key").cast(pl.Int64) for each in (pl.len(), y.sum()))
        return array(frame.select(log_ratio(n, s, pl.len().cast(pl.Int64), y.sum())))
    return array(frame.select(each.over("key") for each in aggregates(work)))


def joined(frame: Any, work: str) -> Array:
    """Codes by group_by and join."""
    import polars as pl

    count = pl.len().cast(pl.Int64)
    if work == "ordinal":
        table = frame.select("key").unique().sort("key").with_row_index("code")
    elif work == "ordinal-frequency":
        table = frame.group_by("key").agg(count.alias("n"))
        table = table.sort("n", "key", descending=[True, False]).with_row_index("code")
    elif work == "evidence":
        table = frame.group_by("key").agg(count.alias("n"), pl.col("y").sum().alias("s"))
        table = table.select("key", log_ratio(pl.col("n"), pl.col("s"), pl.col("n").sum(), pl.col("s").sum()))
    else:
        table = frame.group_by("key").agg(aggregates(work))
    return array(frame.join(table, on="key", how="left", maintain_order="left"))


def by_fold(frame: Any, work: str) -> Array:
    """Codes by sums of categories and folds, less those of a row's own fold, and join."""
    import polars as pl

    table = frame.group_by("key", "fold").agg(pl.len().cast(pl.Int64).alias("n"), pl.col("y").sum().alias("s"))
    others = {name: pl.col(name).sum().over("key") - pl.col(name) for name in ("n", "s")}
    totals = {f"{name}_all": pl.col(name).sum() - pl.col(name).sum().over("fold") for name in ("n", "s")}
    table = table.with_columns(**others, **totals)
    n, s, n_all, s_all = (pl.col(name) for name in ("n", "s", "n_all", "s_all"))
    code = [log_ratio(n, s, n_all, s_all)] if work == "evidence-folds" else impact(n, s, n_all, s_all)
    table = table.select("key", "fold", *code)
    return array(frame.join(table, on=("key", "fold"), how="left", maintain_order="left"))


def impact(n: Any, s: Any, n_all: Any, s_all: Any) -> list[Any]:
    """Impact, deviation and prevalence."""
    import polars as pl

    mean, most = s_all / n_all, (s_all * (n_all - s_all) / (n_all * (n_all - 1))).sqrt()
    deviation = pl.when(n > 1).then((s * (n - s) / (n * (n - 1))).sqrt()).otherwise(most)
    shrunk = (s + SMOOTH * mean) / (n + SMOOTH)
    return [(shrunk - mean).alias("code0"), deviation.alias("code1"), (n / n_all).alias("code2")]


def prepare(rows: Rows, form: str) -> Prepared:
    """One form of polars."""
    if rows.work == "count":
        return of_targets.prepare(rows, form)
    frame, call = whole(rows), windowed if form == "over" else joined
    call = by_fold if rows.work.endswith("-folds") else call
    return Prepared(partial(call, frame, rows.work), expected_of(rows))


def dummies(rows: Rows) -> Prepared:
    """A dense column for each category, of bytes."""
    keys = whole(rows).select("key").collect()
    # Its columns come in no defined order: their names tell them apart.
    return Prepared(lambda: Indicators(keys.to_dummies("key")), Numbering(rows.codes))


DENSE = {"work": ("one-hot",), "categories": range(MOST_DENSE + 1)}
CONTENDERS = (
    Contender("polars-over", "engine", partial(prepare, form="over"), {"work": WINDOWED}, ("polars",)),
    Contender("polars-join", "engine", partial(prepare, form="in-memory"), {"work": JOINED}, ("polars",)),
    Contender("polars-dummies", "engine", dummies, DENSE, ("polars",)),
)
