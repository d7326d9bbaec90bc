"""TargetEncoder from device to device, beside the goals, and beside what people write with cuDF."""

import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.gpu import frames, goals
from benchmarks.gpu.drawn import DRAWN, Columns, codes
from benchmarks.gpu.kernels import MOST_OF_REALS, rows_that_fit
from benchmarks.gpu.run import Run
from benchmarks.gpu.tables import against_uniform
from benchmarks.gpu.timing import host_seconds_of, measure
from cpu_fallback.types import Array
from gpu_encode import LeaveOneOut, Ordered, TargetEncoder

N_ROWS = 1 << 28
CATEGORIES = (128, 4096, 65_536, 1_000_000, 100_000_000)
Options = dict[str, Any]
# Work -> target, bytes that a row has and gets (its number is 4, classes 4, a real target 8), parameters.
WORK: dict[str, tuple[str, int, Options]] = {
    "5 folds, 0/1": ("binary", 12, {"smooth": 10.0}),
    "mean, fit and transform, 0/1": ("binary", 16, {"smooth": 10.0}),
    "leave one out, 0/1": ("binary", 12, {"smooth": 10.0, "cv": LeaveOneOut()}),
    "ordered, 0/1": ("binary", 12, {"smooth": 10.0, "cv": Ordered()}),
    "5 folds, 10 classes": ("ten", 48, {"smooth": 10.0}),
    "5 folds, real, auto": ("real", 16, {}),
    "mean, fit and transform, real": ("real", 20, {"smooth": 10.0}),
    "leave one out, real, auto": ("real", 16, {"cv": LeaveOneOut()}),
    "ordered, real, auto": ("real", 16, {"cv": Ordered()}),
}
KINDS = {"binary": "binary", "real": "continuous", "ten": "multiclass"}
TABLE = "TargetEncoder on CuPy arrays"


def encoding(work: str, X: Array, y: Array) -> Callable[[], Array]:
    """Give the call that does some work."""
    target, _, options = WORK[work]
    encoder = TargetEncoder(target_type=KINDS[target], dtype="float32", device="cuda", **options)

    def in_training() -> Array:
        return encoder.fit_transform(X, y)

    def of_new_rows() -> Array:
        return encoder.fit(X, y).transform(X)

    return of_new_rows if work.startswith("mean") else in_training


def bench(step: Run, work: str, X: Array, columns: Columns, named: Options) -> None:
    """Measure one encoder, beside its goal."""
    target, moved, _ = WORK[work]
    with step.attempt(f"{work}, {named}"):
        try:
            seconds = measure(encoding(work, X, getattr(columns, target)))
        except MemoryError as error:
            step.row(TABLE, work=work, **named, skipped=str(error).splitlines()[0])
            return
        found = step.figures(seconds, len(X), moved)
        if not step.simulated:
            goal = goals.goal_of(goals.RATES, work, named["categories"], step.copy_rate())
            found |= {"goal": goal, "reached": None if goal is None else found["G rows/s"] >= goal}
        step.row(TABLE, work=work, **named, **found)


def small(step: Run) -> None:
    """Time a frame of a thousand rows, by the host's clock."""
    n_rows = step.size(1000, 16)
    columns, X = Columns(n_rows), codes(n_rows, 50, "uniform").reshape(-1, 1)
    for work in list(WORK)[: 2 if step.tiny else None]:
        with step.attempt(f"1,000 rows, {work}"):
            milliseconds = 1e3 * measure(encoding(work, X, getattr(columns, WORK[work][0])), host_seconds_of, 20)
            found = {"ms": milliseconds, "goal": goals.SMALL_MS, "reached": milliseconds <= goals.SMALL_MS}
            step.row("1,000 rows", work=work, rows=n_rows, **({"ran": True} if step.simulated else found))


def run(step: Run) -> None:
    """Measure encoders on small data, on large, and against cuDF."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small(step)
        columns = Columns(step.size(rows_that_fit(N_ROWS), 16))
        for n_categories in step.size(CATEGORIES, (5,)):
            for drawn in DRAWN:
                X = codes(columns.n_rows, n_categories, drawn).reshape(-1, 1)
                for work in WORK if n_categories <= MOST_OF_REALS else [name for name in WORK if "0/1" in name]:
                    bench(step, work, X, columns, {"categories": n_categories, "drawn": drawn})
        for row in against_uniform(step.report.rows(step.step, TABLE), "work"):
            step.row("Zipf 1.5 against uniform", **row)
        frames.run(step, encoding)
