"""The places of an order, a tile at a time, and the rows that stand there."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cpu_fallback.row_numbers import Permutation
from gpu_encode.cuda.folds import LARGEST_BLOCK, Blocks, place_in_block, walk_in_blocks, walk_rows
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import TILE, device_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpu_fallback.types import Array

# How a course says which row stands at a place.
AS_NUMBERED, BY_ROW, IN_BLOCKS = range(3)


class Course(NamedTuple):
    """The places of a tile and the rows that stand there.

    Parameters
    ----------
    start : int
        Where the tile begins.
    burned : int
        How many places have no encoding.
    kind : int
        Rows stand as they are numbered, or at the places that `numbers` says, in the whole or in `blocks`.
    numbers : int array
    blocks : Blocks
    """

    start: int
    burned: int
    kind: int
    numbers: "Array"
    blocks: Blocks


@device_function
def row_at(course: Course, i: int) -> np.int64:
    """Give the row at a place of the tile."""
    if course.kind == AS_NUMBERED:
        return np.int64(course.start + i)
    if course.kind == BY_ROW:
        return np.int64(course.numbers[i])
    block, _ = place_in_block(course.start + i, course.blocks)
    return block * course.blocks.size + np.int64(course.numbers[i])


class Tiles:
    """The places of an order, a tile at a time.

    Parameters
    ----------
    n_rows : int
    order : Permutation, int64 array (rows,) or None
        The row at each place; None where rows stand in order.
    burned : int
        Places without an encoding.
    in_blocks : bool
        Whether rows may be given by their blocks.
    """

    def __init__(self, n_rows: int, order: "Permutation | Array | None", burned: int, in_blocks: bool) -> None:
        self.n_rows, self.order, self.burned = n_rows, order, burned
        self.in_blocks = in_blocks and isinstance(order, Permutation) and 1 < order.block <= LARGEST_BLOCK

    def __iter__(self) -> "Iterator[tuple[int, int, Course]]":
        nothing = empty(1, np.int32)
        for start in range(0, self.n_rows, TILE):
            stop = min(start + TILE, self.n_rows)
            yield start, stop, Course(start, self.burned, *self.rows(start, stop, nothing))

    def rows(self, start: int, stop: int, nothing: "Array") -> "tuple[int, Array, Blocks]":
        """Give the rows at the places [start, stop)."""
        no_blocks = Blocks(nothing, 1, 0, 0, 0)
        if self.order is None:
            return AS_NUMBERED, nothing, no_blocks
        if not isinstance(self.order, Permutation):
            return BY_ROW, to_device(self.order[start:stop]), no_blocks
        if self.in_blocks:
            blocks, inside = walk_in_blocks(self.order, start, stop)
            return IN_BLOCKS, inside, blocks
        return BY_ROW, walk_rows(self.order, start, stop, False, np.int32), no_blocks
