"""Exports are tested if the library that reads them is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("sqlglot") and find_spec("duckdb") else ["test_sql.py", "test_real_tables.py"]
