"""TargetEncoder from device to device: rows a second, launches, peak of memory, and the time of each kernel."""

import warnings
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.drawn import DRAWN, Columns, codes
from benchmarks.gpu.kernels import rows_that_fit
from benchmarks.gpu.paths import trace_launches
from benchmarks.gpu.report import Run
from benchmarks.gpu.timing import host_seconds_of, peak_of, seconds_of, wait
from cpu_fallback.types import Array
from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder, interactions
from gpu_encode.seam.ops import use_backend

KINDS = {"real": "continuous", "float32": "continuous", "ten": "multiclass"}
CATEGORIES, MANY = (4096, 1_000_000), 1_000_000
# Most bytes a row in addition to input and output, and some bytes for tables.
MOST_BYTES, TABLES = 8, 0.1
MOST_KERNELS = 24


class Case(NamedTuple):
    """Work of an encoder, and its goal on an H200 in billions of rows a second, for 4,096 categories and for 1e6.

    For keys with several columns, the numbers of categories of the further columns follow.
    """

    target: str
    options: dict[str, Any]
    goals: tuple[float, float] | None = None
    work: str = "fit_transform"
    keys: str = "int32"
    more: tuple[int, ...] = ()


SMOOTH: dict[str, Any] = {"smooth": 10.0}
FOLDS, OUT, ORDERED = {"cv": KFold(5)}, {"cv": LeaveOneOut()}, {"cv": Ordered()}
CASES = {
    "folds-int": Case("binary", SMOOTH | FOLDS, (150, 45)),
    "folds-int64": Case("binary64", SMOOTH | FOLDS, keys="int64"),
    "folds-f32": Case("float32", SMOOTH | FOLDS),
    "folds-f32-auto": Case("float32", FOLDS),
    "folds-f64-auto": Case("real", FOLDS, (75, 22.5)),
    "folds-ten": Case("ten", SMOOTH | FOLDS),
    "mean-int": Case("binary", SMOOTH, (200, 60), "fit, transform"),
    "mean-f64": Case("real", SMOOTH, (100, 30), "fit, transform"),
    "transform": Case("binary", SMOOTH, None, "transform"),
    "transform-int64": Case("binary", SMOOTH, None, "transform", "int64"),
    "loo-int": Case("binary", SMOOTH | OUT, (150, 50)),
    "loo-f32": Case("float32", SMOOTH | OUT),
    "loo-f64-auto": Case("real", OUT, (75, 25)),
    "ordered-int": Case("binary", SMOOTH | ORDERED, (40, 18)),
    "ordered-rows-int": Case("binary", SMOOTH | {"cv": Ordered(shuffle=False)}),
    "ordered-f32": Case("float32", SMOOTH | ORDERED),
    "ordered-f64-auto": Case("real", ORDERED, (20, 9)),
}
# Cases that are measured only if `--cases` names them, and predicted: a given prior with as many bits as a mean, and
# several keys, alone and with all pairs.
PRIOR = {"prior": 0.29998251}
MORE_CASES = {
    "folds-int-prior": Case("binary", SMOOTH | FOLDS | PRIOR),
    "loo-int-prior": Case("binary", SMOOTH | OUT | PRIOR),
    "ordered-int-prior": Case("binary", SMOOTH | ORDERED | PRIOR),
    "pairs": Case("binary", SMOOTH | FOLDS | {"columns": [0, 1, 2, (0, 1), (0, 2), (1, 2)]}, more=(1000, 100)),
    "keys-2": Case("binary", SMOOTH | FOLDS, more=(4096,)),
    "keys-4": Case("binary", SMOOTH | FOLDS, more=(4096,) * 3),
    "wide": Case("binary", SMOOTH | FOLDS | {"columns": interactions(range(4), order=2)}, more=(7, 40, 300)),
}
MORE_CASES["wide-transform"] = MORE_CASES["wide"]._replace(work="transform")


def table_of(case: Case, n_rows: int, n_categories: int, drawn: str = "uniform") -> Array:
    """Make the keys of a case, one column for each."""
    sizes = (n_categories, *case.more)
    columns = [
        codes(n_rows, size, drawn, seed=1 + 10 * k).astype(case.keys, copy=False) for k, size in enumerate(sizes)
    ]
    table = columns[0].reshape(-1, 1)
    for column in columns[1:]:
        table = np.concatenate([table, column.reshape(-1, 1)], axis=1)
    return table


