"""The only file that touches numba.cuda and CuPy: array library, kernels, launches, transfers.

In numba's simulator (NUMBA_ENABLE_CUDASIM=1) NumPy stands in for CuPy, and blocks are tiny, so that several blocks,
partial blocks and several turns of every loop occur on small data.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba import config, cuda, types

__all__ = [
    "KERNELS",
    "MOST_BLOCKS",
    "SHARED_BYTES",
    "SIMULATED",
    "THREADS",
    "TILE",
    "available",
    "blocks_for",
    "cuda",
    "current_device",
    "device_function",
    "is_device_array",
    "kernel",
    "launch",
    "launch_rows",
    "times",
    "types",
    "xp",
]

SIMULATED = bool(config.ENABLE_CUDASIM)
# The suite may stand another library in for CuPy, stricter than NumPy.
xp: Any = import_module(os.environ.get("GPU_ENCODE_SIMULATED_ARRAYS", "numpy") if SIMULATED else "cupy")

# Threads of a block, and the most blocks of a grid: kernels walk over their rows in strides of the whole grid.
THREADS = 4 if SIMULATED else 256
MOST_BLOCKS = 3 if SIMULATED else 132 * 16
# numba.cuda launches nothing with more dynamic shared memory than this.
SHARED_BYTES = 2048 if SIMULATED else 48 * 1024
# Rows of which the schemes that work row by row hold intermediate results.
TILE = 64 if SIMULATED else 1 << 23

Kernel = Any
KERNELS: list[Kernel] = []


def kernel(function: Callable[..., None]) -> Kernel:
    """Declare a kernel.  It is compiled at its first launch, for the types it then gets."""
    made = cuda.jit(function)
    KERNELS.append(made)
    return made


def device_function(function: Callable[..., Any]) -> Any:
    """Declare a function that kernels call."""
    return cuda.jit(device=True)(function)


if SIMULATED:

    def times(left: float, right: float) -> float:
        """Product, rounded before anything is added to it."""
        return left * right

else:
    # A plain product that feeds a sum would be fused with it, and rounded once where the CPU rounds twice.
    times = cuda.libdevice.dmul_rn


def available() -> bool:
    """Whether kernels can run: in the simulator, or on a GPU."""
    return SIMULATED or bool(xp.cuda.is_available())


def current_device() -> int:
    """Number of the GPU that the caller has chosen."""
    return 0 if SIMULATED else int(xp.cuda.Device().id)


def blocks_for(n_items: int, threads: int = THREADS) -> int:
    """Blocks of a grid that works on this many items."""
    return max(1, min(-(-n_items // threads), MOST_BLOCKS))


def wrap_for_simulator(argument: Any) -> Any:
    """Wrap an array for the simulator.

    It would copy a plain array and write the copy back, even to read-only memory.
    """
    array = getattr(argument, "held", argument)
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        return array
    return import_module("numba.cuda.simulator.cudadrv.devicearray").FakeCUDAArray(array)


def launch(kernel: Kernel, blocks: int, threads: int, *arguments: Any, shared: int = 0) -> None:
    """Run a kernel on the caller's current CuPy stream, without waiting for it.

    Parameters
    ----------
    kernel : kernel
    blocks, threads : int
        Blocks of the grid and threads of a block.
    *arguments
        Device arrays in one piece, and numbers.
    shared : int
        Bytes of dynamic shared memory.
    """
    if SIMULATED:
        # Kernels wrap around 2**64 on purpose, and compute what other lanes throw away.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            kernel[blocks, threads, 0, shared](*map(wrap_for_simulator, arguments))
        return
    device = current_device()
    with cuda.gpus[device]:
        stream = stream_of(device, xp.cuda.get_current_stream().ptr)
        # Without sync=False numba waits for the stream that an array was last used on: ours is that stream.
        given = [cuda.as_cuda_array(each, sync=False) if isinstance(each, xp.ndarray) else each for each in arguments]
        configure(kernel, blocks, threads, stream, shared)(*given)


@cache
def stream_of(device: int, pointer: int) -> Any:  # noqa: ARG001 - two devices may have streams at one address
    """CuPy's stream as numba's: one object each, so that numba finds its launch configurations again."""
    return cuda.external_stream(pointer)


def configure(kernel: Kernel, blocks: int, threads: int, stream: Any, shared: int) -> Any:
    """Give a kernel its grid; numba warns of one that leaves processors idle, as small data must."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kernel[blocks, threads, stream, shared]


def launch_rows(kernel: Kernel, n_rows: int, *arguments: Any) -> None:
    """Run a kernel that walks over rows in strides of the grid; nothing is launched for no rows."""
    if n_rows:
        launch(kernel, blocks_for(n_rows), THREADS, *arguments)


def is_device_array(array: Any) -> bool:
    """Whether an array lies where kernels can reach it."""
    return isinstance(array, xp.ndarray)
