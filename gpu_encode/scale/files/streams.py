"""Queries as sources: rows of polars, DuckDB or any stream of Arrow, which come once.

The rows are written to a file beside the output, and every pass reads this file.  A query that ran anew in each pass
might give its rows in another order, and a row would be in one fold when it is summed and in another when it is
encoded.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_encode.scale import messages

# Rows that are asked for at a time.
BATCH = 1 << 16


@dataclass(frozen=True)
class Stream:
    """Rows that come once.

    Parameters
    ----------
    name : str
        Its name in messages.
    schema : pyarrow.Schema
    start : callable
        Runs the query, and gives its rows in tables or record batches.
    """

    name: str
    schema: Any
    start: Callable[[], Iterable[Any]]

    def tables(self) -> Iterator[Any]:
        """Run the query, and give its rows in tables of the schema."""
        with naming(self.name):
            for batch in self.start():
                table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
                yield table.cast(self.schema)


def open_stream(source: Any) -> Stream | None:
    """Give the rows of a query, without running it; None for anything else.

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
    """Give the rows of a LazyFrame of polars, which its streaming engine makes."""
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
    """Give the rows of a relation of DuckDB."""
    name = "relation of DuckDB"
    # The older name warns where the newer one exists.
    method = "to_arrow_reader" if hasattr(relation, "to_arrow_reader") else "fetch_arrow_reader"
    with naming(name):
        limited = getattr(relation.limit(0), method)(BATCH).schema
        # With a limit, DuckDB gives repeated names other names.
        schema = pa.schema([field.with_name(own) for field, own in zip(limited, relation.columns, strict=True)])
    return Stream(name, schema, lambda: getattr(relation, method)(BATCH))


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the query of an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while the rows of the source, a {name}, were read")
        raise
