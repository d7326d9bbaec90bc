"""What came out of many cases, short enough to keep: a digest and the first values of every column."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse

Case = tuple[str, Callable[[], Any]]
SHOWN = 20
# Between a case and its output.
SEPARATOR = " | "
# Tables of more columns are digested as one.
MOST_COLUMNS = 64

# A list of these is a column itself.
LEAVES = (str, tuple, int, float, type(None))


def columns_of(output: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Take an output apart: its columns by name, of containers those of all that they hold."""
    if isinstance(output, pa.Table):
        output = {column: output[column] for column in output.column_names}
    elif isinstance(output, (pd.DataFrame, pl.DataFrame)):
        output = {f"{column}": output[column] for column in output.columns}
    elif scipy.sparse.issparse(output):
        output = {"data": output.data, "indices": output.indices, "indptr": output.indptr}
    if isinstance(output, dict) and len(output) > MOST_COLUMNS:
        output = [f"{key} {digest_of(value)}" for key, value in output.items()]
    if isinstance(output, dict):
        for key, value in output.items():
            yield from columns_of(value, f"{name}/{key}")
    elif isinstance(output, list) and not all(isinstance(value, LEAVES) for value in output):
        for number, value in enumerate(output):
            yield from columns_of(value, f"{name}/{number}")
    else:
        yield name, output


def as_array(column: Any) -> np.ndarray[Any, Any] | None:
    """Give a column of numbers as an array; None for any other."""
    if isinstance(column, (pa.ChunkedArray, pl.Series)):
        column = column.to_numpy()
    elif isinstance(column, pd.Series):
        column = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.tolist()
    array = np.asarray(column) if isinstance(column, (np.ndarray, np.generic, float, int)) else None
    return array if array is not None and array.dtype.kind in "biufmM" else None


def as_list(column: Any) -> Any:
    """Give what is no array of numbers as Python objects."""
    for method in ("tolist", "to_pylist", "to_list"):
        if hasattr(column, method):
            return getattr(column, method)()
    return column


def digest_of(column: Any) -> str:
    """Digest type, shape and bytes of numbers; what Python writes for anything else."""
    array = as_array(column)
    if array is None:
        return hashlib.sha256(repr(as_list(column)).encode()).hexdigest()[:32]
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def first_values(column: Any) -> np.ndarray[Any, Any]:
    """Give the first numbers of a column, filled up with NaN."""
    shown = np.full(SHOWN, np.nan)
    array = as_array(column)
    if array is not None and array.dtype.kind in "biuf":
        first = array.ravel()[:SHOWN]
        shown[: len(first)] = first
    return shown


def run_cases(cases: Iterable[Case]) -> dict[str, tuple[str, np.ndarray[Any, Any]]]:
    """Run each case; one that raises leaves the type of its error."""
    record = {}
    for name, run in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                output = list(columns_of(run()))
            except Exception as error:  # the type of any error is a result
                record[f"{name}{SEPARATOR}raises"] = (f"{type(error).__name__}: {error}", np.full(SHOWN, np.nan))
                continue
        for column, values in output:
            record[f"{name}{SEPARATOR}{column}"] = (digest_of(values), first_values(values))
    return record


def write_record(path: Path, record: dict[str, tuple[str, np.ndarray[Any, Any]]]) -> None:
    """Write what was recorded to one file."""
    digests = [digest for digest, _ in record.values()]
    np.savez_compressed(
        path, names=np.array(list(record)), digests=np.array(digests), shown=np.array([v for _, v in record.values()])
    )


def read_record(path: Path) -> dict[str, tuple[str, np.ndarray[Any, Any]]]:
    """Read such a file."""
    with np.load(path) as file:
        digests = zip(file["digests"].tolist(), file["shown"], strict=True)
        return dict(zip(file["names"].tolist(), digests, strict=True))


def differences(
    expected: dict[str, tuple[str, np.ndarray[Any, Any]]], found: dict[str, tuple[str, np.ndarray[Any, Any]]]
) -> list[str]:
    """Say which outputs differ, each on a line with its first values; of errors the type alone counts."""
    lines = []
    for name in [*expected, *(name for name in found if name not in expected)]:
        if name not in expected or name not in found:
            lines.append(f"{'MISSING' if name in expected else 'NEW'} {name}: {(expected | found)[name][0]}")
        elif kind_of(name, expected[name][0]) != kind_of(name, found[name][0]):
            lines.append(f"DIFFERS {name}: {expected[name][1][:4].tolist()} became {found[name][1][:4].tolist()}")
    return lines


def kind_of(name: str, digest: str) -> str:
    """Give the digest, of an error the type alone."""
    return digest.split(":", maxsplit=1)[0] if name.endswith(" raises") else digest