def call_of(step: Run, case: Case, X: Array, y: Array) -> Callable[[], Any]:
    """Give the call that does the work of a case."""
    kind = KINDS.get(case.target, "binary")
    make = partial(TargetEncoder, target_type=kind, dtype="float32", device="cuda", **case.options)
    fitted = make().fit(X, y) if case.work == "transform" else None

    def call() -> Any:
        with use_backend(step.backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if fitted is not None:
                return fitted.transform(X)
            return make().fit_transform(X, y) if case.work == "fit_transform" else make().fit(X, y).transform(X)

    return call


def bytes_of(case: Case) -> tuple[int, int]:
    """Give the bytes of a row that must be read, and the bytes of its encodings."""
    n_keys = 1 + len(case.more)
    keys, target = n_keys * np.dtype(case.keys).itemsize, 8 if case.target in ("real", "binary64") else 4
    read = {"transform": keys, "fit_transform": keys + target}.get(case.work, 2 * keys + target)
    return read, 4 * (10 if case.target == "ten" else len(case.options.get("columns", range(n_keys))))


def measure_case(step: Run, named: dict[str, Any], case: Case, X: Array, y: Array) -> None:
    """Measure one case, and compare it with its goal."""
    call = call_of(step, case, X, y)
    first = host_seconds_of(call)
    with trace_launches() as launched:
        seconds = [seconds_of(call)]
    count = {"launches": len(launched), "of CUDA C++": sum(name.endswith(".cu") for name in launched)}
    if step.simulated:
        step.row("encoders", **named, rows=len(X), ran=True, **count)
        return
    seconds = [seconds_of(call) for _ in range(step.options.repeats)]
    by_host = [host_seconds_of(call) for _ in range(step.options.repeats)]
    figures = step.figures(median(seconds), len(X), sum(bytes_of(case)))
    figures |= {"host ms": 1e3 * median(by_host), "first call, s": first, **count}
    over = (peak_of(call) or 0) / len(X) - bytes_of(case)[1]
    figures |= {"bytes a row over input and output": over, "at most": MOST_BYTES, "kept": over <= MOST_BYTES + TABLES}
    goal = case.goals[named["categories"] > CATEGORIES[0]] if case.goals and named["categories"] <= MANY else None
    reached = None if goal is None else figures["G rows/s"] >= goal
    step.row("encoders", **named, **figures, goal=goal, reached=reached)
    if step.options.profile:
        profile(step, named, call)


def profile(step: Run, named: dict[str, Any], call: Callable[[], Any]) -> None:
    """List the kernels of a call by their time on the GPU; torch's profiler also sees the kernels of CuPy and numba."""
    try:
        import torch
        from torch.profiler import ProfilerActivity
        from torch.profiler import profile as profiler

        torch.zeros(1, device="cuda")
        with profiler(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as recorded:
            call()
            wait()
    except (ImportError, RuntimeError) as error:
        step.note(f"no profile: {error}")
        return
    averages = [(time_of(average), average) for average in recorded.key_averages() if time_of(average) > 0]
    whole = sum(microseconds for microseconds, _ in averages)
    for microseconds, average in sorted(averages, key=lambda pair: -pair[0])[:MOST_KERNELS]:
        figures = {"calls": average.count, "ms": microseconds / 1e3, "share": round(microseconds / whole, 3)}
        step.row(f"kernels of {named}", kernel=average.key[:90], **figures)


def time_of(average: Any) -> float:
    """Give the microseconds on the GPU; older versions of torch have another name for them."""
    microseconds = average.device_time_total if hasattr(average, "device_time_total") else average.cuda_time_total
    return float(microseconds)


def run(step: Run) -> None:
    """Measure encoders at every requested size."""
    options = step.options
    for n_rows in step.size(options.rows or [min(rows_that_fit(), 10**8)], [16]):
        columns = Columns(n_rows)
        for n_categories in step.size(options.categories or CATEGORIES, [5]):
            for drawn in [how for how in DRAWN if how.split()[0].lower() in options.drawn]:
                for name in options.cases or CASES:
                    case, named = (CASES | MORE_CASES)[name], {"case": name, "categories": n_categories, "drawn": drawn}
                    with step.room_for("encoders", **named, rows=n_rows):
                        X = table_of(case, n_rows, n_categories, drawn)
                        measure_case(step, named, case, X, columns[case.target])
