"""An encoder, tried out: fitted again and again to the same rows, under other targets."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cpu_fallback.types import Array
from gpu_encode.seam import ops
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame

# Targets of more distinct values are told apart by whether they lie above the median of their order.
MOST_CLASSES = 10
# On fewer rows no tree of 16 leaves is grown and scored.
FEWEST_ROWS = 50


@dataclass(frozen=True, eq=False)
class RowTargets:
    """The target of each row.

    Parameters
    ----------
    values : array (rows,)
        As an encoder is given them.
    present : int64 array
        Rows that have one.
    labels : int64 array (rows,)
        Class of each row, or whether its value lies above the median; -1 of a row without a target.
    classes : array
        What the labels stand for.
    """

    values: Array
    present: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: Array

    @classmethod
    def read(cls, y: Any, n_rows: int) -> "RowTargets":
        """Read one target, as encoders do.

        Raises
        ------
        ValueError
            For several targets, few rows with a target, or a target of one value.
        """
        values = frames.on_host(frames.read_targets(y, n_rows, keep_missing=True))
        if values.ndim != 1:
            raise ValueError(f"leak_report looks at one target, and y has {values.shape[1]}. Give one column of y.")
        present = np.flatnonzero([value is not None and value == value for value in values.tolist()])  # noqa: PLR0124
        if len(present) < FEWEST_ROWS:
            raise ValueError(
                f"leak_report needs {FEWEST_ROWS} rows or more that have a target, to grow trees on some and score "
                f"them on others. Got {len(present)}."
            )
        classes, codes = np.unique(values[present], return_inverse=True)
        if len(classes) < 2:
            raise ValueError("y has one value, which no encoding could tell. Give a target of two values or more.")
        if len(classes) > MOST_CLASSES:
            middle = np.median(codes)
            above = codes > middle if (codes > middle).any() else codes >= middle
            classes, codes = np.array(["up to the median", "above the median"]), above.astype(np.int64)
        labels = np.full(n_rows, -1, np.int64)
        labels[present] = codes
        return cls(values, present, labels, classes)

    def take(self, order: Array) -> "RowTargets":
        """Give the rows that have a target those of others, in an order of the numbers of these rows."""
        values, labels = self.values.copy(), self.labels.copy()
        values[self.present], labels[self.present] = values[self.present[order]], labels[self.present[order]]
        return RowTargets(values, self.present, labels, self.classes)


@dataclass(frozen=True, eq=False)
class Trials:
    """What is tried out, and on which rows.

    Parameters
    ----------
    encoder : estimator
        Left as it is; copies are fitted.
    X : table
    targets : RowTargets
    vectors : dict of str to array
        What else `fit_transform` is given.
    """

    encoder: Any
    X: Any
    targets: RowTargets
    vectors: Mapping[str, Any]

    def encode(self, y: Array, with_new: bool = False, warn: bool = False) -> tuple[dict[str, Array], dict[str, Array]]:
        """Fit a copy to the rows with some targets; of what it warns only if `warn`, since others may warn of anything.

        Returns
        -------
        training : dict of str to array (rows,)
            The columns that the training rows get.
        new : dict of str to array (rows,)
            Those that new rows of the same values get; empty unless asked for.
        """
        with warnings.catch_warnings():
            # What a library says of its own future is not of the rows.
            for category in (DeprecationWarning, FutureWarning) if warn else (Warning,):
                warnings.simplefilter("ignore", category)
            copy = clone(self.encoder)
            training = read_columns(copy.fit_transform(self.X, y, **self.vectors))
            new = read_columns(copy.transform(self.X)) if with_new else {}
        for number in (len(column) for column in (*training.values(), *new.values())):
            if number != len(self.targets.values):
                raise ValueError(
                    f"leak_report compares encodings row by row, and {type(self.encoder).__name__} gave {number} rows "
                    f"for {len(self.targets.values)}. Give a transformer that keeps all rows."
                )
        return training, new


def read_columns(table: Any) -> dict[str, Array]:
    """Read encoded columns of any library: names, and values as floats where they are numbers."""
    frame = frames.read(table.toarray() if hasattr(table, "toarray") else table)
    names = frame.names or [f"x{position}" for position in range(frame.n_columns)]
    values = [frame.values(position) for position in range(frame.n_columns)]
    return {
        str(name): column.astype(np.float64) if column.dtype.kind in "biuf" else column
        for name, column in zip(names, values, strict=True)
    }


def same_bits(one: Array, other: Array) -> NDArray[np.bool_]:
    """Say of every row whether two columns have the same bits there; all NaN are one."""
    if one.dtype.kind != "f" or other.dtype.kind != "f":
        equal: NDArray[np.bool_] = np.asarray(one == other)
        return equal
    same: NDArray[np.bool_] = (one.view(np.int64) == other.view(np.int64)) | (np.isnan(one) & np.isnan(other))
    return same


def key_codes(frame: Frame, members: Sequence[int]) -> NDArray[np.int64]:
    """Number the distinct values of a column, in their order, or of several together; missing ones come first."""
    host = ops.host(frame.n_rows)
    codes = np.zeros(frame.n_rows, np.int64)
    for position in members:
        own = frame.keys(position, host).codes.astype(np.int64) + 1
        codes = np.unique(codes * (own.max() + 1) + own, return_inverse=True)[1].reshape(-1)
    return codes


def find_source(output: str, sources: Sequence[str]) -> str | None:
    """Name the column or key that an output is made of: of the same name, or of the longest that it begins with.

    Examples
    --------
    >>> find_source("city_x_day", ["city", "city_x_day"]), find_source("city_3", ["city"]), find_source("x0", ["city"])
    ('city_x_day', 'city', None)
    """
    begun = [name for name in sources if output == name or output.startswith(f"{name}_")]
    return max(begun, key=len, default=None)
