"""Categories in files of Parquet or CSV beside a statement, and the statements that load them."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sqlglot import exp

from gpu_encode.serve.export.sql.levels import HELD, LevelRows
from gpu_encode.serve.export.sql.names import column, identifier
from gpu_encode.serve.export.sql.values import DOUBLE, Written, cast
from gpu_encode.words.errors.parameters import bad_option

# For each dialect, the formats that it reads.
FORMATS = {
    "duckdb": ("parquet", "csv"),
    "postgres": ("csv",),
    "bigquery": ("parquet",),
    "snowflake": ("csv",),
    "spark": ("parquet",),
    "sqlite": ("csv",),
}
# The statement that loads a file into a table, where a query cannot read files; for SQLite a line of its shell.
LOADS = {
    "postgres": "COPY {table} FROM {path} (FORMAT csv, HEADER)",
    "bigquery": "LOAD DATA INTO {table} FROM FILES (format = 'PARQUET', uris = [{path}])",
    "snowflake": "COPY INTO {table} FROM {path} FILE_FORMAT = "
    "(TYPE = CSV, SKIP_HEADER = 1, FIELD_OPTIONALLY_ENCLOSED_BY = '\"')",
    "sqlite": ".import --csv --skip 1 {schema}{path} {name}",
}
BOOLEAN, TEXT, WHOLE = map(exp.DataType.build, ("BOOLEAN", "TEXT", "BIGINT"))


def check_format(format_: str, dialect: str) -> None:
    """Raise ValueError for a format that a dialect does not read."""
    if format_ not in FORMATS["duckdb"]:
        raise bad_option("to_sql_tables", "format", format_, tuple(map(repr, FORMATS["duckdb"])))
    if format_ not in FORMATS[dialect]:
        other = FORMATS[dialect][0]
        raise ValueError(f"format={format_!r} cannot be loaded into {dialect} from here. Give format={other!r}.")


def write_level(rows: LevelRows, target: Any, folder: Path, format_: str, location: str) -> Iterator[Any]:
    """Write the rows of a level to a file, and yield the statements that make a table or a view of it."""
    columns: dict[str, Any] = {}
    values = []
    for name, written in rows.held.items():
        held, value = stored_for_sqlite(name, written) if rows.dialect == "sqlite" else stored(name, written)
        columns |= held
        values.append(value)
    # A slash cannot stand in the name of a file.
    name = f"{target.name.replace('/', '_')}.{format_}"
    write = pa.parquet.write_table if format_ == "parquet" else pa.csv.write_csv
    write(pa.table(columns), folder / name)
    path = f"{location.rstrip('/')}/{name}"
    if rows.dialect in LOADS:
        yield from load(rows.dialect, target, [*columns], path)
    source = source_of(rows.dialect, target, [*columns], path)
    select = rows.select_from(source, values)
    yield exp.Create(this=target, kind="VIEW", expression=select, replace=rows.dialect not in LOADS)


def stored(name: str, written: Written) -> tuple[dict[str, Any], Any]:
    """Give a column as a file has it, and the expression that reads it: numbers and truth values keep their type."""
    value = written.typed(column(name, HELD))
    type_ = pa.float64() if written.type == DOUBLE else pa.string()
    if not written.quoted:
        known = next((text for text in written.literals if text is not None), "")
        type_, own = (pa.bool_(), BOOLEAN) if known in ("TRUE", "FALSE") else (pa.int64(), WHOLE)
        # A table that is loaded from CSV has text.
        value = value if written.type is not None else cast(value, own)
    return {name: pa.array(written.literals, pa.string()).cast(type_)}, value


def stored_for_sqlite(name: str, written: Written) -> tuple[dict[str, Any], Any]:
    """Give a column as text, and the expression that reads it.

    SQLite loads all cells as text, has no null in a file, and reads some digits of floats wrongly: so a float is three
    or more whole numbers.
    """
    null = "\\N"
    while null in written.literals:
        null += "N"
    texts = [null if text is None else text for text in written.literals]
    value = column(name, HELD)
    if None in written.literals:
        value = exp.Anonymous(this="NULLIF", expressions=[value, exp.Literal.string(null)])
    if written.quoted:
        return {name: texts}, value
    known = next((text for text in written.literals if text is not None), "")
    if known in ("TRUE", "FALSE"):
        texts = [{"TRUE": "1", "FALSE": "0"}.get(text, text) for text in texts]
    if "." not in known and "e" not in known:
        return {name: texts}, cast(value, WHOLE)
    split = [text.replace("(", "").rstrip(")").partition(" ") for text in texts]
    held, value = {name: [number for number, *_ in split]}, cast(value, DOUBLE)
    # Few powers of two occur.
    powers = {rest: re.findall(r"([*/]) (\d+)", rest) for rest in {rest for *_, rest in split}}
    for sign, word, operation in (("*", "times", exp.Mul), ("/", "over", exp.Div)):
        numbers = {rest: [number for own, number in found if own == sign] for rest, found in powers.items()}
        for turn in range(max(map(len, numbers.values()))):
            own = f"{name}_{word}_{turn}"
            turned = {rest: ([*row, *["1"] * (turn + 1)])[turn] for rest, row in numbers.items()}
            held[own] = [turned[rest] for *_, rest in split]
            value = operation(this=value, expression=cast(column(own, HELD), WHOLE))
    return held, value


def load(dialect: str, target: Any, columns: Sequence[str], path: str) -> Iterator[str]:
    """Yield the statements that load a file into a table beside the target."""
    table = loaded(target)
    if dialect != "bigquery":
        # BigQuery makes the table by itself.
        listed = ", ".join(f"{identifier(name).sql(dialect)} {TEXT.sql(dialect)}" for name in columns)
        yield f"CREATE TABLE {table.sql(dialect)} ({listed})"
    schema = f"--schema {table.db} " if table.db else ""
    # The shell of SQLite reads quotes as C does.
    quoted = json.dumps(path, ensure_ascii=False) if dialect == "sqlite" else exp.Literal.string(path).sql(dialect)
    name = json.dumps(table.name, ensure_ascii=False)
    yield LOADS[dialect].format(table=table.sql(dialect), path=quoted, name=name, schema=schema)


def loaded(target: Any) -> Any:
    """Give the table into which the file of a target is loaded."""
    table = target.copy()
    table.set("this", exp.to_identifier(f"{target.name}_file", quoted=target.this.quoted))
    return table


def source_of(dialect: str, target: Any, columns: Sequence[str], path: str) -> Any:
    """Give the source of the rows in a query: the file itself, or the table into which it was loaded."""
    if dialect in LOADS:
        return loaded(target).as_(identifier(HELD), table=True)
    if dialect == "spark":
        return exp.Table(this=identifier(path), db=exp.to_identifier("parquet")).as_(identifier(HELD), table=True)
    quoted = exp.Literal.string(path).sql(dialect)
    call = f"READ_PARQUET({quoted})"
    if path.endswith(".csv"):
        # An empty cell in quotes is the empty text; without quotes it is missing.
        types = ", ".join(f"{exp.Literal.string(name).sql(dialect)}: 'VARCHAR'" for name in columns)
        signs = """delim = ',', quote = '"', escape = '"', header = TRUE, auto_detect = FALSE"""
        call = f"READ_CSV({quoted}, columns = {{{types}}}, {signs}, allow_quoted_nulls = FALSE)"
    return exp.Table(this=exp.Var(this=call)).as_(identifier(HELD), table=True)
