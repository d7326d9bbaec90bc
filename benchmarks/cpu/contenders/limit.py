"""The limit: loops with nothing around them, in the fastest of several arrangements for the rows at hand.

Nothing is validated, texts are known by 64 bits of hash, sums of reals are plain float sums, folds are row number
modulo five, the prior is the mean of all rows, or of the rows before a place near by in an order.
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
from benchmarks.cpu.judge import expected_of, floor_places
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.machine import cores
from benchmarks.harness.rows import N_CLASSES, N_FOLDS, Array, Rows

THREADS = cores()
RUNS, SLOW = 3, 0.5
# Share of rows after which a second thread goes on with an order: it has to sum what is before.
SHARE_OF_FIRST = 0.7


@cache
def pool() -> ThreadPoolExecutor:
    """Threads beside this one; they sleep between calls, so that nobody else is slowed."""
    return ThreadPoolExecutor(max(THREADS - 1, 1))


def run_together(calls: list[Callable[[], Any]]) -> list[Any]:
    """What calls give, each in a thread of its own."""
    others = [pool().submit(each) for each in calls[1:]]
    return [calls[0](), *(each.result() for each in others)]


def parts(n: int, threads: int = THREADS) -> list[tuple[int, int]]:
    """Equal parts of so many rows."""
    ends = [n * number // threads for number in range(threads + 1)]
    return [part for part in pairwise(ends) if part[0] < part[1]]


def split(kernel: Any, n: int, *arguments: Any) -> None:
    """Run a loop over parts of the rows."""
    run_together([partial(kernel, *arguments, *part) for part in parts(n)])


def split_numbered(kernel: Any, n: int, *arguments: Any) -> None:
    """Run a loop that writes what each part finds into a place of its own."""
    run_together([partial(kernel, *arguments, number, *part) for number, part in enumerate(parts(n))])


@dataclass(frozen=True)
class Way:
    """One arrangement.

    Parameters
    ----------
    compact : bool
        Number the values first, where their range would do.
    threads : int
        Threads that number values.
    sums : int
        Threads that sum, each into a table of its own.
    table : bool
        Encodings of categories first, and then look-ups; else encodings of rows from sums.
    """

    compact: bool = False
    threads: int = 1
    sums: int = 1
    table: bool = True


@dataclass
class Loops:
    """Loops over the rows of one cell.

    Parameters
    ----------
    rows : Rows
    by : {"range", "hashed", "text"}
    way : Way
    """

    rows: Rows
    by: str
    way: Way
    keys: Any = None

    def __post_init__(self) -> None:
        rows = self.rows
        # numba is no part of the first calls that other contenders are asked for.
        self.tables = import_module("benchmarks.cpu.contenders.limit_tables")
        self.loops = import_module("benchmarks.cpu.contenders.limit_loops")
        if self.by == "text":
            _, offsets, data = rows.text.buffers()
            first = rows.text.offset
            self.keys = np.frombuffer(offsets, np.int32)[first : first + rows.n_rows + 1], np.frombuffer(data, np.uint8)
        else:
            self.keys = rows.series.cat.codes.to_numpy() if rows.keys == "category" else rows.integers

    def number(self) -> tuple[Array, int, int]:
        """Numbers of the rows' values, the lowest, and how many there can be."""
        if self.by != "range":
            return self.number_by_hash()
        low, size = self.find_range()
        return self.number_compactly(low, size) if self.way.compact else (self.keys, low, size)

    def find_range(self) -> tuple[int, int]:
        """Lowest key, and how many there can be; a dictionary knows."""
        if self.rows.keys == "category":
            return 0, len(self.rows.series.cat.categories)
        both = np.tile(self.keys[:1], 2 * THREADS).astype(np.int64)
        split_numbered(self.tables.extremes, len(self.keys), self.keys, both)
        return int(both.min()), int(both.max()) - int(both.min()) + 1

    def number_compactly(self, low: int, size: int) -> tuple[Array, int, int]:
        """Numbers of the values that occur, in a range."""
        codes, places = np.empty(len(self.keys), np.int32), np.zeros(size, np.int32)
        if self.way.threads == 1:
            return codes, 0, self.tables.number_by_first_row(self.keys, low, places, codes)
        seen = np.zeros(size, np.int8)
        split(self.tables.mark, len(self.keys), self.keys, low, seen)
        count = self.tables.number_seen(seen, places)
        split(self.loops.gather, len(self.keys), self.keys, low, places, 1, codes)
        return codes, 0, count

    def number_by_hash(self) -> tuple[Array, int, int]:
        """Numbers by a hash table; several threads fill one each, and these become one."""
        codes = np.empty(self.rows.n_rows, np.int32)
        if self.by == "text":
            call = partial(self.tables.number_text, *self.keys, codes)
        else:
            call = partial(self.tables.number_integers, self.keys, codes)
        pieces = parts(len(codes), self.way.threads)
        found = run_together([partial(call, *piece) for piece in pieces])
        slots, count = found[0]
        for (start, stop), (others, n_others) in zip(pieces[1:], found[1:], strict=True):
            slots, places, count = self.tables.join_tables(slots, count, others, n_others)
            split(self.tables.renumber, stop - start, codes[start:stop], places)
        return codes, 0, count

    def sum(self, kernel: Any, size: int, dtype: Any, *arguments: Any) -> Array:
        """Sums of all rows in so many cells."""
        calls, tables = [], []
        for part in parts(self.rows.n_rows, self.way.sums):
            tables.append(np.zeros(size, dtype))
            calls.append(partial(kernel, *arguments, tables[-1], *part))
        run_together(calls)
        for other in tables[1:]:
            split(self.loops.add, size, tables[0], other)
        return tables[0]

    def prior(self, cells: Array) -> float:
        """Mean of the target, of cells or of rows, whichever are fewer."""
        y, found = self.rows.target, np.zeros(THREADS)
        if len(cells) // 2 < len(y):
            split_numbered(self.loops.total_of_cells, len(cells) // 2, cells, found)
        else:
            split_numbered(self.loops.total, len(y), y, found)
        return float(found.sum()) / len(y)

    def call(self) -> Array:
        """Do the work."""
        codes, low, size = self.number()
        works = {"count": self.count, "classes": self.shares, "ordered": self.ordered, "leave-one-out": self.others}
        return codes if self.rows.work == "codes" else works.get(self.rows.work, self.means)(codes, low, size)

    def count(self, codes: Array, low: int, size: int) -> Array:
        """Count encoding."""
        cells, out = self.sum(self.loops.count_rows, size, np.int32, codes, low), np.empty(len(codes))
        split(self.loops.gather, len(codes), codes, low, cells, 1, out)
        return out

    def means(self, codes: Array, low: int, size: int) -> Array:
        """Means of all rows, or of those of other folds."""
        loops, y, out = self.loops, self.rows.target, np.empty(len(codes))
        n_folds = N_FOLDS if self.rows.work in FOLD_WORKS else 1
        if self.rows.work in REAL_WORKS:
            cells = self.sum(loops.sum_reals, 2 * size * n_folds, np.float64, codes, low, y, n_folds)
        else:
            cells = self.sum(loops.count_classes, 2 * size * n_folds, np.int32, codes, low, y, n_folds, 2)
        rule = n_folds, SMOOTH, self.prior(cells), int(self.rows.work not in REAL_WORKS)
        if self.way.table:
            table = np.empty(size * n_folds)
            split(loops.encode_table, size, cells, *rule, table)
            split(loops.gather, len(codes), codes, low, table, n_folds, out)
        else:
            split(loops.encode_rows, len(codes), codes, low, cells, *rule, out)
        return out

    def others(self, codes: Array, low: int, size: int) -> Array:
        """Leave-one-out."""
        loops, y, out = self.loops, self.rows.target, np.empty(len(codes))
        cells = self.sum(loops.count_classes, 2 * size, np.int32, codes, low, y, 1, 2)
        prior = self.prior(cells)
        if self.way.table:
            table = np.empty(2 * size)
            split(loops.others_table, size, cells, SMOOTH, prior, table)
            split(loops.gather_others, len(codes), codes, low, table, y, out)
        else:
            split(loops.encode_others, len(codes), codes, low, cells, y, SMOOTH, prior, out)
        return out

    def ordered(self, codes: Array, low: int, size: int) -> Array:
        """Earlier rows; a second thread sums the first rows, and goes on from there."""
        y, out, middle = self.rows.target, np.empty(len(codes)), len(codes)
        if self.way.sums > 1:
            # A place at which the prior is taken.
            middle = int(floor_places(np.array([int(SHARE_OF_FIRST * len(codes))]))[0])

        def encode(first: int, last: int) -> None:
            cells = np.zeros(2 * size, np.int32)
            total = self.loops.ordered_sums(codes, low, y, cells, 0, first)
            self.loops.encode_ordered(codes, low, y, cells, SMOOTH, total, out, first, last)

        halves = [(0, middle), (middle, len(codes))]
        run_together([partial(encode, *half) for half in halves[: 1 if self.way.sums == 1 else 2]])
        return out

    def shares(self, codes: Array, low: int, size: int) -> Array:
        """Shares of ten classes in other folds."""
        loops, y, sizes = self.loops, self.rows.target, (N_FOLDS, N_CLASSES)
        cells = self.sum(loops.count_classes, size * N_FOLDS * N_CLASSES, np.int32, codes, low, y, *sizes)
        found = np.zeros((THREADS, N_CLASSES), np.int64)
        totals, out = np.empty(size * N_CLASSES, np.int32), np.empty((len(codes), N_CLASSES))
        split_numbered(loops.category_totals, size, cells, *sizes, totals, found)
        weights = SMOOTH * found.sum(axis=0) / len(codes)
        if self.way.table:
            table = np.empty((size * N_FOLDS, N_CLASSES))
            split(loops.share_table, size, totals, cells, *sizes, weights, SMOOTH, table)
            split(loops.gather_shares, len(codes), codes, low, table, N_FOLDS, out)
        else:
            split(loops.encode_shares, len(codes), codes, low, totals, cells, *sizes, weights, SMOOTH, out)
        return out


def ways(by: str, work: str) -> Iterator[Way]:
    """Arrangements to choose from."""
    counts = (1, THREADS) if THREADS > 1 else (1,)
    sums = (1,) if work == "codes" else counts
    tables = (True,) if work in ("codes", "count", "ordered") else (True, False)
    numbering = [(by == "range", threads) for threads in counts]
    if by == "range" and work != "codes":
        numbering.append((False, 1))
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


def prepare(rows: Rows, by: str) -> Prepared:
    """The fastest arrangement for these rows."""
    fastest = min((Loops(rows, by, way) for way in ways(by, rows.work)), key=seconds_of)
    return Prepared(fastest.call, expected_of(rows, tolerance=1e-8, visible_prior=rows.work == "ordered"))


def limit(by: str, *keys: str) -> Contender:
    """Give loops that look values up once."""
    return Contender(f"limit-{by}", "limit", partial(prepare, by=by), {"keys": keys}, ("numba",))


CONTENDERS = (
    limit("range", "int", "category"),
    limit("hashed", "int", "sparse"),
    limit("text", "text"),
)
