"""A fitted encoder as JSON: the tables and rules of `to_arrow`, for systems that do not read Arrow."""

import json
from typing import Any

import pyarrow as pa

from gpu_encode.encoders.base import Encoder
from gpu_encode.serve.export.arrow import RULES, as_json, to_arrow


def to_json(encoder: Encoder, *, min_count: float = 0, hash_key: bytes | None = None) -> str:
    """Give a fitted encoder as one JSON document.

    Parameters
    ----------
    encoder, min_count, hash_key
        As in `to_arrow`.

    Returns
    -------
    str
        The rules that `to_arrow` puts into metadata, and ``tables``: objects with the number of the ``key``, the
        ``level``, and the ``columns`` that `to_arrow` documents, by name, each a list of values.  Numbers are written
        so that they are read back exactly.  NaN and infinities are text ("nan", "inf", "-inf"), and so are decimals and
        dates; bytes are in hexadecimal digits.

    Raises
    ------
    TypeError, ValueError
        As in `to_arrow`.

    Examples
    --------
    >>> import json
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import to_json
    >>> document = json.loads(to_json(TargetEncoder(smooth=0.0).fit([["oak"], ["oak"], ["elm"]], [0, 1, 1])))
    >>> document["keys"][0]["unknown"], document["tables"][0]["columns"]["x0_encoding"]
    ({'x0': 0.6666666666666666}, [1.0, 0.5])
    """
    tables = list(to_arrow(encoder, min_count=min_count, hash_key=hash_key).values())
    rules = [json.loads(table.schema.metadata[RULES]) for table in tables]
    documents = [
        {
            "key": told.pop("key"),
            "level": told.pop("level"),
            "columns": {name: as_values(table[name]) for name in table.column_names},
        }
        for told, table in zip(rules, tables, strict=True)
    ]
    return json.dumps(rules[0] | {"tables": documents}, allow_nan=False)


def as_values(column: Any) -> list[Any]:
    """Give a column as values of types that JSON has."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.string())
    values = column.to_pylist()
    return [value.hex() if isinstance(value, bytes) else as_text(value) for value in values]


def as_text(value: Any) -> Any:
    """Give a value as JSON, or as text if JSON has no such type."""
    plain = as_json(value)
    return plain if plain is None or isinstance(plain, str | bool | int | float) else str(plain)
