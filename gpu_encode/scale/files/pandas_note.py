"""What pandas notes in a Parquet or Arrow file: the columns that are its index, and the types of its columns.

The note is in the metadata of the schema.  While rows are encoded, the note of a column is in the metadata of its
field: so it stays with a column that passes through, and a column of encodings has none.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_encode.tables.frames.columns import NOTE, index_of, read_note

# Types of names of columns which any text has.
NAMES_OF_TEXT = ("unicode", "string", "empty", "mixed")
MASKED = {"i": "Int", "u": "UInt", "f": "Float"}


def ranges_of(schema: pa.Schema) -> dict[str, tuple[int, range]]:
    """Give the levels of an index that are noted as ranges, and their positions, by the names of columns for them."""
    ranges = {}
    for number, level in enumerate(read_note(schema).get("index_columns", ())):
        if not isinstance(level, str):
            name = f"__index_level_{number}__" if level.get("name") is None else str(level["name"])
            ranges[name] = number, range(level["start"], level["stop"], level["step"])
    return ranges


def with_ranges(schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
    """Give schemas with columns for ranges that are columns in other files, or one of several levels of an index."""
    held: set[str] = set()
    for schema in schemas:
        held.update(index_of(schema))
    extended = []
    for given in schemas:
        schema, note = given, read_note(given)
        for name, (number, _) in ranges_of(given).items():
            if (name in held or len(note["index_columns"]) > 1) and name not in schema.names:
                schema = schema.append(pa.field(name, pa.int64()))
                entry = plain_entry(schema.field(name)) | {"name": note["index_columns"][number].get("name")}
                note["columns"].append(entry)
                note["index_columns"][number] = name
                schema = schema.with_metadata({**schema.metadata, NOTE: json.dumps(note).encode()})
        extended.append(schema)
    return extended


def join_notes(schema: pa.Schema, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Give the schema of all files with one note; its fields have what the files note of their columns."""
    first: dict[str, Any] = {}
    told: dict[str, list[tuple[dict[str, Any], Any]]] = {}
    for own in schemas:
        note = read_note(own)
        first = first or note
        for entry in note.get("columns", ()):
            if (name := entry["field_name"]) in schema.names:
                told.setdefault(name, []).append((entry, own.field(name).type))
    metadata = dict(schema.metadata or {})
    metadata.pop(NOTE, None)
    if first:
        for name, entries in told.items():
            number, field = schema.get_field_index(name), schema.field(name)
            entry = entries[0][0] if len(entries) == 1 else join_entries(field, entries)
            text = json.dumps(entry).encode()
            schema = schema.set(number, field.with_metadata({**(field.metadata or {}), NOTE: text}))
        # Columns that names of folders make are in the note, but not in the files.
        metadata[NOTE] = json.dumps(first).encode()
    return schema.with_metadata(metadata or None)


def join_entries(field: pa.Field, told: Sequence[tuple[dict[str, Any], Any]]) -> dict[str, Any]:
    """Join what files note of a column, which they may hold in several types; a type of nulls says nothing."""
    told = [one for one in told if not pa.types.is_null(one[1])] or told
    entry, words = told[0][0], {other.get("numpy_type") for other, _ in told}
    if len(words) == 1 and all(kind.equals(field.type) for _, kind in told):
        return entry
    joined = plain_entry(field) | {"name": entry["name"]}
    if (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)) and any(
        str(word).startswith(tuple(MASKED.values())) for word in words
    ):
        own = np.dtype(field.type.to_pandas_dtype())
        joined["numpy_type"] = f"{MASKED[own.kind]}{8 * own.itemsize}"
    return joined


def plain_entry(field: pa.Field) -> dict[str, Any]:
    """Describe a column that pandas reads by its Arrow type alone."""
    kind, word = field.type, "object"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        word = np.dtype(kind.to_pandas_dtype()).name
    return {"name": field.name, "field_name": field.name, "pandas_type": word, "numpy_type": word, "metadata": None}


def with_note(schema: pa.Schema, source: Any, output: Any) -> pa.Schema:
    """Give the schema of an `Output` of a `Source` with pandas' note about its columns and the labels of its rows."""
    note = read_note(source.schema)
    if not note:
        return schema
    entries: dict[str, dict[str, Any]] = {entry["field_name"]: entry for entry in note["columns"]}
    passed = set()
    for number, field in enumerate(schema):
        metadata = dict(field.metadata or {})
        if (text := metadata.pop(NOTE, None)) is None:
            entries[field.name] = plain_entry(field)
        else:
            entries[field.name] = json.loads(text)
            passed.add(field.name)
            schema = schema.set(number, field.with_metadata(metadata or None))
    levels: list[Any] = []
    for level in note["index_columns"]:
        if not isinstance(level, str):
            levels.append(range_of(level, source, output))
        elif level in passed:
            levels.append(level)
    note |= {"index_columns": levels, "columns": [*entries.values()]}
    names = note.get("column_indexes") or []
    is_text = len(names) == 1 and names[0].get("pandas_type") in NAMES_OF_TEXT
    if names and not is_text and not {*schema.names} <= {*source.schema.names}:
        # Names of encodings are neither numbers nor tuples.
        name = names[0].get("name") if len(names) == 1 else None
        text_names = {"pandas_type": "unicode", "numpy_type": "object", "metadata": {"encoding": "UTF-8"}}
        note["column_indexes"] = [{"name": name, "field_name": name, **text_names}]
    return schema.with_metadata({**(schema.metadata or {}), NOTE: json.dumps(note).encode()})


def range_of(level: dict[str, Any], source: Any, output: Any) -> dict[str, Any]:
    """Describe the RangeIndex of an output: the labels of its rows if its files count on, otherwise 0, 1, ..."""
    first_row, stop = output.first_row, output.stop
    joined: range | None = None
    number = max(0, int(np.searchsorted(source.starts, first_row, side="right")) - 1)
    while number < len(source.files) and source.starts[number] < stop:
        start, n_rows = source.starts[number], source.contents[number].n_rows
        labels = next(iter(ranges_of(source.contents[number].schema).values()), (0, range(0)))[1]
        part = labels[max(0, first_row - start) : stop - start]
        counts_on = joined is None or (part.start, part.step) == (joined.stop, joined.step)
        if not len(labels) == n_rows == source.rows[number] or not counts_on:
            joined = None
            break
        joined = part if joined is None else range(joined.start, part.stop, part.step)
        number += 1
    joined = range(stop - first_row) if joined is None else joined
    return level | {"start": joined.start, "stop": joined.stop, "step": joined.step}
