"""Memory of a process, as Linux counts it, and the speed of copies on the machine."""

import ctypes
import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
KIBIBYTE = 1024
COPIED = 1 << 28


def resident(field: str = "VmRSS") -> int | None:
    """Give the resident bytes now, or the most so far (VmHWM); None on systems other than Linux."""
    if not STATUS.exists():
        return None
    values = [line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:")]
    return int(values[0]) * KIBIBYTE if values else None


def release() -> None:
    """Return memory that earlier calls left in heaps to the system, so that the next call is charged for its memory."""
    gc.collect()
    if "cpu_fallback.memory_pool" in sys.modules:
        sys.modules["cpu_fallback.memory_pool"].pool.free.clear()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        # Only glibc has this function.
        return


def forget_peak() -> int | None:
    """Reset the peak, and give the resident bytes from which it counts again."""
    release()
    try:
        CLEAR.write_text("5")
    except OSError:
        return None
    return resident()


def peak_over(before: int | None, least: int = 0) -> int | None:
    """Give the peak minus the bytes before the call; None if this is less than the call certainly took."""
    peak = resident("VmHWM")
    if before is None or peak is None or peak - before < least:
        return None
    return peak - before


def copy_rate(threads: int, size: int = COPIED) -> float:
    """Measure the bytes a second that a copy in memory reads and writes, with this number of threads."""
    given, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    parts = [slice(size * number // threads, size * (number + 1) // threads) for number in range(threads)]
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            begun = time.perf_counter()
            list(pool.map(lambda part: np.copyto(target[part], given[part]), parts))
            times.append(time.perf_counter() - begun)
    return 2 * size / median(times)
