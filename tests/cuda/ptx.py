"""Kernels to PTX and on to machine code for any architecture, on a machine without a GPU or driver."""

import re
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from cuda.bindings import nvjitlink
from numba import types
from numba.cuda import dispatcher

from cpu_fallback.compiled.moments import Shape
from gpu_encode.cuda import runtime

ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
LAUNCHES = Path(__file__).parent / "signatures" / "kernels.txt"
TYPES = vars(types) | {"bool": types.boolean, "Shape": lambda *fields: types.NamedTuple(fields, Shape)}
USAGE = {
    "registers": r"Used (\d+) registers",
    "stack": r"(\d+) bytes stack frame",
    "spilled": r"(\d+) bytes spill stores",
    "shared": r"(\d+) bytes smem",
}


@dataclass(frozen=True)
class Variant:
    """A kernel and the types of its arguments; `name` says both."""

    name: str
    kernel: Any
    signature: tuple[Any, ...]


def read_variant(line: str) -> Variant:
    """Read ``module.kernel(type, type)``, where ``int64[]`` is an array in one piece."""
    module, kernel, names = re.fullmatch(r"(\w+)\.(\w+)\((.*)\)", line).groups()  # type: ignore[union-attr]
    signature = eval(f"({names.replace('[]', '[::1]')},)", TYPES)
    return Variant(line, getattr(import_module(f"gpu_encode.cuda.{module}"), kernel), signature)


def variants() -> list[Variant]:
    """Every kernel with every signature that host code launches it with."""
    lines = LAUNCHES.read_text().splitlines()
    return [read_variant(line) for line in lines if not line.startswith("#")]


def ptx_of(kernel: Any, signature: tuple[Any, ...], architecture: tuple[int, int] = (9, 0)) -> str:
    """PTX of a kernel for the types of its arguments; raises numba's typing error for a wrong one.

    numba.cuda asks the current device for its architecture when a kernel calls another function, and there is none.
    """
    device = SimpleNamespace(compute_capability=architecture)
    with patch.object(dispatcher, "get_current_device", lambda: device):
        return str(runtime.library_of(kernel.py_func, signature, architecture).get_asm_str(cc=architecture))


def link(ptx: str, architecture: tuple[int, int]) -> dict[str, float]:
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
    return {name: max(map(int, numbers), default=0) for name, numbers in counts.items()} | {"seconds": seconds}


def find_contractions(ptx: str) -> list[str]:
    """Instructions that round once where the CPU rounds twice, or that ptxas may make such of."""
    fused = r"(fma|mad)\.(rn|rz|rm|rp|f|ftz|sat)\S*f(16|32|64)"
    not_rounded = r"mul(?!\S*\.rn)\.\S*f(16|32|64)"
    lines = map(str.strip, ptx.splitlines())
    return [line for line in lines if re.match(f"{fused}|{not_rounded}", line)]
