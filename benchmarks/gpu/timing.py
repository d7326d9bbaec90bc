"""Time and memory of work on a GPU."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from gpu_encode.cuda import memory
from gpu_encode.cuda.runtime import SIMULATED, xp

REPEATS = 5
Call = Callable[[], Any]


def wait() -> None:
    """Wait for the device."""
    if not SIMULATED:
        xp.cuda.get_current_stream().synchronize()


def seconds_of(call: Call) -> float:
    """Measure the seconds of a call on the device, between two events on the current stream."""
    if SIMULATED:
        return host_seconds_of(call)
    begun, ended = xp.cuda.Event(), xp.cuda.Event()
    begun.record()
    call()
    ended.record()
    ended.synchronize()
    return float(xp.cuda.get_elapsed_time(begun, ended)) * 1e-3


def host_seconds_of(call: Call) -> float:
    """Measure the seconds until the device has finished a call, by the host's clock."""
    wait()
    begun = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - begun


def measure(call: Call, by: Callable[[Call], float] = seconds_of, repeats: int = REPEATS) -> float:
    """Measure the median seconds of several calls, after one that compiles and warms up; one call in the simulator."""
    if SIMULATED:
        return by(call)
    call()
    return median(by(call) for _ in range(repeats))


def free_memory() -> int:
    """Give the free bytes, including the bytes that CuPy keeps for later; without limit in the simulator."""
    if SIMULATED:
        return 1 << 62
    xp.get_default_memory_pool().free_all_blocks()
    return memory.free_bytes()[0]


def peak_of(call: Call) -> int | None:
    """Measure the peak of CuPy's bytes in a call, minus the bytes before it; None in the simulator."""
    if SIMULATED:
        call()
        return None
    used = peak = 0

    class Counting(xp.cuda.MemoryHook):  # type: ignore[misc]
        name = "bytes in use"

        def malloc_postprocess(self, **taken: int) -> None:
            nonlocal used, peak
            used += taken["mem_size"] if taken["mem_ptr"] else 0
            peak = max(peak, used)

        def free_postprocess(self, **given: int) -> None:
            nonlocal used
            used -= given["mem_size"]

    free_memory()
    with Counting():
        call()
        wait()
    return peak
