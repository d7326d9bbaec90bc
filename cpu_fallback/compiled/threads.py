"""Threads for ranges of rows: a pool of our own, whose threads sleep between calls and never spin."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from cpu_fallback.settings import number_from_environment

SETTING = "GPU_ENCODE_THREADS"

# To wake a thread costs about 20 microseconds; the work on this many rows costs several times as much.
SMALLEST_SHARE = 1 << 15

_chosen: list[int] = []


@cache
def default_threads() -> int:
    """Give the default number of threads: GPU_ENCODE_THREADS in the environment, else that of usable processors."""
    given = number_from_environment(SETTING, "a number of threads, 1 or more", 1)
    if given is not None:
        return given
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """Give the number of threads that large calls run on."""
    return _chosen[-1] if _chosen else default_threads()


def set_threads(number: int | None) -> None:
    """Choose the number of threads of the compiled backend; results are the same bits for any number.

    Parameters
    ----------
    number : int or None
        One or more; None goes back to the default.

    Examples
    --------
    >>> from cpu_fallback.compiled.threads import set_threads, threads
    >>> set_threads(3)
    >>> threads()
    3
    >>> set_threads(None)
    """
    if number is not None and number < 1:
        message = f"the number of threads must be 1 or more. Got {number}."
        raise ValueError(message)
    _chosen[:] = [] if number is None else [number]


@cache
def pool(size: int) -> ThreadPoolExecutor:
    """Give the threads that help the calling one."""
    return ThreadPoolExecutor(size, thread_name_prefix="gpu_encode")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool without its threads.
    os.register_at_fork(after_in_child=pool.cache_clear)


def shares(n_rows: int, most: int | None = None, smallest: int | None = None) -> list[tuple[int, int]]:
    """Split rows into near-equal ranges, one for each thread that is worth its cost, and at least one."""
    number = min(threads() if most is None else most, n_rows // (smallest or SMALLEST_SHARE))
    if number <= 1:
        return [(0, n_rows)]
    edges = [n_rows * i // number for i in range(number + 1)]
    return list(pairwise(edges))


def run(work: Callable[[int], None], n_shares: int) -> None:
    """Call work(0) .. work(n_shares - 1), each on its own thread, and the first on the calling thread."""
    if n_shares == 1:
        work(0)
        return
    others = [pool(n_shares - 1).submit(work, number) for number in range(1, n_shares)]
    try:
        work(0)
    finally:
        failures = [other.exception() for other in others]
    for failure in failures:
        if failure is not None:
            raise failure


def in_shares(work: Callable[[int, int], Any], n_rows: int) -> list[Any]:
    """Call `work` for ranges of rows, and give the results."""
    parts = shares(n_rows)
    results: list[Any] = [None] * len(parts)

    def one(share: int) -> None:
        results[share] = work(*parts[share])

    run(one, len(parts))
    return results
