"""Columns of a table in types that can be compared exactly with values; other types are an error of the engine."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from gpu_encode.serve.export.sql.values import BINARY, COLLATIONS, DOUBLE, cast, is_number, is_text, is_wide, write

# For each dialect, how to get the name of a type; for each kind of values, the types that hold them, as LIKE patterns.
TYPE_OF = {"postgres": "pg_typeof", "snowflake": "SYSTEM$TYPEOF"}
TYPES: dict[str, dict[str, Sequence[str]]] = {
    "duckdb": {
        "text": ("VARCHAR", "ENUM%"),
        "truth": ("BOOLEAN",),
        "whole": (*(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")),
                  "INTEGER", "UINTEGER"),
        "float": ("DOUBLE", "FLOAT"),
        "decimal": ("DECIMAL%",),
        "date": ("DATE",),
        "moment": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        "zoned": ("TIMESTAMP WITH TIME ZONE",),
    },
    "postgres": {
        "text": ("text", "character varying", "character"),
        "truth": ("boolean",),
        "whole": ("bigint", "integer", "smallint"),
        "float": ("double precision", "real"),
        "decimal": ("numeric",),
        "date": ("date",),
        "moment": ("timestamp without time zone",),
        "zoned": ("timestamp with time zone",),
    },
    "bigquery": {
        "text": ("STRING%",),
        "truth": ("BOOL",),
        "whole": ("INT64",),
        "float": ("FLOAT64",),
        "decimal": ("NUMERIC%", "BIGNUMERIC%"),
        "date": ("DATE",),
        "moment": ("DATETIME",),
        "zoned": ("TIMESTAMP",),
    },
    "snowflake": {
        "text": ("VARCHAR%",),
        "truth": ("BOOLEAN%",),
        "whole": ("NUMBER(%,0)%",),
        "float": ("FLOAT%",),
        "decimal": ("NUMBER%",),
        "date": ("DATE%",),
        "moment": ("TIMESTAMP_NTZ%",),
        "zoned": ("TIMESTAMP_TZ%", "TIMESTAMP_LTZ%"),
    },
    "spark": {
        "text": ("string%",),
        "truth": ("boolean",),
        "whole": ("bigint", "int", "smallint", "tinyint"),
        "float": ("double", "float"),
        "decimal": ("decimal%",),
        "date": ("date",),
        "moment": ("timestamp_ntz",),
        "zoned": ("timestamp",),
    },
    "sqlite": {
        "text": ("text",),
        "truth": ("integer",),
        "whole": ("integer",),
        "float": ("real",),
        "date": ("text",),
    },
}  # fmt: skip
# Types of missing columns, and in SQLite of missing values.
NOTHING = {"duckdb": '"NULL"', "snowflake": "NULL%", "spark": "void", "sqlite": "null"}
# For each dialect, how to raise an error.
RAISE = {"duckdb": "error", "bigquery": "ERROR", "spark": "raise_error", "sqlite": "json_extract"}
BOOLEAN, TEXT, NAIVE = map(exp.DataType.build, ("BOOLEAN", "TEXT", "TIMESTAMPNTZ"))


def comparable(name: str, column: Any, values: Any, dialect: str, length: int | None = None) -> Any:
    """Give a column in a form that equals the result of `write_comparable` exactly if `transform` finds them equal.

    Parameters
    ----------
    name : str
        Name of the column, for errors of the engine.
    column : Expression
    values : pyarrow.ChunkedArray
        The values with which it is compared.
    dialect : str
    length : int, optional
        Length of a prefix that is compared instead; a value that is not longer has no prefix.

    Returns
    -------
    Expression
        NULL if the value is missing or NaN.  The engine raises an error if the column has a type that cannot hold such
        values exactly, or if a number is infinite.

    Examples
    --------
    >>> shops = pa.chunked_array([["oak"]])
    >>> comparable("shop", exp.column("shop"), shops, "spark").sql("spark")
    "CAST(CASE WHEN CASE WHEN NOT (TYPEOF(shop) IN ('void') OR TYPEOF(shop) LIKE 'string%') THEN CAST(RAISE_ERROR(..."
    """
    kinds, value = kinds_of(values, dialect), converted(column, values, dialect)
    types = [one for kind in kinds for one in TYPES[dialect].get(kind, ())]
    of_type, accepted = type_name(column, dialect), [*types, *([NOTHING[dialect]] if dialect in NOTHING else [])]
    told = f"Column {name!r} has to be of type {', '.join(one.strip('%') for one in types)}, as at fit. It is of type "
    none = exp.case().when(exp.not_(is_one_of(of_type, accepted)), raise_error(told, of_type, dialect))
    if "float" in kinds:
        told = f"Column {name!r} holds an infinite number, which transform refuses: "
        ends = [write(pa.array([end]), name, dialect).one() for end in (math.inf, -math.inf)]
        is_infinite = exp.In(this=value.copy(), expressions=ends)
        none = none.when(is_infinite, raise_error(told, column, dialect))
        none = none if dialect == "sqlite" else none.when(is_nan(value, dialect), exp.true())
    if length is not None:
        longer = exp.GT(this=exp.Length(this=value), expression=exp.convert(length))
        prefix = exp.Substring(this=value.copy(), start=exp.convert(1), length=exp.convert(length))
        value = exp.case().when(longer, prefix).else_(exp.null())
    # A CASE expression has no affinity in SQLite; a column with affinity would make text equal to numbers.
    whole = exp.case().when(none, exp.null()).else_(value)
    if not is_text(values.type):
        return whole
    return cast(whole, BINARY) if dialect == "spark" else exp.Collate(this=whole, expression=COLLATIONS[dialect].copy())


def kinds_of(values: Any, dialect: str) -> list[str]:
    """Give the kinds of columns, as in `TYPES`, that are compared exactly with some values."""
    type_ = values.type
    if is_number(type_):
        own = "whole" if pa.types.is_integer(type_) else "float"
        return [own] if is_wide(values) and dialect != "sqlite" else ["whole", "float"]
    if pa.types.is_null(type_):
        # No value can be equal, but a float might be NaN.
        return [kind for kind in TYPES[dialect] if kind != "float"]
    if pa.types.is_timestamp(type_) and type_.tz is None:
        # Most tables of Spark have a TIMESTAMP, which shows a time in the time zone of the session.
        return ["moment", "date", "zoned"] if dialect == "spark" else ["moment", "date"]
    return next(kinds for is_type, kinds in KINDS if is_type(type_))


def converted(column: Any, values: Any, dialect: str) -> Any:
    """Give a column in the type in which values are compared; its equality is that of `transform`."""
    type_ = values.type
    if dialect == "sqlite":
        # This compares integers and floats exactly.
        return column
    if is_number(type_) and not (pa.types.is_integer(type_) and is_wide(values)):
        return cast(column, DOUBLE)
    if is_text(type_):
        return cast(column, TEXT)
    if dialect == "spark" and "moment" in kinds_of(values, dialect) and not pa.types.is_null(type_):
        # When clocks are set forward, two local times are the same instant of a TIMESTAMP.
        return cast(column, NAIVE)
    return column


def type_name(column: Any, dialect: str) -> Any:
    """Give the name of a column's type."""
    named = exp.Anonymous(this=TYPE_OF.get(dialect, "TYPEOF"), expressions=[column.copy()])
    return cast(named, TEXT) if dialect == "postgres" else named


