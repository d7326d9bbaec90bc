"""How memory stays below a limit: how many rows a chunk may have, and whether categories and their sums fit.

All numbers are bytes that are in memory at the same time.  Categories are counted while their number grows, and refused
if they cannot fit.  The factors below were measured: tests/scale/files/test_memory_limit.py checks from outside of the
process that limits hold.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil, expm1
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from cpu_fallback.memory_pool import pool
from gpu_encode.fitting.columns import map_columns
from gpu_encode.scale.files.source import Size
from gpu_encode.scale.files.writing import FEWEST_ROWS, GROUP_BYTES, MOST_GROUP_ROWS
from gpu_encode.scale.messages import CategoriesError, Need
from gpu_encode.scale.parts import EncodingPlan, Part, PartialSums
from gpu_encode.scale.parts.sums import NewCategories
from gpu_encode.schemes.plans import FoldPlan
from gpu_encode.seam import ops
from gpu_encode.seam.devices import available_bytes
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.targets import counted_classes
from gpu_encode.tables.categories.distinct_counts import DistinctCount
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.words.sizes import read_size

MOST_ROWS = 1 << 23
# Arrow would need wider offsets for an array with more bytes of text.
MOST_BYTES = 1 << 30
# Bytes of rows and their encodings that are encoded at a time, while the rows before them are written.
STEP_BYTES = 32 << 20
# Rows of the sample from which the bytes of a row are estimated.
SAMPLE = 1 << 12
# Bytes of Python, Arrow, NumPy, scikit-learn, numba and our kernels when all of them are loaded.
LOADED = 400 << 20
# Bytes per row for one column or joint key while it is encoded: codes, folds, and their inputs.
WORK_PER_KEY = 48
# Copies of a row group at the same time while it is written.
GROUP_COPIES = 3
# At most the limit divided by this number is kept as freed memory for the next arrays.
KEPT_SHARE = 64

# Bytes of a category in addition to its values: while two vocabularies are joined; while a vocabulary is searched.
JOINING, FINDING = 160, 48
# Bytes of an encoding: in its table and look-up; while one pass computes it; while array expressions compute it.
TABLE, IN_ONE_PASS, IN_ARRAYS = 18, 8, 120
# Assumed number of digits of the sums of a real target, before a value was seen.
LIKELY_WIDTH = 20
# Bytes of a row of a piece in addition to its values and its sums: codes, folds, ranks.
WORK_OF_ROW = 100
# Copies of the sums of a row at the same time: those of a thread, those of the piece, and rounding up.
SUMS_OF_ROW = 2.5
# Copies of a spilled row at the same time: just made, in its bucket, compressed; its bytes in addition to its values.
SPILLED_COPIES, SPILLED = 5, 16
# While sums are joined, this part of the limit stays free: buffers of files are read, and freed memory lies in pieces.
UNFORESEEN = 1 / 12
# A chunk of fewer rows is summed in several pieces if it has to be.
FEWEST_SUMMED = 1 << 20
# If rows are summed in pieces, a chunk takes the free memory divided by this number.
CHUNK_SHARE = 16
# Most rows that are read to estimate the number of categories for an error that names a limit.
MOST_COUNTED = 1 << 26
# Largest relative error of an estimated number of categories; bytes by which two runs may differ.
DOUBT, SPARE = 0.03, 12 << 20


def limit_of(memory_limit: Any) -> int:
    """Read a limit, as a number of bytes or as "2GiB"; by default, the memory in use and a quarter of the free memory.

    Examples
    --------
    >>> limit_of("1.5 GiB"), limit_of("500MB"), limit_of(1 << 20)
    (1610612736, 500000000, 1048576)
    """
    if memory_limit is None:
        return resident_bytes() + max(available_bytes() // 4, 512 << 20)
    return read_size(memory_limit, "memory_limit")


def free_bytes(limit: int) -> int:
    """Bytes of a limit that this process does not hold yet; at least 1."""
    return max(1, limit - max(resident_bytes(), LOADED))


def resident_bytes() -> int:
    """Bytes of memory that this process has now; the most that it ever had, if the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak_bytes()


