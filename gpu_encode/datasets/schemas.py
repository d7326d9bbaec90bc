"""One schema for all files of a source, and columns for what their folders' names say."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from gpu_encode.datasets.files import SourceFile
from gpu_encode.datasets.formats import is_text, value_type
from gpu_encode.errors import datasets as errors

WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}")
PANDAS = b"pandas"


def unified(files: Sequence[SourceFile], schemas: Sequence[Any]) -> Any:
    """Give the schema in which all files are read.

    Parameters
    ----------
    files : sequence of SourceFile
    schemas : sequence of pyarrow.Schema
        One for each file.

    Raises
    ------
    ValueError
        If a file lacks a column or has another type in it, with both files and the column.
    """
    refuse_repeated(files[0], schemas[0])
    fields = {one.name: one for one in schemas[0]}
    # Which file decided the type: the first may have nothing but null in a column.
    origin = dict.fromkeys(fields, files[0])
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        refuse_repeated(file, schema)
        for name in [*fields, *schema.names]:
            if name not in schema.names:
                raise errors.column_in_one_file(name, files[0].path, file.path)
            if name not in fields:
                raise errors.column_in_one_file(name, file.path, files[0].path)
            known, found = fields[name], schema.field(name)
            kind = common_type(known.type, found.type)
            if kind is None:
                raise errors.column_of_other_type(name, origin[name].path, str(known.type), file.path, str(found.type))
            if pa.types.is_null(known.type) and not pa.types.is_null(kind):
                origin[name] = file
            fields[name] = known.with_type(kind).with_nullable(known.nullable or found.nullable)
    # What pandas noted about its columns would be wrong for those that come out.
    metadata = {key: text for key, text in (schemas[0].metadata or {}).items() if key != PANDAS}
    return pa.schema(list(fields.values()), metadata=metadata or None)


def refuse_repeated(file: SourceFile, schema: Any) -> None:
    """Refuse a file in which a name stands for two columns, or for a column and a folder."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise errors.repeated_in_file(file.path, name)
        if name in file.partition:
            raise errors.column_and_folder(file.path, name)


def common_type(one: Any, other: Any) -> Any:
    """Give the type in which the values of two files are read, or None where there is none.

    Examples
    --------
    >>> common_type(pa.dictionary(pa.int32(), pa.string()), pa.string())
    DataType(string)
    >>> common_type(pa.int32(), pa.int64()) is None
    True
    """
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if is_text(value_type(one)) and is_text(value_type(other)):
        small = all(pa.types.is_string(value_type(kind)) for kind in (one, other))
        return pa.string() if small else pa.large_string()
    return None


def partition_types(files: Sequence[SourceFile], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Give the type of each column that folders' names make: whole numbers where all are, else text.

    Examples
    --------
    >>> partition_types([SourceFile("a", "a", ".csv", {"day": "1"}), SourceFile("b", "b", ".csv", {"day": "x"})], {})
    {'day': DataType(string)}
    """
    types = {}
    for name in files[0].partition:
        if name in declared:
            types[name] = declared[name]
            continue
        words = {file.partition[name] for file in files} - {None}
        whole = bool(words) and all(WHOLE_NUMBER.fullmatch(str(word)) for word in words)
        if not whole:
            types[name] = pa.string()
        else:
            types[name] = pa.int32() if all(-(1 << 31) <= int(str(word)) < 1 << 31 for word in words) else pa.int64()
    return types


def constant(word: str | None, kind: Any, n_rows: int) -> Any:
    """Give the column of rows that all have what a folder's name says."""
    value = pa.scalar(word, pa.string()).cast(value_type(kind))
    if pa.types.is_dictionary(kind):
        indices = pa.repeat(pa.scalar(0, kind.index_type), n_rows)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value.as_py()], kind.value_type))
    return pa.repeat(value, n_rows)
