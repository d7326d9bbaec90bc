"""What does a grid of smoothings cost beside one fit_transform?  `tune` sums the rows once, whatever the grid.

    python benchmarks/tuning.py [--rows 1_000_000] [--repeats 5]

Random integer keys, 5 folds; the least of several calls in a warm process.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from gpu_encode import KFold, MEstimate, TargetEncoder, tune
from gpu_encode.tuning.candidates import default_smoothings

CATEGORIES = (100, 1_000, 10_000, 100_000)


def least(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of the quickest of several calls."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def grid(number: int) -> list[MEstimate]:
    """So many m-estimates, evenly on a logarithmic scale."""
    return [MEstimate(float(m)) for m in np.geomspace(0.1, 1e4, number)]


def line(kind: str, n_categories: int, n_rows: int, repeats: int) -> str:
    """Measure one key and target."""
    rng = np.random.default_rng(n_categories)
    X = rng.integers(0, n_categories, (n_rows, 1))
    effect = rng.normal(size=n_categories)[X[:, 0]]
    y = effect + rng.normal(size=n_rows)
    target = (y > 1).astype(np.int64) if kind == "binary" else y
    encoder = TargetEncoder(cv=KFold(5), smooth=10.0, target_type=kind, device="cpu")
    fit = least(lambda: encoder.fit_transform(X, target), repeats)
    calls = [grid(1), grid(50), default_smoothings()]
    found = [least(lambda each=each: tune(encoder, X, target, smoothings=each), repeats) for each in calls]  # type: ignore[misc]
    cells = " | ".join(f"{seconds * 1e3:.0f} ms ({seconds / fit:.1f})" for seconds in found)
    return f"| {kind} | {n_categories:,} | {fit * 1e3:.0f} ms | {cells} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    print(f"{given.rows:,} rows; {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}\n")
    print("| target | categories | one fit_transform | tune, 1 value | 50 values | the usual 60 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in ("binary", "continuous"):
        for n_categories in CATEGORIES:
            print(line(kind, n_categories, given.rows, given.repeats))


if __name__ == "__main__":
    main()
