"""Compiles kernels to PTX and to machine code for any architecture, on a machine without a GPU or driver."""

import re
import time
from collections.abc import Callable
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
from cpu_fallback.compiled.row_encodings import CellRule
from cpu_fallback.compiled.views import Views
from cpu_fallback.fused_rules import Blend, FusedRule, Shrinkage
from gpu_encode.cuda import runtime
from gpu_encode.cuda.closed_forms import Lines, Sums
from gpu_encode.cuda.digits import Extents, RowParts
from gpu_encode.cuda.encodings import Doubts, Priors
from gpu_encode.cuda.hashing import Table, Words
from gpu_encode.cuda.indexed import CodeSource
from gpu_encode.cuda.moments import Cells
from gpu_encode.cuda.ordered_encodings import Tile
from gpu_encode.cuda.row_encodings import Destination
from gpu_encode.cuda.segments import Sorted, TiedState
from gpu_encode.cuda.strings import Strings


def typed(made: Any) -> Callable[..., types.Type]:
    """Return a function that makes numba's type of a named tuple from the types of its fields."""
    return lambda *fields: types.NamedTuple(fields, made)


ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
LAUNCHES = Path(__file__).parent / "signatures" / "kernels.txt"
TUPLES = (
    *(Shape, Blend, Shrinkage, FusedRule, CellRule, Views, Doubts, Priors, Destination),
    *(Cells, CodeSource, Extents, Lines, RowParts, Sorted, Strings, Sums, Table, TiedState, Tile, Words),
)
TYPES = vars(types) | {"bool": types.boolean} | {made.__name__: typed(made) for made in TUPLES}
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
    """Return every kernel with every signature with which host code launches it."""
    lines = LAUNCHES.read_text().splitlines()
    return [read_variant(line) for line in lines if not line.startswith("#")]


def library_of(kernel: Any, signature: tuple[Any, ...], architecture: tuple[int, int] = (9, 0)) -> Any:
    """Compile a kernel for the types of its arguments; raises numba's typing error for a wrong one.

    numba.cuda asks the current device for its architecture when a kernel calls another function, and there is none.
    """
    device = SimpleNamespace(compute_capability=architecture)
    with patch.object(dispatcher, "get_current_device", lambda: device):
        return runtime.library_of(kernel.py_func, signature, architecture)


def ptx_of(kernel: Any, signature: tuple[Any, ...], architecture: tuple[int, int] = (9, 0)) -> str:
    """PTX of a kernel for the types of its arguments."""
    return str(library_of(kernel, signature, architecture).get_asm_str(cc=architecture))


def asks_for_fused(library: Any) -> bool:
    """Whether a kernel explicitly uses a fused multiply-add, whose result is an exact remainder."""
    return "llvm.fma" in "".join(library.llvm_strs)


def link(ptx: str, architecture: tuple[int, int]) -> dict[str, float]:
    """Machine code of PTX: its registers, stack, spilled and shared bytes, and the time that the assembler took."""
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


def find_contractions(ptx: str, asked_for: bool = False) -> list[str]:
    """Return instructions that round once where the CPU rounds twice, unless asked for, or that ptxas may fuse."""
    fused = r"(fma|mad)\.(rn|rz|rm|rp|f|ftz|sat)\S*f(16|32|64)"
    not_rounded = r"mul(?!\S*\.rn)\.\S*f(16|32|64)"
    lines = map(str.strip, ptx.splitlines())
    return [line for line in lines if re.match(not_rounded if asked_for else f"{fused}|{not_rounded}", line)]
