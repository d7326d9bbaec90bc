"""Devices that are not there, too small, or not what an operation runs on."""

from collections.abc import Sequence

INSTALL = "pip install '.[cu13]' (or '.[cu12]', for CUDA 12) in the checkout"


def no_gpu(missing: Sequence[str], has_driver: bool, held: bool) -> RuntimeError:
    """Error for a GPU that is asked for, or that holds the data, and cannot be used."""
    wish = "The data lies in a GPU's memory" if held else "device='cuda' was asked for"
    if missing:
        reason = f"{' and '.join(missing)} cannot be imported: {INSTALL}"
    elif has_driver:
        reason = "the driver shows no GPU to this process: look at nvidia-smi and at CUDA_VISIBLE_DEVICES"
    else:
        reason = "NVIDIA's driver (libcuda) is not installed on this machine"
    advice = "" if held else " Or choose device='cpu' or 'auto', which give the same codes."
    return RuntimeError(f"{wish}, but {reason}. `gpu-encode doctor` shows what works here.{advice}")


def backend_cannot_run(name: str) -> RuntimeError:
    """Error for a backend that was chosen by name and cannot start."""
    needs = (
        "NUMBA_ENABLE_CUDASIM=1 and GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in in the environment before Python "
        "starts in a checkout, and numba-cuda and CuPy installed"
        if name == "cuda-simulator"
        else "a CUDA GPU, the CUDA extra, and NUMBA_ENABLE_CUDASIM not set"
    )
    return RuntimeError(f"The backend {name!r} cannot run here: it needs {needs}.")


def device_too_small(wanted: int, free: int, total: int) -> MemoryError:
    """Error for an allocation that the device has no room for."""
    more = f"{wanted:,} bytes more are needed" if wanted else "More memory is needed"
    return MemoryError(
        f"{more} on the GPU, of whose {total:,} bytes {free:,} are free (what a pool holds counts as taken). Encode "
        "fewer columns at a time, learn from pieces with partial_fit and transform piece by piece, or choose "
        "device='cpu', which gives the same codes."
    )
