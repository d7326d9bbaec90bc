"""A fitted encoder as one SQL statement: tables of categories, and a row of encodings for each row of a table.

    WITH rows AS (the columns that are read, comparable)
       , a table for each level of each key AS (its values, and what their rows get)
    SELECT an expression for each output FROM rows LEFT JOIN each level ON its values

The values in a level are distinct, so a join never makes two rows of one.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import sqlglot

from gpu_encode.encoders.base import Encoder, names_at_fit
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.sql.files import check_format, write_level
from gpu_encode.serve.export.sql.levels import LevelRows, with_rows
from gpu_encode.serve.export.sql.names import check_distinct, level_table, named_table, prefix_beside
from gpu_encode.serve.export.sql.query import Query, levels_of
from gpu_encode.serve.export.sql.values import DIALECTS, SUBSTITUTED
from gpu_encode.serve.export.tables import (
    EncoderTables,
    facts_to_leave,
    tables_to_leave,
    without_refused,
)
from gpu_encode.tables.categories.hierarchy import Prefixes
from gpu_encode.words.errors.parameters import bad_option

Dialect = Literal["duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"]
# Number of categories in one INSERT statement.
INSERTED = 1_000
# Most tables that SQLite can join to the first one.
MOST_JOINED = 63
LINE_BREAK = sqlglot.generator.Generator.SENTINEL_LINE_BREAK


def to_sql(
    encoder: Encoder,
    table: str,
    dialect: Dialect = "duckdb",
    *,
    keep: str | Sequence[str] = (),
    passed: bool = True,
    min_count: float = 0.0,
    category_tables: str | None = None,
    hash_key: bytes | None = None,
) -> str:
    """Write the statement that encodes the rows of a table as `transform` does, to the bit.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder, whose encodings depend on the categories of single keys.
    table : str
        Name of the table, as the dialect writes it: ``orders``, ``sales.orders``, ``"My orders"``.  Its columns have
        the names and the types of the columns at fit; if names at fit were not text, they are x0, x1 and so on. To
        encode a query, make a view of it.
    dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"}, default="duckdb"
    keep : str or sequence of str, default=()
        Columns of the table that come first in the result, such as an id, since SQL promises no order of rows.  They
        need not be columns of fit.
    passed : bool, default=True
        Whether columns that pass through come last in the result, except those in `keep`.  If False, the table may lack
        them.
    min_count : float, default=0.0
        Categories whose training rows have less weight (or number, without weights) are left out: their rows get the
        encoding of the level above, or that of unknown values.
    category_tables : str, optional
        Prefix of the names of tables from `to_sql_tables`; by default, the statement contains all categories.
    hash_key : bytes, optional
        The statement contains `hash_values` with this key instead of values, and the columns of keys must hold these
        hashes, as text.  At least 16 bytes.

    Returns
    -------
    str
        A SELECT statement, after a comment with the encoder's parameters and its `origin_`.  Encodings are double
        precision numbers, integers or text; columns that pass through are unchanged.

    Raises
    ------
    TypeError
        If the encodings do not depend on single keys, or the dialect has no type for a key's values.
    ValueError
        If no statement can contain a value or a name, or the dialect cannot distinguish two names, such as "Shop" and
        "shop" in all dialects but PostgreSQL and Snowflake.  For `hash_key` as in `to_arrow`.

    Notes
    -----
    The statement ends with an error of its engine if a column has a type that cannot hold the values of fit exactly, if
    a number is infinite, or if a policy refuses an unknown or missing value.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import to_sql
    >>> encoder = TargetEncoder(smooth=0.0).fit([["oak"], ["elm"], ["elm"]], [1, 0, 1])
    >>> import duckdb
    >>> trees = duckdb.sql("SELECT * FROM (VALUES (1, 'elm'), (2, 'fir')) AS trees(id, x0)")
    >>> duckdb.sql(to_sql(encoder, "trees", keep=["id"])).order("id").fetchall()
    [(1, 0.5), (2, 0.6666666666666666)]
    """
    tables = exportable(encoder, dialect, min_count, hash_key)
    keep = [keep] if isinstance(keep, str) else [*keep]
    through = [name for name in tables.passed if passed and name not in keep]
    tables = tables._replace(passed=through, names=[*tables.names[: len(tables.order)], *through])
    check_names(tables, keep, names_at_fit(encoder._model), dialect)
    source = named_table(table, dialect, "table")
    held = None if category_tables is None else named_table(category_tables, dialect, "category_tables")
    prefix = prefix_beside(source.sql() if held is None else f"{source.sql()} {held.sql()}")
    query = Query(tables, dialect, prefix, held)
    rows = query.levels.values() if held is None else ()
    statement = with_rows(finish(query.select(source, keep), dialect), (level.texts() for level in rows))
    return f"{comment(encoder, min_count, hash_key)}\n{statement}"


def to_sql_tables(
    encoder: Encoder,
    name: str,
    dialect: Dialect = "duckdb",
    *,
    folder: str | os.PathLike[str] | None = None,
    format: Literal["parquet", "csv"] = "parquet",  # noqa: A002 - the word of pandas and Spark
    location: str | None = None,
    min_count: float = 0.0,
    hash_key: bytes | None = None,
) -> list[str]:
    """Write the statements that create the tables of categories which `to_sql` reads by ``category_tables=name``.

    The statements hold the categories, or load them from files.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder.
    name : str
        Prefix of the names of the tables, as the dialect writes it: ``shops`` or ``models.shops``.
    dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"}, default="duckdb"
    folder : str or path, optional
        A folder for files of categories: one for each table, with its name.  It is made if it is not there, and files
        of these names are replaced.
    format : {"parquet", "csv"}, default="parquet"
        Of the files.  DuckDB reads both, Spark and BigQuery Parquet, the others CSV.
    location : str, optional
        Where the database finds the folder, such as ``s3://models/shops``, ``gs://...`` or ``@stage/shops``; `folder`,
        as it is given, unless named.
    min_count, hash_key
        As in `to_sql`.

    Returns
    -------
    list of str
        CREATE TABLE statements, each followed by INSERT statements of a thousand categories.  With `folder`, views of
        the files in DuckDB and Spark; elsewhere tables, the statements that load the files, and views.  SQLite has no
        statement that loads a file: the list has lines for its shell, which begin with ``.import``.

    Raises
    ------
    TypeError, ValueError
        As in `to_sql`; ValueError for a format that the dialect does not read.

    Examples
    --------
    >>> from gpu_encode import CountEncoder
    >>> from gpu_encode.export import to_sql_tables
    >>> print(to_sql_tables(CountEncoder().fit([["oak"], ["elm"], ["elm"]]), "trees")[0])
    CREATE TABLE trees_0_0 AS
    SELECT
      "held"."column1" AS "value_0",
      CAST("held"."column2" AS DOUBLE) AS "answer_0"
    FROM (VALUES
      ('elm', '2.0'),
      ('oak', '1.0')) AS "held"("column1", "column2")
    """
    tables, beginning = exportable(encoder, dialect, min_count, hash_key), named_table(name, dialect, "name")
    if folder is not None:
        check_format(format, dialect)
        Path(folder).mkdir(parents=True, exist_ok=True)
    elif location is not None:
        raise ValueError(f"location={location!r} says where a database finds files, and there are none. Give folder.")
    statements = []
    for index, level in levels_of(tables):
        target = level_table(beginning, index)
        rows = LevelRows(level, tables.keys[index[0]].columns, dialect, target.name)
        if folder is not None:
            written = write_level(rows, target, Path(folder), format, location or str(folder))
            statements += [one if isinstance(one, str) else finish(one, dialect) for one in written]
            continue
        create, insert = rows.select().ctas(target), sqlglot.exp.insert(rows.select(), target)
        beginnings, texts = [finish(one, dialect) for one in (create, insert)], rows.texts()
        for start in range(0, len(level.values), INSERTED):
            some = [literals[start : start + INSERTED] for literals in texts]
            statements.append(with_rows(beginnings[start > 0], [some]))
    return statements


def comment(encoder: Encoder, min_count: float, hash_key: bytes | None) -> str:
    """Tell in a line what an encoder is and where it comes from."""
    told = facts_to_leave(encoder, min_count, hash_key)
    given = f"({', '.join(map('='.join, told['parameters'].items()))})" if "parameters" in told else ""
    facts = [
        f"{name} {f'{value:,.15g}' if isinstance(value, float) else value}"
        for name, value in told["origin"].items()
        if value is not None
    ]
    return f"-- gpu_encode {type(encoder).__name__}{given}: {', '.join(facts)}"


def check_names(tables: EncoderTables, keep: Sequence[str], at_fit: Sequence[str], dialect: str) -> None:
    """Raise TypeError or ValueError for wrong columns to keep, and for names that the dialect cannot distinguish."""
    if wrong := [name for name in keep if not isinstance(name, str)]:
        raise TypeError(f"keep takes names of columns, as text. Got {wrong[0]!r} among them.")
    for number, name in enumerate(keep):
        if name in keep[:number] or name in tables.names:
            where = "is the name of an output" if name in tables.names else "stands there already"
            raise ValueError(f"keep names {name!r}, which {where}. Leave it out.")
    read = [*keep, *tables.passed, *(name for key in tables.keys for name in key.columns)]
    check_distinct([*keep, *at_fit], read, dialect)
    results = [*keep, *tables.names]
    check_distinct(results, results, dialect)


def exportable(encoder: Encoder, dialect: str, min_count: float, hash_key: bytes | None) -> EncoderTables:
    """Give the tables of an encoder that SQL can represent; raise TypeError or ValueError for others."""
    if dialect not in DIALECTS:
        raise bad_option("to_sql", "dialect", dialect, tuple(map(repr, DIALECTS)))
    tables = tables_to_leave(encoder, min_count, hash_key)
    for key in tables.keys:
        name = ", ".join(key.columns)
        if not (key.rule is None or isinstance(key.rule, Prefixes)):
            raise TypeError(
                f"The hierarchy of {name!r} follows from {type(key.rule).__name__}, which SQL cannot compute: Prefixes "
                "can be exported, and levels that are columns of the table."
            )
        if None not in key.unknown and any(None in level.present for level in key.levels):
            raise messages.cannot_refuse("SQL", key.columns)
    tables = tables._replace(keys=[without_refused(key) for key in tables.keys])
    n_joined = sum(1 for _ in levels_of(tables))
    if dialect == "sqlite" and n_joined > MOST_JOINED:
        raise ValueError(
            f"SQLite joins up to {MOST_JOINED} tables with that of the rows, and the encoder has {n_joined}, one for "
            "each key and level. Fit several encoders, each on some of the columns, and join what they give by an id."
        )
    return tables


def finish(expression: Any, dialect: str) -> str:
    """Give the text of a statement, in lines that can be read."""
    shared = {"dialect": dialect, "unsupported_level": sqlglot.ErrorLevel.RAISE}
    text: str = expression.sql(**shared)
    # sqlglot puts this word where a text has a line break, and could not tell it from the word in a text.
    if LINE_BREAK not in text:
        text = expression.sql(**shared, pretty=True)
    # Values with this text are written in pieces; that is impossible for names.
    if dialect == "spark" and SUBSTITUTED in text:
        raise ValueError(f"A name holds {SUBSTITUTED!r}, where Spark puts its settings. Rename the column.")
    return text
