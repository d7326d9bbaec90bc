"""The description of a run: the machine, the checkout, and the installed versions."""

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
    """Give the output of a command; None if it fails."""
    if which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str:
    """Give the commit of the checkout, and whether files were changed since; in a copy without git, SOURCE_COMMIT."""
    # A checkout may belong to another user, as on mounted disks; git works there only if the folder is marked as safe.
    git = ("git", "-c", f"safe.directory={ROOT}")
    revision = output_of(*git, "rev-parse", "--short=12", "HEAD")
    if not revision:
        return os.environ.get("SOURCE_COMMIT", "unknown")
    return revision + (" and changes" if output_of(*git, "status", "--porcelain", "--untracked-files=no") else "")


def installed(name: str) -> str:
    """Give the version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Give the name of the CPU."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def memory() -> str | None:
    """Give the amount of memory of the machine."""
    if not hasattr(os, "sysconf"):
        return None
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / GIBIBYTE:.1f} GiB"


def cores() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(**more: str) -> dict[str, str]:
    """Give environment variables with which a process finds this checkout, installed or not."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **more}


def describe(packages: tuple[str, ...], quick: bool) -> dict[str, Any]:
    """Describe machine and versions, before anything is measured."""
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
