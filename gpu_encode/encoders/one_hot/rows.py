"""Find the columns in which each row has a 1, and the rows that the policies refuse or warn of."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.types import MISSING, UNKNOWN, Array
from gpu_encode.encoders.one_hot.columns import OneHotColumns
from gpu_encode.encoders.one_hot.matrices import Ones, number_type
from gpu_encode.fitting.columns import ColumnMap, locate_columns
from gpu_encode.fitting.model import Model, count_unseen
from gpu_encode.formulas.one_hot import OneHot
from gpu_encode.seam.ops import Ops
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.frames import Frame, Pieces, part_with, with_piece
from gpu_encode.words.errors.values import RowError, first_of, missing_values
from gpu_encode.words.notices import warn

AT_FIT = '. Add them to categories, or choose handle_unknown="ignore" or "infrequent_if_exist".'
LATER = '. Choose handle_unknown="ignore", "infrequent_if_exist" or "warn" to accept them.'


class OneHotModel(Model):
    """A model that gives each row ones in some columns, rather than encodings from a table."""

    by_key = False

    @cached_property
    def columns(self) -> OneHotColumns:
        """The output columns of all keys."""
        return OneHotColumns.of(self)

    def encode(self, frame: Frame | Pieces, ops: Ops, owner: str) -> tuple[Any, ColumnMap]:
        """Find the ones of every row of a new frame."""
        at = locate_columns(frame, self.selection, self.feature_names, self.n_features, owner)
        keyed = zip(self.keys, self.rules, strict=True)
        codes = [key.lookup(at, ops, rule.missing == "category") for key, rule in keyed]
        for key, of_key in zip(self.keys, codes, strict=True):
            count_unseen(key, of_key)
        return self.ones(codes, at, ops), at

    def ones(self, codes: Sequence[Array], at: ColumnMap, ops: Ops) -> Ones:
        """Find the ones of rows, given the codes of every key."""
        return Ones(columns_of_ones(self.columns, self.keys, codes, at, ops), self.columns.n_columns, ops)


def columns_of_ones(
    columns: OneHotColumns, keys: Sequence[CategoryIndex], codes: Sequence[Array], at: ColumnMap, ops: Ops
) -> Array:
    """Give the column of the 1 of each row and key: (rows, keys); negative if there is none.

    Parameters
    ----------
    codes : list of int32 arrays (rows,)
        Category of each row, for each key, on the device of `ops`.
    at : ColumnMap
        The columns that the rows come from.

    Raises
    ------
    ValueError
        For values that the policies refuse.

    Warns
    -----
    UserWarning
        About unknown values, if the policy says so.
    """
    statistic, odd = columns.statistic, []
    ones = ops.empty((at.n_rows, len(keys)), number_type(columns.n_columns))
    for number, (key, key_codes) in enumerate(zip(keys, codes, strict=True)):
        refuse_missing(statistic, key, key_codes, at)
        # A table has two more rows than there are categories, for missing and unknown values: their codes are negative
        # and count from the end.
        column = ops.to_device(columns.table(number, key.n_categories, ones.dtype))[key_codes]
        if len(key_codes) and int(column.min()) == UNKNOWN:
            unknown = column == UNKNOWN
            if statistic.handle_unknown == "error":
                raise unknown_values(key, at, np.flatnonzero(ops.to_host(unknown)), "transform", LATER)
            odd.append(label_of(key, at))
            column = np.where(unknown, ones.dtype.type(columns.column_of_unknown(number)), column)
        ones[:, number] = column
    if odd and (statistic.handle_unknown == "warn" or columns.drops):
        warn_of_unknown(odd, statistic)
    return ones


def refuse_at_fit(statistic: OneHot, keyed: Sequence[tuple[CategoryIndex, Array]], at: ColumnMap, ops: Ops) -> None:
    """Raise ValueError for training rows that the policies refuse."""
    for key, codes in keyed:
        refuse_missing(statistic, key, codes, at)
        if key.given and statistic.handle_unknown == "error":
            outside = codes == UNKNOWN
            if bool(outside.any()):
                raise unknown_values(key, at, np.flatnonzero(ops.to_host(outside)), "fit", AT_FIT)


def refuse_missing(statistic: OneHot, key: CategoryIndex, codes: Array, at: ColumnMap) -> None:
    """Raise ValueError for missing values if the policy is "error"."""
    if statistic.handle_missing == "error" and bool((codes == MISSING).any()):
        raise with_piece(
            at.frame,
            missing_values(
                f"Column {label_of(key, at)!r}",
                np.flatnonzero(codes == MISSING),
                '. Fill them, or choose handle_missing="category" or "zero".',
            ),
        )


def unknown_values(key: CategoryIndex, at: ColumnMap, rows: Array, when: str, advice: str) -> ValueError:
    """Error for rows whose values have no column; it names the rows in the first table that has some."""
    part, first = part_with(at.frame, int(rows[0]))
    in_part = rows - rows[0] + first
    in_part = in_part[in_part < part.n_rows]
    columns = [part.values(at.positions[position])[in_part].tolist() for position in key.entry.members]
    values: list[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    distinct = list(dict.fromkeys(values))
    return with_piece(at.frame, _category_without_column(distinct, label_of(key, at), when, rows, advice))


def _category_without_column(
    values: Sequence[object], column: object, when: str, rows: NDArray[Any], advice: str
) -> RowError:
    """Error, in scikit-learn's words, for rows whose values have no column."""
    shown = f"{', '.join(map(repr, values[:5]))}{', ...' if len(values) > 5 else ''}"
    return first_of(f"Found unknown categories [{shown}] in column {column!r} during {when}: ", rows, "rows", advice)


def warn_of_unknown(labels: Sequence[object], statistic: OneHot) -> None:
    """Warn, in scikit-learn's words, that unknown values look like a dropped or an infrequent category."""
    become = "the infrequent category." if statistic.unknown_is_infrequent else "all zeros"
    warn(
        f"Found unknown categories in columns {list(labels)} during transform. These unknown categories will be "
        f"encoded as {become}"
    )


def label_of(key: CategoryIndex, at: ColumnMap) -> object:
    """Give the name of a key's column in messages; a tuple of names for a joint key."""
    labels = [at.frame.label(at.positions[position]) for position in key.entry.members]
    return labels[0] if len(labels) == 1 else tuple(labels)
