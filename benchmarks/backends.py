"""From how many rows on is the compiled backend faster than NumPy, cold and loaded?  Constants of gpu_encode/ops.py.

    python benchmarks/backends.py [--rows 1000 10000 ...] [--write benchmarks/results/backends.json]

Every figure is the median of several runs of `fit_transform` in this process; "cold" is the first run of a new process
whose kernels are cached on disk, imports included.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from gpu_encode import TargetEncoder
from gpu_encode.ops import use_backend

COLD = """
import time, numpy as np
from gpu_encode import TargetEncoder
from gpu_encode.ops import use_backend
rng = np.random.default_rng(0)
X, y = rng.integers(0, 1000, ({rows}, 1)), rng.normal(size={rows})
start = time.perf_counter()
with use_backend("{backend}"):
    TargetEncoder().fit_transform(X, y)
print(time.perf_counter() - start)
"""


def loaded(backend: str, rows: int, repeats: int) -> float:
    """Median seconds of a call on a backend that has run before."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 1000, (rows, 1)), rng.normal(size=rows)
    seconds = []
    with use_backend(backend):
        TargetEncoder().fit_transform(X, y)
        for _ in range(repeats):
            start = time.perf_counter()
            TargetEncoder().fit_transform(X, y)
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def cold(backend: str, rows: int, repeats: int) -> float:
    """Median seconds of the first call of a new process."""
    command = [sys.executable, "-c", COLD.format(rows=rows, backend=backend)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(repeats)]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    """Measure, print a table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    lines = []
    print("      rows | loaded, ms: NumPy  compiled | cold, ms: NumPy  compiled")
    for rows in options.rows:
        line = {"rows": rows}
        for backend in ("numpy", "compiled"):
            line[f"loaded_{backend}_ms"] = round(loaded(backend, rows, options.repeats) * 1e3, 2)
            line[f"cold_{backend}_ms"] = round(cold(backend, rows, min(options.repeats, 3)) * 1e3, 1)
        lines.append(line)
        print(
            f"{rows:10,} | {line['loaded_numpy_ms']:16.2f} {line['loaded_compiled_ms']:9.2f}"
            f" | {line['cold_numpy_ms']:14.1f} {line['cold_compiled_ms']:9.1f}"
        )
    if options.write is not None:
        packages = {name: version(name) for name in ("numpy", "numba", "pyarrow", "scikit-learn")}
        machine = {"python": platform.python_version(), "machine": platform.machine(), "packages": packages}
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(json.dumps({"machine": machine, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
