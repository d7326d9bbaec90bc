"""Reals whose rows have an estimate each: leave-one-out, orders of time, half-lives and windows.

Engines and the bare loop take the mean of all targets as the prior.  Engines compute m-estimates for smooth="auto" too,
which is less work than empirical Bayes.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import repeat
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.cpu.contenders import polars_forms
from benchmarks.cpu.contenders.limit import split
from benchmarks.cpu.contenders.ours import matrix
from benchmarks.cpu.goals import MISSED
from benchmarks.cpu.grid import SMOOTH, span_of
from benchmarks.cpu.judge import floor_ranks, m_estimate, sum_earlier
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared
from benchmarks.harness.judge import Answer
from benchmarks.harness.rows import Array, Rows
from cpu_fallback.decay import STEPS_OF_BLOCK

OTHERS, ORDERED, HALF_LIFE, WINDOW = "leave-one-out", "ordered", "half-life", "window"
WITHOUT_AGES = "without ages"
EIGHTHS = 8
MOST_STEPS = 1 << 62
# Sums of float64 lose digits, and the most where variances are differences of them.
TOLERANCE = 1e-6
GOALS = {"engine": 2.0, "limit": 0.3, WITHOUT_AGES: 0.5}
FEWEST_ROWS = 1_000_000
UNDECIDED = "undecided rows"
FORMS = "cpu_fallback.compiled.leave_one_out_encodings", "encode_by_closed_forms"
FRAMES = {
    OTHERS: "PARTITION BY key",
    ORDERED: "PARTITION BY key ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    WINDOW: "PARTITION BY key ORDER BY row RANGE BETWEEN {span} PRECEDING AND 1 PRECEDING",
}
QUERY = """
SELECT (coalesce(sum(y) OVER seen, 0) - {own} * y + {m} * mean) / (count(*) OVER seen - {own} + {m}) AS encoding
FROM rows, (SELECT avg(y) AS mean FROM rows) WINDOW seen AS ({frame}) ORDER BY row
"""


Part = tuple[float, float, float]


class Seen(NamedTuple):
    """Weight, sum and variance of the rows that each row sees."""

    n: Array
    s: Array
    variance: Array

    @classmethod
    def of(cls, n: Array, s: Array, q: Array) -> "Seen":
        """Give the variances from sums of squares; a single row has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(n, s, np.where(n == 1, 0.0, q / n - (s / n) ** 2))


def sum_seen(work: str, codes: Array, target: Array, span: int, steps: int) -> Seen:
    """Sum the rows that each row sees in its category."""
    if work == OTHERS:
        counts = np.bincount(codes)[codes] - 1.0
        return Seen.of(counts, *(np.bincount(codes, powers)[codes] - powers for powers in (target, target**2)))
    if work == ORDERED:
        return Seen.of(*sum_earlier(codes, target), sum_earlier(codes, target**2)[1])
    if work == WINDOW:
        return sum_window(codes.tolist(), target.tolist(), span)
    return sum_halving(codes.tolist(), target.tolist(), span, steps)


def sum_window(codes: list[int], target: list[float], span: int) -> Seen:
    """Sum earlier rows that are at most so old, row after row."""
    running, seen = dict.fromkeys(codes, (0.0, 0.0, 0.0)), []
    for row, (code, value) in enumerate(zip(codes, target, strict=True)):
        if row > span:
            gone, left = codes[row - span - 1], target[row - span - 1]
            n, s, q = running[gone]
            running[gone] = n - 1.0, s - left, q - left * left
        n, s, q = running[code]
        seen.append((n, s, q))
        running[code] = n + 1.0, s + value, q + value * value
    return Seen.of(*np.array(seen).T)


