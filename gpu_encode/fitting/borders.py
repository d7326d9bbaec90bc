"""A continuous target cut at borders: each number becomes the bucket that it falls into."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.seam.ops import Ops
from gpu_encode.sums import targets
from gpu_encode.tables.frames import Incomplete, NumberedLabels

MOST_BORDERS = 255


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut of the target at borders: bucket i holds the numbers above border i - 1, up to border i itself.

    Parameters
    ----------
    owner : str
        The encoder's name, for messages.
    borders : int or list of float
        A number of borders, at quantiles of all rows; or the borders themselves.
    as_shares : bool
        True: a bucket becomes its number over the number of borders.  False: buckets become labels.
    """

    owner: str
    borders: Any
    as_shares: bool = False

    @property
    def needs_all_rows(self) -> bool:
        """Whether borders are computed from the rows."""
        return isinstance(self.borders, Integral) and not isinstance(self.borders, bool)

    def check(self) -> None:
        """Raise ValueError if `borders` is neither a number of borders nor a list of rising numbers."""
        if self.needs_all_rows:
            if not 1 <= int(self.borders) <= MOST_BORDERS:
                raise _no_borders(self.owner, self.borders)
            return
        given = self.borders.tolist() if isinstance(self.borders, np.ndarray) else self.borders
        numbers = isinstance(given, (list, tuple)) and all(
            isinstance(border, Real) and not isinstance(border, bool) and np.isfinite(float(border)) for border in given
        )
        if not numbers or not given or any(one >= other for one, other in pairwise(given)):
            raise _no_borders(self.owner, self.borders)

    def check_fixed(self) -> None:
        """Raise ValueError for borders that change with the rows."""
        if self.needs_all_rows:
            raise ValueError(
                f"borders={int(self.borders)} of {self.owner} are quantiles of all rows, but the rows come in parts or "
                "in several calls. Give the borders themselves, as a list of numbers."
            )

    def buckets(
        self, ops: Ops, named: Sequence[tuple[str | None, Any]], weight: Array | None = None
    ) -> list[tuple[str | None, Any]]:
        """Give the bucket of each row of the only target: a label, or a share.

        A label is the largest number of the bucket; a share is the bucket's number over the number of borders.

        Parameters
        ----------
        ops : Ops
        named : list of (name, array)
            One target.
        weight : array (rows,), optional
            Weights of all rows, for borders that are quantiles.
        """
        if len(named) != 1:
            raise ValueError(
                f"borders of {self.owner} cut one target, but y holds {len(named)}. Encode each by an encoder of its "
                "own."
            )
        [(name, values)] = named
        if isinstance(values, Incomplete):
            weight = None if weight is None else weight[ops.to_device(~values.missing)]
            with values.naming_rows():
                [(_, present)] = self.buckets(ops, [(name, values.values)], weight)
            return [(name, Incomplete(present, values.missing))]
        numbers = self._numbers(ops, values)
        edges = self._edges(ops, numbers, weight)
        there = edges if isinstance(numbers, np.ndarray) else ops.to_device(edges)
        codes = np.searchsorted(there, numbers, side="left")
        if self.as_shares:
            return [(name, codes / float(len(edges)))]
        return [(name, NumberedLabels(codes.astype(np.int32), np.append(edges, np.inf)))]

    def _numbers(self, ops: Ops, values: Any) -> Array:
        """Give the target as float64, on the device that holds it."""
        if isinstance(values, NumberedLabels):
            raise _text_at_borders(self.owner, values.labels[0])
        if values.dtype.kind not in "biuf":
            raise _text_at_borders(self.owner, values[0])
        targets.check_numbers(values)
        if isinstance(values, np.ndarray):
            return values.astype(np.float64, copy=False)
        return ops.cast(values, np.float64)

    def _edges(self, ops: Ops, numbers: Array, weight: Array | None) -> Array:
        """Give the borders, on the host."""
        if not self.needs_all_rows:
            return np.array(self.borders, np.float64) + 0.0
        values = ops.to_host(numbers)
        weight = np.ones(len(values), np.int64) if weight is None else ops.to_host(weight)
        values, weight = values[weight > 0], weight[weight > 0]
        distinct = np.unique(values + 0.0)
        if len(distinct) < 2:
            raise ValueError(
                f"{self.owner} finds no border in y, whose rows all hold {float(values[0]):g}. Give borders as a list "
                "of numbers."
            )
        # A border at the largest value would leave the last bucket empty.
        return np.unique(np.minimum(quantiles(values + 0.0, weight, int(self.borders)), distinct[-2]))


def _no_borders(owner: str, found: object) -> ValueError:
    """Error for borders that are neither a number of borders nor rising numbers."""
    return ValueError(
        f"The 'borders' parameter of {owner} must be None, a number of borders from 1 to 255, or a list of finite "
        f"numbers in rising order. Got {found!r} instead."
    )


def _text_at_borders(owner: str, found: object) -> ValueError:
    """Error for a target that is to be cut but holds no numbers."""
    return ValueError(f"borders of {owner} cut numbers, but y holds {found!r}. Convert y, or leave out borders.")


def list_borders(borders: Any) -> Any:
    """Give borders as a list of floats, from any container, so that equal borders compare as equal."""
    given = borders.tolist() if isinstance(borders, np.ndarray) else borders
    numbers = isinstance(given, (list, tuple)) and all(isinstance(border, Real) for border in given)
    return [float(border) for border in given] if numbers else given


def quantiles(values: Array, weight: Array, number: int) -> Array:
    """Give the quantiles 1 / (number + 1), 2 / (number + 1) ... of weighted values, on the host.

    A quantile is the smallest value up to which at least this share of the weight lies.  Whole weights repeat rows.
    Other weights are added up from the smallest value to the largest; for equal values, from the lightest row on.
    """
    order = np.lexsort((weight, values))
    running = np.cumsum(weight[order])
    parts = number + 1
    if weight.dtype.kind == "i":
        reached = np.array([-(-number * int(running[-1]) // parts) for number in range(1, parts)])
    else:
        reached = running[-1] * (np.arange(1, parts) / parts)
    smallest: Array = values[order[np.searchsorted(running, reached, side="left")]]
    return smallest