def peak_bytes() -> int:
    """Most bytes of memory that this process ever had."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


@contextlib.contextmanager
def few_kept(limit: int) -> Iterator[None]:
    """Keep little freed memory for later calls while a limit is set."""
    most, pool.most = pool.most, min(pool.most, limit // KEPT_SHARE)
    try:
        yield
    finally:
        pool.most = most


def release(needed: int = 1 << 62, limit: int = 0) -> None:
    """Return unused memory to the system, so that memory does not grow with the number of chunks.

    Nothing is done if the bytes that are needed next would fit twice: the first touch of new memory takes longer than a
    pass over it.
    """
    if resident_bytes() + 2 * needed <= limit:
        return
    pool.free.clear()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class PassBytes(NamedTuple):
    """The memory that a pass over rows needs.

    Three chunks exist at once: one is read, one is encoded and one is written.  There are the encodings of two chunks.

    Parameters
    ----------
    row_bytes : float
        Bytes of a row in memory.
    n_keys : int
        Columns and joint keys that are encoded.
    output_row_bytes : float, default=0.0
        Bytes of the encodings of a row.
    n_rows : int, optional
        Rows of the source: a few rows need less memory than the smallest chunk.
    reading : int, default=0
        Bytes that exist while columns are read, whatever the size of chunks.
    """

    row_bytes: float
    n_keys: int
    output_row_bytes: float = 0.0
    n_rows: int | None = None
    reading: int = 0

    @property
    def at_work(self) -> float:
        """Bytes of one row while it is read, encoded and written."""
        return 3 * self.row_bytes + 2 * self.output_row_bytes + WORK_PER_KEY * self.n_keys + 64

    @property
    def buffers(self) -> int:
        """Bytes for reading and writing, whatever the size of chunks."""
        writing = GROUP_COPIES * GROUP_BYTES if self.output_row_bytes else 0
        if self.n_rows is None:
            return self.reading + writing
        most = int(GROUP_COPIES * self.n_rows * (self.row_bytes + self.output_row_bytes))
        return min(self.reading, most) + min(writing, most)

    @property
    def fewest_rows(self) -> int:
        """Rows of the smallest chunk."""
        return FEWEST_ROWS if self.n_rows is None else min(FEWEST_ROWS, self.n_rows)

    @property
    def least(self) -> int:
        """Bytes that the smallest chunk needs."""
        return self.buffers + int(self.fewest_rows * self.at_work / 0.8) + 1


def chunk_size(limit: int, needed: PassBytes, begun: bool = False) -> Size:
    """Choose how many rows and bytes a chunk may have.

    Parameters
    ----------
    limit : int
        Bytes that this process may have.
    needed : PassBytes
    begun : bool, default=False
        Whether the encoder has learned something already.

    Raises
    ------
    ValueError
        If the limit leaves no room for a chunk.
    """
    release()
    held, row_bytes = max(resident_bytes(), LOADED), needed.row_bytes
    # A fifth stays free for memory that was not foreseen.
    rows = int(0.8 * (limit - held - needed.buffers) / needed.at_work)
    if rows < needed.fewest_rows:
        learned = ", what was learned of the categories included," if begun else ""
        given = f"{limit / 2**20:,.0f} MiB" if limit >= 1 << 20 else f"{limit:,} bytes ('2GiB' has a unit)"
        raise ValueError(
            f"memory_limit is {given}, of which this process holds {held / 2**20:,.0f} MiB{learned} "
            "already, and the rest is too little for the smallest chunk. "
            f"Give at least {-(-(held + needed.least) // 2**20):,} MiB."
        )
    rows = min(whole_chunk(rows), MOST_ROWS, max(FEWEST_ROWS, int(MOST_BYTES / row_bytes)))
    batch_rows = max(1 << 10, min(rows, 1 << 18, int((8 << 20) / row_bytes)))
    # The texts of the sample may be shorter than others.
    n_bytes = min(int(rows * row_bytes * 1.25) + 1, MOST_BYTES)
    return Size(rows, n_bytes, batch_rows, needed.buffers + int(rows * needed.at_work / 0.8))


def whole_chunk(rows: float) -> int:
    """Round a number of rows down to a multiple of the smallest chunk, and at least to the smallest chunk."""
    return max(FEWEST_ROWS, int(rows) // FEWEST_ROWS * FEWEST_ROWS)


def group_rows(row_bytes: float) -> int:
    """Choose the rows of a row group from the bytes of a row, since files must not depend on the memory limit."""
    return whole_chunk(min(MOST_GROUP_ROWS, GROUP_BYTES / row_bytes))


def check_room_for_all(limit: int, needed: PassBytes) -> int:
    """Give the most bytes of rows that are all in memory at once; refuse them if the limit leaves no room for them."""
    release()
    held, n_rows = max(resident_bytes(), LOADED), needed.n_rows or 0
    n_bytes = held + int(n_rows * needed.at_work / 0.8)
    if n_bytes > limit:
        raise ValueError(
            f"This scheme, or these borders, need all rows at once, and memory_limit is {limit / 2**20:,.0f} MiB. "
            f"Give at least {-(-n_bytes // 2**20):,} MiB; or folds, which take rows in chunks (of splits, a "
            'column of fold numbers, cv="fold"), or borders as a list.'
        )
    return int(0.8 * (limit - held) - n_rows * needed._replace(row_bytes=0.0).at_work) // 3 + 1


@dataclass(frozen=True)
class KeyBytes:
    """Bytes that the categories of one key take.

    Parameters
    ----------
    name : str
    n_categories : int
    words : float
        Bytes of the distinct values.
    sums, largest : float
        Bytes of the sums of all targets, and of the target with the largest sums.
    tables, work : float
        Bytes of the encodings, and of the memory that is needed while the encodings of one target are computed.
    n_pairs, counts : int, default=0
        Most pairs of a category and a value of a target that are counted, and the bytes of all counts, which are part
        of the sums; they grow with the rows.
    """

    name: str
    n_categories: int
    words: float
    sums: float
    largest: float
    tables: float
    work: float
    n_pairs: int = 0
    counts: int = 0

    @classmethod
    def of(
        cls, key: CategoryIndex, per_target: list[CategorySums], rules: list[Any], views: int, pairs: int
    ) -> "KeyBytes":
        """Count the bytes of a key and its pairs, and of the tables that will be made of them."""
        n_categories = key.n_categories
        held = [sums.accumulators.nbytes + bytes_of(sums.distribution) for sums in per_target] + [pairs]
        tables, work = [0.0], [0.0]
        n_pairs = counts = 0
        for sums, rule in zip(per_target, rules, strict=True):
            cells = n_categories * views * max(sums.accumulators.shape[2] - sums.spec.first_output, 1)
            tables.append(TABLE * cells)
            fused = rule.describe_fused() is not None and sums.distribution is None and not key.levels
            if sums.distribution is not None:
                n_pairs, counts = max(n_pairs, len(sums.distribution.value)), counts + bytes_of(sums.distribution)
            # Kernels that are not compiled yet do not serve.
            fused = fused and ops.host(sums.accumulators.size).fused is not None
            work.append((IN_ONE_PASS if fused else IN_ARRAYS) * cells + IN_ARRAYS * cells / views)
        words = sum(vocabulary.values.array.nbytes for vocabulary in key.vocabularies)
        # Combinations take 4 bytes a column for the numbers of values; the rest of a joint key takes twice as much.
        words += 0 if key.tuples is None else 3 * 4 * len(key.vocabularies) * n_categories
        sizes = sum(held), max(held), sum(tables), max(work)
        return cls(key.entry.name, n_categories, words, *sizes, n_pairs, counts)

    @property
    def sums_of_row(self) -> float:
        """Bytes of the sums of a row with a new category and a new value."""
        return (self.sums - self.counts) / (self.n_categories + 2) + self.counts / max(self.n_pairs, 1)

    def grown(self, n_categories: int, seen: int, n_rows: int) -> "KeyBytes":
        """Give the bytes for this number of categories, and for values of `n_rows` rows instead of `seen`."""
        factor = n_categories / max(self.n_categories, 1)
        sizes = {name: getattr(self, name) * factor for name in ("words", "tables", "work")}
        factor = max(factor, growth_of_pairs(self.n_pairs, seen, n_rows) if self.n_pairs else 1.0)
        sizes |= {name: getattr(self, name) * factor for name in ("sums", "largest")}
        return replace(self, n_categories=n_categories, **sizes)


def growth_of_pairs(n_pairs: int, seen: int, n_rows: int) -> float:
    """Say how many times as many distinct pairs `n_rows` rows have as `seen` rows, if all pairs are equally likely.

    Examples
    --------
    >>> growth_of_pairs(1000, 1000, 3000), round(growth_of_pairs(632, 1000, 100_000), 2)
    (3.0, 1.58)
    """
    # With x rows for each of D pairs, D * (1 - exp(-x)) of them occur.
    low, high = 1e-6, 1e6
    for _ in range(60):
        x = (low * high) ** 0.5
        low, high = (x, high) if -expm1(-x) / x > n_pairs / seen else (low, x)
    return round(expm1(-x * n_rows / seen) / expm1(-x), 5)


def bytes_of(distribution: Any) -> int:
    """Bytes of the counts of values, and half as many more, since counts are sorted whenever they are added."""
    if distribution is None:
        return 0
    return 3 * sum(int(getattr(distribution, name).nbytes) for name in ("values", "category", "value", "counts")) // 2


class Room:
    """The memory that is free for categories and their sums.

    Parameters
    ----------
    limit : int
        Bytes that the process may take.
    encoding_plan : EncodingPlan
    smallest : int
        Bytes of the smallest chunk while it is encoded.
    row_bytes : float
        Bytes of a row while it is summed.
    n_keys : int
    kept_rows : int, default=0
        Bytes of all rows, if they are not in memory but would be with a larger limit.
    """

    def __init__(
        self,
        limit: int,
        encoding_plan: EncodingPlan,
        smallest: int,
        row_bytes: float,
        n_keys: int,
        kept_rows: int = 0,
    ) -> None:
        release()
        self.limit, self.plan, self.smallest, self.kept_rows = limit, encoding_plan, smallest, kept_rows
        self.held = max(resident_bytes(), LOADED)
        self.views = max(plan.n_folds if isinstance(plan, FoldPlan) else 1 for plan in encoding_plan.plans)
        classes = [counted_classes(info.kind, info.classes) for info in encoding_plan.targets]
        width = sum(LIKELY_WIDTH if number == 1 else number for number in classes)
        self._n_keys = n_keys
        # Each row may bring a new category, whose values are joined with those of earlier rows.
        self._row_bytes, self._row = row_bytes, 4 * row_bytes + (WORK_OF_ROW + JOINING) * n_keys
        self._sums_of_row, self._read_ahead = 8.0 * self.views * width * n_keys, 0.0

    def rows_of_piece(self, sums: PartialSums, new: NewCategories, wanted: int, entry: int | None = None) -> int:
        """Say how many of the wanted rows may be summed at once, for all keys or one, if each may be a new category.

        If not all of them may, freed memory is returned first.
        """
        keys, of_row = self.keys(sums, new), self._row
        if keys and entry is not None:
            keys, of_row = [keys[entry]], 4 * self._row_bytes + WORK_OF_ROW + JOINING
        elif keys:
            self._sums_of_row = sum(key.sums_of_row for key in keys)
        of_row += SUMS_OF_ROW * (self._sums_of_row if entry is None else keys[0].sums_of_row)
        for _ in range(2):
            most = (1 - UNFORESEEN) * self.limit
            free = most - max(resident_bytes(), LOADED) - self.while_joined(keys) - self._read_ahead
            if 0.8 * free >= wanted * of_row:
                break
            release()
        return int(0.8 * free / of_row)

    def rows_to_look_up(self, sums: PartialSums, new: NewCategories) -> int:
        """Say how many rows may be added at once to the sums of categories that are known."""
        most, largest = (1 - UNFORESEEN) * self.limit, max(key.largest for key in self.keys(sums, new))
        free = most - max(resident_bytes(), LOADED) - largest - self._read_ahead
        return max(FEWEST_ROWS, int(0.8 * free / (4 * self._row_bytes + WORK_OF_ROW * self._n_keys)))

    def shorten(self, size: Size) -> Size:
        """Give shorter chunks if the sums of their rows would not fit beside them."""
        free, of_piece = self.limit - self.held, self._row + SUMS_OF_ROW * self._sums_of_row
        if size.rows * of_piece <= 0.8 * free:
            return size
        # The next rows are read while a chunk is summed, so a chunk should be one piece, but not too short.
        rows = max(FEWEST_SUMMED, 0.7 * free / of_piece)
        rows = whole_chunk(min(size.rows, rows, free / CHUNK_SHARE / self._row_bytes))
        self._read_ahead = rows * self._row_bytes
        return Size(rows, int(rows * self._row_bytes) + 1, min(size.batch_rows, rows))

    def shorten_spilled(self, size: Size) -> Size:
        """Give chunks so short that the copies of their rows that are spilled fit beside them."""
        of_row = self._row + (1 + SPILLED_COPIES) * self._row_bytes + SPILLED_COPIES * SPILLED
        # A fifth was not foreseen, and a twentieth is for pieces that wait to be written.
        rows = whole_chunk(0.75 * (self.limit - self.held) / of_row)
        if rows >= size.rows:
            return size
        return Size(rows, int(rows * self._row_bytes * 1.25) + 1, min(size.batch_rows, rows))

    def keys(self, sums: PartialSums, new: NewCategories) -> list[KeyBytes]:
        """Count the bytes of each key once its new categories are among the others."""
        if sums.model is None:
            return []
        model = sums.model
        keys = [
            KeyBytes.of(
                key,
                per_target,
                [rule.of_target(number) for number in range(len(per_target))],
                self.views,
                sum(pairs.nbytes for pairs in model.pairs if pairs.keys[0] == entry),
            )
            for entry, (key, per_target, rule) in enumerate(zip(model.keys, model.statistics, model.rules, strict=True))
        ]
        for entry, (key, _) in new.items():
            keys[entry] = keys[entry].grown(keys[entry].n_categories + key.n_categories, sums.n_rows, sums.n_rows)
        return keys

    @staticmethod
    def while_joined(keys: list[KeyBytes]) -> float:
        """Additional bytes while other sums are added to these."""
        return max((key.largest + 2 * key.words + JOINING * key.n_categories for key in keys), default=0.0)

    def needed(self, keys: list[KeyBytes]) -> int:
        """Most bytes that the process needs: while sums are joined or become tables, or while rows are encoded."""
        words = sum(key.words + FINDING * key.n_categories for key in keys)
        sums, tables = sum(key.sums for key in keys), sum(key.tables for key in keys)
        largest, work = max((key.largest for key in keys), default=0), max((key.work for key in keys), default=0)
        least_piece = FEWEST_ROWS * (self._row + SUMS_OF_ROW * self._sums_of_row) / 0.8
        folds = isinstance(self.plan.plan, FoldPlan)
        # One chunk is in use, and one is read ahead.
        joining = (sums + words + self.while_joined(keys) + least_piece) / (1 - 2 / CHUNK_SHARE) - words
        ending = 2 * sums + largest
        making = sums * (1 + 1 / self.views if folds else 2) + tables + work
        encoding = sums * (1 / self.views if folds else 2) + tables + (0 if folds else work) + self.smallest
        joined = (self.held + words + joining) / (1 - UNFORESEEN)
        return int(max(joined, self.held + words + max(ending, making, encoding)))

    def refuse(self, given_up: list[PartialSums], new: NewCategories, rest: Iterable[Part]) -> CategoriesError:
        """Give the error that names a limit that is enough; the categories of the remaining rows are counted first.

        Parameters
        ----------
        given_up : list of PartialSums
            A list that holds only the sums of the rows so far.  They are taken out of it, so that nothing else keeps
            them in memory.
        new : NewCategories
            Categories that are not among those of the sums yet; they are taken out of it, too.
        rest : iterable of Part
        """
        sums = given_up.pop()
        keys, n_rows = self.keys(sums, new), sums.n_rows
        assert sums.model is not None
        indexes = sums.model.keys
        del sums
        release()
        counts = [DistinctCount() for _ in indexes]
        for key, count in zip(indexes, counts, strict=True):
            count.add(key)
        for entry, (key, _) in new.items():
            counts[entry].add(key)
        bare = [key.without_categories() for key in indexes]
        del indexes, key
        new.clear()
        release()
        known, before, seen = n_rows, [count.estimate() for count in counts], n_rows
        for part in rest:
            before, known = [count.estimate() for count in counts], seen
            at_once = whole_chunk(0.8 * free_bytes(self.limit) / self._row)
            for start in range(0, part.X.num_rows, at_once):
                count_categories(self.plan, slice_of(part, start, at_once), bare, counts)
                release()
            seen += part.X.num_rows
            if seen - n_rows > MOST_COUNTED:
                break
        grown = []
        for of_key, count, earlier in zip(keys, counts, before, strict=True):
            total = count.estimate()
            # Rows that were not read are assumed to bring new categories as often as the rows that were read last.
            more = (total - earlier) / max(seen - known, 1) * (self.plan.n_rows - seen)
            n_categories = max(of_key.n_categories, ceil((total + more) * (1 + DOUBT)))
            grown.append(of_key.grown(n_categories, n_rows, self.plan.n_rows))
        return self.too_small(grown, exact=seen >= self.plan.n_rows)

    def enough(self, keys: list[KeyBytes]) -> int:
        """Give a limit that is enough."""
        enough = max(self.needed(keys), self.limit) + SPARE
        # With room for all rows at once, the first pass keeps them.
        return enough + (self.kept_rows if enough - self.held > 2 * self.kept_rows else 0)

    def too_small(self, keys: list[KeyBytes], exact: bool) -> CategoriesError:
        """Give the error for keys that do not fit."""
        largest = max(keys, key=lambda key: key.words + key.sums)
        about = round(largest.n_categories / (1 + DOUBT))
        need = Need(self.limit, self.enough(keys), largest.name, about, exact)
        return CategoriesError(need, [key.n_categories for key in keys])


def count_categories(
    encoding_plan: EncodingPlan, part: Part, keys: list[CategoryIndex], counts: list[DistinctCount]
) -> None:
    """Add the categories of a part to the counts."""
    parameters, given = encoding_plan.parameters, part.given()
    columns = map_columns(given.frame)
    backend = ops.host(given.frame.n_rows)
    for key, count in zip(keys, counts, strict=True):
        if not key.given:
            count.add(CategoryIndex.fit(key.entry, columns, backend, parameters.missing == "category")[0])


def slice_of(part: Part, start: int, n_rows: int) -> Part:
    """Give a slice of the rows of a part."""

    def cut(column: Any) -> Any:
        return None if column is None else column.slice(start, n_rows)

    return Part(cut(part.X), cut(part.y), cut(part.sample_weight), cut(part.groups), part.first_row + start, part.name)
