"""Queries as sources: rows of polars, DuckDB or any stream of Arrow, which can be read once.

The rows are written to a file beside the output, and every pass reads this file.  If every pass ran the query again,
the rows might come in another order, and a row could be in one fold when it is summed and in another when it is
encoded.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_encode.scale import messages

# Rows that are requested at a time.
BATCH = 1 << 16


@dataclass(frozen=True)
class Stream:
    """Rows that can be read once.

    Parameters
    ----------
    name : str
        Name of the query's library in messages.
    schema : pyarrow.Schema
    start : callable
        Runs the query, and gives its rows as tables or record batches.
    """

    name: str
    schema: Any
    start: Callable[[], Iterable[Any]]

    def tables(self) -> Iterator[Any]:
        """Run the query, and yield its rows as tables of the schema."""
        with naming(self.name):
            for batch in self.start():
                table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
                yield table.cast(self.schema)


def open_stream(source: Any) -> Stream | None:
    """Describe a query without running it; give None for anything else.

    Examples
    --------
    >>> rows = pa.table({"city": ["Bonn", "Lima"]})
    >>> [table["city"].to_pylist() for table in open_stream(rows.to_reader()).tables()]
    [['Bonn', 'Lima']]
    >>> open_stream(rows) is None
    True
    """
    library, kind = type(source).__module__.partition(".")[0].lstrip("_"), type(source).__name__
    if library == "polars" and kind == "LazyFrame":
        return of_polars(source)
    if library == "duckdb" and hasattr(source, "limit"):
        return of_duckdb(source)
    # An object with a length is a table in memory.
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__len__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return Stream(f"stream of Arrow ({kind})", reader.schema, lambda: reader)
    return None


def of_polars(frame: Any) -> Stream:
    """Describe a LazyFrame of polars, whose rows come from the streaming engine."""
    name = "LazyFrame of polars"
    if not hasattr(frame, "collect_batches"):
        raise ImportError("source is a LazyFrame, which needs a newer polars: pip install 'polars>=1.34'")
    with naming(name):
        empty = frame.clear().collect()
    for column in empty:
        try:
            column.to_arrow()
        except pa.ArrowInvalid as error:
            advice = "cast it in the query, or leave it out"
            raise messages.type_unknown_to(column.name, column.dtype, "Arrow", advice) from error
    schema = empty.to_arrow().schema

    def start() -> Iterator[Any]:
        return (batch.to_arrow() for batch in frame.collect_batches(chunk_size=BATCH, maintain_order=True))

    return Stream(name, schema, start)


def of_duckdb(relation: Any) -> Stream:
    """Describe a relation of DuckDB."""
    name = "relation of DuckDB"
    # Where the newer name exists, the older one gives a warning.
    method = "to_arrow_reader" if hasattr(relation, "to_arrow_reader") else "fetch_arrow_reader"
    with naming(name):
        limited = getattr(relation.limit(0), method)(BATCH).schema
        # With a limit, DuckDB renames repeated names.
        schema = pa.schema([field.with_name(own) for field, own in zip(limited, relation.columns, strict=True)])
    return Stream(name, schema, lambda: getattr(relation, method)(BATCH))


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Add the name of the query to an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while the rows of the source, a {name}, were read")
        raise
