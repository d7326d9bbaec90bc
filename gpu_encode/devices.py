"""Which device a call runs on, found out without loading a library that is not needed."""

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gpu_encode import errors

DEVICES = ("auto", "cpu", "cuda")
LIBRARIES = ("cupy", "numba_cuda")
# DLPack's number for CUDA memory.
DLPACK_CUDA = 2


def choose(wanted: Any, *data: Any) -> str:
    """Give "cpu" or "cuda" for a call on the given data.

    Parameters
    ----------
    wanted : {"auto", "cpu", "cuda"}
        "auto": where the data is, else a GPU if there is one, else the CPU.
    *data
        Tables and vectors; None is allowed.

    Raises
    ------
    RuntimeError
        If a GPU is asked for, or holds the data, and cannot be used here.
    """
    errors.check_option("TargetEncoder", "device", wanted, DEVICES)
    held = any(on_gpu(each) for each in data)
    if wanted == "cpu" or (wanted == "auto" and not held and (simulated() or not has_gpu())):
        return "cpu"
    if not has_gpu():
        raise errors.no_gpu([name for name in LIBRARIES if find_spec(name) is None], driver_is_there(), held)
    return "cuda"


def on_gpu(data: Any) -> bool:
    """Whether data lies in a GPU's memory: a CuPy array, a cuDF frame, a PyTorch or JAX array there."""
    if type(data).__module__.split(".")[0] == "cudf":
        return True
    if hasattr(type(data), "__dlpack_device__") and not hasattr(type(data), "__array_interface__"):
        return bool(data.__dlpack_device__()[0] == DLPACK_CUDA)
    return bool(hasattr(data, "__cuda_array_interface__"))


def simulated() -> bool:
    """Whether CUDA kernels run in numba's simulator, on the CPU."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in {"", "0"}


@cache
def driver_is_there() -> bool:
    """Whether NVIDIA's driver can be loaded."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


@cache
def has_gpu() -> bool:
    """Whether CUDA kernels can run: a driver, a GPU and the libraries that drive it, or the simulator.

    The driver is looked for first: importing CuPy takes a second.
    """
    needed = LIBRARIES[1:] if simulated() else LIBRARIES
    if any(find_spec(name) is None for name in needed) or not (simulated() or driver_is_there()):
        return False
    return bool(import_module("gpu_encode.cuda.runtime").available())


@contextmanager
def memory_explained() -> Iterator[None]:
    """Say in our words how much memory a GPU lacks, wherever CuPy found that out."""
    try:
        yield
    except MemoryError as error:
        if not type(error).__module__.startswith("cupy"):
            raise
        wanted = re.search(r"allocating ([\d,]+) bytes", str(error))
        free, total = import_module("gpu_encode.cuda.memory").free_bytes()
        raise errors.device_too_small(int(wanted[1].replace(",", "")) if wanted else 0, free, total) from error
