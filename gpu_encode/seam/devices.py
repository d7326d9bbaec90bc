"""Choose the device of a call, without loading a library that is not needed."""

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gpu_encode.words.errors.parameters import check_option
from gpu_encode.words.errors.resources import device_too_small

if TYPE_CHECKING:
    from gpu_encode.seam.ops import DeviceOps

INSTALL = "pip install '.[cu13]' (or '.[cu12]', for CUDA 12) in the checkout"

DEVICES = ("auto", "cpu", "cuda")
LIBRARIES = ("cupy", "numba_cuda")
BACKEND = "gpu_encode.cuda"
# The memory, in bytes, that is assumed if the system does not tell it.
UNKNOWN_MEMORY = 4 << 30
# Arrays of fewer bytes are allocated without asking the system what is free.
LARGE = 1 << 30
# The files with the memory limit of this process's group and with its usage, and the line with memory of cached files.
GROUP = Path("/sys/fs/cgroup")
LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)
# From this number of rows of host data on, a GPU is faster.  This is an estimate, not measured on any GPU: a call takes
# about three milliseconds to copy its rows and run its kernels, as a CPU does for half a million to a million rows.
FEWEST_ROWS = 1_000_000
# DLPack's number for CUDA memory.
DLPACK_CUDA = 2


def cuda() -> "DeviceOps":
    """Give the backend of a GPU, which loads its libraries."""
    return cast("DeviceOps", import_module(BACKEND))


def choose(wanted: Any, *data: Any, n_rows: int = FEWEST_ROWS) -> str:
    """Give "cpu" or "cuda" for a call on the given data.

    Parameters
    ----------
    wanted : {"auto", "cpu", "cuda"}
        "auto": the device that holds the data; but a GPU, if there is one, for many rows on the host.
    *data
        Tables and vectors; None is allowed.
    n_rows : int
        Number of rows of the first table.

    Raises
    ------
    RuntimeError
        If a GPU is asked for, or holds the data, but cannot be used here.
    """
    if wanted not in DEVICES:
        check_option("TargetEncoder", "device", wanted, DEVICES)
    held = any(map(on_gpu, data))
    # With few rows this does not look for a GPU, which would load CuPy.
    if wanted == "cpu" or (wanted == "auto" and not held and (n_rows < FEWEST_ROWS or simulated() or not has_gpu())):
        return "cpu"
    if not has_gpu():
        raise _no_gpu([name for name in LIBRARIES if find_spec(name) is None], driver_is_there(), held)
    return "cuda"


def _no_gpu(missing: Sequence[str], has_driver: bool, held: bool) -> RuntimeError:
    """Error for a GPU that is asked for, or that holds the data, but cannot be used."""
    wish = "The data lies in a GPU's memory" if held else "device='cuda' was asked for"
    if missing:
        reason = f"{' and '.join(missing)} cannot be imported: {INSTALL}"
    elif has_driver:
        reason = "the driver shows no GPU to this process: look at nvidia-smi and at CUDA_VISIBLE_DEVICES"
    else:
        reason = "NVIDIA's driver (libcuda) is not installed on this machine"
    advice = "" if held else " Or choose device='cpu' or 'auto', which give the same encodings."
    return RuntimeError(f"{wish}, but {reason}. `gpu-encode doctor` shows what works here.{advice}")


def on_gpu(data: Any) -> bool:
    """Tell whether data lies in a GPU's memory: a CuPy array, a cuDF frame, a PyTorch or JAX array there."""
    # Most calls get NumPy arrays, and ask this for each of their arguments.
    if data is None or type(data) is np.ndarray:
        return False
    data = unwrap(data)
    library = type(data).__module__.split(".")[0]
    # Old versions of pyarrow raise where DLPack has no type for a column of theirs.
    if library in {"cudf", "pyarrow"}:
        return library == "cudf"
    if hasattr(type(data), "__dlpack_device__") and not hasattr(type(data), "__array_interface__"):
        return bool(data.__dlpack_device__()[0] == DLPACK_CUDA)
    return bool(hasattr(data, "__cuda_array_interface__"))


def is_cudf_frame(data: Any) -> bool:
    """Whether data is a frame of cuDF."""
    return is_of_cudf(data, "DataFrame")


def is_cudf_vector(data: Any) -> bool:
    """Whether data is a series or an index of cuDF."""
    return is_of_cudf(data, "Series", "Index")


