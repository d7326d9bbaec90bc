"""Trials of an encoder: it is fitted to the same rows again and again, with other targets."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cpu_fallback.types import Array
from gpu_encode.fitting.copies import number_rows
from gpu_encode.seam import ops
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame

# A target with more distinct values is divided into those above and below its median.
MOST_CLASSES = 10
# With fewer rows, a tree of 16 leaves cannot be fitted and scored.
FEWEST_ROWS = 50


@dataclass(frozen=True, eq=False)
class RowTargets:
    """The target of each row.

    Parameters
    ----------
    values : array (rows,)
        In the form in which the encoder gets them.
    present : int64 array
        Rows that have a target.
    labels : int64 array (rows,)
        Class of each row, or whether its value is above the median; -1 for a row without a target.
    classes : array
        What the labels mean.
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
            For several targets, too few rows with a target, or a target with one value.
        """
        values = frames.on_host(frames.read_targets(y, n_rows, keep_missing=True))
        if values.ndim != 1:
            raise ValueError(f"leak_report looks at one target, and y has {values.shape[1]}. Give one column of y.")
        present = np.flatnonzero([value is not None and value == value for value in values.tolist()])  # noqa: PLR0124
        if len(present) < FEWEST_ROWS:
            raise ValueError(
                f"leak_report needs {FEWEST_ROWS} rows or more that have a target, to fit trees to some and score "
                f"them on others. Got {len(present)}."
            )
        classes, codes = np.unique(values[present], return_inverse=True)
        if len(classes) < 2:
            raise ValueError("y has one value, so nothing can leak. Give a target of two values or more.")
        if len(classes) > MOST_CLASSES:
            middle = np.median(codes)
            above = codes > middle if (codes > middle).any() else codes >= middle
            classes, codes = np.array(["up to the median", "above the median"]), above.astype(np.int64)
        labels = np.full(n_rows, -1, np.int64)
        labels[present] = codes
        return cls(values, present, labels, classes)

    def take(self, order: Array) -> "RowTargets":
        """Give the rows that have a target the targets of others: `order` has a number among these rows for each."""
        values, labels = self.values.copy(), self.labels.copy()
        values[self.present], labels[self.present] = values[self.present[order]], labels[self.present[order]]
        return RowTargets(values, self.present, labels, self.classes)

    def shuffle(self, random: np.random.Generator, cases: NDArray[np.int64] | None = None) -> "RowTargets":
        """Shuffle the targets among the rows that have one; with `cases`, all rows of a case get the same target."""
        if cases is None:
            return self.take(random.permutation(len(self.present)))
        _, first, case = np.unique(cases[self.present], return_index=True, return_inverse=True)
        return self.take(random.permutation(first)[case.reshape(-1)])


@dataclass(frozen=True, eq=False)
class Trials:
    """The encoder and the rows of the trials.

    Parameters
    ----------
    encoder : estimator
        It is not changed; copies are fitted.
    X : table
    targets : RowTargets
    vectors : dict of str to array
        Further arguments of `fit_transform`.
    """

    encoder: Any
    X: Any
    targets: RowTargets
    vectors: Mapping[str, Any]

    def encode(self, y: Array, with_new: bool = False, warn: bool = False) -> tuple[dict[str, Array], dict[str, Array]]:
        """Fit a copy to the rows with these targets; its warnings are shown only if `warn`, others in any case.

        Returns
        -------
        training : dict of str to array (rows,)
            The columns for training rows.
        new : dict of str to array (rows,)
            The columns for new rows with the same values; empty unless `with_new`.
        """
        with warnings.catch_warnings():
            # Warnings of a library about its own future do not concern the rows.
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
    """Read encoded columns of any library: names, and values, as floats if they are numbers."""
    frame = frames.read(table.toarray() if hasattr(table, "toarray") else table)
    names = frame.names or [f"x{position}" for position in range(frame.n_columns)]
    values = [frame.values(position) for position in range(frame.n_columns)]
    return {
        str(name): column.astype(np.float64) if column.dtype.kind in "biuf" else column
        for name, column in zip(names, values, strict=True)
    }


def same_bits(one: Array, other: Array) -> NDArray[np.bool_]:
    """Say for every row whether two columns have the same bits; any two NaN are the same."""
    if one.dtype.kind != "f" or other.dtype.kind != "f":
        equal: NDArray[np.bool_] = np.asarray(one == other)
        return equal
    same: NDArray[np.bool_] = (one.view(np.int64) == other.view(np.int64)) | (np.isnan(one) & np.isnan(other))
    return same


def key_codes(frame: Frame, members: Sequence[int]) -> NDArray[np.int64]:
    """Number the distinct values of a column in order, or of several columns together; missing values come first."""
    host = ops.host(frame.n_rows)
    return number_rows([frame.keys(position, host).codes for position in members])


def find_source(output: str, sources: Sequence[str]) -> str | None:
    """Find the column or key of an output: the one with the same name, or the longest one that begins the name.

    Examples
    --------
    >>> find_source("city_x_day", ["city", "city_x_day"]), find_source("city_3", ["city"]), find_source("x0", ["city"])
    ('city_x_day', 'city', None)
    """
    begun = [name for name in sources if output == name or output.startswith(f"{name}_")]
    return max(begun, key=len, default=None)
