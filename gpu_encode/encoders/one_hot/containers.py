"""What zeros and ones are given in: a sparse matrix for each table, or columns of a table."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils._set_output import _get_output_config

from cpu_fallback.types import Array
from gpu_encode import frames
from gpu_encode.encoders.one_hot.matrices import sparse_matrix
from gpu_encode.errors.one_hot import name_is_no_text, sparse_beside_passed, sparse_in_dask, sparse_in_frame
from gpu_encode.errors.parameters import bad_option, check_option
from gpu_encode.fitting.columns import ColumnMap
from gpu_encode.formulas.one_hot import OWNER
from gpu_encode.frames import Frame, Pieces, parts_of
from gpu_encode.ops import Ops

Method = TypeVar("Method", bound=Callable[..., Any])
ARRAYS = ("numpy", "cupy")


def container_checked(method: Method) -> Method:
    """Refuse containers that hold no sparse matrix, before anything is done."""

    @wraps(method)
    def call(encoder: Any, X: Any, *vectors: Any, **named: Any) -> Any:
        wanted = _get_output_config("transform", encoder)["dense"]
        if encoder.sparse_output and wanted != "default":
            raise sparse_in_frame(wanted)
        if encoder.sparse_output and frames.is_partitioned(X) and not isinstance(X, (list, tuple)):
            raise sparse_in_dask()
        return method(encoder, X, *vectors, **named)

    return cast(Method, call)


def check_passed(sparse_output: bool, at: ColumnMap, passed: Sequence[int]) -> None:
    """Raise ValueError for columns that pass through beside a sparse matrix."""
    if sparse_output and passed:
        raise sparse_beside_passed([at.frame.label(at.places[each]) for each in passed if each in at.places])


def check_form(sparse_output: Any, dtype: Any, feature_name_combiner: Any) -> None:
    """Raise ValueError for parameters that no output can have."""
    check_option(OWNER, "sparse_output", sparse_output, (True, False))
    checked_type(dtype)
    if not callable(feature_name_combiner):
        check_option(OWNER, "feature_name_combiner", feature_name_combiner, ("concat",), "a callable")


def checked_type(dtype: Any) -> np.dtype[Any]:
    """Type of the output; ValueError if it is none of numbers."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in "biuf":
        raise bad_option(OWNER, "dtype", dtype, ("a NumPy type of numbers", "bool"))
    return found


def sparse_tables(frame: Frame | Pieces, places: Array, n_columns: int, dtype: Any, ops: Ops) -> Any:
    """Give a CSR matrix where each table lies; a list of them for several tables."""
    if isinstance(frame, Pieces):
        return [
            sparse_matrix(places[rows], n_columns, dtype, part.is_on_device, ops) for _, part, rows in frame.stretches()
        ]
    return sparse_matrix(places, n_columns, dtype, frame.is_on_device, ops)


def cut(frame: Frame | Pieces, matrix: Array) -> Any:
    """Give a matrix, or a list of the rows of each of several tables."""
    return [matrix[rows] for _, _, rows in frame.stretches()] if isinstance(frame, Pieces) else matrix


def has_names(frame: Frame | Pieces, encoder: Any) -> bool:
    """Whether any table of the output has names of columns."""
    wanted = _get_output_config("transform", encoder)["dense"]
    return wanted != "default" or any(part.kind not in ARRAYS for part in parts_of(frame))


def combiner(given: Any) -> Callable[[str, Any], str]:
    """Function that gives the name of a column, by its column of X and its category."""
    if not callable(given):
        return concatenated
    if not isinstance(found := given("feature", "category"), str):
        raise name_is_no_text(found)
    return cast(Callable[[str, Any], str], given)


def concatenated(name: str, category: Any) -> str:
    """Names joined by "_"; of a joint key, values joined as the names of its columns are."""
    shown = "_x_".join(map(str, category)) if isinstance(category, tuple) else str(category)
    return f"{name}_{shown}"
