"""Small data, imports and first calls: what a user waits for who has little of it."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.base import splitting
from benchmarks.gpu.machine import ROOT

Row = dict[str, Any]
ROWS, CATEGORIES = 1_000, 50
# What a process of its own does: its own seconds are printed.
STARTS = {
    "python": "pass",
    "import gpu_encode": "import gpu_encode",
    "from gpu_encode import TargetEncoder": "from gpu_encode import TargetEncoder",
    "from sklearn.preprocessing import TargetEncoder": "from sklearn.preprocessing import TargetEncoder",
}
# Kinds of rows whose first call is timed: keys, and target.
FIRST = (("int", "binary"), ("text", "binary"), ("int", "real"))
FIRST_CALL = """
import time
import numpy as np
from gpu_encode import TargetEncoder
random = np.random.default_rng(1)
codes = random.integers(1_000, size=({rows}, 1))
if {text}:
    import pyarrow as pa
    words = np.array(["cat_%07d" % number for number in range(1_000)], dtype=object)
    X = pa.table({{"key": pa.array(words[codes[:, 0]], pa.utf8())}})
else:
    X = codes
y = random.standard_normal({rows}) if {real} else random.integers(2, size={rows})
options = {{"smooth": 10.0, "target_type": "continuous" if {real} else "binary", "device": "cpu"}}
begun = time.perf_counter()
TargetEncoder(**options).fit_transform(X, y)
first = time.perf_counter() - begun
begun = time.perf_counter()
TargetEncoder(**options).fit_transform(X, y)
print(first, time.perf_counter() - begun)
"""
IMPORT = "import time\nbegun = time.perf_counter()\n{line}\nprint(time.perf_counter() - begun)"


def table_of(kind: str, columns: int) -> Any:
    """A table of a thousand rows."""
    codes = np.random.default_rng(4).integers(CATEGORIES, size=(ROWS, columns))
    if kind == "int":
        return codes
    return np.array([f"cat_{number:07d}" for number in range(CATEGORIES)], dtype=object)[codes]


def labels() -> Any:
    """Targets of those rows."""
    return (np.random.default_rng(5).random(ROWS) < 0.3).astype(np.int64)


def encoders() -> dict[str, Callable[[], Any]]:
    """Ours and scikit-learn's."""
    from sklearn.preprocessing import TargetEncoder as Theirs

    from gpu_encode import TargetEncoder

    options = {"smooth": 10.0, "target_type": "binary"}
    return {
        "ours": lambda: TargetEncoder(device="cpu", **options),
        "scikit-learn": lambda: Theirs(**splitting("binary"), **options),
    }


def latency(repeats: int) -> list[Row]:
    """Milliseconds of fit_transform of 1,000 rows and of transform of one, in turns."""
    y, made, found = labels(), encoders(), []
    for kind in ("int", "text"):
        for columns in (1, 5):
            X = table_of(kind, columns)
            fitted = {name: make().fit(X, y) for name, make in made.items()}
            calls: dict[str, dict[str, Callable[[], Any]]] = {
                "fit_transform, 1,000 rows": {
                    name: (lambda make=make, X=X: make().fit_transform(X, y)) for name, make in made.items()
                },
                "transform, 1 row": {
                    name: (lambda each=each, X=X: each.transform(X[:1])) for name, each in fitted.items()
                },
            }
            for what, both in calls.items():
                times = in_turns(both, repeats)
                row = {"what": what, "keys": kind, "columns": columns}
                row |= {f"{name}, ms": seconds * 1e3 for name, seconds in times.items()}
                found.append(row | {"x scikit-learn": times["scikit-learn"] / times["ours"]})
    return found


def in_turns(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of calls that take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begun)
    return {name: median(found) for name, found in times.items()}


def spoken(script: str, **environment: str) -> list[float]:
    """Seconds that a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def imports(repeats: int) -> list[Row]:
    """Seconds of imports in new processes, whose files the machine has read before."""
    found: list[Row] = []
    for name, line in STARTS.items():
        times, whole = [], []
        for _ in range(repeats + 1):
            begun = time.perf_counter()
            times += spoken(IMPORT.format(line=line))
            whole.append(time.perf_counter() - begun)
        found.append({"what": name, "ms": median(times[1:]) * 1e3, "whole process, ms": median(whole[1:]) * 1e3})
    ours, theirs = found[-2:]
    ours["x scikit-learn"] = theirs["ms"] / ours["ms"]
    return found


def first_calls(rows: tuple[int, ...]) -> list[Row]:
    """Seconds of the first fit_transform of a process, without and with compiled kernels on disk."""
    found = []
    for n_rows, (keys, target) in product(rows, FIRST):
        script = FIRST_CALL.format(rows=n_rows, text=keys == "text", real=target == "real")
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("empty", "filled"):
                first, second = spoken(script, NUMBA_CACHE_DIR=folder)
                row: Row = {"keys": keys, "target": target, "rows": n_rows, "cache": cache}
                found.append(row | {"first call, ms": first * 1e3, "second, ms": second * 1e3})
    return found


def measured(quick: bool) -> dict[str, list[Row]]:
    """Give all tables."""
    repeats = 1 if quick else 200
    return {
        "Small data": latency(repeats),
        "Imports": imports(1 if quick else 7),
        "First call of a process": first_calls((1_000,) if quick else (10_000, 1_000_000)),
    }


if __name__ == "__main__":
    print(json.dumps(measured("--quick" in sys.argv)))
