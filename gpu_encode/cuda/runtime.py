"""The only file that uses numba.cuda and CuPy: array library, kernels, launches, transfers.

Numba compiles a kernel once for each list of types and each architecture.  The machine code is kept on disk, beside the
machine code of the CPU's kernels.  CuPy loads and launches the kernel: numba's own launch takes ten times as long.

In numba's simulator (NUMBA_ENABLE_CUDASIM=1) the tests' arrays replace CuPy's.  Blocks are tiny there, so that small
data need several blocks, partial blocks and several turns of every loop.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from numba import config, cuda, types
from numba.np.numpy_support import from_dtype

from cpu_fallback import kernel_folder
from cpu_fallback.compiled.kernel_files import KernelFiles
from cpu_fallback.kernel_sources import digest, stamp_of

__all__ = [
    "FEW_THREADS",
    "KERNELS",
    "MOST_BLOCKS",
    "MULTIPROCESSORS",
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
    "iterate_eigenvectors",
    "kernel",
    "launch",
    "launch_rows",
    "types",
    "xp",
]

SIMULATED = bool(config.ENABLE_CUDASIM)
# The tests replace CuPy by another library, which is stricter than NumPy and compiles CUDA C++ for a CPU.
xp: Any = import_module(os.environ.get("GPU_ENCODE_SIMULATED_ARRAYS", "numpy") if SIMULATED else "cupy")

if not SIMULATED:
    from numba.cuda.compiler import compile_cuda, kernel_fixup

# Threads of a block, and the most blocks of a grid: kernels walk over their rows in strides of the whole grid.
THREADS = 4 if SIMULATED else 256
MULTIPROCESSORS = 3 if SIMULATED else 132
MOST_BLOCKS = 3 if SIMULATED else 16 * MULTIPROCESSORS
# Threads of a block, for kernels with so many registers that larger blocks would leave many registers unused.
FEW_THREADS = 2 if SIMULATED else 64
# numba.cuda launches nothing with more dynamic shared memory than this.
SHARED_BYTES = 2048 if SIMULATED else 48 * 1024
# Rows whose intermediate results exist at the same time, in schemes that work row by row.
TILE = 64 if SIMULATED else 1 << 23

Kernel = Any
KERNELS: list[Kernel] = []


def kernel(function: Callable[..., None]) -> Kernel:
    """Declare a kernel.  Its first launch compiles it, for the types of that launch."""
    made = cuda.jit(function)
    KERNELS.append(made)
    return made


def device_function(function: Callable[..., Any]) -> Any:
    """Declare a function that kernels call."""
    return cuda.jit(device=True)(function)


def available() -> bool:
    """Whether kernels can run: in the simulator, or on a GPU."""
    return SIMULATED or bool(xp.cuda.is_available())


def current_device() -> int:
    """Number of the GPU that the caller has chosen."""
    return 0 if SIMULATED else int(xp.cuda.Device().id)


def blocks_for(n_items: int, threads: int = THREADS, most: int | None = None) -> int:
    """Blocks of a grid that works on this many items."""
    return max(1, min(-(-n_items // threads), MOST_BLOCKS * THREADS // threads if most is None else most))


def wrap_for_simulator(argument: Any) -> Any:
    """Wrap an array for the simulator.

    The simulator would copy a plain array and write the copy back, even to read-only memory.
    """
    if isinstance(argument, tuple):
        # The simulator takes the members of a tuple as they are.
        return type(argument)(*(getattr(each, "held", wrap_for_simulator(each)) for each in argument))
    array = getattr(argument, "held", argument)
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        return array
    if array.ndim > 1 or not array.flags.c_contiguous:
        raise ValueError(f"kernels take arrays of one axis in one piece, not {array.shape} by {array.strides}")
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
        # Kernels let numbers wrap around 2**64 on purpose, and compute results that other lanes throw away.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            kernel[blocks, threads, 0, shared](*map(wrap_for_simulator, arguments))
        return
    function = function_of(current_device(), kernel, *map(type_of, arguments))
    function((blocks,), (threads,), tuple(pack(arguments)), shared_mem=shared)


def type_of(argument: Any) -> Any:
    """Give the type of an argument for which a kernel is compiled; it must be fast, since every launch asks for it."""
    if isinstance(argument, xp.ndarray):
        return argument.dtype
    return (type(argument), *map(type_of, argument)) if isinstance(argument, tuple) else type(argument)


def numba_type(kind: Any) -> types.Type:
    """Give numba's type for a result of `type_of`: arrays have one axis."""
    if isinstance(kind, tuple):
        return types.NamedTuple(tuple(map(numba_type, kind[1:])), kind[0])
    if isinstance(kind, np.dtype):
        return types.Array(from_dtype(kind), 1, "C")
    return {bool: types.boolean, int: types.int64, float: types.float64}.get(kind) or from_dtype(np.dtype(kind))


