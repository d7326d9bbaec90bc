"""A fitted encoder as statements of SQL."""

try:
    import sqlglot  # noqa: F401 - what is missing is said here
except ImportError as error:
    raise ImportError("to_sql writes SQL with sqlglot: pip install '.[sql]' in a checkout.") from error

from gpu_encode.serve.export.sql.statements import to_sql, to_sql_tables

__all__ = ["to_sql", "to_sql_tables"]
