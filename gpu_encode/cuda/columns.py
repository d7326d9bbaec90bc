"""Columns of whole numbers, all of them in each launch: their ranges, the numbers that occur, codes in few bytes."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from cpu_fallback.compiled.ranges import range_around
from gpu_encode.cuda import raw
from gpu_encode.cuda.categories import (
    GUESSED_FROM,
    ROWS_A_MARK,
    SEVERAL,
    SHORT_INDEX,
    SMALL_RANGE,
    base_and_mask,
    marked,
    numbers_at,
    sign_bit,
    words_of,
)
from gpu_encode.cuda.indexed import CodeSource, Index, IndexedCodes, code_source
from gpu_encode.cuda.memory import empty, to_device, to_host, zeros
from gpu_encode.cuda.runtime import blocks_for

if TYPE_CHECKING:
    from cpu_fallback.types import Array, Codes

# Number of numbers that describe a column in a plan: see raw/columns.cu.
COLUMN_NUMBERS = 9
# The codes of a column begin at a multiple of this number of bytes.
VECTOR_BYTES = 16


class Column(NamedTuple):
    """Where the codes of a column begin, the bytes of a code, and the number of different codes."""

    begin: int
    bytes: int
    radix: int


class NarrowCodes(NamedTuple):
    """Codes of columns, one after the other, each in as few bytes as it needs.

    Parameters
    ----------
    held : uint8 array
    columns : list of Column
    n_rows : int
    """

    held: "Array"
    columns: Sequence[Column]
    n_rows: int


def bytes_of(size: int) -> int:
    """Give the number of bytes of a code if there are `size` different codes."""
    return 1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4


def room_for(sizes: Sequence[int], widths: Sequence[int], n_rows: int) -> NarrowCodes:
    """Allocate columns of codes; each is padded to whole vectors."""
    padded = -(-n_rows // VECTOR_BYTES) * VECTOR_BYTES
    begins = [0, *accumulate(width * padded for width in widths)]
    columns = [Column(*each) for each in zip(begins, widths, sizes, strict=False)]
    return NarrowCodes(empty(begins[-1], np.uint8), columns, n_rows)


def codes_at(codes: NarrowCodes, number: int) -> "Array":
    """Give the codes of a column."""
    begin, width, _ = codes.columns[number]
    found: Array = codes.held[begin : begin + width * codes.n_rows].view(f"u{width}")
    return found


def index_columns(columns: "Sequence[Array]", /) -> "list[tuple[Array, Array] | None]":
    """Give what `index_numbers` gives for each of some columns of whole numbers; None if a column has a long range."""
    n_rows = len(columns[0]) if columns else 0
    found: list[tuple[Array, Array] | None] = [None] * len(columns)
    left = [*range(len(columns))]
    for step in steps_of(n_rows):
        ranges = measure_ranges([columns[number] for number in left], step)
        most = min(SHORT_INDEX, n_rows + SMALL_RANGE)
        short = {number: span for number, span in zip(left, ranges, strict=True) if span[1] <= most}
        numbered = number_in_ranges([columns[number] for number in short], [*short.values()]) if short else []
        for number, column in zip(short, numbered, strict=True):
            found[number] = column
        left = [number for number in short if found[number] is None]
        if not left:
            break
    return found


def steps_of(n_rows: int) -> tuple[int, ...]:
    """Give the steps of the rows that ranges are measured in: a sample of many rows, then all rows where it misled."""
    step = n_rows // GUESSED_FROM
    # An odd step is unlikely to match periods of the data.
    return ((step - 1) | 1, 1) if step >= SEVERAL else (1,) if n_rows else ()


def measure_ranges(columns: "Sequence[Array]", step: int) -> list[tuple[int, int]]:
    """Give the first number of the range of each column, and its length, by every so many rows; waits once."""
    flips = [sign_bit(column.dtype) for column in columns]
    words = [words_of(column[: step * GUESSED_FROM : step] if step > 1 else column).words for column in columns]
    ends = empty(2 * len(columns) * blocks_of_column(words), np.uint64)
    launch_over("measure_columns", words, [[flip] for flip in flips], ends)
    found, ranges = to_host(ends).reshape(-1, len(columns), 2), []
    for column, flip, low, high in zip(
        columns, flips, found[..., 0].min(axis=0).tolist(), found[..., 1].max(axis=0).tolist(), strict=True
    ):
        lowest, highest = low - flip, high - flip
        exact = lowest, highest - lowest + 1
        ranges.append(range_around(lowest, highest, column.dtype) if step > 1 else exact)
    return ranges


def number_in_ranges(
    columns: "Sequence[Array]", ranges: Sequence[tuple[int, int]]
) -> "list[tuple[Array, Array] | None]":
    """Give codes and distinct numbers of columns; None if numbers are outside of the column's range. Waits once."""
    spans = [base_and_mask(lowest, column.dtype) for column, (lowest, _) in zip(columns, ranges, strict=True)]
    marks, distances = mark(columns, [base for base, _ in spans], [size for _, size in ranges])
    present = {number: marked(each[:-1]) for number, each in enumerate(marks) if not each[-1]}
    ranks = ranks_of({number: marks[number] for number, offsets in present.items() if not isinstance(offsets, range)})
    found: list[tuple[Array, Array] | None] = [None] * len(columns)
    nothing = empty(0, np.int32)
    for number, offsets in present.items():
        column, narrow, of_column = columns[number], codes_at(distances, number), ranks.get(number, nothing)
        (base, mask), of_narrow = spans[number], np.uint64((1 << 8 * narrow.itemsize) - 1)
        codes = IndexedCodes(
            code_source(words_of(column).words, Index(base, mask, of_column), offsets),
            code_source(narrow, Index(np.uint64(0), of_narrow, of_column), offsets),
        )
        found[number] = cast("Array", codes), numbers_at(offsets, base, column.dtype)
    return found


