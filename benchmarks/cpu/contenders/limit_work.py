"""The work of the limit: loops over the rows of one cell, in one arrangement."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.base import floored
from benchmarks.cpu.contenders.threads import THREADS, parts, side_by_side, split
from benchmarks.cpu.grid import FOLD_WORKS, N_CLASSES, N_FOLDS, REAL_WORKS, SMOOTH
from benchmarks.cpu.rows import Array, Rows

# Share of rows after which a second thread goes on with an order: it has to sum what is before.
SHARE_OF_FIRST = 0.7


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
        Codes of categories first, and then look-ups; else codes of rows from sums.
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
    twice : bool
        Look the values up once more before codes are written, as `transform` must after `fit`.
    """

    rows: Rows
    by: str
    way: Way
    twice: bool = False
    keys: Any = None
    slots: Any = None

    def __post_init__(self) -> None:
        rows = self.rows
        if self.by == "text":
            _, offsets, data = rows.text.buffers()
            first = rows.text.offset
            self.keys = np.frombuffer(offsets, np.int32)[first : first + rows.n_rows + 1], np.frombuffer(data, np.uint8)
        else:
            self.keys = rows.series.cat.codes.to_numpy() if rows.keys == "category" else rows.integers

    def numbered(self) -> tuple[Array, int, int]:
        """Numbers of the rows' values, the lowest, and how many there can be."""
        if self.by == "range" and self.way.compact:
            return self.compacted()
        if self.by == "range":
            low, size = self.range()
            return self.keys, low, size
        return self.hashed()

    def range(self) -> tuple[int, int]:
        """Lowest key, and how many there can be; a dictionary knows."""
        if self.rows.keys == "category":
            return 0, len(self.rows.series.cat.categories)
        from benchmarks.cpu.contenders import limit_tables as loops

        both = np.empty(2 * THREADS, dtype=np.int64)
        each = enumerate(parts(len(self.keys), THREADS))
        calls = [partial(loops.extremes, self.keys, both, number, *part) for number, part in each]
        side_by_side(calls)
        low, high = int(both[: 2 * len(calls)].min()), int(both[: 2 * len(calls)].max())
        return low, high - low + 1

    def compacted(self) -> tuple[Array, int, int]:
        """Numbers of the values that occur, in a range."""
        from benchmarks.cpu.contenders import limit_loops, limit_tables

        low, size = self.range()
        codes, places = np.empty(len(self.keys), np.int32), np.zeros(size, np.int32)
        if self.way.threads == 1:
            return codes, 0, limit_tables.first_seen(self.keys, low, places, codes)
        seen = np.zeros(size, np.int8)
        split(limit_tables.mark, len(self.keys), self.keys, low, seen)
        count = limit_tables.places_of(seen, places)
        split(limit_loops.gather, len(self.keys), self.keys, low, places, 1, codes)
        return codes, 0, count

    def hashed(self) -> tuple[Array, int, int]:
        """Numbers by a hash table; with more threads by one each, joined."""
        from benchmarks.cpu.contenders import limit_tables as loops

        n_rows = self.rows.n_rows
        codes = np.empty(n_rows, np.int32)
        call = (
            partial(loops.hashed_text, *self.keys, codes)
            if self.by == "text"
            else partial(loops.hashed_integers, self.keys, codes)
        )
        pieces = parts(n_rows, self.way.threads)
        found = side_by_side([partial(call, *piece) for piece in pieces])
        slots, count = found[0]
        for (start, stop), (others, n_others) in zip(pieces[1:], found[1:], strict=True):
            slots, places, count = loops.joined(slots, count, others, n_others)
            side_by_side(
                [
                    partial(loops.renumber, codes, places, start + first, start + last)
                    for first, last in parts(stop - start, THREADS)
                ]
            )
        self.slots = slots
        return codes, 0, count

    def looked_up(self) -> Array:
        """Numbers of the values by the hash table that there is."""
        from benchmarks.cpu.contenders import limit_tables as loops

        codes = np.empty(self.rows.n_rows, np.int32)
        if self.by == "text":
            split(loops.known_text, len(codes), *self.keys, self.slots, codes)
        else:
            split(loops.known_integers, len(codes), self.keys, self.slots, codes)
        return codes

    def summed(self, kernel: Any, size: int, dtype: Any, *arguments: Any) -> Array:
        """Sums of all rows in so many cells."""
        calls, tables = [], []
        for part in parts(self.rows.n_rows, self.way.sums):
            tables.append(np.zeros(size, dtype))
            calls.append(partial(kernel, *arguments, tables[-1], *part))
        side_by_side(calls)
        from benchmarks.cpu.contenders import limit_loops as loops

        for other in tables[1:]:
            split(loops.add, size, tables[0], other)
        return tables[0]

    def prior(self, cells: Array) -> float:
        """Mean of the target, of cells or of rows, whichever are fewer."""
        from benchmarks.cpu.contenders import limit_loops as loops

        y, found = self.rows.target, np.zeros(THREADS)
        kernel, of, n = loops.total, y, len(y)
        if len(cells) // 2 < n:
            kernel, of, n = loops.total_of_cells, cells, len(cells) // 2
        each = enumerate(parts(n, THREADS))
        side_by_side([partial(kernel, of, found, number, *part) for number, part in each])
        return float(found.sum()) / len(y)

    def call(self) -> Array:
        """Do the work."""
        work = self.rows.work
        codes, low, size = self.numbered()
        if work == "codes":
            return codes
        if work == "count":
            return self.counts(codes, low, size)
        if work == "classes":
            return self.classes(codes, low, size)
        if work == "ordered":
            return self.ordered(codes, low, size)
        return self.others(codes, low, size) if work == "leave-one-out" else self.means(codes, low, size)

    def counts(self, codes: Array, low: int, size: int) -> Array:
        """Count encoding."""
        from benchmarks.cpu.contenders import limit_loops as loops

        cells, out = self.summed(loops.count_rows, size, np.int32, codes, low), np.empty(len(codes))
        split(loops.gather, len(codes), codes, low, cells, 1, out)
        return out

    def means(self, codes: Array, low: int, size: int) -> Array:
        """Means of all rows, or of those of other folds."""
        from benchmarks.cpu.contenders import limit_loops as loops

        work, y, out = self.rows.work, self.rows.target, np.empty(len(codes))
        n_folds = N_FOLDS if work in FOLD_WORKS else 1
        if work in REAL_WORKS:
            cells = self.summed(loops.sum_reals, 2 * size * n_folds, np.float64, codes, low, y, n_folds)
        else:
            cells = self.summed(loops.count_classes, 2 * size * n_folds, np.int32, codes, low, y, n_folds, 2)
        prior = self.prior(cells)
        if self.twice:
            codes = self.looked_up()
        if self.way.table:
            table = np.empty(size * n_folds)
            kernel = loops.real_table if work in REAL_WORKS else loops.class_table
            split(kernel, size, cells, n_folds, SMOOTH, prior, table)
            split(loops.gather, len(codes), codes, low, table, n_folds, out)
        else:
            kernel = loops.real_codes if work in REAL_WORKS else loops.class_codes
            split(kernel, len(codes), codes, low, cells, n_folds, SMOOTH, prior, out)
        return out

    def others(self, codes: Array, low: int, size: int) -> Array:
        """Leave-one-out."""
        from benchmarks.cpu.contenders import limit_loops as loops

        y, out = self.rows.target, np.empty(len(codes))
        cells = self.summed(loops.count_classes, 2 * size, np.int32, codes, low, y, 1, 2)
        prior = self.prior(cells)
        if self.way.table:
            table = np.empty(2 * size)
            split(loops.others_table, size, cells, SMOOTH, prior, table)
            split(loops.gather_others, len(codes), codes, low, table, y, out)
        else:
            split(loops.others_codes, len(codes), codes, low, cells, y, SMOOTH, prior, out)
        return out

    def ordered(self, codes: Array, low: int, size: int) -> Array:
        """Earlier rows; a second thread sums the first rows, and goes on from there."""
        from benchmarks.cpu.contenders import limit_loops as loops

        y, out, middle = self.rows.target, np.empty(len(codes)), len(codes)
        if self.way.sums > 1:
            # A place at which the prior is taken.
            middle = int(floored(np.array([int(SHARE_OF_FIRST * len(codes))]))[0])

        def begun() -> None:
            loops.ordered_codes(codes, low, y, np.zeros(2 * size, np.int32), SMOOTH, 0.0, out, 0, middle)

        def ended() -> None:
            cells = np.zeros(2 * size, np.int32)
            total = loops.ordered_sums(codes, low, y, cells, 0, middle)
            loops.ordered_codes(codes, low, y, cells, SMOOTH, total, out, middle, len(codes))

        side_by_side([begun] if self.way.sums == 1 else [begun, ended])
        return out

    def classes(self, codes: Array, low: int, size: int) -> Array:
        """Shares of ten classes in other folds."""
        from benchmarks.cpu.contenders import limit_loops as loops

        y, n_rows, sizes = self.rows.target, len(codes), (N_FOLDS, N_CLASSES)
        cells = self.summed(loops.count_classes, size * N_FOLDS * N_CLASSES, np.int32, codes, low, y, *sizes)
        found = np.zeros((THREADS, N_CLASSES), np.int64)
        totals, out = np.empty(size * N_CLASSES, np.int32), np.empty((n_rows, N_CLASSES))
        each, kernel = enumerate(parts(size, THREADS)), loops.category_totals
        side_by_side([partial(kernel, cells, *sizes, totals, found, number, *part) for number, part in each])
        weights = SMOOTH * found.sum(axis=0) / n_rows
        if self.way.table:
            table = np.empty((size * N_FOLDS, N_CLASSES))
            split(loops.share_table, size, totals, cells, *sizes, weights, SMOOTH, table)
            split(loops.gather_shares, n_rows, codes, low, table, N_FOLDS, out)
        else:
            split(loops.share_codes, n_rows, codes, low, totals, cells, *sizes, weights, SMOOTH, out)
        return out
