"""Tiles of an order: the rows of neighbouring ranks, read into their order by several threads."""

from typing import NamedTuple

import numpy as np

from cpu_fallback.compiled.border import Array, RowParts, freeze, kernel
from cpu_fallback.compiled.checkpoints import rises, rows_of
from cpu_fallback.compiled.folds import walk_share
from cpu_fallback.memory import empty
from cpu_fallback.row_numbers import Order, Permutation, TimeOrder

NO_NUMBERS = freeze(np.zeros(0, np.int64), np.int64)


class Tile(NamedTuple):
    """Rows of neighbouring ranks, from `base` on, and their numbers and times; both may be empty.

    Without numbers, the rows are in their own order.
    """

    rows: RowParts
    base: int
    numbers: Array
    ties: Array
    start: int
    size: int


@kernel
def gather_rows(
    rows: RowParts, numbers: Array, start: int, stop: int, codes: Array, target: Array, weight: Array
) -> None:
    """Copy the rows with the numbers [start, stop)."""
    for row in range(start, stop):
        place = np.uint64(row)
        number = np.uint64(numbers[place])
        codes[place] = rows.codes[number]
        target[place] = rows.numbers.target[number]
        if rows.numbers.weight_kind:
            weight[place] = rows.numbers.weight[number]


class OrderReader:
    """Reads the rows of an order, tile by tile.

    Parameters
    ----------
    rows : RowParts
    order : Permutation, TimeOrder or RowOrder
    ties : int64 array
        The time of each rank; empty if all times differ.
    """

    def __init__(self, rows: RowParts, order: Order, ties: Array) -> None:
        self.rows, self.order, self.ties = rows, order, ties
        # The row of each rank; None if the rows keep their order, and no numbers for a random order.
        self.numbers = NO_NUMBERS if isinstance(order, Permutation) else None
        if isinstance(order, TimeOrder) and len(order.rows):
            numbers = freeze(order.rows, np.int64)
            keeps = numbers[0] == 0 and numbers[-1] == len(numbers) - 1 and rises(numbers)
            self.numbers = None if keeps else numbers
        self.codes, self.words = np.zeros(0, np.int32), np.zeros((3, 0), np.uint64)

    def first_row(self) -> int:
        """Give the number of the first row in the order."""
        if isinstance(self.order, Permutation):
            return int(rows_of(self.order, 0, 1)[0])
        return 0 if self.numbers is None else int(self.numbers[0])

    def tile(self, start: int, stop: int) -> Tile:
        """Describe the rows of the ranks [start, stop), which are still to be read; earlier tiles become invalid."""
        ties, size = self.ties[start:stop], stop - start
        if self.numbers is None:
            return Tile(self.rows, start, NO_NUMBERS, ties, start, size)
        if size > len(self.codes):
            self.codes, self.words = empty(size, np.int32), empty((3, size), np.uint64)
        target, weight, numbers = self.words
        given = self.rows.numbers._replace(target=freeze(target, np.uint64), weight=freeze(weight, np.uint64))
        rows = self.rows._replace(codes=freeze(self.codes, np.int32), numbers=given)
        numbers = self.numbers[start:stop] if len(self.numbers) else freeze(numbers.view(np.int64), np.int64)
        return Tile(rows, 0, numbers, ties, start, size)

    def read(self, tile: Tile, begin: int, end: int) -> None:
        """Read rows of a tile, from place `begin` to `end`."""
        if self.numbers is None:
            return
        target, weight, numbers = self.words
        if isinstance(self.order, Permutation):
            walk_share(self.order, False, tile.start, begin, end, numbers.view(np.int64))
        gather_rows(self.rows, tile.numbers, begin, end, self.codes, target, weight)
