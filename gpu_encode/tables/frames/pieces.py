"""Several tables as one: their rows follow one another, and results have the bits of a single table."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from cpu_fallback.types import Array
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, through
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary, union_of
from gpu_encode.tables.frames.device_columns import to_host
from gpu_encode.tables.frames.device_vectors import NumberedLabels
from gpu_encode.tables.frames.frame import Frame, from_native, is_collection, is_frame, is_series, read, refuse_dask
from gpu_encode.words.errors.tables import first_names
from gpu_encode.words.errors.targets import incomparable_labels
from gpu_encode.words.errors.values import RowError, mixed_types


@dataclass(frozen=True, eq=False)
class Pieces:
    """Tables of the same columns, each of any library, as one frame.

    Parameters
    ----------
    parts : tuple of Frame
        The tables, at least one.
    labels : list, optional
        Column names of any type; None for NumPy arrays.
    role : str
        The name of the tables in messages.

    Examples
    --------
    >>> import cpu_fallback, pandas as pd, polars as pl
    >>> from gpu_encode.tables.frames import read_pieces
    >>> pieces = read_pieces([pd.DataFrame({"a": ["x", "z"]}), pl.DataFrame({"a": ["y", None]})])
    >>> codes, vocabulary, _ = pieces.keys(0, cpu_fallback)
    >>> codes.tolist(), vocabulary.to_numpy().tolist()
    ([0, 2, 1, -1], ['x', 'y', 'z'])
    """

    parts: tuple[Frame, ...]
    labels: list[Any] | None = None
    role: str = "X"

    @property
    def lengths(self) -> list[int]:
        """Number of rows of each table."""
        return [part.n_rows for part in self.parts]

    @property
    def n_rows(self) -> int:
        """Number of rows of all tables; it may be more than 32 bits hold."""
        return sum(self.lengths)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.parts[0].n_columns

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.n_rows, self.n_columns

    @property
    def names(self) -> list[str] | None:
        """Column names if all are strings, None if none is; a mixture raises an error."""
        return self.parts[0].names

    def label(self, position: int) -> object:
        """Give the name of a column in messages; its position if it has no name."""
        return self.labels[position] if self.labels is not None else position

    def stretches(self) -> Iterator[tuple[int, Frame, slice]]:
        """Give the number of each table, the table, and the slice of its rows among all rows."""
        start = 0
        for number, part in enumerate(self.parts):
            yield number, part, slice(start, start + part.n_rows)
            start += part.n_rows

    def keys(self, position: int, ops: Ops) -> FactorizedColumn:
        """Give the codes of a column (int32; -1 for null), on the device of `ops`, and the sorted vocabulary.

        Each table gets codes of its own; then all vocabularies are joined at once.
        """
        filled = [stretch for stretch in self.stretches() if stretch[1].n_rows]
        if len(filled) < 2:
            number, part, _ = filled[0] if filled else (0, self.parts[0], None)
            with self._naming_piece(number):
                return part.keys(position, ops)
        codes = ops.empty((self.n_rows,), np.int32)
        vocabularies: dict[int, Vocabulary] = {}
        for number, part, rows in filled:
            with self._naming_piece(number):
                codes[rows], vocabularies[number], _ = part.keys(position, ops)
        vocabulary, indices = join_vocabularies(vocabularies, self.label(position), self.role)
        for number, _, rows in filled:
            # If a vocabulary is as long as the joint one, both are equal, and so are the codes.
            if len(vocabularies[number]) < len(vocabulary):
                codes[rows] = through(indices[number], codes[rows], ops)
        return FactorizedColumn(codes, vocabulary)

    def lookup(self, position: int, vocabulary: Vocabulary, ops: Ops) -> Array:
        """Give the index (int32) of each row of a column in a vocabulary: -1 for null, -2 if it is absent."""
        codes = ops.empty((self.n_rows,), np.int32)
        for number, part, rows in self.stretches():
            if part.n_rows:
                with self._naming_piece(number):
                    codes[rows] = part.lookup(position, vocabulary, ops)
        return codes

    def numbers(self, position: int, vocabulary: Vocabulary) -> Array | None:
        """Give None, since the numbers of several tables are not contiguous."""

    def whole_numbers(self, position: int) -> tuple[Array, str] | None:
        """Give None, since the numbers of several tables are not contiguous."""

    def empty_vocabulary(self, position: int) -> None:
        """Give None, since the tables may hold values of several kinds."""

    def values(self, position: int) -> Array:
        """Give plain values of a column, as `Frame.values` does."""
        return concatenate([part.values(position) for part in self.parts])

    def _naming_piece(self, number: int) -> AbstractContextManager[None]:
        return naming_piece(self.role, number, self.lengths)

    def assemble(
        self, names: Sequence[str], arrays: Sequence[Array], passed: Sequence[int], kind: str | None = None
    ) -> list[Any]:
        """Make a list with a new table for each table, as `Frame.assemble` does."""
        tables = []
        for number, part, rows in self.stretches():
            named = part if part.names is not None else replace(part, labels=self.labels)
            with self._naming_piece(number):
                tables.append(named.assemble(names, [array[rows] for array in arrays], passed, kind))
        return tables


def tables_of(data: Any) -> list[Any] | None:
    """List the tables of a list, an iterator or another collection; None if `data` is itself a table, or rows.

    The tables of an iterator are held as long as the list.

    Raises
    ------
    TypeError
        If something among them is not a table, or if they are series.
    ValueError
        If there is no table.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpu_encode.tables.frames.pieces import tables_of
    >>> table = pd.DataFrame({"a": [1, 2]})
    >>> len(tables_of(part for part in (table[:1], table[1:])))
    2
    >>> tables_of(table), tables_of([[1], [2]])
    (None, None)
    """
    if not is_collection(data):
        return None
    iterated = hasattr(data, "__next__")
    tables: list[Any] = []
    for number, table in enumerate(data):
        refuse_dask(table, f"X[{number}]")
        if is_series(devices.unwrap(table)):
            raise _series_among_tables(number, type(table).__name__, hasattr(table, "to_frame"))
        if not is_table(table):
            if not tables and not iterated:
                return None
            raise TypeError(
                f"X[{number}] is no table: a {type(table).__name__}. In a list or iterator of tables each must be a "
                "frame or an array of two dimensions; rows may come as a list of lists."
            )
        tables.append(table)
    if not tables:
        raise ValueError(
            f"X is an empty {'iterator' if iterated else type(data).__name__}. Give a table with rows, or a list or "
            "iterator of at least one table."
        )
    return tables


def _series_among_tables(number: int, type_name: str, has_to_frame: bool) -> TypeError:
    """Error for a list of series, which is neither a list of tables nor of rows."""
    advice = "[part.to_frame() for part in X]" if has_to_frame else "[pyarrow.table({'name': part}) for part in X]"
    return TypeError(
        f"X[{number}] is a series ({type_name}), and a table in pieces is a list of tables. Where each series is a "
        f"piece of one column, make tables of them: {advice}. Where each is a row, or a whole column, make one table."
    )


def is_table(data: Any) -> bool:
    """Tell whether data is a frame of any library (also a lazy one), or an array of two dimensions on any device."""
    if is_frame(data) or getattr(data, "ndim", 0) == 2:
        return True
    return isinstance(from_native(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def read_pieces(tables: Sequence[Any]) -> Pieces:
    """Read tables of the same columns as one frame.

    Raises
    ------
    TypeError, ValueError
        If a table cannot be read, or has other columns than the first; the message says which table.
    """
    parts: list[Frame] = []
    for number, table in enumerate(tables):
        with naming_piece("X", number):
            parts.append(read(table))
    for number, part in enumerate(parts):
        _check_columns(number, parts[0], part)
    return Pieces(tuple(parts), parts[0].labels)


def part_with(frame: Frame | Pieces, row: int) -> tuple[Frame, int]:
    """Give the table that holds a row, and the row's number there."""
    if isinstance(frame, Pieces):
        for _, part, rows in frame.stretches():
            if row < rows.stop:
                return part, row - rows.start
    return frame.parts[0], row


