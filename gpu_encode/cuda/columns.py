"""Columns of whole numbers, all of them in each launch: their ranges, the numbers that occur, codes in few bytes."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_encode.cuda import raw
from gpu_encode.cuda.categories import (
    ROWS_A_MARK,
    SHORT_INDEX,
    SMALL_RANGE,
    base_and_mask,
    marked,
    numbers_at,
    sign_bit,
    words_of,
)
from gpu_encode.cuda.indexed import CodeSource, Index, codes_by
from gpu_encode.cuda.memory import empty, to_device, to_host, zeros
from gpu_encode.cuda.runtime import blocks_for

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# How many numbers of a plan describe a column to the kernels: see raw/columns.cu.
COLUMN_NUMBERS = 9


class Column(NamedTuple):
    """Where the codes of a column begin, the bytes of each, and how many codes there are."""

    begin: int
    bytes: int
    radix: int


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
        line[: 3 + len(others)] = [
            number % 2**64 for number in (words.data.ptr, words.strides[0], words.itemsize, *others)
        ]
    given = to_device(plan.reshape(-1)), len(columns), len(columns[0]), *arguments, [*columns]
    blocks = len(columns) * blocks_of_column(columns, shared)
    raw.run(name, blocks, raw.THREADS, *given, shared=max(shared, raw.THREADS // 2))


def blocks_of_column(columns: "Sequence[Array]", shared: int = 0) -> int:
    """Give the blocks that read one of the columns."""
    at_work = raw.blocks_at_work(shared, raw.BLOCKS, raw.table_bytes())
    return blocks_for(len(columns[0]), 4 * raw.THREADS, -(-at_work // len(columns)))


def index_columns(columns: "Sequence[Array]", /) -> "list[tuple[Array, Array] | None]":
    """Give what `index_numbers` gives for each of some columns of whole numbers; None if a column has a long range."""
    if not columns or not len(columns[0]):
        return [None] * len(columns)
    words = [words_of(column).words for column in columns]
    ranges = measure_ranges(columns)
    most = min(SHORT_INDEX, len(columns[0]) + SMALL_RANGE)
    short = [number for number, (_, size) in enumerate(ranges) if size <= most]
    spans = [(*base_and_mask(ranges[number][0], columns[number].dtype), ranges[number][1]) for number in short]
    marks = mark([words[number] for number in short], spans) if short else []
    every, found = ranks_of(marks), [None] * len(columns)
    for number, (base, mask, _), present, ranks in zip(short, spans, marks, every, strict=True):
        offsets = marked(present)
        codes = codes_by(words[number], Index(base, mask, ranks), offsets)
        found[number] = codes, numbers_at(offsets, base, columns[number].dtype)
    return found


def measure_ranges(columns: "Sequence[Array]") -> list[tuple[int, int]]:
    """Give the smallest number of each column, and how many numbers there are from it to the largest; waits once."""
    flips = [sign_bit(column.dtype) for column in columns]
    ends = empty(2 * len(columns) * blocks_of_column(columns), np.uint64)
    launch_over("measure_columns", [words_of(column).words for column in columns], [*zip(flips)], ends)
    found = to_host(ends).reshape(-1, len(columns), 2)
    lowest, highest = found[..., 0].min(axis=0).tolist(), found[..., 1].max(axis=0).tolist()
    return [(low - flip, high - low + 1) for low, high, flip in zip(lowest, highest, flips, strict=True)]


def mark(columns: "Sequence[Array]", spans: Sequence[tuple[Any, Any, int]]) -> "list[Array]":
    """Tell which numbers of a range occur in each column, on the host; waits once.

    `spans` are the lowest word of each column, the bits of a word, and the length of the range.
    """
    sizes = [size for *_, size in spans]
    begins = [0, *accumulate(sizes)]
    # Blocks mark the numbers of shorter ranges in shared memory.
    most = min(8 * raw.table_bytes(), len(columns[0]) // ROWS_A_MARK)
    shared = 4 * max([-(-size // 32) for size in sizes if size <= most], default=0)
    present = zeros(begins[-1], np.uint8)
    numbers = [(int(base), size, begin) for (base, _, size), begin in zip(spans, begins, strict=False)]
    launch_over("mark_columns", columns, numbers, most, present, shared=shared)
    marks = to_host(present)
    return [marks[begin:end] for begin, end in zip(begins, begins[1:], strict=False)]


def ranks_of(marks: "Sequence[Array]") -> "list[Array]":
    """Give an index into the distinct numbers of each column, plus one, on the device; none for neighbours."""
    ranks = [np.cumsum(each, dtype=np.int32) if not each.all() else np.zeros(0, np.int32) for each in marks]
    ends = [0, *accumulate(map(len, ranks))]
    every = to_device(np.concatenate(ranks)) if ends[-1] else empty(0, np.int32)
    return [every[begin:end] for begin, end in zip(ends, ends[1:], strict=False)]


def write_codes(numbers: Sequence[CodeSource], out: "Array", columns: Sequence[Column]) -> None:
    """Write the codes of columns to bytes; a value that is missing or unknown gets the last code of its column."""
    lines = []
    for (words, base, _, size, ranks), (begin, width, radix) in zip(numbers, columns, strict=True):
        # Codes are their own numbers, of which those below 0 come after all others.
        table = ranks.data.ptr if len(ranks) else 0
        lines.append((int(base), int(size) or radix - 1, table, begin, width, radix - 1))
    words = [source.words.view(f"u{source.words.itemsize}") for source in numbers]
    launch_over("narrow_columns", words, lines, out, [source.ranks for source in numbers])
