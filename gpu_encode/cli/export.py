"""``gpu-encode export``: write a saved model for a system without Python."""

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from gpu_encode.cli.messages import refuse

DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from gpu_encode.cli.transform import load
    from gpu_encode.storage.archive import whole_file

    path = Path(options.output)
    if path.exists() and not options.overwrite:
        refuse(f"{options.output!r} is there already: give --overwrite to replace it")
    content = FORMATS[options.to](load(Path(options.model)), options)
    if isinstance(content, dict):
        write_folder(content, path)
    else:
        with whole_file(path) as file:
            file.write(content)
    return 0


def write_folder(files: dict[str, bytes], path: Path) -> None:
    """Write a folder of files, whole or not at all."""
    from gpu_encode.datasets.publishing import publish

    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as hidden:
        made = Path(hidden, "finished")
        made.mkdir()
        for name, content in files.items():
            (made / name).write_bytes(content)
        publish(Path(hidden), [(made, path)])


def as_sql(encoder: Any, options: argparse.Namespace) -> bytes:
    """Give the query, behind the statements that create the tables of categories where these are named."""
    from gpu_encode.cli.choices import split_names
    from gpu_encode.export import to_sql, to_sql_tables

    if options.table is None:
        refuse("--to sql needs the table that is encoded: --table orders")
    shared = {"dialect": options.dialect or "duckdb", "min_count": options.min_count}
    named = options.category_tables
    created = [] if named is None else to_sql_tables(encoder, named, **shared)
    query = to_sql(encoder, options.table, keep=split_names(options.keep), category_tables=named, **shared)
    return "".join(f"{statement};\n" for statement in [*created, query]).encode()


def as_onnx(encoder: Any, options: argparse.Namespace) -> bytes:
    """Give the graph."""
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
    content: bytes = model.SerializeToString()
    return content


def as_json(encoder: Any, options: argparse.Namespace) -> bytes:
    """Give tables and rules as one document."""
    from gpu_encode.export import to_json

    return to_json(encoder, min_count=options.min_count).encode()


def as_arrow(encoder: Any, options: argparse.Namespace) -> dict[str, bytes]:
    """Give a Feather file for each key and level, by its name."""
    import pyarrow as pa

    from gpu_encode.export import to_arrow

    files = {}
    for name, table in to_arrow(encoder, min_count=options.min_count).items():
        with pa.BufferOutputStream() as stream:
            with pa.ipc.new_file(stream, table.schema) as writer:
                writer.write_table(table)
            files[f"{quote(name, safe=' ')}.arrow"] = stream.getvalue().to_pybytes()
    return files


# What a format is called on the command line, and what gives the content of a file, or of a folder of files.
FORMATS: dict[str, Callable[[Any, argparse.Namespace], bytes | dict[str, bytes]]] = {
    "arrow": as_arrow,
    "json": as_json,
    "onnx": as_onnx,
    "sql": as_sql,
}
