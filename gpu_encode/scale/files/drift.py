"""Files of new rows, compared with the rows from which an encoder has learned."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow.dataset import Dataset

from gpu_encode.encoders.base import Encoder
from gpu_encode.fitting.drift import RowCounts
from gpu_encode.scale.files import memory
from gpu_encode.scale.files.encoding import fitted_text, require_columns
from gpu_encode.scale.files.source import Source, open_source
from gpu_encode.words.annotations import ArrowStream, FilePath, LazyFrame


def drift_dataset(
    source: FilePath | Sequence[FilePath] | Dataset | LazyFrame | ArrowStream,
    encoder: Encoder,
    *,
    missing_text: Sequence[str] = (),
    memory_limit: int | str | None = None,
) -> list[dict[str, str | int | float]]:
    r"""Compare files of any size with the rows from which an encoder has learned, in one pass.

    Parameters
    ----------
    source, missing_text, memory_limit
        As in `encode_dataset`.
    encoder : TargetEncoder
        Fitted; columns that it never saw are not read.

    Returns
    -------
    list of dict
        What the encoder's method `drift` gives.

    Raises
    ------
    ValueError, TypeError, OSError
        As in `drift`, and as in `transform_dataset`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow
    >>> from gpu_encode import CountEncoder, drift_dataset
    >>> encoder = CountEncoder().fit(pyarrow.table({"city": ["Bonn", "Lima"]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "new.csv").write_text("city\nLima\nOslo\n")
    ...     (row,) = drift_dataset(f"{folder}/new.csv", encoder)
    >>> row["rows"], row["unknown"]
    (2, 0.5)
    """
    model, limit = encoder._counted(), memory.limit_of(memory_limit)
    rows = open_source(source, missing_text, fitted_text(encoder))
    require_columns(encoder, rows.schema.names)
    read = [name for name in rows.schema.names if name in (model.feature_names or ())]
    counts = RowCounts()
    with rows.naming_rows():
        for table in tables_of(rows, read, limit, len(model.keys)):
            counts += encoder._count_rows(table.select(read))
            memory.release()
    return counts.beside(model)


def tables_of(rows: Source, columns: Sequence[str], limit: int, n_keys: int) -> Iterator[Any]:
    """Give all rows, a part at a time; a query gives its own parts."""
    if rows.stream is not None:
        yield from rows.stream.tables()
        return
    row_bytes = rows.row_bytes()
    n_bytes = max(1.0, sum(row_bytes[name] for name in columns))
    size = memory.chunk_size(limit, n_bytes, len(columns), n_keys, 0, n_rows=rows.n_rows)
    for chunk in rows.chunks(columns, size):
        yield chunk.table
