"""Assumptions of the CUDA backend that no simulator checks, what a launch costs, and a frame of 1,000 rows."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.drawn import Columns, codes
from benchmarks.gpu.encoders import CASES, call_of
from benchmarks.gpu.report import Run
from benchmarks.gpu.timing import host_seconds_of, measure, seconds_of, wait
from gpu_encode.cuda import casting, counting, memory, raw
from gpu_encode.cuda.runtime import kernel, launch, xp

# Cases of the step encoders, and the most milliseconds for 1,000 rows.
FEW_ROWS = ("folds-int", "loo-int", "ordered-int", "transform")
GOAL_OF_FEW_ROWS = 2.0
BINARY = ("add", "subtract", "multiply", "divide", "fmod")
OF_POSITIVE = ("sqrt", "floor", "rint")


def same(result: Any, expected: Any, what: str = "") -> None:
    """Fail unless two arrays have the same bits."""
    ours, theirs = memory.to_host(xp.asarray(result)), np.asarray(expected)
    assert ours.dtype == theirs.dtype, f"{what} {ours.dtype}, not {theirs.dtype}"
    assert ours.tobytes() == theirs.tobytes(), f"{what}: other bits"


def imports() -> None:
    """Modules are imported without a warning."""
    modules = "cupy, numba, numba.cuda, gpu_encode.cuda, gpu_encode.cuda.raw"
    done = subprocess.run([sys.executable, "-W", "error", "-c", f"import {modules}"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-300:]


def shared_memory() -> str:
    """A block may have 232,448 bytes of shared memory."""
    return f"{raw.table_bytes():,} bytes"


def counts_of(n_categories: int, n_rows: int, how: Callable[[Any, Any], Any]) -> None:
    """Compare counts of `row % n_categories`."""
    cells, numbers = xp.zeros(n_categories, np.int64), np.arange(n_rows) % (n_categories - 2)
    how(xp.asarray(numbers.astype(np.int32)), cells)
    same(cells, np.bincount(numbers, minlength=n_categories))


def counts_in_cuda() -> None:
    """Kernels in CUDA C++ compile, and count with all shared memory."""
    n = raw.table_bytes() // 4
    counts_of(n, 10_000_001, lambda numbers, cells: counting.count(numbers, None, None, (n, 1, 1), cells))


def streams() -> None:
    """Kernels and CuPy run in turns on a stream of the caller."""
    numbers = np.arange(1 << 24, dtype=np.float64)
    with xp.cuda.Stream(non_blocking=True):
        result = float((casting.cast(xp.asarray(numbers), np.float32) + 1).sum(dtype=np.float64))
    assert result == float((numbers.astype(np.float32) + np.float32(1)).sum(dtype=np.float64))


def threads() -> None:
    """CuPy works in a new thread after numba's context was left."""
    result: list[float] = []

    def work() -> None:
        numbers = xp.arange(1000.0)
        casting.cast(numbers, np.float32)
        result.append(float(xp.sort(numbers + 1)[0]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert result == [1.0], result


def nan_extremes() -> None:
    """The smallest and the largest of floats are NaN if one of them is NaN."""
    numbers = xp.ones(1 << 22)
    numbers[12345] = np.nan
    assert bool(xp.isnan(numbers.min()))
    assert bool(xp.isnan(numbers.max()))


def nan_bits() -> str:
    """The bits of the NaN that arithmetic gives, on the device and on the host."""
    with np.errstate(all="ignore"):
        made = [(zero / zero, (zero + np.inf) - np.inf) for zero in (xp.zeros(1), np.zeros(1))]
    words = [[f"{int(memory.to_host(number).view(np.uint64)[0]):016x}" for number in both] for both in made]
    return f"0/0 {words[0][0]} here {words[1][0]}; inf-inf {words[0][1]} here {words[1][1]}"


def arithmetic() -> None:
    """CuPy's arithmetic of float64 has NumPy's bits."""
    random, n = np.random.default_rng(1), 1 << 20
    x, y = (random.normal(size=n) * 10.0 ** random.integers(-300, 300, n) for _ in range(2))
    exponents = random.integers(-1100, 1100, n).astype(np.int32)
    given = dict.fromkeys(BINARY, (x, y)) | {name: (np.abs(x),) for name in OF_POSITIVE}
    given |= {"ldexp": (np.frexp(x)[0], exponents)}
    with np.errstate(all="ignore"):
        for name, arrays in given.items():
            same(getattr(xp, name)(*map(xp.asarray, arrays)), getattr(np, name)(*arrays), name)
    for ours, theirs in zip(xp.frexp(xp.asarray(x)), np.frexp(x), strict=True):
        same(ours, theirs, "frexp")


def shifts() -> None:
    """Shifts by 64 give zero."""
    assert int((xp.ones(1, np.uint64) << xp.full(1, 64, np.uint64))[0]) == 0


def transfers() -> str:
    """The speed of pinned transfers of 100 MB, in both directions."""
    numbers = np.random.default_rng(0).integers(0, 2**62, 12_500_000)
    begun = time.perf_counter()
    there = memory.to_device(numbers)
    wait()
    arrived = time.perf_counter()
    back = memory.to_host(there)
    ended = time.perf_counter()
    same(back, numbers)
    rates = [numbers.nbytes / seconds / 1e9 for seconds in (arrived - begun, ended - arrived)]
    return f"to the device {rates[0]:.1f} GB/s, from it {rates[1]:.1f} GB/s"


def sorts() -> str:
    """CuPy's argsort of codes is stable."""
    numbers = codes(1 << 23, 10**6, "uniform")
    seconds = measure(lambda: xp.argsort(numbers, kind="stable"), seconds_of)
    same(xp.argsort(numbers, kind="stable"), np.argsort(memory.to_host(numbers), kind="stable"))
    return f"{len(numbers) / seconds / 1e9:.1f} G rows/s"


def launches() -> str:
    """The microseconds of the host for a launch."""

    @kernel
    def two(a: Any, b: Any) -> None:  # noqa: ARG001
        a[0] = 1

    @kernel
    def eight(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> None:  # noqa: ARG001
        a[0] = 1

    array = xp.zeros(8)
    parameters = ", ".join(f"double* {name}" for name in "abcdefgh")
    in_cuda = xp.RawKernel(f'extern "C" __global__ void set({parameters}) {{ a[0] = 1; }}', "set")

    def microseconds(call: Callable[[], Any], repeats: int = 300) -> float:
        call()
        return 1e6 / repeats * host_seconds_of(lambda: [call() for _ in range(repeats)])

    calls = {
        "numba, 2 arrays": lambda: launch(two, 1, 32, array, array),
        "numba, 8 arrays": lambda: launch(eight, 1, 32, *[array] * 8),
        "a ufunc of CuPy": lambda: array + 1,
        "CUDA C++, 8 arrays": lambda: in_cuda((1,), (32,), (array,) * 8),
    }
    return ", ".join(f"{name} {microseconds(call):.1f}" for name, call in calls.items())


ANYWHERE = (threads, nan_extremes, nan_bits, shifts)
ON_A_GPU = (imports, shared_memory, counts_in_cuda, streams, arithmetic, transfers, sorts, launches)


def few_rows(step: Run) -> None:
    """Time a frame of 1,000 rows by the host's clock."""
    n_rows = step.size(1000, 16)
    X, y = codes(n_rows, 50, "uniform").reshape(-1, 1), Columns(n_rows)["binary"]
    for name in FEW_ROWS:
        with step.attempt(name):
            ms = 1e3 * measure(call_of(step, CASES[name], X, y), host_seconds_of, 20)
            figures = {"ms": ms, "goal": GOAL_OF_FEW_ROWS, "reached": ms <= GOAL_OF_FEW_ROWS}
            step.row("1,000 rows", case=name, rows=n_rows, **({"ran": True} if step.simulated else figures))


def run(step: Run) -> None:
    """Check each assumption, and record the result."""
    for check in ANYWHERE if step.simulated else ANYWHERE + ON_A_GPU:
        name = str(check.__doc__).rstrip(".")
        with step.attempt(name):
            begun = time.perf_counter()
            said = check() or "holds"
            step.row("assumptions", what=name, said=said, seconds=round(time.perf_counter() - begun, 2))
    few_rows(step)
