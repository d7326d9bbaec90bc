"""The peer: what people write with cuDF's groupby for the same work, on the same rows."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.gpu import goals
from benchmarks.gpu.drawn import DRAWN, Columns, codes
from benchmarks.gpu.run import Run
from benchmarks.gpu.timing import free_memory, measure
from cpu_fallback.types import Array
from gpu_encode.cuda.memory import to_host
from gpu_encode.cuda.runtime import xp

N_ROWS = 100_000_000
CATEGORIES = (1000, 100_000, 1_000_000)
Encoding = Callable[[str, Array, Array], Callable[[], Array]]


def shrunk(part: Any, prior: float) -> Any:
    """Mean of each line of sums and counts, shrunk towards the prior with weight 10."""
    return (part["total"] + 10.0 * prior) / (part["count"] + 10.0)


def mean(frame: Any) -> Any:
    """Fit and transform: groupby, merge, back into order."""
    sums = frame.groupby("x").agg({"y": ["sum", "count"]})
    sums.columns = ["total", "count"]
    sums["code"] = shrunk(sums, float(frame["y"].mean()))
    merged = frame.merge(sums[["code"]].reset_index(), on="x", how="left")
    return merged.sort_values("row")["code"].astype("float32")


def five_folds(frame: Any) -> Any:
    """Sums per category and fold, taken from those per category (as cuML and NVTabular do)."""
    frame = frame.copy(deep=False)
    frame["fold"] = frame["row"] % 5
    by_fold = frame.groupby(["x", "fold"]).agg({"y": ["sum", "count"]})
    by_fold.columns = ["own", "rows"]
    by_fold = by_fold.reset_index()
    sums = by_fold.groupby("x").agg({"own": "sum", "rows": "sum"}).reset_index()
    sums.columns = ["x", "total", "count"]
    both = by_fold.merge(sums, on="x", how="left")
    both["total"], both["count"] = both["total"] - both["own"], both["count"] - both["rows"]
    both["code"] = shrunk(both, float(frame["y"].mean()))
    merged = frame.merge(both[["x", "fold", "code"]], on=["x", "fold"], how="left")
    return merged.sort_values("row")["code"].astype("float32")


def ordered(frame: Any) -> Any:
    """Rows before each row of its category, in the order given."""
    groups = frame.groupby("x")["y"]
    total, count = groups.cumsum() - frame["y"], frame.groupby("x").cumcount()
    return ((total + 10.0 * float(frame["y"].mean())) / (count + 10.0)).astype("float32")


FORMS: dict[str, Callable[[Any], Any]] = {
    "mean, fit and transform, 0/1": mean,
    "5 folds, 0/1": five_folds,
    "ordered, 0/1": ordered,
}


def library(step: Run) -> Any:
    """Give cuDF; in the simulator pandas, which has the same methods, stands in for it."""
    name = "pandas" if step.simulated else "cudf"
    if find_spec(name) is None:
        return None
    if not step.simulated:
        free_memory()
        import_module("rmm").reinitialize(pool_allocator=True)
    return import_module(name)


def run(step: Run, encoding: Encoding) -> None:
    """Measure each form and TargetEncoder side by side; ratios in one run are what counts."""
    frames = library(step)
    if frames is None:
        step.note("cuDF is not installed: nothing to compare with")
        return
    n_rows = step.size(N_ROWS, 16)
    # Neither pandas nor what stands in for CuPy in the simulator knows the other.
    held = to_host if step.simulated else xp.asarray
    y = Columns(n_rows).binary
    rest = {"y": held(y.astype(np.int64)), "row": held(xp.arange(n_rows))}
    for n_categories in step.size(CATEGORIES, (5,)):
        for drawn in DRAWN[: 1 if step.tiny else None]:
            x = codes(n_rows, n_categories, drawn)
            for work, form in FORMS.items():
                named = {"work": work, "categories": n_categories, "drawn": drawn, "rows": n_rows}
                with step.attempt(str(named)):
                    table = frames.DataFrame({"x": held(x), **rest})
                    theirs = measure(partial(form, table))
                    ours = measure(encoding(work, x.reshape(-1, 1), y))
                    compare(step, named, n_rows / theirs / 1e9, n_rows / ours / 1e9)


def compare(step: Run, named: dict[str, Any], theirs: float, ours: float) -> None:
    """Write down two rates, in billions of rows a second, and their ratio beside its goal."""
    if step.simulated:
        step.row("groupby forms", **named, ran=True)
        return
    goal, times = goals.goal_of(goals.TIMES_CUDF, named["work"], named["categories"]), ours / theirs
    rates = {"cuDF, G rows/s": theirs, "ours, G rows/s": ours, "times faster": times}
    step.row("cuDF", **named, **rates, goal=goal, reached=None if goal is None else times >= goal)
