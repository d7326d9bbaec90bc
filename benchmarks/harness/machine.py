"""What a run says of the machine, the checkout, and what is installed."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import which
from typing import Any

from benchmarks.harness.memory import copy_rate

ROOT = Path(__file__).resolve().parents[2]
GIBIBYTE = 1 << 30


def output_of(*command: str) -> str | None:
    """What a command says; None where it cannot."""
    if which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str:
    """Commit of the checkout, and whether it was changed since; of a copy without one, what SOURCE_COMMIT says."""
    # A checkout may be another user's, as on mounted disks, of which git says nothing unless it is called safe.
    git = ("git", "-c", f"safe.directory={ROOT}")
    revision = output_of(*git, "rev-parse", "--short=12", "HEAD")
    if not revision:
        return os.environ.get("SOURCE_COMMIT", "unknown")
    return revision + (" and changes" if output_of(*git, "status", "--porcelain", "--untracked-files=no") else "")


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


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(**more: str) -> dict[str, str]:
    """Variables of a process that finds this checkout, installed or not."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **more}


def describe(packages: tuple[str, ...], quick: bool) -> dict[str, Any]:
    """Give what is known before anything is measured."""
    rates = {} if quick else {f"{n} thread" + "s" * (n > 1): copy_rate(n) for n in sorted({1, cores()})}
    return {
        "device": processor(),
        "cores": cores(),
        "memory": memory(),
        "commit": commit(),
        "quick": quick,
        "copy": rates,
        "versions": {"python": platform.python_version(), **{name: installed(name) for name in packages}},
    }
