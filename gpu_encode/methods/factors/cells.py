"""Rows as cells of a table with one dimension for each column, and sums over the rows of each category."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import frexp
from typing import Self

import numpy as np

from cpu_fallback.types import Array, Codes
from gpu_encode.seam.ops import Ops


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows to which factors are fitted.

    Parameters
    ----------
    ops : Ops
        Backend that computes and holds the arrays.
    codes : list of int32 array (rows,)
        Category of each row, for each column; never negative.
    sizes : list of int
        Number of categories of each column.
    values : float64 array (rows,)
        The numbers to predict.
    weight : float64 array (rows,), optional
    scatter : float
        Squared error that no prediction can avoid: that of rows around the mean of their cell.
    """

    ops: Ops
    codes: list[Codes]
    sizes: list[int]
    values: Array
    weight: Array | None = None
    scatter: float = 0.0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    def take(self, rows: Array) -> Self:
        """Select rows, by a boolean array or by row numbers."""
        return replace(
            self,
            codes=[codes[rows] for codes in self.codes],
            values=self.values[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    def weigh(self, numbers: Array) -> Array:
        """Multiply the numbers of rows by the rows' weights."""
        return numbers if self.weight is None else numbers * self.weight

    def mean_of_squares(self, factors: Sequence[Array]) -> float:
        """Give the weighted mean of the squared errors of predictions."""
        error = predict(factors, self.codes) - self.values
        total = float(self.n_rows) if self.weight is None else float(self.weight.sum())
        return (float(self.weigh(error * error).sum()) + self.scatter) / total

    def join(self) -> Self:
        """Replace the rows of each cell by one row with their mean and total weight, which gives the same best fit."""
        cells, codes = self.number_cells()
        weight = sum_by(cells, np.ones_like(self.values) if self.weight is None else self.weight, len(codes[0]))
        values = sum_by(cells, self.weigh(self.values), len(codes[0])) / weight
        apart = self.values - values[cells]
        return replace(self, codes=codes, values=values, weight=weight, scatter=float(self.weigh(apart * apart).sum()))

    def number_cells(self) -> tuple[Codes, list[Codes]]:
        """Number the cells that have rows, in the order of their codes; give the codes of each cell, by column."""
        cells, codes = self.codes[0], [np.arange(self.sizes[0], dtype=np.int32)]
        for of_column, size in zip(self.codes[1:], self.sizes[1:], strict=True):
            cells, distinct = self.ops.factorize(self.ops.combine(cells, of_column, size))
            joint = self.ops.to_host(distinct)
            codes = [*(of_cells[joint // size] for of_cells in codes), (joint % size).astype(np.int32)]
        return cells, [self.ops.to_device(of_cells) for of_cells in codes]


@dataclass(frozen=True, eq=False)
class Mode:
    """One column of the cells, with sums over the rows of each category.

    Parameters
    ----------
    number : int
    cells : Cells
        On a CPU sorted by the column's categories; rows of one category keep their order.
    present : array, optional
        On a CPU: the categories that have rows; `starts` has the position of the first row of each.
    starts : array, optional
    """

    number: int
    cells: Cells
    present: Array | None = None
    starts: Array | None = None

    @classmethod
    def of(cls, cells: Cells, number: int) -> Self:
        """Sort rows into the order in which they are added."""
        codes = cells.codes[number]
        if not isinstance(codes, np.ndarray):
            return cls(number, cells)
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        return cls(number, cells.take(order), codes[starts], starts)

    def sum_rows(self, numbers: Array) -> Array:
        """Sum numbers of the rows by category.

        On a CPU they are added in the order of the rows.  On a GPU the order is arbitrary, so numbers are first rounded
        to multiples of a power of two that is large enough for all sums to be exact; so every run gives the same bits.
        """
        size = self.cells.sizes[self.number]
        if self.starts is None:
            return sum_by(self.cells.codes[self.number], numbers, size)
        sums = np.zeros(size)
        sums[self.present] = np.add.reduceat(numbers, self.starts)
        return sums

    def sum_weights(self) -> Array:
        """Sum the weights of the rows by category, or count the rows."""
        weight = self.cells.weight
        return self.sum_rows(np.ones_like(self.cells.values) if weight is None else weight)

    def multiply_others(self, factors: Sequence[Array]) -> list[Array]:
        """Give, for each component and row, the product of the factors of all other columns."""
        others = [d for d in range(len(factors)) if d != self.number]
        tables, codes = [factors[d] for d in others], [self.cells.codes[d] for d in others]
        return [multiply(tables, codes, component) for component in components(factors)]


def sum_by(codes: Codes, numbers: Array, size: int) -> Array:
    """Sum numbers by code, in the order of the rows on a CPU; on a GPU, rounded numbers in any order."""
    return np.bincount(
        codes, weights=numbers if isinstance(codes, np.ndarray) else round_for_sums(numbers), minlength=size
    )


def components(factors: Sequence[Array]) -> range:
    """Give the range of component numbers."""
    return range(factors[0].shape[1])


def multiply(factors: Sequence[Array], codes: Sequence[Codes], component: int) -> Array:
    """Multiply the factors of each row in one component; a code of -1 takes the last line."""
    product = factors[0][:, component][codes[0]]
    for table, of_column in zip(factors[1:], codes[1:], strict=True):
        product = product * table[:, component][of_column]
    return product


def predict(factors: Sequence[Array], codes: Sequence[Codes]) -> Array:
    """Give the sum over components of the products of each row's factors."""
    total = multiply(factors, codes, 0)
    for component in components(factors)[1:]:
        total = total + multiply(factors, codes, component)
    return total


def round_for_sums(numbers: Array) -> Array:
    """Round numbers to multiples of a power of two that make the sum of any of them exact."""
    largest = float(np.abs(numbers).max()) * len(numbers)
    if not 0.0 < largest < np.inf:
        return numbers
    # Adding this number and subtracting it again removes all finer multiples.
    coarse = 1.5 * 2.0 ** min(frexp(largest)[1] + 1, 1022)
    return (numbers + coarse) - coarse
