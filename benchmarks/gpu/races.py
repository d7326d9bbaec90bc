"""Races: every way of working, again and again under one hot category; the bits must not move."""

from typing import Any

from benchmarks.gpu.drawn import Columns
from benchmarks.gpu.operations import ANYHOW, BY_CATEGORY, Data
from benchmarks.gpu.paths import Path, forced, paths, traced
from benchmarks.gpu.run import Run
from gpu_encode.ops import resolve, use_backend

HOT = 0.9
# Buckets want so many rows; ways that give digits of every row get fewer.
N_ROWS = (1 << 22) + 77
REPEATS, TINY_REPEATS = 200, 2


def flat(found: Any) -> list[Any]:
    """Give all arrays and numbers of a result."""
    if isinstance(found, (tuple, list)):
        return [each for part in found for each in flat(part)]
    return [found]


def alike(first: list[Any], now: list[Any]) -> bool:
    """Whether two results have the same bits; compared where they are."""
    return all(
        bool((one.view(f"u{one.dtype.itemsize}") == two.view(f"u{two.dtype.itemsize}")).all())
        if hasattr(one, "shape")
        else one == two
        for one, two in zip(first, now, strict=True)
    )


def everything() -> list[Path]:
    """Operations as they choose for themselves, with few and many categories, and every way that can be forced."""
    found = [Path(name, work, 60, {}, set()) for name, work in {**BY_CATEGORY, **ANYHOW}.items()]
    found += [Path(f"{name}, many categories", work, 50_000, {}, set()) for name, work in BY_CATEGORY.items()]
    return [*found, *paths()]


def run(step: Run) -> None:
    """Repeat every way of working."""
    with use_backend(step.backend):
        ops = resolve(0)
    columns = Columns(step.size(N_ROWS, 24))
    repeats = step.size(REPEATS, TINY_REPEATS)
    for way in everything():
        n_categories = step.size(way.n_categories, way.n_categories if way.settings else min(way.n_categories, 300))
        with step.attempt(way.name), forced(way.settings):
            repeat(step, way, Data(ops, columns, n_categories, hot=HOT), repeats)


def repeat(step: Run, way: Path, data: Data, repeats: int) -> None:
    """Work in one way again and again."""
    work = way.operation(data)
    with traced() as launched:
        first = [each.copy() if hasattr(each, "shape") else each for each in flat(work.call())]
    missing = way.kernels - set(launched)
    same = 1
    while same < repeats and alike(first, flat(work.call())):
        same += 1
        step.pause()
    kernels = ", ".join(dict.fromkeys(launched))
    step.row("races", way=way.name, rows=work.items, repeats=repeats, same=same == repeats, kernels=kernels)
    if missing:
        step.fail(f"{way.name}: {', '.join(sorted(missing))} did not run")
    if same < repeats:
        step.fail(f"{way.name}: other bits at repetition {same + 1} of {repeats}")