def with_piece(frame: Frame | Pieces, error: RowError) -> RowError:
    """Give an error about a row with the row's number in the table that holds it."""
    return error.in_pieces(frame.role, frame.lengths) if isinstance(frame, Pieces) else error


@contextmanager
def naming_piece(role: str, number: int, lengths: Sequence[int] = ()) -> Iterator[None]:
    """Add to an error which of several tables it is about; if lengths are known, rows are counted over all tables."""
    try:
        yield
    except RowError as error:
        raise error.below(sum(lengths[:number])).in_pieces(role, lengths) from error
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{role}[{number}]: {error}") from error


def _check_columns(number: int, first: Frame, other: Frame) -> None:
    """Raise ValueError unless names are the same; if one is an array, names that are not strings are ignored."""
    nameless = first.labels is None or other.labels is None
    if nameless and first.n_columns != other.n_columns:
        raise ValueError(
            f"X[{number}] has {other.n_columns} columns, but X[0] has {first.n_columns}. All tables must have the same "
            "columns."
        )
    if first.names != other.names if nameless else first.labels != other.labels:
        raise _columns_of_piece(number, first.labels, other.labels)


def _columns_of_piece(number: int, first: Sequence[object] | None, found: Sequence[object] | None) -> ValueError:
    """Error for a table whose columns differ from the columns of the first; None is a table without column names."""
    if first is None:
        says = f"X[{number}] has the column names {first_names(found or [])}, but X[0] has none"
    elif found is None:
        says = f"X[{number}] has no column names, but X[0] has {first_names(first)}"
    elif set(first) == set(found):
        position = next(i for i, pair in enumerate(zip(first, found, strict=True)) if pair[0] != pair[1])
        says = (
            f"X[{number}] has the columns of X[0] in another order: at position {position} it has {found[position]!r}, "
            f"but X[0] has {first[position]!r}"
        )
    else:
        missing, extra = _without(first, found), _without(found, first)
        differences = [f"lacks {first_names(missing)}, which X[0] has"] if missing else []
        differences += [f"has {first_names(extra)}, which X[0] lacks"] if extra else []
        says = f"X[{number}] {', and '.join(differences)}"
    return ValueError(f"{says}. All tables must have the same columns in the same order.")


