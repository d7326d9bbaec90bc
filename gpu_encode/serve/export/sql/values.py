"""Values, written exactly in each dialect of SQL.

Numbers, dates and times are written as text and cast, since a cast from text reads every digit.  SQLite reads some
digits wrongly, so for SQLite a float is written as a quotient of integers.
"""

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from gpu_encode.serve.export import messages

DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite")
# The collation in which two texts are equal exactly if their bytes are. Spark before version 4 has none, and compares
# bytes.
COLLATIONS = {
    "duckdb": exp.to_identifier("C", quoted=True),
    "postgres": exp.to_identifier("C", quoted=True),
    "bigquery": exp.Literal.string(""),
    "snowflake": exp.Literal.string("utf8"),
    "sqlite": exp.to_identifier("BINARY", quoted=True),
}
# Spark replaces a variable with this prefix by its setting, even inside quotes.
SUBSTITUTED = "${"
BIGINT, BINARY, DOUBLE = map(exp.DataType.build, ("BIGINT", "BINARY", "DOUBLE"))
LARGEST_INTEGER = 2**63 - 1
# Floats can hold every integer below this one.
DOUBLES_END = 2**53
MOST_DIGITS = 38


# Text that stands in quotes as it is, in every dialect; "$" may begin a setting of Spark.
PLAIN = re.compile(r"[^'\\$\x00-\x1f\x7f]*")


class Written(NamedTuple):
    """The values of one column in SQL.

    Parameters
    ----------
    literals : list of str or None
        The text of a literal for each value; None for a null.
    dialect : str
    quoted : bool
        Whether the literals are text, which stands in quotes.
    type : DataType, optional
        The type to which the column of literals is cast.
    """

    literals: list[str | None]
    dialect: str
    quoted: bool = False
    type: Any = None

    def typed(self, literal: Any) -> Any:
        """Give a value of the column, or the whole column, in the column's type."""
        return literal if self.type is None else cast(literal, self.type)

    def literal(self, number: int) -> Any:
        """Give one literal as an expression."""
        text = self.literals[number]
        if text is None:
            return exp.null()
        return text_literal(text, self.dialect) if self.quoted else exp.Literal(this=text, is_string=False)

    def one(self) -> Any:
        """Give the first value."""
        return self.typed(self.literal(0))

    def texts(self) -> list[str]:
        """Give all literals as SQL; expressions of so many would take minutes."""
        if not self.quoted:
            return ["NULL" if text is None else text for text in self.literals]
        if PLAIN.fullmatch("".join(filter(None, self.literals))):
            return ["NULL" if text is None else f"'{text}'" for text in self.literals]
        write_one = sqlglot.Dialect.get_or_raise(self.dialect).generator().sql
        return ["NULL" if text is None else write_one(text_literal(text, self.dialect)) for text in self.literals]


def text_literal(text: str, dialect: str) -> Any:
    """Write one text, quoted by sqlglot."""
    if dialect == "spark" and SUBSTITUTED in text:
        parts = text.split(SUBSTITUTED)
        ended = [*(f"{part}$" for part in parts[:-1]), parts[-1]]
        begun = [ended[0], *("{" + part for part in ended[1:])]
        return exp.Concat(expressions=[exp.Literal.string(part) for part in begun])
    return exp.Literal.string(text)


def cast(value: Any, type_: Any) -> Any:
    """Cast a value; sqlglot's own function parses the name of the type at each call."""
    return exp.Cast(this=value, to=type_.copy())


def write(array: Any, name: str, dialect: str) -> Written:
    """Write the values of an Arrow array.

    Parameters
    ----------
    array : pyarrow.Array
    name : str
        Name of the column or output with the values, for messages.
    dialect : str

    Raises
    ------
    TypeError
        If the dialect has no such values.
    ValueError
        If the dialect cannot write one of the values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> written = write(pa.array([0.1, None]), "price", "duckdb")
    >>> written.one().sql("duckdb"), written.texts()[1]
    ("CAST('0.1' AS DOUBLE)", 'NULL')
    >>> write(pa.array([0.1]), "price", "sqlite").one().sql("sqlite")
    '3602879701896397.0 / 36028797018963968'
    """
    for is_type, writer in WRITERS:
        if is_type(array.type):
            return writer(array, name, dialect)
    raise messages.not_exact(f"Values of type {array.type}", name, dialect)


def write_text(array: Any, name: str, dialect: str) -> Written:
    """Write text."""
    texts = array.to_pylist()
    if "\0" in "".join(filter(None, texts)):
        wrong = next(text for text in texts if text is not None and "\0" in text)
        raise ValueError(
            f"Column {name!r} holds {wrong!r}: NUL cannot stand in SQL. Clean the column before fit, or leave such "
            "a category out by min_count."
        )
    return Written(texts, dialect, quoted=True)


def write_booleans(array: Any, _: str, dialect: str) -> Written:
    """Write truth values."""
    return Written([None if value is None else str(value).upper() for value in array.to_pylist()], dialect)


