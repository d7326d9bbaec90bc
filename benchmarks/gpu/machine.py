"""The machine: device, driver, versions, and how fast it copies."""

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from shutil import which

import numpy as np

from benchmarks.gpu.report import SIMULATOR
from benchmarks.gpu.run import Run
from gpu_encode import __version__, devices
from gpu_encode.cli.doctor import PACKAGES, cuda_devices, installed

ROOT = Path(__file__).resolve().parents[2]
COPIED = 1 << 32


def device_name() -> str | None:
    """Name of the first GPU, asked of the driver alone; none where there is none."""
    if devices.simulated():
        return SIMULATOR
    found = cuda_devices()[0]
    return found[0].split(": ", 1)[1].rsplit(", ", 1)[0] if found else None


def output_of(*command: str) -> str | None:
    """What a command says; none where it cannot."""
    if which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str:
    """Commit of the checkout, and whether it was changed since."""
    found = output_of("git", "rev-parse", "--short=12", "HEAD")
    if not found:
        return "unknown"
    return found + (" and changes" if output_of("git", "status", "--porcelain", "--untracked-files=no") else "")


def versions() -> dict[str, str]:
    """Versions of everything that could matter."""
    names = {name: installed(PACKAGES[name]) for name in ("numpy", "numba", "numba-cuda", "cupy", "cudf")}
    for name in ("cuda-bindings", "cuda-toolkit"):
        try:
            names[name] = version(name)
        except PackageNotFoundError:
            names[name] = None
    known = {name: found or "not installed" for name, found in names.items()}
    return {"gpu-encode": __version__, "commit": commit(), "python": python_version(), **known}


def card() -> dict[str, str]:
    """What the driver and the runtime say of the GPU."""
    from gpu_encode.cuda.memory import free_bytes
    from gpu_encode.cuda.runtime import xp

    runtime, device = xp.cuda.runtime, xp.cuda.Device()
    traits = runtime.getDeviceProperties(device.id)
    free, total = free_bytes()
    driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return {
        "device": traits["name"].decode(),
        "driver": (driver or "unknown").splitlines()[0],
        "CUDA of the driver": str(runtime.driverGetVersion()),
        "CUDA of the runtime": str(runtime.runtimeGetVersion()),
        "compute capability": device.compute_capability,
        "multiprocessors": str(traits["multiProcessorCount"]),
        "L2": f"{traits['l2CacheSize'] / 2**20:.0f} MiB",
        "memory": f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} free",
    }


def copied(size: int, repeats: int = 20) -> tuple[int, float]:
    """Bytes that a copy of so many reads and writes on the device, and its median seconds."""
    # Not before: the process that starts all steps leaves the GPU to them.
    from benchmarks.gpu.timing import measure
    from gpu_encode.cuda.runtime import xp

    given = xp.ones(size // 8, dtype=np.float64)
    target = xp.zeros_like(given)

    def copy() -> None:
        target[...] = given

    return 2 * given.nbytes, measure(copy, repeats=repeats)


def run(step: Run) -> None:
    """Write down what there is, and measure a large copy: all shares are of that."""
    from benchmarks.gpu.timing import free_memory

    found = versions() if step.simulated else {**card(), **versions()}
    for name, value in found.items():
        step.row("machine", what=name, value=value)
    moved, seconds = copied(step.size(min(COPIED, free_memory() // 4), 1 << 10))
    if step.simulated:
        step.row("copy", bytes=moved, ran=True)
    else:
        step.row("copy", bytes=moved, ms=seconds * 1e3, **{"GB/s": moved / seconds / 1e9})
