"""``gpu-encode export``: write a saved model for a system without Python."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from gpu_encode.cli.arguments import EXPORT
from gpu_encode.cli.messages import refuse
from gpu_encode.words.terminal import one_line

# Parameters of the exports as they appear in error messages, and their names on the command line.
OPTIONS = {
    "matrix=True": "--matrix",
    "passed=False": "--drop-passed",
    "types='float64'": "--types A=float64,B=float64",
    "missing_text=": "--missing-text ",
    "by min_count": "by --min-count",
    "hash_key hides": "--hash-key-file hides",
    "hash_key has": "--hash-key-file has",
    "keep names": "--keep names",
    "Give format=": "Give --tables ",
    "format=": "--tables ",
}

# Parameters of every export: `min_count` and `hash_key`.
Leaving = dict[str, Any]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from gpu_encode.cli.transform import load
    from gpu_encode.storage.archive import whole_file

    path = Path(options.output)
    if path.exists() and not options.overwrite:
        refuse(f"{options.output!r} is there already: give --overwrite to replace it")
    refuse_options_of_others(options)
    encoder = load(Path(options.model))
    leaving = {"min_count": options.min_count, "hash_key": read_key(options.hash_key_file)}
    try:
        content = FORMATS[options.to](encoder, options, leaving)
    except (TypeError, ValueError) as error:
        refuse(in_options(one_line(error)))
    if isinstance(content, dict):
        write_folder(content, path)
    else:
        with whole_file(path) as file:
            file.write(content)
    return 0


def refuse_options_of_others(options: argparse.Namespace) -> None:
    """Refuse options that belong to another format."""
    for title, group in EXPORT.items():
        for option, *_ in group:
            given = getattr(options, option.removeprefix("--").replace("-", "_"))
            if title and options.to not in title.split(" or ") and given not in (None, []):
                refuse(f"{option} is for --to {title}, not {options.to}")


def read_key(path: str | None) -> bytes | None:
    """Read the key of hashes: all bytes of the file."""
    return None if path is None else Path(path).read_bytes()


def in_options(message: str) -> str:
    """Replace parameters in a message by options of the command line.

    Examples
    --------
    >>> in_options("matrix=True makes all columns one input")
    '--matrix makes all columns one input'
    """
    for parameter, option in OPTIONS.items():
        message = message.replace(parameter, option)
    return message


def write_folder(files: dict[str, bytes], path: Path) -> None:
    """Write a folder of files; it appears complete or not at all."""
    from gpu_encode.scale.files.staging import publish

    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as hidden:
        made = Path(hidden, "finished")
        made.mkdir()
        for name, content in files.items():
            (made / name).write_bytes(content)
        publish(Path(hidden), [(made, path)])


def as_sql(encoder: Any, options: argparse.Namespace, leaving: Leaving) -> bytes | dict[str, bytes]:
    """Give the query, after the statements that create tables of categories, and the files of these tables, if any."""
    from gpu_encode.cli.columns import split_names
    from gpu_encode.serve.export import to_sql, to_sql_tables

    if options.table is None:
        refuse("--to sql needs the table that is encoded: --table orders")
    if options.tables is None and options.tables_at is not None:
        refuse("--tables-at says where the database finds files: give --tables parquet or csv as well")
    shared = {"dialect": options.dialect or "duckdb", **leaving}
    named = options.category_tables
    if named is None and options.tables is not None:
        named = re.sub(r"\W|^(?=\d)", "_", Path(options.output).stem)
    given = {"keep": split_names(options.keep), "passed": not options.drop_passed, "category_tables": named}
    origin, _, query = to_sql(encoder, options.table, **given, **shared).partition("\n")
    files: dict[str, bytes] = {}
    created: list[str] = []
    if options.tables is not None:
        with TemporaryDirectory() as folder:
            kept = {"folder": folder, "format": options.tables, "location": options.tables_at or options.output}
            created = to_sql_tables(encoder, named, **kept, **shared)
            files = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
    elif named is not None:
        created = to_sql_tables(encoder, named, **shared)
    # The shell of SQLite reads a line that begins with a point to its end.
    ended = (f"{one}\n" if one.startswith(".") else f"{one};\n" for one in [*created, query])
    script = f"{origin}\n{''.join(ended)}".encode()
    return script if options.tables is None else {"encode.sql": script, **files}


def as_onnx(encoder: Any, options: argparse.Namespace, leaving: Leaving) -> bytes:
    """Give the graph."""
    from gpu_encode.cli.columns import split_names
    from gpu_encode.serve.export import to_onnx

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
        **leaving,
    )
    content: bytes = model.SerializeToString()
    return content


def as_json(encoder: Any, _: argparse.Namespace, leaving: Leaving) -> bytes:
    """Give tables and rules as one document."""
    from gpu_encode.serve.export import to_json

    return to_json(encoder, **leaving).encode()


def as_arrow(encoder: Any, _: argparse.Namespace, leaving: Leaving) -> dict[str, bytes]:
    """Give a Feather file for each key and level, by the name of the file."""
    import pyarrow as pa

    from gpu_encode.serve.export import to_arrow

    files = {}
    for name, table in to_arrow(encoder, **leaving).items():
        with pa.BufferOutputStream() as stream:
            with pa.ipc.new_file(stream, table.schema) as writer:
                writer.write_table(table)
            files[f"{quote(name, safe=' ')}.arrow"] = stream.getvalue().to_pybytes()
    return files


# The name of each format on the command line, and the function that gives the content of its file or files.
FORMATS: dict[str, Callable[[Any, argparse.Namespace, Leaving], bytes | dict[str, bytes]]] = {
    "arrow": as_arrow,
    "json": as_json,
    "onnx": as_onnx,
    "sql": as_sql,
}
