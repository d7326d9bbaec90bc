"""Columns of a table as numbers (their own, or encodings of categories), and the borders at which trees split."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.encoders.catboost import CatBoostEncoder
from gpu_encode.fitting.columns import locate
from gpu_encode.fitting.inputs import Inputs, read_numbers
from gpu_encode.schemes import Ordered
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.tables.frames.columns import is_temporal, plain
from gpu_encode.words.annotations import Table


@dataclass(frozen=True, eq=False)
class Features:
    """How columns become numbers: what was learned from training rows.

    Parameters
    ----------
    categorical : list of int
        Positions of the categorical columns, whose encodings come first.
    numeric : list of int
        Positions of the numeric columns.
    encoder : CatBoostEncoder, optional
        None if there are no categorical columns.
    """

    categorical: list[int]
    numeric: list[int]
    encoder: CatBoostEncoder | None

    @classmethod
    def fit(cls, inputs: Inputs, y: Any, categorical: Any, prior: float, seed: int) -> "Features":
        """Learn the encodings of categories.

        Parameters
        ----------
        inputs : Inputs
        y : array (rows,)
            Quantities, or labels 0 and 1 as integers.
        categorical : "auto" or list
        prior : float
            Encoding of a category that no row has.
        seed : int
            Seed of the orders.
        """
        chosen = find_categorical(inputs.frame, categorical)
        others = [position for position in range(inputs.frame.n_columns) if position not in chosen]
        if not chosen:
            return cls([], others, None)
        encoder = CatBoostEncoder(
            priors=[prior],
            columns=list(chosen),
            target_type="binary" if y.dtype.kind == "i" else "continuous",
            cv=Ordered(random_state=seed),
            device="cpu",
        )
        return cls(chosen, others, encoder.fit(one_table(inputs), y))

    def draw(self, inputs: Inputs, y: Table, number: int) -> Floats:
        """Give the features of training rows, with categories encoded from the rows before in one order."""
        encoded = None if self.encoder is None else self.encoder.draw(one_table(inputs), y, number)
        return self._put_together(inputs, encoded)

    def transform(self, inputs: Inputs) -> Floats:
        """Give the features of new rows."""
        encoded = None if self.encoder is None else self.encoder.transform(one_table(inputs))
        return self._put_together(inputs, encoded)

    def _put_together(self, inputs: Inputs, encoded: Any) -> Floats:
        columns = [] if encoded is None else read_columns(frames.read(encoded), range(len(self.categorical)))
        columns += read_columns(inputs.frame, self.numeric)
        return np.stack(columns, axis=1)


def one_table(inputs: Inputs) -> Any:
    """Give the table of a call, which must be a single one."""
    if isinstance(inputs.frame, Pieces):
        raise TypeError("A reference booster takes one table, and X is several. Put them together first.")
    return inputs.tables[0]


def find_categorical(frame: Frame | Pieces, categorical: Any) -> list[int]:
    """Give the positions of the categorical columns: those that are named, or all that do not hold numbers."""
    if not isinstance(categorical, str):
        return sorted({locate(frame, column, "categorical:") for column in categorical})
    return [position for position in range(frame.n_columns) if not holds_numbers(frame.parts[0], position)]


def holds_numbers(part: Frame, position: int) -> bool:
    """Whether a column holds only numbers or truth values."""
    column = part.column(position)
    if column.codes is not None or is_temporal(column):
        return False
    values, nulls = plain(column)
    return values.dtype.kind != "O" or all(isinstance(value, (Real, np.bool_, Decimal)) for value in values[~nulls])


def read_columns(frame: Frame | Pieces, positions: Sequence[int]) -> list[Floats]:
    """Read numeric columns as float64, with NaN for missing values."""
    for position in positions:
        if not holds_numbers(frame.parts[0], position):
            raise TypeError(
                f"Column {frame.label(position)!r} holds values that are not numbers. Convert it, or name it in "
                "categorical and fit again."
            )
    read = [read_numbers(frame.parts[0], position) for position in positions]
    return [np.where(nulls, np.nan, values.astype(np.float64)) for values, nulls in read]


def find_borders(features: Floats, y: Floats, prior: float, n_encoded: int, most: int) -> list[Floats]:
    """Give the borders of every column.

    Parameters
    ----------
    features : float64 array (rows, columns)
        Of any order; numeric columns are the same in all orders.
    y : float64 array (rows,)
    prior : float
    n_encoded : int
        Number of columns of encodings, which come first.  Their borders are spread evenly between the smallest and the
        largest possible encoding, so that borders reveal no encodings.
    most : int
        Most borders of a column.
    """
    low, high = min(float(y.min()), prior), max(float(y.max()), prior)
    even = low + (high - low) * np.arange(1, most + 1) / (most + 1)
    return [even] * n_encoded + [borders_of(column, most) for column in features.T[n_encoded:]]


def borders_of(values: Floats, most: int) -> Floats:
    """Give borders of numbers: between all distinct ones, or at quantiles if there are too many."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if len(distinct) <= most + 1:
        middles: Floats = distinct[:-1] + (distinct[1:] - distinct[:-1]) / 2
        return middles
    quantiles = np.unique(np.quantile(known, np.arange(1, most + 1) / (most + 1), method="lower"))
    below: Floats = quantiles[quantiles < distinct[-1]]
    return below
