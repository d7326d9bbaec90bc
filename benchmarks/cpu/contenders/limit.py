"""The limit: loops that check nothing, in the fastest of several arrangements for the given rows.

Nothing is validated.  Texts are known by 64 bits of hash, and sums of reals are plain float sums.  Folds are row number
modulo five.  The prior is the mean of all rows; in an order, it is the mean of the rows before a rank near the row's.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import pairwise, product
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, REAL_WORKS, SMOOTH
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.machine import cores
from benchmarks.harness.rows import N_CLASSES, N_FOLDS, Array, Rows

THREADS = cores()
RUNS, SLOW = 3, 0.5


@cache
def pool() -> ThreadPoolExecutor:
    """Give threads in addition to this one; they sleep between calls, so that they slow down no other process."""
    return ThreadPoolExecutor(max(THREADS - 1, 1))


def run_together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Run calls, each in a thread of its own, and give their results."""
    others = [pool().submit(call) for call in calls[1:]]
    return [calls[0](), *(other.result() for other in others)]


def parts(n: int, threads: int = THREADS) -> list[tuple[int, int]]:
    """Divide a number of rows into equal parts."""
    ends = [n * number // threads for number in range(threads + 1)]
    return [part for part in pairwise(ends) if part[0] < part[1]]


def split(kernel: Any, n: int, *arguments: Any) -> None:
    """Run a loop over parts of the rows."""
    run_together([partial(kernel, *arguments, *part) for part in parts(n)])


@dataclass(frozen=True)
class Way:
    """One arrangement of the loops.

    Parameters
    ----------
    compact : bool
        Whether integers are numbered first, even if their range could serve as numbers.
    threads : int
        Number of threads that number texts.
    sums : int
        Number of threads that sum, each into a table of its own.
    """

    compact: bool = False
    threads: int = 1
    sums: int = 1


@dataclass
class Loops:
    """Loops over the rows of one cell.

    Parameters
    ----------
    rows : Rows
    way : Way
    """

    rows: Rows
    way: Way

    def __post_init__(self) -> None:
        # numba is imported here, so that first calls of other contenders do not load it.
        self.loops = import_module("benchmarks.cpu.contenders.limit_loops")
        if self.rows.keys == "text":
            _, offsets, characters = self.rows.text.buffers()
            # The last words are read beyond the end of the text.
            padded = np.append(np.frombuffer(characters, np.uint8), np.zeros(8, np.uint8))
            words = np.ndarray((len(characters),), np.uint64, padded, strides=(1,))
            first = self.rows.text.offset
            self.text = words, np.frombuffer(offsets, np.int32)[first : first + self.rows.n_rows + 1]

    def number(self) -> tuple[Array, int, int]:
        """Give the numbers of the rows' values, the lowest number, and how many numbers are possible."""
        if self.rows.keys == "text":
            return self.number_text()
        keys, pieces = self.rows.codes, parts(self.rows.n_rows)
        extremes = np.empty((len(pieces), 2), np.int64)
        calls = zip(extremes, pieces, strict=True)
        run_together([partial(self.loops.find_extremes, keys, both, *piece) for both, piece in calls])
        low, size = int(extremes.min()), int(extremes.max() - extremes.min()) + 1
        if not self.way.compact:
            return keys, low, size
        codes, numbers = np.empty(len(keys), np.int32), np.zeros(size, np.int32)
        return codes, 0, self.loops.number_by_first_row(keys, low, numbers, codes)

    def number_text(self) -> tuple[Array, int, int]:
        """Number values with a hash table; each thread fills a table of its own, and these tables are joined."""
        codes, loops = np.empty(self.rows.n_rows, np.int32), self.loops
        pieces = parts(len(codes), self.way.threads)
        tables = run_together([partial(loops.number_text, *self.text, codes, *piece) for piece in pieces])
        slots, count = tables[0]
        for (start, stop), (others, n_others) in zip(pieces[1:], tables[1:], strict=True):
            slots, numbers, count = loops.join_tables(slots, count, others, n_others)
            split(loops.renumber, stop - start, codes[start:stop], numbers)
        return codes, 0, count

    def sum(self, kernel: Any, size: int, dtype: Any, *arguments: Any) -> Array:
        """Sum all rows into this number of cells."""
        calls, tables = [], []
        for part in parts(self.rows.n_rows, self.way.sums):
            tables.append(np.zeros(size, dtype))
            calls.append(partial(kernel, *arguments, tables[-1], *part))
        run_together(calls)
        for other in tables[1:]:
            split(self.loops.add, size, tables[0], other)
        return tables[0]

    def priors(self, cells: Array, width: int) -> Array:
        """Give the mean of a target, or the share of each class, from cells or from rows, whichever are fewer."""
        y = self.rows.target
        if width > 2:
            return cells.reshape(-1, width).sum(axis=0) / len(y)
        return np.array([(cells[1::2] if len(cells) < 2 * len(y) else y).sum() / len(y)])

    def call(self) -> Array:
        """Do the work."""
        codes, low, size = self.number()
        works = {"count": self.count, "ordered": self.ordered, "leave-one-out": self.others}
        return codes if self.rows.work == "codes" else works.get(self.rows.work, self.means)(codes, low, size)

    def count(self, codes: Array, low: int, size: int) -> Array:
        """Encode by counts."""
        cells, out = self.sum(self.loops.count_rows, size, np.int32, codes, low), np.empty(len(codes))
        split(self.loops.gather, len(codes), codes, low, cells, 1, out)
        return out

    def means(self, codes: Array, low: int, size: int) -> Array:
        """Encode by means, or shares of classes, over all rows or over the rows of other folds."""
        loops, y, work = self.loops, self.rows.target, self.rows.work
        n_folds = N_FOLDS if work in FOLD_WORKS else 1
        width = N_CLASSES if work == "classes" else 2
        if work in REAL_WORKS:
            cells = self.sum(loops.sum_reals, width * size * n_folds, np.float64, codes, low, y, n_folds)
        else:
            cells = self.sum(loops.count_classes, width * size * n_folds, np.int32, codes, low, y, n_folds, width)
        weights, counted = SMOOTH * self.priors(cells, width), 1 if work in REAL_WORKS else width
        table = np.empty((size * n_folds, len(weights)))
        split(loops.encode_table, size, cells, n_folds, width, counted, weights, SMOOTH, table)
        if work == "classes":
            out = np.empty((len(codes), width))
            split(loops.gather_shares, len(codes), codes, low, table, n_folds, out)
        else:
            out = np.empty(len(codes))
            split(loops.gather, len(codes), codes, low, table[:, 0], n_folds, out)
        return out

    def others(self, codes: Array, low: int, size: int) -> Array:
        """Encode by leave-one-out."""
        loops, y, out, table = self.loops, self.rows.target, np.empty(len(codes)), np.empty(2 * size)
        cells = self.sum(loops.count_classes, 2 * size, np.int32, codes, low, y, 1, 2)
        split(loops.others_table, size, cells, SMOOTH, self.priors(cells, 2)[0], table)
        split(loops.gather_others, len(codes), codes, low, table, y, out)
        return out

    def ordered(self, codes: Array, low: int, size: int) -> Array:
        """Encode by earlier rows, on one thread."""
        out, cells = np.empty(len(codes)), np.zeros(2 * size, np.int32)
        self.loops.encode_ordered(codes, low, self.rows.target, cells, SMOOTH, out)
        return out


def ways(rows: Rows) -> Iterator[Way]:
    """Yield the possible arrangements."""
    counts = (1, THREADS) if THREADS > 1 else (1,)
    text, codes = rows.keys == "text", rows.work == "codes"
    compact = (False,) if text else (True,) if codes else (False, True)
    one_table = rows.work in ("codes", "ordered")
    for numbers_first, threads, sums in product(compact, counts if text else (1,), (1,) if one_table else counts):
        yield Way(numbers_first, threads, sums)


def seconds_of(loops: Loops) -> float:
    """Give the seconds of the fastest of three runs, after one that compiles; if runs are slow, of one run."""
    loops.call()
    times: list[float] = []
    while len(times) < RUNS and sum(times) < SLOW:
        begun = time.perf_counter()
        loops.call()
        times.append(time.perf_counter() - begun)
    return min(times)


def prepare(rows: Rows) -> Prepared:
    """Prepare the fastest arrangement for these rows."""
    fastest = min((Loops(rows, way) for way in ways(rows)), key=seconds_of)
    return Prepared(fastest.call, expected_of(rows, tolerance=1e-8, visible_prior=rows.work == "ordered"))


CONTENDERS = tuple(
    Contender(name, "limit", prepare, {"keys": (keys,)}, ("numba",))
    for name, keys in (("limit-range", "int"), ("limit-text", "text"))
)
