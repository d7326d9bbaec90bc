"""The grid of measurements: kinds of work, kinds of keys, and sizes."""

from pathlib import Path
from typing import Any

from benchmarks.harness.grid import Cell
from benchmarks.harness.rows import Rows, open_rows

SMOOTH = 10.0
# Smoothed means, by fit and transform and by five folds; ten classes by five folds; and numbering of values.
WORKS = ("mean", "mean-real", "folds", "folds-real", "ordered", "leave-one-out", "count", "classes", "codes")
KEYS = ("int", "text")
MEANS = ("mean", "mean-real")
REAL_WORKS = ("mean-real", "folds-real")
FOLD_WORKS = ("folds", "folds-real", "classes")
AXES: dict[str, tuple[Any, ...]] = {
    "rows": (1_000_000, 10_000_000),
    # The rows of one size serve all kinds of work, one after the other, so that few rows are in memory at a time.
    "categories": (100, 100_000, 1_000_000),
    "keys": KEYS,
    "work": WORKS,
}
QUICK = {"rows": (3_000,), "categories": (40,)}


def span_of(rows: int) -> int:
    """Give the half-life, or the window, in rows."""
    return rows // 200


def open_cell(folder: Path, cell: Cell, first: int | None = None) -> Rows:
    """Open the rows of a cell, with the target for its work."""
    real = "continuous" if cell["work"] in REAL_WORKS else "binary"
    kind = "multiclass" if cell["work"] == "classes" else real
    return open_rows(folder, {"target": kind, **cell}, first)
