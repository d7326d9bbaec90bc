"""How time grows with rows, categories, folds, columns and threads, each varied by itself from one point."""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from math import log
from statistics import median
from typing import Any

import numpy as np

from benchmarks.cpu.memory import forget_peak, peak_over
from benchmarks.gpu.machine import ROOT

Row = dict[str, Any]
LIMIT = 1800.0
REPEATS, SLOW = 5, 2.0
# Rows above this come in pieces of so many, and none of them stays.
STREAMED_ABOVE, PIECE = 20_000_000, 4_000_000
# Enough for compiled kernels, which are loaded before anything is measured.
WARM_ROWS, WARM_ROWS_OF_TRIAL = 300_000, 1_000
WORKS = ("mean", "folds", "folds-real", "ordered")
AXES: dict[str, tuple[int, ...]] = {
    "rows": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 100_000_000),
    "categories": (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "folds": (2, 4, 8, 16, 32, 64),
    "columns": (1, 2, 4, 8, 16, 32),
    "threads": (1, 2),
}
QUICK_AXES: dict[str, tuple[int, ...]] = {
    "rows": (1_000, 2_000),
    "categories": (10, 100),
    "folds": (2, 4),
    "columns": (1, 2),
    "threads": (2,),
}


@dataclass(frozen=True)
class Point:
    """What is measured at once.

    Parameters
    ----------
    work : str
    rows, categories, folds, columns : int
    threads : int
        0: as many as the library takes.
    """

    work: str
    rows: int = 1_000_000
    categories: int = 100_000
    folds: int = 5
    columns: int = 1
    threads: int = 0


def slope(points: list[tuple[float, float]]) -> float:
    """Exponent of the power law that is nearest to points, by least squares of logarithms."""
    x, y = [log(value) for value, _ in points], [log(seconds) for _, seconds in points]
    center, height = sum(x) / len(x), sum(y) / len(y)
    across = sum((each - center) ** 2 for each in x)
    return sum((a - center) * (b - height) for a, b in zip(x, y, strict=True)) / across


def points(quick: bool, most_rows: int) -> Iterator[tuple[str, Point]]:
    """Every point of every axis; what has folds only is varied by folds."""
    for axis, values in (QUICK_AXES if quick else AXES).items():
        for work in WORKS:
            base = Point(work, rows=2_000, categories=100) if quick else Point(work)
            if (axis == "folds" and not work.startswith("folds")) or (quick and axis == "threads" and work != "mean"):
                continue
            for value in values:
                point = replace(base, **{axis: value})
                streamed = point.rows > STREAMED_ABOVE
                if point.rows <= most_rows and not (streamed and work != "mean"):
                    yield axis, point


def piece(point: Point, number: int, size: int) -> tuple[Any, Any]:
    """Rows of a table, in arithmetic that needs no memory of its own: nearly 1/k shares of the categories."""
    random = np.random.default_rng([30, number, point.categories])
    shape = (size, point.columns)
    ranks = np.power(float(point.categories), random.random(shape)).astype(np.int64) - 1
    X = np.asfortranarray(ranks * 2_654_435_761 % point.categories)
    y = random.standard_normal(size) if point.work.endswith("real") else (random.random(size) < 0.3).astype(np.int64)
    return X, y


def encoder(point: Point) -> Any:
    """Encoder of a point."""
    from gpu_encode import Ordered, TargetEncoder

    cv: Any = Ordered(shuffle=False) if point.work == "ordered" else point.folds
    kind = "continuous" if point.work.endswith("real") else "binary"
    return TargetEncoder(cv=cv, smooth=10.0, target_type=kind, device="cpu")


def warming(point: Point) -> tuple[Any, Any]:
    """Rows of a first call."""
    return piece(point, 0, WARM_ROWS if point.rows > WARM_ROWS_OF_TRIAL * 10 else WARM_ROWS_OF_TRIAL)


def in_memory(point: Point) -> tuple[list[float], int | None, int]:
    """Seconds of several calls, the peak memory of the first, and how many categories a column has."""
    X, y = piece(point, 0, point.rows)

    def call(X: Any = X, y: Any = y) -> Any:
        made = encoder(point)
        return made.fit(X, y).transform(X) if point.work == "mean" else made.fit_transform(X, y)

    call(*warming(point))
    before = forget_peak()
    first = timed(call)
    peak = peak_over(before)
    n = REPEATS if first < SLOW else 2
    return [timed(call) for _ in range(n)], peak, int(np.count_nonzero(np.bincount(X[:, 0])))


def timed(call: Callable[[], Any]) -> float:
    """Seconds of a call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def streamed(point: Point) -> tuple[list[float], int | None, int]:
    """Seconds of fit and transform piece by piece; drawing the rows is not counted."""
    made, seconds = encoder(point), 0.0
    sizes = [min(PIECE, point.rows - start) for start in range(0, point.rows, PIECE)]
    X, y = warming(point)
    encoder(point).partial_fit(X, y).transform(X)
    seen = np.zeros(point.categories, dtype=np.bool_)
    before = forget_peak()
    for number, size in enumerate(sizes):
        X, y = piece(point, number, size)
        seen[X[:, 0]] = True
        seconds += timed(lambda X=X, y=y: made.partial_fit(X, y))
    for number, size in enumerate(sizes):
        X, _ = piece(point, number, size)
        seconds += timed(lambda X=X: made.transform(X))
    return [seconds], peak_over(before), int(np.count_nonzero(seen))


def measured(point: Point) -> Row:
    """What is found at a point."""
    with warnings.catch_warnings():
        # The first row of an order as the rows stand sees nothing, which ours warns of.
        warnings.simplefilter("ignore")
        times, peak, distinct = streamed(point) if point.rows > STREAMED_ABOVE else in_memory(point)
    seconds = median(times)
    found: Row = {
        "distinct categories": distinct,
        "ms": seconds * 1e3,
        "M rows/s": point.rows / seconds / 1e6,
        "times": times,
    }
    found["peak, MiB"] = None if peak is None else round(peak / 2**20)
    return found | ({"how": f"pieces of {PIECE:,} rows"} if point.rows > STREAMED_ABOVE else {})


def asked(point: Point) -> Row:
    """Measure a point in a new process, whose threads are chosen."""
    threads = {"GPU_ENCODE_THREADS": str(point.threads)} if point.threads else {}
    command = [sys.executable, "-m", "benchmarks.cpu.scaling", json.dumps(asdict(point))]
    environment = {**os.environ, **threads}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"how": f"not run: no answer in {LIMIT:.0f} s"}
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return {"wrong": f"scaling, {point}: {said}"}
    found: Row = json.loads(done.stdout)
    return found


def run(results: Any, quick: bool, most_rows: int) -> None:
    """Measure all points that are not known yet."""
    known = results.document["scaling"]
    known[:] = [row for row in known if not row.get("wrong")]
    for axis, point in points(quick, most_rows):
        head = {"axis": axis, "work": point.work, "value": getattr(point, axis)}
        if any(all(row[key] == value for key, value in head.items()) for row in known):
            continue
        print(f"scaling: {point.work} by {axis} {head['value']:,}", flush=True)
        # A process for each point takes longer than a trial should.
        known.append(head | (measured(point) if quick and axis != "threads" else asked(point)))
        results.save()


if __name__ == "__main__":
    print(json.dumps(measured(Point(**json.loads(sys.argv[1])))))
