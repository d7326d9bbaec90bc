"""Types of public parameters.

Objects of libraries that may not be installed are recognised by their methods.  A parameter that takes certain words
lists them in its declaration.  Types with a name show it in signatures, where their members would take a page.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from re import Pattern
from typing import Literal, Protocol, TypeVar

import numpy as np
import numpy.typing
from typing_extensions import TypeAliasType

Chosen = TypeVar("Chosen")


class ArrowStream(Protocol):
    """A table or column of Arrow, polars or pandas."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give its rows to other libraries."""


class DeviceArray(Protocol):
    """An array or column on a GPU: of CuPy or cuDF."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Describe the memory in which it lies."""


class InterchangeTable(Protocol):
    """A table of cuDF."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """Give its columns to other libraries."""


class DaskCollection(Protocol):
    """A table or column of Dask."""

    def __dask_graph__(self) -> object:
        """Give the tasks that make its partitions."""


class LazyFrame(Protocol):
    """A query of polars."""

    def collect_schema(self) -> object:
        """Give the columns of its rows."""


class SparkFrame(Protocol):
    """A frame of Spark."""

    def checkpoint(self, eager: bool = True) -> object:
        """Give the same rows, written to a file system."""


class RayDataset(Protocol):
    """A dataset of Ray."""

    def materialize(self) -> object:
        """Give the same rows, computed."""


class Selector(Protocol):
    """A selector of columns of polars or narwhals."""

    def __invert__(self) -> object:
        """Select all other columns."""


class Estimator(Protocol):
    """An estimator with scikit-learn's interface; an encoder is one."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Give its parameters."""


class Splitter(Protocol):
    """An object that splits rows as scikit-learn's splitters do."""

    def split(self, X: object, y: object = None, groups: object = None) -> object:
        """Give row numbers of training and test rows, split by split."""


ArrayLike = TypeAliasType("ArrayLike", numpy.typing.ArrayLike)
# Rows: one table, or several in a sequence.  Nested lists are sequences.
Table = TypeAliasType(
    "Table",
    ArrayLike
    | ArrowStream
    | InterchangeTable
    | DeviceArray
    | DaskCollection
    | SparkFrame
    | RayDataset
    | Sequence[object],
)
Vector = TypeAliasType("Vector", ArrayLike | ArrowStream | DeviceArray | DaskCollection | Sequence[object])
# One row: a mapping by the names of columns, or a tuple of the values of all columns.
Row = TypeAliasType("Row", Mapping[str, object] | tuple[object, ...])
Column = TypeAliasType("Column", str | int)
Key = TypeAliasType("Key", Column | tuple[Column, ...])
Columns = TypeAliasType(
    "Columns",
    Literal["categorical"]
    | Sequence[Key]
    | ArrayLike
    | ArrowStream
    | Selector
    | Pattern[str]
    | Callable[..., object]
    | None,
)
ByKey = TypeAliasType("ByKey", Mapping[Key, Chosen], type_params=(Chosen,))
Prior = TypeAliasType("Prior", Literal["mean", "category_mean"] | float)
Categories = TypeAliasType("Categories", Literal["auto"] | Sequence[ArrayLike | Sequence[object]])
Seed = TypeAliasType("Seed", int | np.random.RandomState | np.random.Generator | None)
TargetType = Literal["auto", "continuous", "binary", "multiclass"]
FloatType = TypeAliasType(
    "FloatType", Literal["float64", "float32"] | type[np.float64 | np.float32] | np.dtype[np.floating]
)
NumberType = TypeAliasType("NumberType", str | type[int | float | np.number] | np.dtype[np.number])
Device = Literal["auto", "cpu", "cuda"]
FilePath = TypeAliasType("FilePath", str | PathLike[str])
