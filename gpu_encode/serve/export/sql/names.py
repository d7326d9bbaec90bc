"""Names of tables and columns, quoted by sqlglot."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import sqlglot
from sqlglot import exp

# The number of a key, and of one of its levels.
LevelIndex = tuple[int, int]
PREFIX = "gpu_encode"
# For each dialect, how it compares quoted names; the others ignore upper and lower case.
TAKEN: dict[str, Callable[[str], str]] = {
    "postgres": lambda name: name.encode()[:63].decode(errors="ignore"),
    "snowflake": str,
}


def column(name: str, of: str) -> Any:
    """Give a column of a table or of a part of the statement.

    SQLite reads a quoted name that is not a column as text, unless the name of its table is given.
    """
    return exp.column(identifier(name), table=identifier(of))


def identifier(name: str) -> Any:
    """Give a quoted name; ValueError if it cannot be a name."""
    if "\0" in name or not name:
        raise ValueError(f"{name!r} is no name of a column in SQL.")
    return exp.to_identifier(name, quoted=True)


def check_distinct(names: Iterable[str], read: Iterable[str], dialect: str) -> None:
    """Raise ValueError if a dialect would confuse a name with another name that is read.

    Examples
    --------
    >>> check_distinct(["Shop", "shop"], ["shop"], "postgres")
    """
    taken = TAKEN.get(dialect, str.lower)
    by_taken: dict[str, str] = {taken(name): name for name in read}
    for name in names:
        other = by_taken.get(taken(name), name)
        if other != name:
            raise _same_names(name, other, dialect)


def _same_names(first: str, second: str, dialect: str) -> ValueError:
    """Error for two names that are the same in a dialect of SQL."""
    law = "reads 63 bytes of a name" if dialect == "postgres" else "does not tell capitals from small letters in names"
    return ValueError(
        f"{dialect} {law}, so that {first!r} and {second!r} are one. Rename one of these columns before fit, or leave "
        "it out of keep."
    )


def named_table(name: str, dialect: str, parameter: str) -> Any:
    """Give a table by its name in the dialect; TypeError or ValueError if it is not a name.

    Examples
    --------
    >>> named_table('sales."Orders of 2026"', "duckdb", "table").sql("duckdb")
    'sales."Orders of 2026"'
    """
    if not isinstance(name, str):
        raise TypeError(f"{parameter} is the name of a table, as text. Got {type(name).__name__} instead.")
    parts: dict[str, Any] = {}
    if "\0" not in name:
        try:
            parts = {part: value for part, value in exp.to_table(name, dialect=dialect).args.items() if value}
        except sqlglot.errors.SqlglotError:
            parts = {}
    # sqlglot makes one quoted name of words that it cannot read, and it ignores comments.
    is_quoted = any(quote in name for quote in '"`[') and all(one.name != name for one in parts.values())
    if re.search(r"[\s;()]", name) and not is_quoted:
        parts = {}
    if not parts or not all(isinstance(value, exp.Identifier) for value in parts.values()):
        raise ValueError(
            f"{parameter}={name!r} is no name of a table of {dialect}. Make a view of a query, and quote a name that "
            "holds spaces or signs."
        )
    return exp.Table(**parts)


def level_table(name: Any, index: LevelIndex) -> Any:
    """Give the table of one level, from the common beginning of all names."""
    number, depth = index
    table = name.copy()
    table.set("this", exp.to_identifier(f"{name.name}_{number}_{depth}", quoted=name.this.quoted))
    return table


def prefix_beside(table: str) -> str:
    """Give a prefix that does not occur in the name of a table.

    Examples
    --------
    >>> prefix_beside("orders"), prefix_beside("GPU_encode_0_0")
    ('gpu_encode', 'gpu_encode_')
    """
    prefix = PREFIX
    while f"{prefix}_" in f"{table.lower()}_":
        prefix += "_"
    return prefix