def sum_halving(codes: list[int], target: list[float], span: int, steps: int) -> Seen:
    """Sum earlier rows whose weight halves in so many rows, row after row; squares are those around the mean.

    A row sees rows of its own block of so many steps, and of the block before it.
    """
    # Weight, mean and squares of the block before and of the own block, at the last row of the category.
    running, seen, last = {code: [(0.0, 0.0, 0.0)] * 2 for code in codes}, [], dict.fromkeys(codes, 0)
    for row, (code, value) in enumerate(zip(codes, target, strict=True)):
        now, then, parts = EIGHTHS * row // span, last[code], running[code]
        if now // steps > then // steps:
            parts = [parts[1] if now // steps == then // steps + 1 else (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)]
        weight, last[code] = 2.0 ** ((then - now) / EIGHTHS), now
        parts = [(n * weight, mean, squares * weight) for n, mean, squares in parts]
        n, mean, squares = join(*parts)
        seen.append((n, n * mean, squares / n if n else 0.0))
        running[code] = [parts[0], join(parts[1], (1.0, value, 0.0))]
    return Seen(*np.array(seen).T)


def join(left: Part, right: Part) -> Part:
    """Give weight, mean and squares around the mean of two parts together."""
    n, apart = left[0] + right[0], right[1] - left[1]
    share = right[0] / n if n else 0.0
    return n, left[1] + apart * share, left[2] + right[2] + apart * apart * left[0] * share


def expected_of(rows: Rows, visible_prior: bool, auto: bool, work: str) -> Answer:
    """Give the encodings by a definition in float64; otherwise the prior is the mean of all targets."""

    def encode() -> Array:
        y, span = rows.target, span_of(rows.n_rows)
        # Ours sees no rows that are older than the block before; the loop sees all rows.
        steps = STEPS_OF_BLOCK if visible_prior else MOST_STEPS
        own = sum_seen(work, rows.codes, y, span, steps)
        everything = Seen(*(np.array(total) for total in (float(len(y)), y.sum(), y.var())))
        if visible_prior:
            everything = sum_seen(work, np.zeros(len(y), np.int64), y, span, steps)
        if visible_prior and work == ORDERED:
            everything = Seen(*(sums[floor_ranks(np.arange(len(y)))] for sums in everything))
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = everything.s / everything.n
            if not auto:
                return m_estimate(own.n, own.s, prior)
            mean, noise, signal = own.s / own.n, own.variance, own.n * everything.variance
            return np.where(own.n > 0, mean + noise / (noise + signal) * (prior - mean), prior)

    return Answer(lambda: repeat(encode(), 1), 1, TOLERANCE)


def prepare_ours(rows: Rows, ages: bool = True) -> Prepared:
    """Prepare our encoder; times are numbers of rows."""
    from gpu_encode import LeaveOneOut, Ordered, TargetEncoder

    work = rows.work if ages else ORDERED
    keys, times = rows.codes, np.arange(rows.n_rows)
    X, y, auto = np.stack([keys, times], axis=1), rows.target, rows.cell["smooth"] == "auto"
    choices = {HALF_LIFE: {"half_life": span_of(len(y))}, WINDOW: {"window": span_of(len(y))}}.get(work, {})
    cv: Any = LeaveOneOut() if work == OTHERS else Ordered(time=1, **choices)
    if work == OTHERS:
        X = X[:, :1].copy()

    def encode() -> Array:
        smooth: Any = "auto" if auto else SMOOTH
        encoder = TargetEncoder(columns=[0], cv=cv, smooth=smooth, target_type="continuous", device="cpu")
        return matrix(encoder.fit_transform(X, y))[:, 0]

    expected = expected_of(rows, True, auto, work)
    return Prepared(encode, expected, watch=partial(count_undecided, encode) if work == OTHERS else dict)


def count_undecided(call: Callable[[], Any]) -> dict[str, int]:
    """Count the rows that closed forms leave to exact code."""
    (address, name), counts = FORMS, []
    module = import_module(address)
    decide = getattr(module, name)

    def watch(*given: Any) -> Any:
        lost, undecided = decide(*given)
        counts.append(len(undecided))
        return lost, undecided

    with patch.object(module, name, watch):
        call()
    return {UNDECIDED: sum(counts)}


def prepare_polars(rows: Rows) -> Prepared:
    """Prepare windows of polars."""
    frame = polars_forms.frame_of(rows).with_row_index("row")
    call = partial(polars_forms.encode_by_windows, frame, rows.work)
    if rows.work == WINDOW:
        call = partial(roll_polars, frame, span_of(rows.n_rows))
    return Prepared(call, expected_of(rows, False, False, rows.work))


def roll_polars(frame: Any, span: int) -> Array:
    """Encode by the earlier rows of the category that are at most so old."""
    import polars as pl

    n, s = (
        each.rolling_sum_by("row", f"{span}i", closed="left").over("key").fill_null(0.0)
        for each in (pl.col("one"), pl.col("y"))
    )
    encoding = polars_forms.shrink(s, n).alias("encoding")
    return np.asarray(frame.with_columns(one=1.0).select(encoding).collect()["encoding"].to_numpy())


def prepare_duckdb(rows: Rows) -> Prepared:
    """Prepare windows of DuckDB on a table of its own; encodings are in the order of the rows."""
    import duckdb

    connection = duckdb.connect()
    given = {"key": rows.codes, "y": rows.target, "row": np.arange(rows.n_rows)}
    connection.register("given", given)
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    frame = FRAMES[rows.work].format(span=span_of(rows.n_rows))
    query = QUERY.format(frame=frame, own=int(rows.work == OTHERS), m=SMOOTH)
    expected = expected_of(rows, False, False, rows.work)
    return Prepared(lambda: connection.execute(query).fetchnumpy()["encoding"], expected, connection.close)


def prepare_loop(rows: Rows) -> Prepared:
    """Prepare the bare loop: leave-one-out encodes on all threads, everything else runs on one."""
    loops = import_module("benchmarks.cpu.contenders.row_loops")
    codes, y, auto, span = rows.codes, rows.target, rows.cell["smooth"] == "auto", span_of(rows.n_rows)
    size, smooth = int(codes.max()) + 1, -1.0 if auto else SMOOTH

    def encode() -> Array:
        cells, out, total = np.zeros((size, 3)), np.empty(len(y)), (float(len(y)), y.sum(), y.var())
        if rows.work == OTHERS:
            loops.sum_rows(codes, y, cells, 0, len(y))
            split(loops.encode_others, len(y), codes, y, cells, total, smooth, out)
        elif rows.work == HALF_LIFE:
            loops.encode_with_decay(codes, y, cells, total, smooth, span, out)
        else:
            loops.encode_in_order(codes, y, cells, total, smooth, span if rows.work == WINDOW else 0, out)
        return out

    return Prepared(encode, expected_of(rows, False, auto, rows.work))


def mark(cell: Cell, family: str, ratio: float) -> str:
    """Give the mark after a ratio."""
    return MISSED if cell["rows"] >= FEWEST_ROWS and ratio < GOALS.get(family, 0.0) else ""


def tell_undecided(cells: list[Cell]) -> list[str]:
    """Say how many rows closed forms left to exact code."""
    return [
        f"- {cell['categories']:,} categories, {cell['smooth']}: closed forms leave {undecided:,} of {cell['rows']:,} "
        "rows to exact code."
        for cell in cells
        if (undecided := cell["contenders"].get("ours", {}).get(UNDECIDED)) is not None
    ]


BY_ENGINES = {"work": (OTHERS, ORDERED, WINDOW)}
ROW_BY_ROW = Grid(
    "row-by-row",
    {
        "rows": (1_000_000,),
        "categories": (100, 50_000, 500_000),
        "keys": ("int",),
        "target": ("continuous",),
        "work": (OTHERS, ORDERED, HALF_LIFE, WINDOW),
        "smooth": ("m=10", "auto"),
    },
    (
        Contender("ours", "ours", prepare_ours, compiles=True),
        Contender("polars", "engine", prepare_polars, BY_ENGINES, ("polars",)),
        Contender("duckdb", "engine", prepare_duckdb, BY_ENGINES, ("duckdb",)),
        Contender("loop", "limit", prepare_loop, needs=("numba",), compiles=True),
        Contender(
            "ours-without-ages",
            WITHOUT_AGES,
            partial(prepare_ours, ages=False),
            {"work": (HALF_LIFE, WINDOW)},
            compiles=True,
        ),
    ),
    {"rows": (3_000,), "categories": (40,)},
    mark=mark,
    remark=tell_undecided,
)
