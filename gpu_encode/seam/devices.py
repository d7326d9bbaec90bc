"""Which device a call runs on, found out without loading a library that is not needed."""

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
# Memory of a system that does not say.
UNKNOWN_MEMORY = 4 << 30
# Where the limit of this process's group stands, what the group holds, and which line says what files could give up.
GROUP = Path("/sys/fs/cgroup")
LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)
# Rows of host data from which a GPU is faster.  Estimated, measured on none: a call there takes some three milliseconds
# until its kernels have run and its rows are copied, and as long as that on a CPU for half a million to a million rows.
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
        "auto": where the data is; of host data, many rows on a GPU if there is one, others on the CPU.
    *data
        Tables and vectors; None is allowed.
    n_rows : int
        Rows of the first table.

    Raises
    ------
    RuntimeError
        If a GPU is asked for, or holds the data, and cannot be used here.
    """
    if wanted not in DEVICES:
        check_option("TargetEncoder", "device", wanted, DEVICES)
    held = any(map(on_gpu, data))
    # Few rows do not ask for a GPU, which loads CuPy.
    if wanted == "cpu" or (wanted == "auto" and not held and (n_rows < FEWEST_ROWS or simulated() or not has_gpu())):
        return "cpu"
    if not has_gpu():
        raise _no_gpu([name for name in LIBRARIES if find_spec(name) is None], driver_is_there(), held)
    return "cuda"


def _no_gpu(missing: Sequence[str], has_driver: bool, held: bool) -> RuntimeError:
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


def on_gpu(data: Any) -> bool:
    """Whether data lies in a GPU's memory: a CuPy array, a cuDF frame, a PyTorch or JAX array there."""
    # Most calls are on arrays of NumPy, and ask this of everything that they are given.
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
    """Whether data is of one of the named classes of cuDF, or of one that is made from them."""
    return any(base.__module__.split(".")[0] == "cudf" and base.__name__ in names for base in type(data).__mro__)


def is_accelerated(data: Any) -> bool:
    """Whether data looks like pandas', and cudf.pandas decides where it is."""
    proxies = sys.modules.get("cudf.pandas")
    return proxies is not None and bool(proxies.is_proxy_object(data))


def unwrap(data: Any) -> Any:
    """Give what an accelerated or a narwhals frame or series holds, without a copy; all else as it is."""
    narwhals = sys.modules.get("narwhals")
    if narwhals is not None:
        known = narwhals.dependencies
        if known.is_narwhals_dataframe(data) or known.is_narwhals_series(data):
            data = narwhals.to_native(data)
    return data._fsproxy_wrapped if is_accelerated(data) else data


def accelerate(table: Any) -> Any:
    """Give a table of cuDF or pandas as cudf.pandas does."""
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
    """Whether CUDA kernels can run: a driver, a GPU and the libraries that drive it, or the simulator.

    The driver is looked for first: importing CuPy takes a second.
    """
    needed = LIBRARIES[1:] if simulated() else LIBRARIES
    if any(find_spec(name) is None for name in needed) or not (simulated() or driver_is_there()):
        return False
    return cuda().available()


@contextmanager
def explain_memory() -> Iterator[None]:
    """Take a GPU's memory from where the user wants it, and say in our words how much it lacks, whoever found that out.

    CuPy says so in an error of its own, RMM in Python's, with a C++ message.
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
    """Bytes of the host that this process could still take, by the system and by a limit set for its group."""
    limits = [UNKNOWN_MEMORY]
    with contextlib.suppress(AttributeError, ValueError):  # Windows has no such question
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2]
    with contextlib.suppress(OSError, ValueError, KeyError):
        limits = [read_counts(Path("/proc/meminfo"))["MemAvailable:"] << 10]
    for limit, held, of_files in LIMITS:
        with contextlib.suppress(OSError, ValueError):
            free = int((GROUP / limit).read_text()) - int((GROUP / held).read_text())
            limits.append(free + read_counts((GROUP / held).with_name("memory.stat")).get(of_files, 0))
    return max(0, min(limits))


def read_counts(path: Path) -> dict[str, int]:
    """Read a file of the system with a word and a number on each line."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines}


def bytes_wanted(message: str) -> int:
    """Bytes that an allocator says it failed to find; 0 if it does not say."""
    found = re.search(r"allocat(?:ing|e) ([\d.,]+) ?([KMGT]i)?B?", message)
    if found is None:
        return 0
    unit = 1 if found[2] is None else 1 << 10 * (1 + "KMGT".index(found[2][0]))
    return int(float(found[1].rstrip(".,").replace(",", "")) * unit)


@contextmanager
def use_allocator() -> Iterator[None]:
    """Allocate from RMM where the user has set a pool or another resource there, as cuDF does.

    cuDF tells CuPy of RMM when it is imported; this is for those who set a resource and do not import cuDF.  An
    allocator that the user gave to CuPy stays.
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
