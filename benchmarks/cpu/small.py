"""Small data, imports and first calls: the waiting times of a user with few rows."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.libraries import sklearn_encoder, sklearn_folds
from benchmarks.cpu.contenders.ours import matrix, own_folds
from benchmarks.cpu.goals import MISSED
from benchmarks.cpu.grid import SMOOTH, open_cell
from benchmarks.cpu.judge import Rule
from benchmarks.harness.grid import Cell, Contender, Grid, Prepared, Seconds
from benchmarks.harness.judge import Answer, Unjudged
from benchmarks.harness.machine import ROOT
from benchmarks.harness.rows import N_CLASSES, Array, Rows

IMPORT = "import time\nbegun = time.perf_counter()\n{line}\nprint(time.perf_counter() - begun)"
LONGEST_IMPORT = 0.5
ALONE = "gpu_encode alone"
# Earlier calls of the process: only calls like the timed ones, or also a call with this number of rows.
AFTER_LARGE, LARGE = "after a large call", 300_000
# Contender -> its family, and the code that a new process runs.
IMPORTED = {
    "ours": ("ours", "from gpu_encode import TargetEncoder"),
    "sklearn": ("scikit-learn", "from sklearn.preprocessing import TargetEncoder"),
    ALONE: ("ours without an encoder", "import gpu_encode"),
}


def our_encoder(kind: str) -> Any:
    """Make our encoder for small data."""
    from gpu_encode import TargetEncoder

    return TargetEncoder(smooth=SMOOTH, target_type=kind, device="cpu")


def prepare(rows: Rows, make: Callable[[str], Any], folds_of: Callable[[Rows], Array]) -> Prepared:
    """Prepare `fit`, `fit_transform` or `transform` of all rows or of one, with one key in several equal columns."""
    if rows.cell.get("process") == AFTER_LARGE and make is our_encoder:
        make_large_call()
    columns, training = rows.cell.get("columns", 1), rows.work == "fit_transform"
    X, y = np.repeat(rows.matrix, columns, axis=1), rows.target
    if rows.work == "fit":
        return Prepared(lambda: make(rows.kind).fit(X, y), Unjudged())
    n_rows = 1 if rows.work == "transform one row" else rows.n_rows
    expected = expect(rows, folds_of(rows) if training else None, n_rows, columns)
    if training:
        return Prepared(lambda: matrix(make(rows.kind).fit_transform(X, y)), expected)
    encoder = make(rows.kind).fit(X, y)
    return Prepared(lambda: matrix(encoder.transform(X[:n_rows])), expected)


def expect(rows: Rows, folds: Array | None, n_rows: int, columns: int) -> Answer:
    """Give the encodings of the first rows, of each class, by the independent definition."""
    rule, y = Rule("by_fold", folds=folds, visible_prior=True), rows.target
    targets = [y == label for label in range(N_CLASSES)] if rows.kind == "multiclass" else [y]
    encoded = [rule.encode(rows.codes, target)[:n_rows] for target in targets]
    return Answer(lambda: iter(encoded * columns), len(encoded) * columns)


def make_large_call() -> None:
    """Encode so many rows that the process loads everything that it ever loads."""
    random = np.random.default_rng(0)
    X, y = random.integers(0, 1000, (LARGE, 1)), random.normal(size=LARGE)
    for keys in (X, X.astype(str).astype(object)):
        our_encoder("continuous").fit_transform(keys, y)


def time_import(line: str) -> Seconds:
    """Give the seconds that a new process prints."""
    command = [sys.executable, "-c", IMPORT.format(line=line)]
    return Seconds(subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout)


def cache_of(cell: Cell, folder: Path) -> dict[str, str]:
    """Give the folder of compiled kernels: an empty one, or the folder that `gpu-encode warm-up` has filled."""
    return {"NUMBA_CACHE_DIR": tempfile.mkdtemp(dir=folder)} if cell["cache"] == "empty" else {}


def mark(_: Cell, family: str, ratio: float) -> str:
    """Give the mark after a ratio: ours should be no slower than scikit-learn."""
    return MISSED if family == "scikit-learn" and ratio < 1 else ""


def mark_size(cell: Cell, family: str, ratio: float) -> str:
    """Give the mark after a ratio of the sizes: training encodings of many rows should be far faster."""
    least = {10_000: 2.0, 100_000: 5.0, 280_000: 5.0}.get(cell["rows"], 1.0) if cell["work"] == "fit_transform" else 1.0
    return MISSED if family == "scikit-learn" and ratio < least else ""


def tell_import(cells: list[Cell]) -> list[str]:
    """Say whether `import gpu_encode` takes too long."""
    seconds = cells[0]["contenders"].get(ALONE, {}).get("seconds", 0.0)
    return [f"`import gpu_encode` takes {seconds:.2f} s{MISSED}."] if seconds > LONGEST_IMPORT else []


CONTENDERS = (
    Contender("ours", "ours", partial(prepare, make=our_encoder, folds_of=lambda rows: own_folds(rows.n_rows))),
    Contender("sklearn", "scikit-learn", partial(prepare, make=sklearn_encoder, folds_of=sklearn_folds)),
)
SMALL = Grid(
    "small",
    {
        "rows": (1_000,),
        "categories": (50,),
        "keys": ("int", "text"),
        "work": ("fit_transform", "transform one row"),
        "columns": (1, 5),
    },
    CONTENDERS,
    open=open_cell,
    most_turns=100,
    mark=mark,
)
SIZES = Grid(
    "sizes",
    {
        "rows": (1_000, 10_000, 100_000, 280_000),
        "categories": (50,),
        "keys": ("int", "text"),
        "target": ("binary", "continuous", "multiclass"),
        "work": ("fit", "fit_transform", "transform"),
        "process": ("new", AFTER_LARGE),
    },
    CONTENDERS,
    {"rows": (1_000,), "target": ("multiclass",), "process": ("new",)},
    open=open_cell,
    # Each cell has processes of its own, so that modules that one cell loads are not loaded for the next.
    environment=lambda _cell, _folder: {},
    most_turns=25,
    mark=mark_size,
)
IMPORTS = Grid(
    "imports",
    {"work": ("import",)},
    [
        Contender(name, family, lambda _, line=line: Prepared(partial(time_import, line), Unjudged()))
        for name, (family, line) in IMPORTED.items()
    ],
    draw=lambda root, _: root,
    open=lambda *_: None,
    isolated=False,
    remark=tell_import,
)
FIRST_CALLS = Grid(
    "first-calls",
    {
        "rows": (10_000, 1_000_000),
        "categories": (1_000,),
        "keys": ("int", "text"),
        "target": ("binary", "continuous"),
        "work": ("fit_transform",),
        "cache": ("empty", "filled"),
    },
    CONTENDERS,
    {"rows": (1_000,), "target": ("binary",), "cache": ("filled",)},
    open=open_cell,
    fresh=True,
    environment=cache_of,
    most_turns=5,
)