def pack(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield arguments as numba's machine code takes them: an array is seven words, a tuple is its members."""
    for each in arguments:
        if isinstance(each, xp.ndarray):
            size, itemsize = each.size, each.itemsize
            # Two words are for the owner of the memory, which only a CPU uses; then come length and step of the axis.
            yield from (0, 0, size, itemsize, each.data.ptr, size, itemsize)
        elif isinstance(each, tuple):
            yield from pack(each)
        else:
            yield each


@cache
def function_of(device: int, kernel: Kernel, *kinds: Any) -> Any:
    """Give a kernel for some types, loaded on a device: from disk, if it was compiled for such a device before."""
    architecture = architecture_of(device)
    signature = tuple(map(numba_type, kinds))
    key = str(signature), architecture
    files = files_of(kernel.py_func)
    saved = files.load(key)
    if saved is None:
        with cuda.gpus[device]:
            saved = compile_kernel(kernel.py_func, signature, architecture)
        files.save(key, saved)
    name, machine_code = saved
    module = xp.cuda.Module()
    module.load(machine_code)
    return module.get_function(name)


def architecture_of(device: int) -> tuple[int, int]:
    """Give the compute capability of a device, as (9, 0)."""
    digits = str(xp.cuda.Device(device).compute_capability)
    return int(digits[:-1]), int(digits[-1])


def files_of(function: Callable[..., None]) -> KernelFiles:
    """Give the files of a kernel on disk."""
    name = f"cuda.{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
    return KernelFiles(kernel_folder.folder(), name, sources_stamp(function))


def sources_stamp(function: Callable[..., None]) -> str:
    """Give a hash of the sources of a kernel and of the version of its compiler."""
    made_of = stamp_of(function.__module__, function.__qualname__, (__name__, ("kernel", "compile_kernel")))
    return digest(compiler(), made_of)


@cache
def compiler() -> str:
    """Give the version of the compiler."""
    return version("numba-cuda")


def library_of(function: Callable[..., None], signature: tuple[Any, ...], architecture: tuple[int, int]) -> Any:
    """Compile a kernel for an architecture as numba does, but fuse no product with a sum, since a CPU rounds twice."""
    options = {"opt": 3, "fma": False}
    compiled = compile_cuda(function, types.void, signature, nvvm_options=options, cc=architecture)
    library = compiled.library
    library._entry_name = compiled.fndesc.llvm_func_name
    kernel_fixup(library.get_function(library._entry_name), debug=False)
    return library


def compile_kernel(
    function: Callable[..., None], signature: tuple[Any, ...], architecture: tuple[int, int]
) -> tuple[str, bytes]:
    """Give the name and the machine code of a kernel."""
    library = library_of(function, signature, architecture)
    return library._entry_name, bytes(library.get_cubin(cc=architecture).code)


def launch_rows(kernel: Kernel, n_rows: int, *arguments: Any, threads: int = THREADS) -> None:
    """Run a kernel that walks over rows in strides of the grid; without rows, launch nothing."""
    if n_rows:
        launch(kernel, blocks_for(n_rows, threads), threads, *arguments)


def is_device_array(array: Any) -> bool:
    """Whether kernels can reach the memory of an array."""
    return isinstance(array, xp.ndarray)


def iterate_eigenvectors(matrix: Any, squared: bool, wanted: int, start: Any, accuracy: float) -> tuple[Any, Any]:
    """Run CuPy's iterative solver on a sparse host matrix, or on the product of its transpose and the matrix.

    Returns the largest eigenvalues and their vectors, on the host, whether or not residuals are as small as `accuracy`.
    """
    if SIMULATED:
        from scipy.sparse.linalg import aslinearoperator, eigsh

        factor = aslinearoperator(matrix)
        values, vectors = eigsh(factor.T @ factor if squared else matrix, wanted, which="LA", v0=start)
        return values, vectors
    from cupyx.scipy.sparse import csr_matrix
    from cupyx.scipy.sparse.linalg import LinearOperator, eigsh

    there = csr_matrix((xp.asarray(matrix.data), xp.asarray(matrix.indices), xp.asarray(matrix.indptr)), matrix.shape)
    if squared:
        turned, factor = there.T.tocsr(), there
        side = (matrix.shape[1],) * 2
        there = LinearOperator(side, matvec=lambda vector: turned @ (factor @ vector), dtype=np.float64)
    # The solver overwrites its start vector.
    values, vectors = eigsh(there, wanted, which="LA", v0=xp.array(start), tol=accuracy)
    return xp.asnumpy(values), xp.asnumpy(vectors)
