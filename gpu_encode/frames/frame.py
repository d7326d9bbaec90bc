"""A table as the encoders see it: columns by position, whatever library holds them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cpu_fallback.types import Array
from gpu_encode.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.errors.tables import mixed_name_types
from gpu_encode.frames import columns, cudf, device_columns, factorizing
from gpu_encode.frames.assembly import assemble
from gpu_encode.frames.columns import Column
from gpu_encode.frames.device_columns import DeviceColumn
from gpu_encode.ops import Ops, device_of, host


@dataclass(frozen=True, eq=False)
class Frame:
    """A table of one library, never written to.

    Parameters
    ----------
    native : object
        The table itself; of an "other" kind its narwhals frame.
    kind : {"numpy", "cupy", "cudf", "pandas", "polars", "pyarrow", "pyarrow_batch", "other"}
        Which library holds it; "cupy" is anything that CuPy accepts in a GPU's memory.
    shape : tuple of int
        Numbers of rows and columns.
    labels : list, optional
        Column names of any type; None of a NumPy array.
    wrap : callable, optional
        Puts a table into what this one came in: a narwhals frame, or a frame of pandas that cudf.pandas accelerates.
    """

    native: Any
    kind: str
    shape: tuple[int, int]
    labels: list[Any] | None = None
    wrap: Callable[[Any], Any] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.shape[1]

    @property
    def names(self) -> list[str] | None:
        """Column names if all are strings, None if none is, an error between: as scikit-learn has it."""
        types = sorted({type(label).__qualname__ for label in self.labels or []})
        if len(types) > 1 and "str" in types:
            raise mixed_name_types(types)
        return list(self.labels) if self.labels and types == ["str"] else None

    def label(self, position: int) -> object:
        """Name of a column in messages, its position if it has none."""
        return self.labels[position] if self.labels is not None else position

    def column(self, position: int) -> Column:
        """Rows of a column, not yet encoded."""
        if self.kind == "numpy":
            return columns.from_numpy(self.native[:, position])
        if self.is_on_device:
            return device_columns.column_to_host(self._device_column(position))
        if self.kind == "pandas":
            return columns.from_pandas(self.native.iloc[:, position])
        if self.kind == "polars":
            return columns.from_polars(self.native.to_series(position))
        if self.kind == "other":
            return columns.from_arrow(self.native[:, position].to_arrow())
        return columns.from_arrow(self.native.column(position))

    def keys(self, position: int, ops: Ops) -> FactorizedColumn:
        """Codes of a column (int32; -1 for null), where `ops` computes, and its sorted vocabulary.

        What lies on the host is numbered there.

        Raises
        ------
        TypeError
            If the values cannot be compared with one another, or cannot be categories.
        ValueError
            If there is infinity among them.
        """
        if self._stays(ops):
            return device_columns.keys(self._device_column(position), self.label(position), ops)
        found = factorizing.keys(self.column(position), self.label(position), host(self.n_rows))
        return found._replace(codes=ops.to_device(found.codes))

    def lookup(self, position: int, vocabulary: Vocabulary, ops: Ops) -> Array:
        """Position in a vocabulary of each row of a column (int32): -1 for null, -2 where it is absent."""
        if self._stays(ops):
            return device_columns.lookup(self._device_column(position), self.label(position), vocabulary, ops)
        return ops.to_device(
            factorizing.lookup(self.column(position), self.label(position), vocabulary, host(self.n_rows))
        )

    def numbers(self, position: int, vocabulary: Vocabulary) -> Array | None:
        """Whole numbers of a column that a vocabulary can be compared with, on the host; None of any other."""
        if self.is_on_device:
            return None
        return factorizing.comparable_numbers(self.column(position), self.label(position), vocabulary)

    def whole_numbers(self, position: int) -> tuple[Array, str] | None:
        """Whole numbers of every row of a column, on the host, and the name of their type; None of any other."""
        return None if self.is_on_device else factorizing.whole_numbers(self.column(position), self.label(position))

    def empty_vocabulary(self, position: int) -> Vocabulary | None:
        """Vocabulary of no rows of a column; None where its type does not say what kind its values are."""
        if self.is_on_device:
            return None
        return factorizing.empty_vocabulary(self.column(position), self.label(position))

    def _stays(self, ops: Ops) -> bool:
        """Whether the columns lie where the backend computes."""
        return self.is_on_device and device_of(ops) == "cuda"

    @property
    def is_on_device(self) -> bool:
        """Whether the columns lie in a GPU's memory."""
        return self.kind in ("cupy", "cudf")

    def _device_column(self, position: int) -> DeviceColumn:
        if self.kind == "cupy":
            return DeviceColumn(self.native[:, position])
        return cudf.column(self.native[self.label(position)], self.label(position))

    def values(self, position: int) -> Array:
        """Plain values of a column: numbers, dates and times as int64 in the column's unit, everything else as objects.

        A null is NaN among floats, None among objects, and 0 elsewhere.
        """
        return columns.plain(self.column(position))[0]

    def assemble(
        self, names: Sequence[str], arrays: Sequence[Array], passed: Sequence[int], kind: str | None = None
    ) -> Any:
        """Give a table of new columns, then columns of this one untouched, in this table's library and with its index.

        Parameters
        ----------
        names, arrays : list of str, list of 1-D arrays
            The new columns.  Columns of one matrix, in order, are not copied where the library allows it.
        passed : list of int
            Positions of the columns that pass through.
        kind : {"numpy", "pandas", "polars", "pyarrow"}, optional
            Another library than this table's; columns of a NumPy array are then called x0, x1, ...
        """
        return assemble(self, list(names), list(arrays), list(passed), kind)
