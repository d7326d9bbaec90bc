"""Exports of a fitted encoder: SQL, ONNX, Arrow tables, JSON and polars expressions, with the same bits or an error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_encode.serve.export.arrow import to_arrow
    from gpu_encode.serve.export.hashed import hash_values
    from gpu_encode.serve.export.json_text import to_json
    from gpu_encode.serve.export.onnx import to_onnx
    from gpu_encode.serve.export.onnx_pipelines import register_onnx_converters
    from gpu_encode.serve.export.polars_expressions import to_polars
    from gpu_encode.serve.export.sql import to_sql, to_sql_tables
    from gpu_encode.serve.export.table_encoder import from_arrow

_HOME = {
    "from_arrow": "table_encoder",
    "hash_values": "hashed",
    "register_onnx_converters": "onnx_pipelines",
    "to_arrow": "arrow",
    "to_json": "json_text",
    "to_onnx": "onnx",
    "to_polars": "polars_expressions",
    "to_sql": "sql",
    "to_sql_tables": "sql",
}

__all__ = [
    "from_arrow",
    "hash_values",
    "register_onnx_converters",
    "to_arrow",
    "to_json",
    "to_onnx",
    "to_polars",
    "to_sql",
    "to_sql_tables",
]


def __getattr__(name: str) -> Any:
    """Load an export on first use, since each needs a library of its own."""
    if name in _HOME:
        return getattr(import_module(f"gpu_encode.serve.export.{_HOME[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__]
