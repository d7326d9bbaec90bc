"""Races: every way of working is repeated many times with one hot category; the bits must not change."""

from typing import Any

from benchmarks.gpu.drawn import Columns, codes
from benchmarks.gpu.operations import BY_CATEGORY, OF_ANY_ROWS, Data
from benchmarks.gpu.paths import Path, list_paths, set_thresholds, trace_launches
from benchmarks.gpu.report import Run

HOT = 0.9
# Buckets are used from this number of rows on.
N_ROWS = (1 << 22) + 77
REPEATS, TINY_REPEATS = 200, 2


def flatten(result: Any) -> list[Any]:
    """List all arrays and numbers of a result."""
    return [item for part in result for item in flatten(part)] if isinstance(result, (tuple, list)) else [result]


def alike(first: list[Any], now: list[Any]) -> bool:
    """Whether two results have the same bits; they are compared on their device."""
    return all(
        bool((one.view(f"u{one.dtype.itemsize}") == two.view(f"u{two.dtype.itemsize}")).all())
        if hasattr(one, "shape")
        else one == two
        for one, two in zip(first, now, strict=True)
    )


def list_ways(most: int) -> list[Path]:
    """List all operations with few and many categories, in the way that they choose, and all ways that can be set."""
    ways = [Path(name, work, 60, {}, set()) for name, work in {**BY_CATEGORY, **OF_ANY_ROWS}.items()]
    ways += [Path(f"{name}, many categories", work, most, {}, set()) for name, work in BY_CATEGORY.items()]
    return [*ways, *list_paths()]


def run(step: Run) -> None:
    """Repeat the work in every way."""
    columns = Columns(step.size(N_ROWS, 24))
    for way in list_ways(step.size(50_000, 300)):
        with step.attempt(way.name), set_thresholds(way.settings):
            drawn = codes(columns.n_rows, way.n_categories, "uniform", hot=HOT)
            repeat(step, way, Data(step.ops, columns, drawn, way.n_categories), step.size(REPEATS, TINY_REPEATS))


def repeat(step: Run, way: Path, data: Data, repeats: int) -> None:
    """Repeat the work in one way."""
    work = way.operation(data)
    with trace_launches() as launched:
        first = [item.copy() if hasattr(item, "shape") else item for item in flatten(work.call())]
    same = 1
    while same < repeats and alike(first, flatten(work.call())):
        same += 1
        step.pause()
    kernels = ", ".join(dict.fromkeys(launched))
    step.row("races", way=way.name, rows=work.items, repeats=repeats, same=same == repeats, kernels=kernels)
    if missing := way.kernels - set(launched):
        step.fail(f"{way.name}: {', '.join(sorted(missing))} did not run")
    if same < repeats:
        step.fail(f"{way.name}: other bits at repetition {same + 1} of {repeats}")
