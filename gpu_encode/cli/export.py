"""``gpu-encode export``: write a saved model for a system without Python."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from gpu_encode.cli.messages import refuse

DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from gpu_encode.cli.transform import load
    from gpu_encode.storage.archive import whole_file

    path = Path(options.output)
    if path.exists() and not options.overwrite:
        refuse(f"{options.output!r} is there already: give --overwrite to replace it")
    encoder = load(Path(options.model))
    with whole_file(path) as file:
        FORMATS[options.to](encoder, options, file)
    return 0


def write_sql(encoder: Any, options: argparse.Namespace, file: IO[bytes]) -> None:
    """Write the query, behind the statements that create the tables of categories where these are named."""
    from gpu_encode.cli.choices import split_names
    from gpu_encode.export import to_sql, to_sql_tables

    if options.table is None:
        refuse("--to sql needs the table that is encoded: --table orders")
    shared = {"dialect": options.dialect or "duckdb", "min_count": options.min_count}
    named = options.category_tables
    created = [] if named is None else to_sql_tables(encoder, named, **shared)
    query = to_sql(encoder, options.table, keep=split_names(options.keep), category_tables=named, **shared)
    file.write("".join(f"{statement};\n" for statement in [*created, query]).encode())


def write_onnx(encoder: Any, options: argparse.Namespace, file: IO[bytes]) -> None:
    """Write the graph."""
    from gpu_encode.cli.choices import split_names
    from gpu_encode.export import to_onnx

    types: dict[str, str] = {}
    for entry in split_names(options.types):
        column, equals, word = entry.rpartition("=")
        if not equals:
            refuse(f"--types {entry!r} names no column: --types size=float64")
        types[column] = word
    model = to_onnx(
        encoder,
        types=types,
        matrix=options.matrix,
        passed=not options.drop_passed,
        missing_text=options.missing_text,
        min_count=options.min_count,
    )
    file.write(model.SerializeToString())


def write_json(encoder: Any, options: argparse.Namespace, file: IO[bytes]) -> None:
    """Write tables and rules as one document."""
    from gpu_encode.export import to_json

    file.write(to_json(encoder, min_count=options.min_count).encode())


# What a format is called on the command line, and what writes it into a file.
FORMATS: dict[str, Callable[[Any, argparse.Namespace, IO[bytes]], None]] = {
    "json": write_json,
    "onnx": write_onnx,
    "sql": write_sql,
}
