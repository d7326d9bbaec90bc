"""The ranks of an order and their rows, tile by tile."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.row_numbers import Permutation
from gpu_encode.cuda.memory import empty
from gpu_encode.cuda.permutations import LARGEST_BLOCK, walk_in_blocks, walk_rows
from gpu_encode.cuda.runtime import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpu_fallback.types import Array

# The ways in which a course gives the row of a rank.
AS_NUMBERED, BY_ROW, IN_BLOCKS = range(3)
# Ranks of a random order whose rows are known at the same time; with its cell, a rank takes six bytes.
RANKS = 256 if SIMULATED else 1 << 26


class Course(NamedTuple):
    """The ranks of a tile and their rows, in the form that raw/ordered.cu reads.

    Parameters
    ----------
    start : int
        First rank of the tile.
    kind : int
        AS_NUMBERED: row k has rank k; BY_ROW: `numbers` are rows; IN_BLOCKS: `numbers` are blocks of rows.
    numbers : uint32 array
    inside : uint8 array
        Position of each row in its block.
    block, offset : int
        Number of rows in a block; number of ranks of the first block that are before the tile.
    turn, lacking : int
        First rank behind the incomplete block, counted from `start`; number of rows that this block lacks.
    """

    start: int
    kind: int
    numbers: "Array"
    inside: "Array"
    block: int
    offset: int
    turn: int
    lacking: int


def course_of(order: "Permutation | None", start: int, stop: int) -> Course:
    """Give the rows of the ranks [start, stop)."""
    nothing, no_bytes = empty(0, np.uint32), empty(0, np.uint8)
    if order is None:
        return Course(start, AS_NUMBERED, nothing, no_bytes, 1, 0, 0, 0)
    if 1 < order.block <= LARGEST_BLOCK:
        blocks, inside = walk_in_blocks(order, start, stop)
        behind = start - blocks.first * blocks.size, blocks.turn - start, blocks.lacking
        return Course(start, IN_BLOCKS, blocks.numbers, inside, blocks.size, *behind)
    return Course(start, BY_ROW, walk_rows(order, start, stop, False, np.uint32), no_bytes, 1, 0, 0, 0)


def courses_of(
    order: "Permutation | None", n_rows: int, most: int | None = None
) -> "Iterator[tuple[int, int, Course]]":
    """Yield the ranks of an order with their rows, at most `most` at a time; all at once for the rows' own order."""
    most = most or (max(n_rows, 1) if order is None else RANKS)
    for start in range(0, n_rows, most):
        stop = min(start + most, n_rows)
        yield start, stop, course_of(order, start, stop)
