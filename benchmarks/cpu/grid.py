"""What is measured: kinds of work, of keys, and sizes."""

from pathlib import Path
from typing import Any

from benchmarks.harness.grid import Cell, Choice
from benchmarks.harness.rows import Rows, open_rows

SMOOTH = 10.0
# Work -> what it is, in a title.
WORKS = {
    "mean": "smoothed mean, fit and transform, 0/1 target",
    "mean-real": "smoothed mean, fit and transform, real target",
    "folds": "5-fold cross-fitted fit_transform, 0/1 target",
    "folds-real": "5-fold cross-fitted fit_transform, real target",
    "ordered": "ordered target statistics, 0/1 target",
    "leave-one-out": "leave-one-out, 0/1 target",
    "count": "count encoding",
    "classes": "10 classes, 5 folds, 10 columns out",
    "codes": "values into integer codes",
}
KEYS = {
    "int": "int64, small range",
    "sparse": "int64, hashed to 64 bits",
    "text": "text of 11 bytes",
    "category": "dictionary",
}
MEANS = ("mean", "mean-real")
REAL_WORKS = ("mean-real", "folds-real")
FOLD_WORKS = ("folds", "folds-real", "classes")
AXES: dict[str, tuple[Any, ...]] = {
    "rows": (1_000_000, 10_000_000),
    # One work after the other on the same rows: few of them are in memory at a time.
    "categories": (100, 100_000, 1_000_000),
    "keys": tuple(KEYS),
    "work": tuple(WORKS),
}
QUICK = {"rows": (3_000,), "categories": (40,)}
# Keys that only some works have, at one number of categories, unless they are asked for.
FEW_KEYS = ("sparse", "category")
WORKS_OF_FEW_KEYS = ("mean", "folds", "codes")
MIDDLE_CATEGORIES = (100_000, 40)


def keep(cell: Cell, chosen: Choice) -> bool:
    """Tell whether a cell is in the grid."""
    if "keys" in chosen or cell["keys"] not in FEW_KEYS:
        return True
    return cell["work"] in WORKS_OF_FEW_KEYS and cell["categories"] in MIDDLE_CATEGORIES


def open_cell(folder: Path, cell: Cell, first: int | None = None) -> Rows:
    """Open the rows of a cell with the target of its work."""
    real = "continuous" if cell["work"] in REAL_WORKS else "binary"
    kind = "multiclass" if cell["work"] == "classes" else real
    return open_rows(folder, {"target": kind, **cell}, first)