def write_integers(array: Any, name: str, dialect: str) -> Written:
    """Write whole numbers of 64 bits."""
    numbers = array.to_pylist()
    if any(number is not None and number > LARGEST_INTEGER for number in numbers):
        raise messages.not_exact("Whole numbers beyond 2**63 - 1", name, dialect)
    literals = [None if number is None else str(number) for number in numbers]
    return Written(literals, dialect, type=None if dialect == "sqlite" else BIGINT)


def write_floats(array: Any, name: str, dialect: str) -> Written:
    """Write floats, whose digits every dialect except SQLite reads exactly."""
    numbers = array.cast(pa.float64()).to_pylist()
    if dialect == "sqlite":
        return Written([None if number is None else quotient(number, name) for number in numbers], dialect)
    return Written([None if number is None else repr(number) for number in numbers], dialect, True, DOUBLE)


def quotient(number: float, name: str) -> str:
    """Write a float as an integer and powers of two; the quotient is exact."""
    if math.isnan(number):
        raise ValueError(
            f"Some encodings of {name!r} are NaN, which SQLite turns into NULL. Fit with other policies than "
            '"nan" (a number, or "prior"), or export for another dialect.'
        )
    if math.isinf(number):
        # SQLite reads digits beyond the largest float as infinity.
        return "9e999" if number > 0 else "-9e999"
    over, under = number.as_integer_ratio()
    shift = max(0, over.bit_length() - 53)
    written = f"{abs(over) >> shift}.0{powers(shift, '*')}{powers(under.bit_length() - 1, '/')}"
    # A zero can have a sign, too.
    return f"-({written})" if math.copysign(1.0, number) < 0 else written


@cache
def powers(exponent: int, sign: str) -> str:
    """Give a power of two as operations with powers of two below 2**63.

    Examples
    --------
    >>> powers(63, "/"), powers(0, "*")
    (' / 4611686018427387904 / 2', '')
    """
    return "".join(f" {sign} {1 << min(62, exponent - done)}" for done in range(0, exponent, 62))


def write_decimals(array: Any, name: str, dialect: str) -> Written:
    """Write decimals."""
    if dialect == "sqlite" or array.type.precision > MOST_DIGITS:
        raise messages.not_exact(f"Values of type {array.type}", name, dialect)
    return as_text(array, f"DECIMAL({MOST_DIGITS}, {max(array.type.scale, 0)})", dialect)


def write_dates(array: Any, _: str, dialect: str) -> Written:
    """Write dates; for SQLite, as text in the format of its own functions."""
    written = as_text(array, "DATE", dialect)
    return written._replace(type=None) if dialect == "sqlite" else written


def write_moments(array: Any, name: str, dialect: str) -> Written:
    """Write times of whole microseconds, which all dialects except SQLite have; times with a time zone are in UTC."""
    if dialect == "sqlite":
        raise messages.not_exact(f"Values of type {array.type}", name, dialect)
    try:
        whole = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        raise messages.not_exact("Moments finer than microseconds", name, dialect) from error
    if array.type.tz is None:
        return as_text(whole, "TIMESTAMPNTZ", dialect)
    texts = [None if text is None else f"{text}+00:00" for text in spelled(whole)]
    return Written(texts, dialect, True, exp.DataType.build("TIMESTAMPTZ"))


def as_text(array: Any, type_: str, dialect: str) -> Written:
    """Write values as text that is cast."""
    return Written(spelled(array), dialect, True, exp.DataType.build(type_))


def spelled(array: Any) -> list[str | None]:
    """Give values as Arrow writes them."""
    return array.cast(pa.large_string()).to_pylist()


Writer = Callable[[Any, str, str], Written]
WRITERS: tuple[tuple[Callable[[Any], bool], Writer], ...] = (
    (pa.types.is_large_string, write_text),
    (pa.types.is_string, write_text),
    (pa.types.is_boolean, write_booleans),
    (pa.types.is_integer, write_integers),
    (pa.types.is_floating, write_floats),
    (pa.types.is_decimal, write_decimals),
    (pa.types.is_date32, write_dates),
    (pa.types.is_timestamp, write_moments),
    (pa.types.is_null, write_booleans),
)


def write_comparable(array: Any, name: str, dialect: str) -> Written:
    """Write values in the type in which a column is compared with them; Spark compares text as bytes."""
    written = write(array, name, dialect)
    if is_text(array.type) and dialect == "spark":
        return written._replace(type=BINARY)
    if pa.types.is_integer(array.type) and dialect != "sqlite" and not is_wide(array):
        return written._replace(type=DOUBLE)
    return written


def is_text(type_: Any) -> bool:
    """Whether values of a type are text."""
    return bool(pa.types.is_large_string(type_) or pa.types.is_string(type_))


def is_number(type_: Any) -> bool:
    """Whether values of a type are whole numbers or floats."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def is_wide(numbers: Any) -> bool:
    """Whether some of these numbers are so large that floats cannot hold every integer."""
    ends = pc.min_max(numbers).as_py().values()
    return any(end is not None and abs(end) >= DOUBLES_END for end in ends)
