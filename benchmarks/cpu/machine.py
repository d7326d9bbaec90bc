"""What a run says of the machine and of what is installed."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.cpu.memory import copy_rate
from benchmarks.gpu.machine import commit

PACKAGES = (
    "gpu-encode",
    "numpy",
    "numba",
    "llvmlite",
    "pandas",
    "pyarrow",
    "polars",
    "duckdb",
    "scikit-learn",
    "category_encoders",
    "feature-engine",
)
GIBIBYTE = 1 << 30


def installed(name: str) -> str:
    """Version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Name of the CPU."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def memory() -> str | None:
    """Memory of the machine."""
    if not hasattr(os, "sysconf"):
        return None
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / GIBIBYTE:.1f} GiB"


def head(quick: bool) -> dict[str, Any]:
    """Give what is known before anything is measured."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = sorted({1, cores})
    rates = {} if quick else {f"{n} thread" + "s" * (n > 1): copy_rate(n) for n in threads}
    return {
        "cpu": processor(),
        "cores": cores,
        "memory": memory(),
        "commit": commit(),
        "quick": quick,
        "copy": rates,
        "versions": {"python": platform.python_version(), **{name: installed(name) for name in PACKAGES}},
    }