NUMBERS = set("biuf")


def join_vocabularies(parts: dict[int, Vocabulary], column: object, role: str) -> tuple[Vocabulary, dict[int, Array]]:
    """Give the sorted vocabulary of all values, and the indices in it of the values of each table.

    Parameters
    ----------
    parts : dict of int to Vocabulary
        The vocabulary of each table, by the table's number.
    column : str
        Name of the column, for messages.
    role : str
        The name of the tables in messages.
    """
    filled = {number: vocabulary.values for number, vocabulary in parts.items() if len(vocabulary)}
    titles = [values.title for values in filled.values()]
    for number, values in filled.items():
        if values.title != titles[0]:
            raise mixed_types(column, titles[0], f"{values.title} (in {role}[{number}])")
    vocabulary, indices = Vocabulary.from_unsorted(union_of([part.values for part in parts.values()]))
    ends = np.cumsum([len(part) for part in parts.values()])
    return vocabulary, dict(zip(parts, np.split(indices, ends[:-1]), strict=True))


def join_vectors(parts: Sequence[Any]) -> Any:
    """Join the values of all tables; labels stay numbered if they are numbered in all tables."""
    filled = [part for part in parts if len(part)] or list(parts[:1])
    if not all(isinstance(part, NumberedLabels) for part in filled):
        return concatenate([part.fetch() if isinstance(part, NumberedLabels) else part for part in filled])
    every = np.concatenate([part.labels for part in filled])
    if len(kinds := sorted({type(label).__name__ for label in every})) > 1:
        raise incomparable_labels(kinds)
    labels, indices = np.unique(every, return_inverse=True)
    ops = devices.cuda()
    tables = np.split(indices, np.cumsum([len(part.labels) for part in filled])[:-1])
    codes = [through(table, part.codes, ops) for table, part in zip(tables, filled, strict=True)]
    return NumberedLabels(np.concatenate(codes), labels)


def concatenate(arrays: Sequence[Array]) -> Array:
    """Concatenate vectors in a type that holds all values; on a device if all lie there and have one type.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.tables.frames.pieces import concatenate
    >>> concatenate([np.array([1, 2]), np.array(["a"])])
    array([1, 2, 'a'], dtype=object)
    """
    filled = [array for array in arrays if len(array)] or list(arrays[:1])
    on_host = [isinstance(array, np.ndarray) for array in filled]
    if len({array.dtype for array in filled}) == 1 and len(set(on_host)) == 1:
        return filled[0] if len(filled) == 1 else np.concatenate(filled)
    held = [to_host(array) for array in filled]
    kinds = {array.dtype.kind for array in held}
    if kinds <= NUMBERS | {"O"} and kinds != {"O"}:
        # A vector that holds only nulls tells nothing about the type, as NaN does.
        held = [np.full(len(array), np.nan) if _is_all_null(array) else array for array in held]
        kinds = {array.dtype.kind for array in held}
    if len(kinds) > 1 and not kinds <= NUMBERS:
        # NumPy would silently turn numbers into text if other vectors hold text.
        return np.concatenate([array.astype(object) for array in held])
    joint = np.concatenate(held)
    if joint.dtype.kind != "f" or "f" in kinds:
        return joint
    # NumPy would turn signed and unsigned integers together into floats.
    for target in (np.dtype(np.int64), np.dtype(np.uint64)):
        if all(_fits(array, target) for array in held):
            return np.concatenate([array.astype(target) for array in held])
    return np.concatenate([array.astype(object) for array in held])


def _is_all_null(array: Array) -> bool:
    return array.dtype.kind == "O" and all(value is None for value in array)


def _fits(array: Array, target: "np.dtype[Any]") -> bool:
    limits = np.iinfo(target)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def _without(names: Sequence[object], others: Sequence[object]) -> list[object]:
    known = set(others)
    return [name for name in names if name not in known]