def mark(
    columns: "Sequence[Array]", bases: Sequence[np.uint64], sizes: Sequence[int]
) -> "tuple[list[Array], NarrowCodes]":
    """Tell on the host which numbers of a range occur, and how far each row's number is from its column's base.

    The last mark of a column is for numbers outside of the range.
    """
    distances = room_for(sizes, [*map(bytes_of, sizes)], len(columns[0]))
    begins = [0, *accumulate(size + 1 for size in sizes)]
    # Blocks mark the numbers of shorter ranges in shared memory.
    most = min(8 * raw.table_bytes(), len(columns[0]) // ROWS_A_MARK)
    shared = 4 * max([size // 32 + 1 for size in sizes if size < most], default=0)
    present, lines = zeros(begins[-1], np.uint8), []
    for base, size, begin, (out, width, _) in zip(bases, sizes, begins, distances.columns, strict=False):
        lines.append((int(base), size, begin, out, width))
    words = [words_of(column).words for column in columns]
    launch_over("mark_columns", words, lines, most, present, distances.held, shared=shared)
    marks = to_host(present)
    return [marks[begin:end] for begin, end in pairwise(begins)], distances


def ranks_of(marks: "dict[int, Array]") -> "dict[int, Array]":
    """Give the code plus one of each number that is marked, for several columns, in one copy to the device."""
    if not marks:
        return {}
    ends = [0, *accumulate(map(len, marks.values()))]
    every = to_device(np.concatenate([np.cumsum(each, dtype=np.int32) for each in marks.values()]))
    return {number: every[begin:end] for number, (begin, end) in zip(marks, pairwise(ends), strict=True)}


def write_codes(numbers: Sequence[CodeSource], out: NarrowCodes) -> None:
    """Write the codes of columns; a value that is missing or unknown gets the last code of its column."""
    lines = []
    for (_, base, _, size, ranks), (begin, width, radix) in zip(numbers, out.columns, strict=True):
        # Codes are their own numbers, of which those below 0 come after all others.
        lines.append((int(base), int(size) or radix - 1, address_of(ranks), begin, width, radix - 1))
    words = [source.words.view(f"u{source.words.itemsize}") for source in numbers]
    launch_over("narrow_columns", words, lines, out.held, [source.ranks for source in numbers])


class VocabularyIndexes:
    """Direct indexes of the vocabularies of columns, made once for each type of the columns.

    Parameters
    ----------
    categories : list of array
        Sorted values of each column; of other columns than those of whole numbers, only their number is read.
    """

    def __init__(self, categories: "Sequence[Array]") -> None:
        self._categories = [*categories]
        self._made: dict[tuple[np.dtype[np.generic] | None, ...], list[CodeSource]] = {}

    def look_up(self, numbers: "Sequence[Array | None]", lookup: "Callable[[int], Codes]", /) -> NarrowCodes:
        """Give the codes of columns; see `gpu_encode.seam.ops.VocabularyIndexes`."""
        types = tuple(
            None if given is None or not has_short_index(known, given.dtype) else given.dtype
            for given, known in zip(numbers, self._categories, strict=True)
        )
        if types not in self._made:
            self._made[types] = index_vocabularies(self._categories, types)
        sources = []
        for number, (given, dtype, index) in enumerate(zip(numbers, types, self._made[types], strict=True)):
            codes = to_device(lookup(number)).astype(np.int32, copy=False) if given is None or dtype is None else given
            sources.append(index._replace(words=words_of(codes).words))
        sizes = [len(known) + 2 for known in self._categories]
        out = room_for(sizes, [*map(bytes_of, sizes)], len(sources[0].words))
        write_codes(sources, out)
        return out


def read_vocabularies(categories: "Sequence[Array]", /) -> VocabularyIndexes:
    """Index the sorted values of columns."""
    return VocabularyIndexes(categories)


def has_short_index(categories: "Array", dtype: "np.dtype[np.generic]") -> bool:
    """Tell whether numbers of a type can be looked up among categories in a direct index that is short."""
    if not len(categories):
        return False
    held, low, high = np.iinfo(cast("np.dtype[np.integer[Any]]", dtype)), int(categories[0]), int(categories[-1])
    return held.min <= low and high <= held.max and high - low < SHORT_INDEX


def index_vocabularies(
    categories: "Sequence[Array]", types: "Sequence[np.dtype[np.generic] | None]"
) -> list[CodeSource]:
    """Say how to read the codes of columns of some types; without a type, of codes in int32."""
    nothing, made, ranks = empty(0, np.uint8), [], [np.zeros(0, np.int32)]
    for known, dtype in zip(categories, types, strict=True):
        n = len(known)
        if dtype is None:
            # These are the codes -2, which stands for an unknown value, and -1 for a missing one, then all others.
            lowest, of_column = -2, np.array([n + 2, n + 1, *range(1, n + 1)], np.int32)
        else:
            lowest = int(known[0])
            of_column = np.full(int(known[-1]) - lowest + 1, n + 2, np.int32)
            of_column[known.astype(np.int64 if lowest < 0 else np.uint64) - lowest] = np.arange(1, n + 1)
        base, mask = base_and_mask(lowest, np.dtype(np.int32) if dtype is None else dtype)
        size = len(of_column)
        made.append((base, mask, size))
        # Consecutive numbers need no ranks.
        ranks.append(of_column[:0] if size == n else of_column)
    ends = [0, *accumulate(map(len, ranks[1:]))]
    every = to_device(np.concatenate(ranks))
    return [
        CodeSource(nothing, base, mask, np.uint64(size), every[begin:end])
        for (base, mask, size), (begin, end) in zip(made, pairwise(ends), strict=True)
    ]


def launch_over(
    name: str, columns: "Sequence[Array]", numbers: Sequence[Sequence[int]], *arguments: Any, shared: int = 0
) -> None:
    """Launch a kernel that reads all rows of all columns.

    Parameters
    ----------
    name : str
    columns : list of uint array
        Unsigned words, which need not be contiguous.
    numbers : list of list of int
        What else the kernel reads of each column, in the order of the plan.
    *arguments
        What the kernel takes after the plan; lists are of arrays that `numbers` names by address.
    shared : int
        Bytes of shared memory.
    """
    plan = np.zeros((len(columns), COLUMN_NUMBERS), np.uint64)
    for line, words, others in zip(plan, columns, numbers, strict=True):
        read = address_of(words), words.strides[0] % 2**64, words.itemsize, *others
        line[: len(read)] = read
    given = to_device(plan.reshape(-1)), len(columns), len(columns[0]), *arguments, [*columns]
    blocks = len(columns) * blocks_of_column(columns, shared)
    raw.run(name, blocks, raw.THREADS, *given, shared=max(shared, raw.THREADS // 2))


def address_of(array: Any) -> int:
    """Give where an array begins in the device's memory; 0 for an empty one."""
    return int(array.data.ptr) if len(array) else 0


def blocks_of_column(columns: "Sequence[Array]", shared: int = 0) -> int:
    """Give the blocks that read one of the columns."""
    at_work = raw.blocks_at_work(shared, raw.BLOCKS, raw.table_bytes())
    return blocks_for(len(columns[0]), 4 * raw.THREADS, -(-at_work // len(columns)))
