"""Peak of device memory over input and output, per row."""

import warnings
from typing import Any

import numpy as np

from benchmarks.gpu.drawn import Columns, codes
from benchmarks.gpu.run import Run
from benchmarks.gpu.timing import peak_of
from cpu_fallback.types import Array
from gpu_encode import LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.ops import use_backend

N_ROWS = 1 << 27
N_CATEGORIES = 4096
# Bytes a row over input and output, and a little for tables.
GOAL = 8
TABLES = 0.1
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "5 folds, 0/1": ("binary", {"cv": 5}),
    "5 folds, real, auto": ("real", {"cv": 5}),
    "5 folds, 10 classes": ("ten", {"cv": 5}),
    "leave one out, 0/1": ("binary", {"cv": LeaveOneOut()}),
    "leave one out, real, auto": ("real", {"cv": LeaveOneOut()}),
    "ordered, 0/1": ("binary", {"cv": Ordered()}),
    "ordered, real, auto": ("real", {"cv": Ordered()}),
}
KINDS = {"binary": "binary", "real": "continuous", "ten": "multiclass"}


def run(step: Run) -> None:
    """Watch CuPy's pool during a fit_transform of one column that is there already."""
    n_rows = step.size(N_ROWS, 16)
    X = codes(n_rows, step.size(N_CATEGORIES, 5), "uniform").reshape(-1, 1)
    for name, (target, options) in CASES.items():
        with step.attempt(name):
            watch(step, name, X, target, TargetEncoder(target_type=KINDS[target], dtype="float32", **options))


def watch(step: Run, name: str, X: Array, target: str, encoder: TargetEncoder) -> None:
    """Write down the peak of one encoder, once its kernels are loaded."""
    n_rows, y = len(X), getattr(Columns(len(X)), target)

    def call() -> None:
        with use_backend(step.backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoder.fit_transform(X, y)

    if not step.simulated:
        call()
    peak = peak_of(call)
    if peak is None:
        step.row("memory", what=name, rows=n_rows, ran=True)
        return
    output = n_rows * np.dtype(np.float32).itemsize * (10 if target == "ten" else 1)
    over = (peak - output) / n_rows
    # What does not grow with the rows is not the rows'.
    kept = over <= GOAL + TABLES
    found = {"bytes a row over input and output": over, "at most": GOAL, "kept": kept}
    step.row("memory", what=name, rows=n_rows, **found)
    if not kept:
        step.note(f"{name}: {over:.1f} bytes a row over input and output, where {GOAL} were the goal")
