"""A fitted encoder leaves: as SQL, ONNX, tables of Arrow, expressions of polars; the same bits, or an error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_encode.export.sql import to_sql, to_sql_tables

_HOME = {**dict.fromkeys(("to_sql", "to_sql_tables"), "sql")}

__all__ = ["to_sql", "to_sql_tables"]


def __getattr__(name: str) -> Any:
    """Load an export on first use: each needs a library of its own."""
    if name in _HOME:
        return getattr(import_module(f"gpu_encode.export.{_HOME[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__]
