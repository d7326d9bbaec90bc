"""Every way that an operation has of doing its work, forced by the thresholds that choose between them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import gpu_encode.cuda  # loads all modules of the backend
from benchmarks.gpu.operations import FIVE, Operation, accumulate, gather, lookup, moments, ordered
from gpu_encode.cuda import counting, raw, runtime, sums

PACKAGE = gpu_encode.cuda.__name__
NEVER = 1 << 60
Settings = dict[str, Any]


class Path(NamedTuple):
    """A way of working.

    Parameters
    ----------
    name : str
    operation : Operation
    n_categories : int
        So many that this way is right for them.
    settings : dict
        Thresholds to set, by "module.NAME".
    kernels : set of str
        Kernels that show that this way was taken.
    """

    name: str
    operation: Operation
    n_categories: int
    settings: Settings
    kernels: set[str]


@contextmanager
def forced(settings: Settings) -> Iterator[None]:
    """Set thresholds of the backend for a while; one that is not there is an error."""
    places = [(import_module(f"{PACKAGE}.{key.rsplit('.', 1)[0]}"), key.rsplit(".", 1)[1]) for key in settings]
    before = [getattr(module, name) for module, name in places]
    for (module, name), value in zip(places, settings.values(), strict=True):
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


@contextmanager
def traced() -> Iterator[list[str]]:
    """Note the names of all kernels that are launched; those of CUDA C++ get a `.cu`."""
    names: list[str] = []
    launch, run = runtime.launch, raw.run

    def noted(kernel: Any, *arguments: Any, **more: Any) -> None:
        names.append(kernel.py_func.__name__)
        launch(kernel, *arguments, **more)

    def noted_raw(name: str, *arguments: Any, **more: Any) -> None:
        names.append(f"{name}.cu")
        run(name, *arguments, **more)

    modules = [module for name, module in sys.modules.items() if name.startswith(PACKAGE)]
    settings: Settings = {
        f"{module.__name__.removeprefix(PACKAGE + '.')}.launch": noted
        for module in modules
        if getattr(module, "launch", None) is launch
    }
    with forced({**settings, "raw.run": noted_raw}):
        yield names


def counts(table_bytes: int, more: Settings, suffix: str, label: str) -> list[Path]:
    """Ways of counting rows, for kernels with so much shared memory."""
    work = accumulate("rows")
    many = table_bytes
    by_bucket = {f"{name}{suffix}" for name in ("measure_buckets", "fill_buckets", "count_buckets")}
    ways: list[tuple[str, int, Settings, set[str]]] = [
        ("tables of 32 bits", table_bytes // 4 - 2, {}, {f"count_rows{suffix}"}),
        ("tables of 16 bits", table_bytes // 2 - 2, {}, {f"count_rows{suffix}"}),
        ("buckets", many, {"buckets.FEWEST_ROWS": 0}, by_bucket),
        ("memory", many, {"buckets.FEWEST_ROWS": NEVER}, {f"count_in_memory{suffix}"}),
    ]
    return [Path(f"count in {name}{label}", work, n, {**more, **how}, names) for name, n, how, names in ways]


def all_counts() -> list[Path]:
    """Ways of counting, in numba and in CUDA C++ where that runs."""
    twin: Settings = {"counting.engine": counting.compiled}
    found = counts(counting.compiled().table_bytes, twin, "", ", numba")
    if not runtime.SIMULATED:
        found += counts(counting.engine().table_bytes, {}, ".cu", "")
        folds = accumulate("0/1", FIVE, 5)
        buckets_alone: Settings = {"buckets.FEWEST_ROWS": 0}
        found.append(Path("count 1e6 x 5 folds in buckets", folds, 10**6, buckets_alone, {"count_buckets.cu"}))
        found.append(Path("the same in memory", folds, 10**6, {"buckets.FEWEST_ROWS": NEVER}, {"count_in_memory.cu"}))
    return found


def all_sums() -> list[Path]:
    """Ways of adding digits up."""
    work = accumulate("real")
    # A line of a real target's sums takes about this much.
    lines = sums.SHARED_BYTES // 28
    passes: Settings = {"sums.MOST_PASSES": NEVER, "sums.ROWS_OF_A_PASS": 0}
    hot: Settings = {"sums.MOST_PASSES": 0, "sums.SAMPLED_ROWS": 0}
    cells: Settings = {"sums.MOST_PASSES": 0, "sums.SAMPLED_ROWS": NEVER}
    return [
        Path("add in tables", work, 8, {}, {"add_in_tables"}),
        Path("add in tables, several passes", work, 3 * lines, passes, {"add_in_tables"}),
        Path("add hot categories in tables", work, 3 * lines, hot, {"add_hot_in_tables"}),
        Path("add in memory", work, 3 * lines, cells, {"add_in_cells"}),
    ]


def never(*_: Any) -> bool:
    """Stand in for a question whether there is room."""
    return False


def all_ordered() -> list[Path]:
    """Ways of adding up along an order, and the rest."""
    return [
        Path("ordered by chunk, 0/1", ordered("0/1"), 4, {}, {"walk_chunks", "add_chunks"}),
        Path("ordered by chunk, real", ordered("real"), 4, {}, {"walk_chunks", "add_chunks"}),
        Path("ordered by sorting, 0/1", ordered("0/1"), 4, {"ordered.fits": never}, {"sort_classes", "see_sorted"}),
        Path("ordered by sorting, real", ordered("real"), 4, {"ordered.fits": never}, {"sort_digits", "see_sorted"}),
        Path("ordered, ties", ordered("real", tied=True), 50, {}, {"see_tied", "carry_ties"}),
        Path("moments, narrow", moments("real, squares, weights"), 50, {}, {"spread_narrow"}),
        Path("moments, wide", moments("real, squares, weights"), 50, {"moments.NARROW": 0}, {"spread_wide"}),
        Path("moments, whole", moments("0/1"), 50, {}, {"average_whole"}),
        Path("gather, several outputs", gather("float64", 3, FIVE, 5), 50, {}, {"gather_several"}),
        Path("lookup of few values", lookup("far", share=10**9), 1000, {}, set()),
    ]


def paths() -> list[Path]:
    """Give all ways there are on this device."""
    return [*all_counts(), *all_sums(), *all_ordered()]
