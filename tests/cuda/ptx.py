"""Kernels to PTX and on to machine code for any architecture, on a machine without a GPU or driver."""

import importlib
import pkgutil
import re
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from cuda.bindings import nvjitlink
from numba import cuda
from numba.cuda import dispatcher

from tests.cuda import signatures

ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
USAGE = {
    "registers": r"Used (\d+) registers",
    "stack": r"(\d+) bytes stack frame",
    "spilled": r"(\d+) bytes spill stores",
    "shared": r"(\d+) bytes smem",
}


@dataclass(frozen=True)
class Variant:
    """A kernel and the types of its arguments."""

    kernel: Any
    signature: tuple[Any, ...]

    @property
    def name(self) -> str:
        function = self.kernel.py_func
        return f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(short, self.signature))})"


def short(kind: Any) -> str:
    """Name of a type without the layout, which is C everywhere."""
    dtype = getattr(kind, "dtype", None)
    return str(kind) if dtype is None else f"{dtype}{'[]' * kind.ndim}"


def variants() -> list[Variant]:
    """Every kernel with every signature that host code launches it with."""
    found = []
    for module in pkgutil.iter_modules(signatures.__path__):
        listed = importlib.import_module(f"{signatures.__name__}.{module.name}").SIGNATURES
        found += [Variant(kernel, tuple(signature)) for kernel, signature in listed]
    return found


def ptx_of(kernel: Any, signature: tuple[Any, ...], architecture: tuple[int, int] = (9, 0)) -> str:
    """PTX of a kernel for the types of its arguments; raises numba's typing error for a wrong one.

    numba.cuda asks the current device for its architecture when a kernel calls another function, and there is none.
    """
    device = SimpleNamespace(compute_capability=architecture)
    with patch.object(dispatcher, "get_current_device", lambda: device):
        text, _ = cuda.compile_ptx(kernel.py_func, signature, cc=architecture)
    return str(text)


def linked(ptx: str, architecture: tuple[int, int]) -> dict[str, float]:
    """Machine code of PTX: what it takes of registers, stack, spilled and shared bytes, and how long that took."""
    major, minor = architecture
    options = [f"-arch=sm_{major}{minor}", "-Xptxas=-v"]
    start = time.perf_counter()
    handle = nvjitlink.create(len(options), options)
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx.encode(), len(ptx), "kernel")
    nvjitlink.complete(handle)
    seconds = time.perf_counter() - start
    log = bytearray(nvjitlink.get_info_log_size(handle))
    nvjitlink.get_info_log(handle, log)
    nvjitlink.destroy(handle)
    counts = {name: re.findall(pattern, log.decode()) for name, pattern in USAGE.items()}
    return {name: max(map(int, found), default=0) for name, found in counts.items()} | {"seconds": seconds}


def contractions(ptx: str) -> list[str]:
    """Instructions that round once where the CPU rounds twice, or that ptxas may make such of."""
    found = []
    for line in ptx.splitlines():
        operation = line.strip().split(None, 1)[0] if line.strip() else ""
        if re.match(r"(fma|mad)\.(rn|rz|rm|rp|f|ftz|sat).*f(16|32|64)", operation):
            found.append(line.strip())
        if re.match(r"mul\..*f(16|32|64)", operation) and ".rn" not in operation:
            found.append(line.strip())
    return found
