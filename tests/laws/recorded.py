"""A short record of the outputs of many cases: a digest and the first values of every column."""

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
Record = dict[str, tuple[str, np.ndarray[Any, Any]]]
SHOWN = 20
# Separates a case and its output.
SEPARATOR = " | "
# Tables of more columns are digested as one.
MOST_COLUMNS = 64
# A list of such values is itself a column.
LEAVES = (str, tuple, int, float, type(None))


def columns_of(output: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Split an output into its columns by name; a container gives the columns of everything that it holds."""
    if isinstance(output, pa.Table):
        output = {column: output[column] for column in output.column_names}
    elif isinstance(output, (pd.DataFrame, pl.DataFrame)):
        output = {f"{column}": output[column] for column in output.columns}
    elif scipy.sparse.issparse(output):
        output = {"data": output.data, "indices": output.indices, "indptr": output.indptr}
    if isinstance(output, dict) and len(output) > MOST_COLUMNS:
        output = [f"{key} {digest_of(value)}" for key, value in output.items()]
    elif isinstance(output, list) and not all(isinstance(value, LEAVES) for value in output):
        output = dict(enumerate(output))
    if isinstance(output, dict):
        for key, value in output.items():
            yield from columns_of(value, f"{name}/{key}")
    else:
        yield name, output


def as_array(column: Any) -> np.ndarray[Any, Any] | None:
    """Return a column of numbers as an array; None for any other column."""
    if isinstance(column, (pa.ChunkedArray, pl.Series)):
        column = column.to_numpy()
    elif isinstance(column, pd.Series):
        column = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.tolist()
    array = np.asarray(column) if isinstance(column, (np.ndarray, np.generic, float, int)) else None
    return array if array is not None and array.dtype.kind in "biufmM" else None


def digest_of(column: Any) -> str:
    """Return a digest of type, shape and bytes of numbers, or of the `repr` of anything else."""
    array = as_array(column)
    if array is None:
        method = next((name for name in ("tolist", "to_pylist", "to_list") if hasattr(column, name)), None)
        content = repr(column if method is None else getattr(column, method)()).encode()
    else:
        content = f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(content).hexdigest()[:32]


def first_values(column: Any) -> np.ndarray[Any, Any]:
    """Return the first numbers of a column, filled up with NaN."""
    shown, array = np.full(SHOWN, np.nan), as_array(column)
    if array is not None and array.dtype.kind in "biuf":
        first = array.ravel()[:SHOWN]
        shown[: len(first)] = first
    return shown


def run_cases(cases: Iterable[Case]) -> Record:
    """Run each case; for a case that raises, record the type of its error."""
    record: Record = {}
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


def write_record(path: Path, record: Record) -> None:
    """Write what was recorded to one file."""
    digests, shown = zip(*record.values(), strict=True)
    np.savez_compressed(path, names=np.array(list(record)), digests=np.array(digests), shown=np.array(shown))


def read_record(path: Path) -> Record:
    """Read such a file."""
    with np.load(path) as file:
        digests = zip(file["digests"].tolist(), file["shown"], strict=True)
        return dict(zip(file["names"].tolist(), digests, strict=True))


def compare_records(expected: Record, record: Record) -> tuple[list[str], int]:
    """Return the outputs that differ in both records, and the number compared; of an error only the type counts."""
    cases = cases_of(expected) & cases_of(record)
    names = [name for name in expected | record if name.split(SEPARATOR)[0] in cases]
    lines = []
    for name in names:
        before, now = expected.get(name), record.get(name)
        if before is None or now is None:
            lines.append(f"{'MISSING' if now is None else 'NEW'} {name}")
        elif comparable(before[0]) != comparable(now[0]):
            lines.append(f"DIFFERS {name}: {before[1][:4].tolist()} became {now[1][:4].tolist()}")
    return lines, len(names)


def cases_of(record: Record) -> set[str]:
    return {name.split(SEPARATOR)[0] for name in record}


def comparable(digest: str) -> str:
    """Return a digest, or the type of an error without the message after the colon."""
    return digest.split(":", maxsplit=1)[0]
