"""Every way in which an operation can do its work, forced by the thresholds that choose between ways."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import gpu_encode.cuda  # loads all modules of the backend
from benchmarks.gpu.operations import Operation, accumulate, gather, lookup, moments, of, ordered
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
        A number of categories for which this way is right.
    settings : dict
        Values of thresholds, by "module.NAME".
    kernels : set of str
        Kernels that are launched only in this way.
    """

    name: str
    operation: Operation
    n_categories: int
    settings: Settings
    kernels: set[str]


@contextmanager
def set_thresholds(settings: Settings) -> Iterator[None]:
    """Set thresholds of the backend for a while; an unknown threshold is an error."""
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(mock.patch(f"{PACKAGE}.{name}", value))
        yield


@contextmanager
def trace_launches() -> Iterator[list[str]]:
    """Record the names of all launched kernels; names of kernels in CUDA C++ end with `.cu`."""
    names: list[str] = []
    launch, run = runtime.launch, raw.run

    def note(kernel: Any, *arguments: Any, **more: Any) -> None:
        names.append(kernel.py_func.__name__)
        launch(kernel, *arguments, **more)

    def note_raw(name: str, *arguments: Any, **more: Any) -> None:
        names.append(f"{name}.cu")
        run(name, *arguments, **more)

    own = [name for name in sys.modules if name.startswith(PACKAGE)]
    holders = [name for name in own if getattr(sys.modules[name], "launch", None) is launch]
    settings = {f"{name.removeprefix(PACKAGE + '.')}.launch": note for name in holders}
    with set_thresholds({**settings, "raw.run": note_raw}):
        yield names


def list_counts() -> list[Path]:
    """List the ways of counting."""
    work, folds, table_bytes = of(accumulate, "rows"), of(accumulate, "0/1", "random"), counting.engine().table_bytes
    partitioned, never = {"partition.FEWEST_ROWS": 0}, {"partition.FEWEST_ROWS": NEVER}
    buckets = {"partition_rows.cu", "count_buckets.cu"}
    tables, memory = {"count_rows.cu"}, {"count_in_memory.cu"}
    ways = [
        Path("count in two tables a multiprocessor", work, table_bytes // 5, {}, tables),
        Path("count in one table a multiprocessor", work, table_bytes // 3, {}, tables),
        Path("count in buckets", work, table_bytes, partitioned, buckets),
        Path("count in memory", work, table_bytes, never, memory),
    ]
    if runtime.SIMULATED:
        return ways
    return [
        *ways,
        Path("count 1e6 x 5 folds in buckets", folds, 10**6, partitioned, buckets),
        Path("count 1e6 x 5 folds in memory", folds, 10**6, never, memory),
    ]


def list_sums() -> list[Path]:
    """List the ways of summing real targets; targets with weights are never summed in windows."""
    real, weighted = of(accumulate, "real"), of(accumulate, "real, squares, weights")
    # More categories than one table has lines: a line of sums takes 28 bytes and more.
    many = 3 * sums.engine().table_bytes // 28
    hot, cells = ({"sums.SAMPLED_ROWS": rows} for rows in (0, NEVER))
    ways = [
        Path("add in windows", real, 8, {}, {"add_in_windows.cu"}),
        Path("add in tables", weighted, 8, {}, {"add_in_tables.cu"}),
        Path("add hot categories in tables", weighted, many, hot, {"add_hot_in_tables.cu"}),
        Path("add in memory", weighted, many, cells, {"add_in_cells.cu"}),
    ]
    buckets = {"partition_pairs_64.cu", "add_buckets.cu"}
    return ways if runtime.SIMULATED else [*ways, Path("add in buckets", real, 10**6, {}, buckets)]


def list_gathers() -> list[Path]:
    """List the ways of looking rows up."""
    works = {"one": of(gather, "float32", 1, "random"), "several": of(gather, "float64", 3, "random")}
    return [Path(f"gather {name}", work, 50, {}, {"gather_rows.cu"}) for name, work in works.items()]


def list_paths() -> list[Path]:
    """List all ways on this device."""
    whole, squares = of(ordered, "0/1"), of(moments, "real, squares, weights")
    sorting = {"ordered.fits": lambda *_: False}
    return [
        *list_counts(),
        *list_sums(),
        Path("ordered by chunk, 0/1", whole, 4, {}, {"walk_chunks", "add_chunks"}),
        Path("ordered by chunk, real", of(ordered, "real"), 4, {}, {"walk_chunks", "add_chunks"}),
        Path("ordered by sorting, 0/1", whole, 4, sorting, {"sort_classes", "see_sorted"}),
        Path("ordered by sorting, real", of(ordered, "real"), 4, sorting, {"sort_digits", "see_sorted"}),
        Path("ordered, ties", of(ordered, "real", tied=True), 50, {}, {"see_tied", "carry_ties"}),
        Path("moments, narrow", squares, 50, {}, {"spread_narrow"}),
        Path("moments, wide", squares, 50, {"moments.NARROW": 0}, {"spread_wide"}),
        Path("moments, whole", of(moments, "0/1"), 50, {}, {"average_whole"}),
        *list_gathers(),
        Path("lookup of few values", of(lookup, "far apart", most=1), 1000, {}, set()),
    ]
