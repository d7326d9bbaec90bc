"""Output columns: encodings in the type that the user wants, then indicators."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, Array, Codes, Folds
from gpu_encode.formulas.encoding_rule import EncodingTable
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of, put
from gpu_encode.sums.targets import check_room, most_classes
from gpu_encode.tables.categories.keys import CategoryIndex, Columns, all_present
from gpu_encode.words.errors.parameters import bad_option
from gpu_encode.words.notices import warn

INDICATORS = ("unseen", "missing")


def look_up(
    ops: Ops, encodings: EncodingTable, codes: Codes, folds: Folds, out: Array, want_unseen: bool
) -> NDArray[np.bool_] | None:
    """Write the encodings of every row, and give the rows whose category is unseen where that is asked for."""
    values = encodings.values
    if encodings.lost is None or values.dtype != out.dtype:
        values = in_type(values, out.dtype, ops)
    warn_of_lost(encodings.lost or 0, out.dtype)
    ops.gather(values, codes, folds, out)
    return indicator(ops, encodings.unseen, codes, folds) if want_unseen else None


def in_type(encodings: Floats, dtype: Any, ops: Ops) -> Array:
    """Round encodings once to the type of the output; warn of those that it cannot hold."""
    rounded, lost = round_once(encodings, dtype, ops)
    warn_of_lost(lost, dtype)
    return rounded


def round_once(encodings: Floats, dtype: Any, ops: Ops) -> tuple[Array, Any]:
    """Round encodings once to a type, and count those that it cannot hold. NaN is the one NaN."""
    convert = devices.cuda().cast_encodings if device_of(ops) == "cuda" else ops.cast
    with np.errstate(over="ignore"):
        rounded = convert(encodings, dtype)
    if encodings.dtype == dtype:
        return rounded, 0
    return rounded, (np.isinf(rounded) & np.isfinite(encodings)).sum()


def warn_of_lost(lost: Any, dtype: Any) -> None:
    """Warn of encodings that became infinite."""
    if number := int(lost):
        warn(f"{number} encodings are beyond the range of {dtype} and become infinite. Choose dtype='float64'.")


def make_room(ops: Ops, n_rows: int, n_columns: int, dtype: str, infos: Sequence[Any]) -> Array:
    """Make the matrix of the encodings of rows, of targets of these classes, unless memory has no room for it."""
    check_room(ops, most_classes(infos), n_rows * n_columns * np.dtype(dtype).itemsize)
    return ops.empty((n_rows, n_columns), dtype, "F")


class OutputColumns:
    """The columns that a call returns: encodings in one matrix, filled from the left, then the indicators.

    Parameters
    ----------
    matrix : array (rows, columns)
        To be filled with encodings.
    indicators : tuple of str
        Which indicators each key has.
    """

    def __init__(self, matrix: Array, indicators: Sequence[str] = ()) -> None:
        self.matrix, self.indicators = matrix, indicators
        self._filled = 0
        self._flags: list[Array] = []

    def next(self, width: int) -> Array:
        """Give the next columns of the matrix, for the caller to write."""
        start, self._filled = self._filled, self._filled + width
        return self.matrix[:, start : self._filled]

    def add_indicators(self, unseen: Array | None, missing: Callable[[], Array]) -> None:
        """Append the indicators of a key; `unseen` is there, and `missing` is called, only where it is asked for."""
        for name in self.indicators:
            flags = missing() if name == "missing" else unseen
            self._flags.append(flags.astype(self.matrix.dtype.name))  # type: ignore[union-attr]

    def to_list(self) -> list[Array]:
        """Give each column as an array."""
        return [*to_columns(self.matrix), *self._flags]


def to_columns(matrix: Array) -> list[Array]:
    """Give each column of a matrix as an array."""
    return [matrix[:, column] for column in range(matrix.shape[1])]


class TiledOutput:
    """A matrix that is filled tile by tile, so that the encodings of all rows never stand beside it.

    Parameters
    ----------
    matrix : array (rows, columns)
        What is filled.
    ops : Ops
    """

    def __init__(self, matrix: Array, ops: Ops) -> None:
        self.matrix = matrix
        self.ops = ops
        self._lost: Any = 0

    def write(self, start: int, stop: int, values: Floats) -> None:
        """Write the encodings of rows [start, stop)."""
        self.matrix[start:stop] = self._round(values)

    def put(self, rows: Array, columns: Sequence[int], values: Floats) -> None:
        """Write the encodings of rows, given by their numbers, to some columns."""
        for column, encodings in zip(columns, self._round(values).T, strict=True):
            put(self.matrix[:, column], rows, encodings)

    def put_row(self, row: int, columns: Sequence[int], values: Floats, ops: Ops) -> None:
        """Write the encodings of one row, which lie on the host."""
        rounded, lost = round_once(values, self.matrix.dtype, ops)
        self.count(lost)
        for column, encoding in zip(columns, rounded, strict=True):
            self.matrix[row, column] = encoding

    def count(self, lost: Any) -> None:
        """Count encodings, written by others, that the type could not hold."""
        self._lost = self._lost + lost

    def close(self) -> None:
        """Warn once of all encodings that the type could not hold."""
        warn_of_lost(self._lost, self.matrix.dtype)

    def _round(self, values: Floats) -> Array:
        rounded, lost = round_once(values, self.matrix.dtype, self.ops)
        self._lost = self._lost + lost
        return rounded


def list_indicators(indicators: Any) -> Any:
    """Give the names of the indicators as a tuple: True means "unseen"; anything but bool and list stays as it is."""
    if isinstance(indicators, bool):
        return ("unseen",) if indicators else ()
    return tuple(indicators) if isinstance(indicators, list) else indicators


def check_indicators(owner: str, indicators: Any) -> None:
    """Raise ValueError unless these names, as `list_indicators` gives them, are known and different."""
    known = isinstance(indicators, tuple) and all(isinstance(name, str) and name in INDICATORS for name in indicators)
    if not known or len(set(indicators)) < len(indicators):
        given = list(indicators) if isinstance(indicators, tuple) else indicators
        raise bad_option(owner, "indicators", given, ("True", "False", f"a list of some of {list(INDICATORS)}"))


def missing_rows(
    key: CategoryIndex, codes: Codes, frame: Columns, ops: Ops, missing_is_category: bool
) -> NDArray[np.bool_]:
    """Say which rows have no value; of a joint key, in any of its columns.

    Parameters
    ----------
    key : CategoryIndex
    codes : int32 array (rows,)
        Category of each row, as the key gives it.
    frame : Columns
        The same rows.
    ops : Ops
    missing_is_category : bool
        Whether codes of a joint key count a missing value as one more value, and those of given categories without it
        as unknown.

    Returns
    -------
    bool array (rows,)
    """
    entry = key.entry
    if not missing_is_category or (len(entry.columns) == 1 and not key.missing_is_unknown):
        missing: NDArray[np.bool_] = codes == MISSING
        return missing
    members = zip(entry.members, key.vocabularies[len(entry.above) :], strict=True)
    return ~all_present([frame.lookup(column, vocabulary, ops) for column, vocabulary in members])


def indicator(ops: Ops, unseen: NDArray[np.bool_], codes: Codes, folds: Folds) -> NDArray[np.bool_]:
    """Look up whether the category of each row is unseen."""
    flags = ops.empty((len(codes), 1), np.float64)
    ops.gather(unseen[..., None].astype(np.float64), codes, folds, flags)
    unseen_rows: NDArray[np.bool_] = flags[:, 0] != 0
    return unseen_rows