def is_of_cudf(data: Any, *names: str) -> bool:
    """Tell whether data is an instance of one of the named classes of cuDF, or of their subclasses."""
    return any(base.__module__.split(".")[0] == "cudf" and base.__name__ in names for base in type(data).__mro__)


def is_accelerated(data: Any) -> bool:
    """Tell whether data looks like pandas, but is a proxy of cudf.pandas, which decides where it lies."""
    proxies = sys.modules.get("cudf.pandas")
    return proxies is not None and bool(proxies.is_proxy_object(data))


def unwrap(data: Any) -> Any:
    """Give the frame or series inside of a cudf.pandas or narwhals object, without a copy; or `data` itself."""
    narwhals = sys.modules.get("narwhals")
    if narwhals is not None:
        known = narwhals.dependencies
        if known.is_narwhals_dataframe(data) or known.is_narwhals_series(data):
            data = narwhals.to_native(data)
    return data._fsproxy_wrapped if is_accelerated(data) else data


def accelerate(table: Any) -> Any:
    """Wrap a table of cuDF or pandas as cudf.pandas does."""
    return sys.modules["cudf.pandas"].as_proxy_object(table)


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
    """Tell whether CUDA kernels can run: there is the simulator, or a driver, a GPU and the Python libraries for it.

    The driver is looked for first, since importing CuPy takes a second.
    """
    needed = LIBRARIES[1:] if simulated() else LIBRARIES
    if any(find_spec(name) is None for name in needed) or not (simulated() or driver_is_there()):
        return False
    return cuda().available()


@contextmanager
def explain_memory() -> Iterator[None]:
    """Use the GPU memory allocator that the user wants, and turn any error about a lack of memory into our own.

    CuPy raises an error of its own class; RMM raises MemoryError with a C++ message.
    """
    try:
        with use_allocator() if "rmm" in sys.modules else contextlib.nullcontext():
            yield
    except MemoryError as error:
        if not type(error).__module__.startswith("cupy") and "bad_alloc" not in str(error):
            raise
        free, total = cuda().free_bytes()
        raise device_too_small(bytes_wanted(str(error)), free, total) from error


def available_bytes() -> int:
    """Give the bytes of host memory that this process may still take, by the system and by its group's limit."""
    limits = [UNKNOWN_MEMORY]
    with contextlib.suppress(AttributeError, ValueError):  # Windows cannot tell this
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2]
    with contextlib.suppress(OSError, ValueError, KeyError):
        limits = [read_counts(Path("/proc/meminfo"))["MemAvailable:"] << 10]
    for limit, held, of_files in LIMITS:
        with contextlib.suppress(OSError, ValueError):
            free = int((GROUP / limit).read_text()) - int((GROUP / held).read_text())
            limits.append(free + read_counts((GROUP / held).with_name("memory.stat")).get(of_files, 0))
    return max(0, min(limits))


def check_free(n_bytes: int, what: str) -> None:
    """Raise MemoryError for a large array that the host has no room for; the system would grant it, and kill later."""
    if n_bytes > LARGE and n_bytes > (free := available_bytes()):
        raise MemoryError(
            f"{what} would take {n_bytes / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB of memory are free. "
            "Encode fewer rows or columns at a time."
        )


def read_counts(path: Path) -> dict[str, int]:
    """Read a file of the operating system that has a word and a number on each line."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines}


def bytes_wanted(message: str) -> int:
    """Give the number of bytes that an allocator could not get, from its message; 0 if this does not tell."""
    found = re.search(r"allocat(?:ing|e) ([\d.,]+) ?([KMGT]i)?B?", message)
    if found is None:
        return 0
    unit = 1 if found[2] is None else 1 << 10 * (1 + "KMGT".index(found[2][0]))
    return int(float(found[1].rstrip(".,").replace(",", "")) * unit)


@contextmanager
def use_allocator() -> Iterator[None]:
    """Allocate from RMM if the user has set a pool or another resource there, as cuDF does.

    cuDF makes CuPy use RMM when it is imported; this is for users who set a resource but do not import cuDF.  If the
    user has set an allocator of CuPy, this allocator stays.
    """
    rmm = sys.modules["rmm"]
    if simulated() or not has_gpu():
        yield
        return
    cupy = cuda().xp
    is_default = getattr(cupy.cuda.get_allocator(), "__self__", None) is cupy.get_default_memory_pool()
    if not is_default or isinstance(rmm.mr.get_current_device_resource(), rmm.mr.CudaMemoryResource):
        yield
        return
    with cupy.cuda.using_allocator(import_module("rmm.allocators.cupy").rmm_cupy_allocator):
        yield
