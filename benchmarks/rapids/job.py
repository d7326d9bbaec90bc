"""The rows of one cell, as the contenders and the judge are given them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.gpu.drawn import codes, labels
from benchmarks.gpu.tables import Row
from benchmarks.rapids.grid import N_CLASSES, WORKS, Cell, Work
from benchmarks.rapids.library import FrameLibrary
from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array
from gpu_encode.ops import resolve
from gpu_encode.schemes.base import seed_of


@dataclass(frozen=True)
class Job:
    """One cell and its rows.

    Parameters
    ----------
    library : FrameLibrary
    cell : Cell
    dtype : {"float64", "float32"}
        Type of the codes.
    """

    library: FrameLibrary
    cell: Cell
    dtype: str

    @property
    def work(self) -> Work:
        """What is to be done."""
        return WORKS[self.cell.work]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.cell.rows

    @cached_property
    def categories(self) -> list[Array]:
        """Category number of each row, for each column: what the judge goes by."""
        return [
            self.library.held(
                codes(self.n_rows, self.cell.categories_of(place), self.cell.distribution, seed=10 + place)
            )
            for place in range(self.work.n_keys)
        ]

    @cached_property
    def target(self) -> Array:
        """Class of each row (int32)."""
        found: Array = self.library.held(labels(self.n_rows, self.work.n_classes))
        return found

    @cached_property
    def frame(self) -> Any:
        """Columns of keys, and the target y."""
        keys = zip(self.work.names, self.categories, strict=True)
        columns = {name: self.library.key(self.cell.keys, numbers) for name, numbers in keys}
        return self.library.frame({**columns, "y": self.target})

    def made(self) -> Row:
        """Make the rows, where it is not measured."""
        return {"bytes": self.library.bytes_of(self.frame)}

    @cached_property
    def order(self) -> Array:
        """Row at each place of the order that our encoder walks."""
        ops = resolve(self.n_rows, self.library.device)
        order = Permutation(self.n_rows, seed_of(0, "Ordered"))
        found: Array = self.library.held(ops.rows_at(order, 0, self.n_rows))
        return found

    @cached_property
    def arranged(self) -> Any:
        """The frame in that order."""
        return self.library.reordered(self.frame, self.order)

    def prior(self) -> float:
        """Code of a category without rows, as cuML has it: the mean of all targets; of a class its share."""
        return 1 / N_CLASSES if self.work.n_classes > 2 else float(self.frame["y"].mean())

    @cached_property
    def bytes_at_least(self) -> int:
        """Bytes that any encoder must move: each key and target read once, each code written once."""
        return self.library.bytes_of(self.frame) + self.n_rows * self.work.n_outputs * np.dtype(self.dtype).itemsize
