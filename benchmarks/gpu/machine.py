"""The machine: device, driver, versions, and the speed of a copy."""

import numpy as np

from benchmarks.gpu.report import SIMULATOR, Run
from benchmarks.harness.machine import commit, installed, output_of
from gpu_encode.cli.doctor import PACKAGES, cuda_devices, installed_version
from gpu_encode.seam import devices

COPIED = 1 << 32


def device_name() -> str | None:
    """Give the name of the first GPU, from the driver alone; None if there is no GPU."""
    if devices.simulated():
        return SIMULATOR
    names = cuda_devices()[0]
    return names[0].split(": ", 1)[1].rsplit(", ", 1)[0] if names else None


def versions() -> dict[str, str | None]:
    """Give the versions of all libraries that could matter."""
    releases = {name: installed_version(PACKAGES[name]) for name in ("numpy", "numba", "numba-cuda", "cupy", "cudf")}
    own = {name: installed(name) for name in ("gpu-encode", "cuda-bindings", "cuda-toolkit")}
    return {"commit": commit(), **own, **releases}


def card() -> dict[str, str]:
    """Describe the GPU, from its driver and the runtime."""
    from gpu_encode.cuda.memory import free_bytes
    from gpu_encode.cuda.runtime import xp

    runtime, device = xp.cuda.runtime, xp.cuda.Device()
    traits, (free, total) = runtime.getDeviceProperties(device.id), free_bytes()
    driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "unknown"
    return {
        "device": traits["name"].decode(),
        "driver": driver.splitlines()[0],
        "CUDA of the driver": str(runtime.driverGetVersion()),
        "CUDA of the runtime": str(runtime.runtimeGetVersion()),
        "compute capability": device.compute_capability,
        "multiprocessors": str(traits["multiProcessorCount"]),
        "L2": f"{traits['l2CacheSize'] / 2**20:.0f} MiB",
        "memory": f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} free",
    }


def run(step: Run) -> None:
    """Record device and versions, and measure a large copy, with which all shares compare."""
    # Imported only here: the process that starts all steps does not use the GPU.
    from benchmarks.gpu.timing import free_memory, measure
    from gpu_encode.cuda.runtime import xp

    for name, value in (versions() if step.simulated else {**card(), **versions()}).items():
        step.row("machine", what=name, value=value or "not installed")
    given = xp.ones(step.size(min(COPIED, free_memory() // 4), 1 << 10) // 8, dtype=np.float64)
    target, moved = xp.zeros_like(given), 2 * given.nbytes

    def copy() -> None:
        target[...] = given

    seconds = measure(copy, repeats=20)
    figures = {"ran": True} if step.simulated else {"ms": seconds * 1e3, "GB/s": moved / seconds / 1e9}
    step.row("copy", bytes=moved, **figures)
