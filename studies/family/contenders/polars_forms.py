"""polars: windows and ranks if they can do the work, otherwise group_by and join; and dummies."""

from functools import partial
from typing import Any

from benchmarks.cpu.contenders import polars_forms as of_targets
from benchmarks.cpu.contenders.polars_forms import frame_of
from benchmarks.cpu.grid import SMOOTH
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Numbering
from benchmarks.harness.rows import Array, Rows
from studies.family.indicators import MOST_DENSE, Indicators
from studies.family.judge import expected_of

WORKS = ("count", "ordinal", "ordinal-frequency", "evidence", "evidence-folds", "statistics", "median", "impact-folds")


def collect(rows: Rows) -> Any:
    """Give rows as a lazy frame of columns in memory, with reals if they are needed."""
    frame = frame_of(rows)
    if rows.work in ("statistics", "median"):
        frame = frame.with_columns(value=rows.values)
    return frame.collect().lazy()


def array(frame: Any) -> Array:
    """Give the columns of encodings as a NumPy array."""
    import polars.selectors

    columns = frame.select(polars.selectors.starts_with("encoding")).collect()
    return (columns.to_series() if columns.width == 1 else columns).to_numpy()


def log_ratio(n: Any, s: Any, n_all: Any, s_all: Any, r: float = 1.0) -> Any:
    """Give the weight of evidence; 0 without rows."""
    import polars as pl

    ratio = ((s + r) / (s_all + 2 * r) / ((n - s + r) / (n_all - s_all + 2 * r))).log()
    return pl.when(n > 0).then(ratio).otherwise(0.0).alias("encoding")


def encode(frame: Any, work: str) -> Array:
    """Encode with over(), with rank(), or, for the order of frequencies, with a join."""
    import polars as pl

    y, value, count = pl.col("y"), pl.col("value"), pl.len().cast(pl.Int64)
    if work == "ordinal":
        return array(frame.select((pl.col("key").rank("dense") - 1).alias("encoding")))
    if work == "ordinal-frequency":
        table = frame.group_by("key").agg(count.alias("n"))
        table = table.sort("n", "key", descending=[True, False]).with_row_index("encoding")
        return array(frame.join(table, on="key", how="left", maintain_order="left"))
    if work == "evidence":
        n, s = (each.over("key").cast(pl.Int64) for each in (pl.len(), y.sum()))
        return array(frame.select(log_ratio(n, s, count, y.sum())))
    figures = [value.median()] if work == "median" else [value.mean(), value.std(), pl.len().cast(pl.Float64)]
    return array(frame.select(each.over("key").alias(f"encoding{number}") for number, each in enumerate(figures)))


def encode_by_fold(frame: Any, work: str) -> Array:
    """Encode with a join of the sums by category, minus the sums of the row's own fold."""
    import polars as pl

    table = frame.group_by("key", "fold").agg(pl.len().cast(pl.Int64).alias("n"), pl.col("y").sum().alias("s"))
    others = {name: pl.col(name).sum().over("key") - pl.col(name) for name in ("n", "s")}
    totals = {f"{name}_all": pl.col(name).sum() - pl.col(name).sum().over("fold") for name in ("n", "s")}
    table = table.with_columns(**others, **totals)
    sums = [pl.col(name) for name in ("n", "s", "n_all", "s_all")]
    encodings = [log_ratio(*sums)] if work == "evidence-folds" else impact(*sums)
    table = table.select("key", "fold", *encodings)
    return array(frame.join(table, on=("key", "fold"), how="left", maintain_order="left"))


def impact(n: Any, s: Any, n_all: Any, s_all: Any) -> list[Any]:
    """Give impact and prevalence."""
    mean = s_all / n_all
    shrunk = (s + SMOOTH * mean) / (n + SMOOTH)
    return [(shrunk - mean).alias("encoding0"), (n / n_all).alias("encoding1")]


def prepare(rows: Rows) -> Prepared:
    """Prepare the form of polars that does the work."""
    if rows.work == "count":
        return of_targets.prepare(rows)
    call = encode_by_fold if rows.work.endswith("-folds") else encode
    return Prepared(partial(call, collect(rows), rows.work), expected_of(rows))


def dummies(rows: Rows) -> Prepared:
    """Prepare a dense column of bytes for each category."""
    keys = collect(rows).select("key").collect()
    # Its columns come in no defined order: their names tell them apart.
    return Prepared(lambda: Indicators(keys.to_dummies("key")), Numbering(rows.codes))


DENSE = {"work": ("one-hot",), "categories": range(MOST_DENSE + 1)}
CONTENDERS = (
    Contender("polars", "engine", prepare, {"work": WORKS}, ("polars",)),
    Contender("polars-dummies", "engine", dummies, DENSE, ("polars",)),
)
