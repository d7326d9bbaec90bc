"""Memory of a process, as Linux counts it, and how fast the machine copies."""

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
    """Resident bytes now, or the most there were (VmHWM); nobody knows but on Linux."""
    if not STATUS.exists():
        return None
    values = [line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:")]
    return int(values[0]) * KIBIBYTE if values else None


def release() -> None:
    """Give back what earlier calls left in heaps: a call that takes it again must be charged with it."""
    gc.collect()
    if "cpu_fallback.memory_pool" in sys.modules:
        sys.modules["cpu_fallback.memory_pool"].pool.free.clear()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        # Only glibc has it.
        return


def forget_peak() -> int | None:
    """Resident bytes from which the peak counts again."""
    release()
    try:
        CLEAR.write_text("5")
    except OSError:
        return None
    return resident()


def peak_over(before: int | None, least: int = 0) -> int | None:
    """Most bytes since then, over those then; not measurable where that is less than what was certainly taken."""
    peak = resident("VmHWM")
    if before is None or peak is None or peak - before < least:
        return None
    return peak - before


def copy_rate(threads: int, size: int = COPIED) -> float:
    """Bytes that a copy in memory reads and writes a second, by so many threads."""
    given, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    parts = [slice(size * number // threads, size * (number + 1) // threads) for number in range(threads)]
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            begun = time.perf_counter()
            list(pool.map(lambda part: np.copyto(target[part], given[part]), parts))
            times.append(time.perf_counter() - begun)
    return 2 * size / median(times)
