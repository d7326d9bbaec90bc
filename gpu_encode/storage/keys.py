"""Keys and their categories as JSON and arrays, and back."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import Array
from gpu_encode.storage.archive import Reader, Writer
from gpu_encode.storage.json_fields import pair, read_counts, read_field, read_list
from gpu_encode.storage.parameters import decode, decode_array, encode, encode_array
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec, Tuples, code_missing
from gpu_encode.tables.categories.values import Values
from gpu_encode.tables.categories.vocabulary import Vocabulary

STORED = (pa.bool_(), pa.int64(), pa.uint64(), pa.float64(), pa.large_string(), pa.large_binary())
# Bytes of a number that is a Python object, and of the text from which it is read.
OBJECT_BYTES = 100


def describe_spec(entry: KeySpec, writer: Writer) -> dict[str, Any]:
    """Give the parts of a key as JSON."""
    return {
        "name": entry.name,
        "members": list(entry.members),
        "above": list(entry.above),
        "rule": encode(entry.rule, writer),
    }


def describe_key(key: CategoryIndex, writer: Writer) -> dict[str, Any]:
    """Give the categories of a key as JSON."""
    return {
        "vocabularies": [{"array": writer.add(values.to_arrow()), **values.metadata()} for values in key.vocabularies],
        "members": None if key.tuples is None else encode_array(key.tuples.members, writer),
        "has_missing": key.has_missing,
        "given": key.given,
    }


def read_spec(document: dict[str, Any], n_features: int, reader: Reader) -> KeySpec:
    """Read the parts of a key."""
    members, above = (tuple(read_counts(document, name, 0, n_features - 1)) for name in ("members", "above"))
    rule = decode(read_field(document, "rule", dict, None), reader)
    entry = KeySpec(read_field(document, "name", str), members, above, rule)
    if not members or len(set(entry.columns)) < len(entry.columns):
        raise ValueError(f"{entry.name!r} is made of the columns {entry.columns}")
    if rule is not None:
        if not isinstance(rule, Derived) or len(entry.columns) > 1:
            raise ValueError(f"{entry.name!r} has a hierarchy that does not fit it")
        rule.check()
    return entry


def read_key(document: dict[str, Any], entry: KeySpec, reader: Reader) -> CategoryIndex:
    """Read the categories of a key."""
    per_column = pair(entry.columns, read_list(document, "vocabularies", dict))
    vocabularies = [read_vocabulary(described, reader) for _, described in per_column]
    described = read_field(document, "members", dict, None)
    has_missing, given = (read_field(document, name, bool) for name in ("has_missing", "given"))
    if len(vocabularies) == 1:
        if described is not None:
            raise ValueError(f"{entry.name!r} is a single column with joint categories")
        return CategoryIndex(entry, vocabularies, None, has_missing, given)
    if has_missing or given:
        raise ValueError(f"{entry.name!r} is a joint key with categories of a single column")
    sizes = [len(vocabulary) for vocabulary in vocabularies]
    return CategoryIndex(entry, vocabularies, Tuples(sizes, read_members(described, sizes, reader)))


def read_vocabulary(document: dict[str, Any], reader: Reader) -> Vocabulary:
    """Read the distinct values of a column; keys that share a column share them."""
    described = json.dumps(document, sort_keys=True)
    if described not in reader.shared:
        reader.shared[described] = Vocabulary(read_values(document, reader))
    vocabulary: Vocabulary = reader.shared[described]
    return vocabulary


def read_values(document: dict[str, Any], reader: Reader) -> Values:
    """Read values that are all distinct."""
    array = reader.array(document.get("array"), *STORED)
    if document.get("kind") not in ("text", "bytes", "interval"):
        reader.spend((OBJECT_BYTES if array.type == pa.large_string() else 8) * len(array))
    values = Vocabulary.from_arrow(array, document).values
    if isinstance(values.array, np.ndarray):
        kind = values.array.dtype.kind
        if values.kind == "number" and kind != "O" and np.dtype(values.dtype).kind not in "biuf":
            raise ValueError(f"numbers are shown as {values.dtype!r}")
        # Only NaN differs from itself; numbers may be objects, of which NumPy does not tell more.
        if kind in "fO" and (len(values.infinite()) or np.any(values.array != values.array)):
            raise ValueError("a number among the categories is not finite")
        # An array that shares Arrow's memory is read-only, and keeps the bytes around it in memory.
        values = replace(values, array=values.array.copy())
    return values


def read_members(document: Any, sizes: list[int], reader: Reader) -> Array:
    """Read the value numbers of joint categories: they are in range and sorted, and each combination occurs once."""
    members = decode_array(document, reader)
    if members.dtype != np.int32 or members.shape != (len(members), len(sizes)):
        raise ValueError(f"categories of {len(sizes)} columns are stored as {members.dtype} of shape {members.shape}")
    if (members < -1).any() or (members >= np.array(sizes)).any():
        raise ValueError("a joint category has a value that its column has not")
    filled = np.column_stack([code_missing(members[:, i], size) for i, size in enumerate(sizes)]).astype(np.int64)
    step = np.diff(filled, axis=0)
    first = np.take_along_axis(step, (step != 0).argmax(axis=1)[:, None], axis=1)
    if (first <= 0).any():
        raise ValueError("joint categories are not sorted, or one is there twice")
    return members
