"""Threads of the limit: they sleep between calls, so that nobody else is slowed."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import Any

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def pool() -> ThreadPoolExecutor:
    """Threads beside this one."""
    return ThreadPoolExecutor(max(THREADS - 1, 1))


def side_by_side(calls: list[Callable[[], Any]]) -> list[Any]:
    """What calls give, each in a thread of its own."""
    others = [pool().submit(each) for each in calls[1:]]
    return [calls[0](), *(each.result() for each in others)]


def parts(n: int, threads: int) -> list[tuple[int, int]]:
    """Equal parts of so many rows."""
    ends = [n * number // threads for number in range(threads + 1)]
    return [part for part in pairwise(ends) if part[0] < part[1]]


def split(kernel: Any, n: int, *arguments: Any) -> None:
    """Run a loop over parts of the rows."""
    side_by_side([partial(kernel, *arguments, *part) for part in parts(n, THREADS)])
