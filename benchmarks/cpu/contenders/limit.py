"""The limit: loops with nothing around them, in the fastest of several arrangements for the rows at hand.

Nothing is validated, texts are known by 64 bits of hash, sums of reals are plain float sums, folds are row number
modulo five, the prior is the mean of all rows, or of the rows before a place near by in an order.
"""

import time
from collections.abc import Iterator
from functools import partial
from itertools import product

from benchmarks.cpu.contenders.base import NUMBERS, Contender, Prepared, expected_of, floored
from benchmarks.cpu.contenders.limit_work import Loops, Way
from benchmarks.cpu.contenders.threads import THREADS
from benchmarks.cpu.rows import Rows

RUNS, SLOW = 3, 0.5
MEANS = ("mean", "mean-real")


def ways(by: str, work: str) -> Iterator[Way]:
    """Arrangements to choose from."""
    counts = (1, THREADS) if THREADS > 1 else (1,)
    sums = (1,) if work == "codes" else counts
    tables = (True,) if work in ("codes", "count", "ordered") else (True, False)
    if by == "range":
        numbering = [(True, threads) for threads in counts]
        if work != "codes":
            numbering.append((False, 1))
    else:
        numbering = [(False, threads) for threads in counts]
    for (compact, threads), n_sums, table in product(numbering, sums, tables):
        yield Way(compact, threads, n_sums, table)


def seconds_of(loops: Loops) -> float:
    """Seconds of the fastest of three runs, after one that compiles; of one run where that is slow."""
    loops.call()
    times: list[float] = []
    while len(times) < RUNS and sum(times) < SLOW:
        begun = time.perf_counter()
        loops.call()
        times.append(time.perf_counter() - begun)
    return min(times)


def prepared(rows: Rows, by: str, twice: bool = False) -> Prepared:
    """The fastest arrangement for these rows."""
    fastest = min((Loops(rows, by, way, twice) for way in ways(by, rows.work)), key=seconds_of)
    own = {"floor": floored, "visible_prior": True} if rows.work == "ordered" else {}
    return Prepared(fastest.call, expected_of(rows, tolerance=1e-8, **own))


CONTENDERS = [
    Contender("limit-range", "limit", partial(prepared, by="range"), keys=("int", "category"), needs=("numba",)),
    Contender("limit-hashed", "limit", partial(prepared, by="hashed"), keys=NUMBERS, needs=("numba",)),
    Contender("limit-text", "limit", partial(prepared, by="text"), keys=("text",), needs=("numba",)),
    Contender(
        "limit-hashed-twice", "limit, twice", partial(prepared, by="hashed", twice=True), MEANS, ("sparse",), ("numba",)
    ),
    Contender(
        "limit-text-twice", "limit, twice", partial(prepared, by="text", twice=True), MEANS, ("text",), ("numba",)
    ),
]