def is_one_of(word: Any, patterns: Sequence[str]) -> Any:
    """Whether a word is in a list of words or patterns."""
    exact = [exp.Literal.string(one) for one in patterns if "%" not in one]
    alike = [exp.Like(this=word.copy(), expression=exp.Literal.string(one)) for one in patterns if "%" in one]
    return exp.paren(exp.or_(*([exp.In(this=word.copy(), expressions=exact)] if exact else []), *alike))


def raise_error(told: str, shown: Any, dialect: str) -> Any:
    """Give a truth value whose computation raises an error with a text and a value of the row.

    The value also prevents engines from computing it before there is such a row.
    """
    value = exp.Coalesce(this=cast(shown.copy(), TEXT), expressions=[exp.Literal.string("NULL")])
    text: Any = exp.DPipe(this=exp.Literal.string(told), expression=value)
    if dialect in RAISE:
        before = [exp.Literal.string("{}")] if dialect == "sqlite" else []
        text = exp.Anonymous(this=RAISE[dialect], expressions=[*before, text])
    # Without such a function, the error is that the text is not a truth value.
    return cast(text, BOOLEAN)


def is_nan(value: Any, dialect: str) -> Any:
    """Whether a number is NaN, which is a missing value."""
    if dialect in ("postgres", "snowflake"):
        return exp.EQ(this=value.copy(), expression=write(pa.array([math.nan]), "", dialect).one())
    return exp.IsNan(this=value.copy())


KINDS = (
    (is_text, ["text"]),
    (pa.types.is_boolean, ["truth"]),
    (pa.types.is_decimal, ["decimal"]),
    (pa.types.is_date, ["date", "moment"]),
    (pa.types.is_timestamp, ["zoned"]),
)
