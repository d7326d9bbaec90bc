"""Formats of files with rows: their suffixes, how CSV is read and written, and what text is in Arrow."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".feather": "arrow", ".arrow": "arrow",
    ".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".tsv.gz": "csv",
}  # fmt: skip

# An empty cell, and what R, SQL and pandas write for a missing value. Quoted, the same words are text.
MISSING_IN_CSV = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A"]


def suffix_of(name: str) -> str | None:
    """Return the suffix that tells the format of a file, if there is one.

    Examples
    --------
    >>> suffix_of("rows.2024.CSV.gz"), suffix_of("rows.xlsx")
    ('.csv.gz', None)
    """
    lowered = name.lower()
    return next((one for one in sorted(SUFFIXES, key=len, reverse=True) if lowered.endswith(one)), None)


def delimiter(suffix: str) -> str:
    """Return what stands between the cells of a file with this suffix."""
    return "\t" if suffix.startswith(".tsv") else ","


def uncompressed(stream: Any, suffix: str) -> Any:
    """Return the stream of a CSV file's text."""
    return pa.CompressedInputStream(stream, "gzip") if suffix.endswith(".gz") else stream


def csv_parsing(suffix: str) -> Any:
    """Return how lines are cut into cells."""
    return pyarrow.csv.ParseOptions(delimiter=delimiter(suffix), newlines_in_values=True)


def csv_conversion(missing_text: Sequence[str], types: Mapping[str, Any], columns: Sequence[str] | None = None) -> Any:
    """Return how cells become values.

    Parameters
    ----------
    missing_text : sequence of str
        Texts that stand for a missing value, beside those that always do.
    types : mapping of str to pyarrow.DataType
        Types of the columns for which they are known; others are inferred.
    columns : sequence of str, optional
        Columns to read.
    """
    return pyarrow.csv.ConvertOptions(
        null_values=[*MISSING_IN_CSV, *missing_text],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=dict(types),
        include_columns=None if columns is None else list(columns),
    )


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values of this type are strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decode_text(schema: pa.Schema) -> pa.Schema:
    """Return the schema with text instead of dictionaries of text."""
    fields = [one.with_type(value_type(one.type)) if is_text(value_type(one.type)) else one for one in schema]
    return pa.schema(fields, metadata=schema.metadata)


def clear_missing_text(table: pa.Table, missing_text: Sequence[str]) -> pa.Table:
    """Return `table` with null wherever a text is one of `missing_text`.

    Examples
    --------
    >>> clear_missing_text(pa.table({"city": ["Bonn", "?"]}), ["?"])["city"].to_pylist()
    ['Bonn', None]
    """
    table = table.cast(decode_text(table.schema))
    for place, one in enumerate(table.schema):
        if is_text(one.type):
            column = table.column(place)
            missing = pc.is_in(column, value_set=pa.array(missing_text, type=one.type))
            table = table.set_column(place, one, pc.if_else(missing, pa.scalar(None, one.type), column))
    return table


def to_csv_types(table: pa.Table) -> pa.Table:
    """Return `table` in types that a CSV file can hold.

    Examples
    --------
    >>> to_csv_types(pa.table({"city": pa.array(["Bonn"]).dictionary_encode()})).schema.field("city").type
    DataType(string)
    """
    return table.cast(csv_schema(table.schema))


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in types that a CSV file can hold."""
    columns = []
    for one in schema:
        kind = value_type(one.type)
        if pa.types.is_nested(kind):
            raise ValueError(f"column {one.name!r} holds {kind!s}, which CSV cannot: write Parquet, or leave it out")
        columns.append(one.with_type(pa.string() if pa.types.is_decimal(kind) else kind))
    return pa.schema(columns)
