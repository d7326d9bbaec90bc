"""A GPU of one multiprocessor on this CPU: it runs the PTX that a real GPU would get, and counts instructions.

Arrays are the stand-ins for CuPy's arrays.  Constants are those of a GPU, except for the number of multiprocessors: few
rows fill one of them, so the counts of two sizes differ only by the cost of rows.
"""

import ast
import ctypes
import hashlib
import importlib.abc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.cuda.instructions_c import c_name, write_module
from tests.cuda.instructions_costs import MEASURED, machine_instructions
from tests.cuda.instructions_ptx import BYTES, Module, read

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "instructions"
# Addresses of CuPy's allocations are multiples of this number of bytes.
DEVICE_ALIGNMENT = 512
COMPILER = ["gcc", "-w", "-O1", "-fno-strict-aliasing", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC"]
BACKEND = "gpu_encode.cuda"
MULTIPROCESSORS = 132
# Shared memory, in bytes, that a block may request on an H100 or an H200.
TABLE_BYTES = 232_448
ARCHITECTURE = (9, 0)
KINDS = ("load", "store", "atomic")


class Range(ctypes.Structure):
    """Memory of an array, and counts of the warps' accesses by `KINDS`."""

    _fields_ = [("begin", ctypes.c_uint64), ("end", ctypes.c_uint64)] + [
        (name, ctypes.c_uint64 * len(KINDS)) for name in ("warps", "lanes", "sectors", "bytes")
    ]


@dataclass
class Access:
    """Accesses of a launch to one array: its size in bytes; lanes, sectors and bytes of loads, stores and atomics."""

    size: int
    lanes: list[int]
    sectors: list[int]
    moved: list[int]


@dataclass
class Launch:
    """A counted launch."""

    kernel: str
    instructions: float
    shared_atomics: int
    accesses: list[Access] = field(default_factory=list)


def kept(name: str, make: Callable[[], str]) -> Path:
    """Return a file of `build/`, made on first use; its name says all that its content depends on."""
    path = FOLDER / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(make())
        part.replace(path)
    return path


class Program:
    """PTX as machine code of this CPU."""

    def __init__(self, ptx: str) -> None:
        self.module: Module = read(ptx)
        text, self.first, self.static = write_module(self.module)
        source = kept(f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.c", lambda: text)
        library = source.with_suffix(".so")
        if not library.exists():
            part = source.with_suffix(f".{os.getpid()}")
            subprocess.run([*COMPILER, "-o", str(part), str(source), "-lm"], check=True)
            part.replace(library)
        self.library = ctypes.CDLL(str(library))
        texts = [*self.module.functions.values(), *self.module.kernels.values()]
        n_segments = sum(len(kernel.segments) for kernel in texts)
        self.counters = np.ctypeslib.as_array((ctypes.c_uint64 * max(n_segments, 1)).in_dll(self.library, "cnt"))
        self.costs = MEASURED * np.array(
            [
                sum(machine_instructions(each.parts) for each in segment.instructions)
                for kernel in texts
                for segment in kernel.segments
            ]
        )

    def run(
        self, name: str, blocks: int, threads: int, words: list[Any], shared: int, arrays: list[tuple[int, int]]
    ) -> tuple[float, int, list[Access]]:
        """Run a kernel; return the instructions of all warps, the atomics in shared memory, and the accesses per array.

        Parameters
        ----------
        words : list of numbers, one for each parameter
        arrays : list of (address, bytes)
        """
        kernel = self.module.kernels[name]
        kinds = list(kernel.parameters.values())
        assert len(words) == len(kinds), f"{name} takes {len(kinds)} numbers, not {len(words)}"
        held = [packed(word, kind) for word, kind in zip(words, kinds, strict=True)]
        pointers = (ctypes.c_char_p * max(len(held), 1))(*held)
        ranges = (Range * max(len(arrays), 1))()
        for each, (address, size) in zip(ranges, arrays, strict=False):
            each.begin, each.end = address, address + size
        atomics, run = (ctypes.c_uint64 * 2)(), getattr(self.library, f"run_{c_name(name)}")
        run.restype, self.counters[:] = ctypes.c_char_p, 0
        wrong = run(
            blocks, threads, ctypes.c_uint64(self.static[name] + shared), pointers, ranges, len(arrays), atomics
        )
        if wrong:
            raise RuntimeError(f"{name}: {wrong.decode()}")
        if atomics[1]:
            raise RuntimeError(f"{name}: {atomics[1]} accesses outside of all arrays")
        accesses = [
            Access(size, list(each.lanes), list(each.sectors), list(each.bytes))
            for each, (_, size) in zip(ranges, arrays, strict=False)
        ]
        return float(self.counters @ self.costs), atomics[0], accesses


def packed(word: Any, kind: str) -> bytes:
    """Return the bytes of a parameter."""
    if kind[0] == "f":
        return np.array(word, f"f{BYTES[kind]}").tobytes()
    return (int(word) % 2 ** (8 * BYTES[kind])).to_bytes(BYTES[kind], "little") + bytes(8)


def digest(*parts: str) -> str:
    """Return a hash of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@cache
def program_of_numba(kernel: Any, signature: tuple[Any, ...]) -> Program:
    """Compile a kernel of numba for some types."""
    runtime, tools = import_module(f"{BACKEND}.runtime"), import_module("tests.cuda.ptx")
    key = digest(
        kernel.py_func.__module__,
        kernel.py_func.__qualname__,
        str(signature),
        runtime.sources_stamp(kernel.py_func),
    )
    return Program(kept(f"{key}.ptx", lambda: tools.ptx_of(kernel, signature, ARCHITECTURE)).read_text())


@cache
def program_of_source(text: str, options: tuple[str, ...]) -> Program:
    """Compile CUDA C++, with the options that CuPy adds to the package's."""
    return Program(kept(f"{digest(text, *options)}.ptx", lambda: compile_source(text, options)).read_text())


def compile_source(text: str, options: tuple[str, ...]) -> str:
    """Return the PTX of CUDA C++."""
    nvrtc = import_module("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"source.cu", 0, [], [])
    given = [*options, "-ftz=true", f"--gpu-architecture=compute_{ARCHITECTURE[0]}{ARCHITECTURE[1]}"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(given), [option.encode() for option in given])
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise ValueError(log.decode(errors="replace"))
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.decode().rstrip("\0")


class OneMultiprocessor(importlib.abc.MetaPathFinder):
    """Loads the backend for a GPU of one multiprocessor: replaces the number 132 in its sources."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Find a module of the backend."""
        if not f"{name}.".startswith(f"{BACKEND}."):
            return None
        spec = importlib.util.spec_from_file_location(name, *self.files(name))
        if spec is not None and spec.loader is not None:
            spec.loader.source_to_code = self.compile  # type: ignore[attr-defined]
            spec.loader.get_code = lambda _: self.compile(Path(spec.origin or "").read_bytes(), spec.origin)  # type: ignore[attr-defined]
        return spec

    def files(self, name: str) -> tuple[Path, ...]:
        """Return the file of a module."""
        path = ROOT.joinpath(*name.split("."))
        return (path / "__init__.py",) if path.is_dir() else (path.with_suffix(".py"),)

    def compile(self, source: bytes, path: Any, **_: Any) -> Any:
        """Compile a source of the backend."""
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == MULTIPROCESSORS and type(node.value) is int:
                node.value = 1
        return compile(tree, str(path), "exec")


class Device(AbstractContextManager[None]):
    """A device that may be made the current one, which it is."""

    id, compute_capability, mem_info = 0, "90", (1 << 40, 1 << 40)
    attributes: ClassVar = {"MultiProcessorCount": 1, "MaxSharedMemoryPerBlockOptin": TABLE_BYTES}

    def __exit__(self, *_: object) -> None:
        """Stay the current device."""


def stand_in_for_cupy() -> ModuleType:
    """Return a module `cupy` with arrays in this process's memory, and a device that answers the backend's calls."""
    strict = import_module("tests.cuda.strict")
    library = strict.Library()
    strict.StrictArray.__init__ = lambda array, held: setattr(array, "held", aligned(held))
    # Uploads call `set`; the recorder records the function that makes a device array from a host array instead.
    strict.StrictArray.set = lambda array, host, **_: array.held.__setitem__(Ellipsis, host)
    event = SimpleNamespace(record=bool, synchronize=bool)
    stream = SimpleNamespace(synchronize=lambda: None, wait_event=lambda _: None, record=lambda: event, ptr=0)
    device = Device()
    runtime = SimpleNamespace(
        deviceGetAttribute=lambda wanted, _: {"shared": TABLE_BYTES}.get(wanted, 1),
        cudaDevAttrMaxSharedMemoryPerBlockOptin="shared",
        cudaDevAttrMultiProcessorCount="multiprocessors",
    )
    made = ModuleType("cupy")
    made.__spec__ = ModuleSpec("cupy", None)
    made.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True,
        Device=lambda *_: device,
        Event=lambda **_: event,
        Stream=SimpleNamespace(null=stream),
        get_current_stream=lambda: stream,
        alloc_pinned_memory=bytearray,
        runtime=runtime,
    )
    made.ndarray = strict.StrictArray  # type: ignore[attr-defined]
    made.__getattr__ = lambda name: getattr(library, name)  # type: ignore[method-assign]
    return made


def aligned(held: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Move an array to an address as CuPy aligns it, unless it is a view of a moved array.

    Kernels read whole vectors, and a vector that crosses a cache line costs more.
    """
    if held.base is not None:
        return held
    room = np.empty(held.nbytes + DEVICE_ALIGNMENT, np.uint8)
    start = -room.ctypes.data % DEVICE_ALIGNMENT
    # Made from a memoryview: an array whose base is an array would be taken for a view.
    out = np.ndarray(held.shape, held.dtype, room[start : start + held.nbytes].data, strides=held.strides)
    out[...] = held
    return out


def install() -> None:
    """Make the backend run in this process; nothing may have loaded it before."""
    assert not any(f"{name}.".startswith(f"{BACKEND}.") for name in sys.modules), "the backend is loaded already"
    import_module("tests.cuda.strict")
    sys.modules["cupy"] = stand_in_for_cupy()
    sys.meta_path.insert(0, OneMultiprocessor())
    devices = import_module("gpu_encode.seam.devices")
    devices.driver_is_there = lambda: True
    devices.has_gpu.cache_clear()


def arrays_of(arguments: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays anywhere in the arguments of a launch."""
    if isinstance(arguments, (tuple, list)):
        for each in arguments:
            yield from arrays_of(each)
    elif hasattr(arguments, "held"):
        yield arguments.held


def memory_of(arguments: Any) -> list[tuple[int, int]]:
    """Return address and bytes of each array, in the order of the arguments; overlapping arrays count as one."""
    found: list[tuple[int, int]] = []
    for each in arrays_of(arguments):
        begin, end = np.lib.array_utils.byte_bounds(each)
        for other in [other for other in found if begin < sum(other) and other[0] < end]:
            found.remove(other)
            begin, end = min(begin, other[0]), max(end, sum(other))
        found.append((begin, end - begin))
    return found


@dataclass
class Machine:
    """Runs the launched kernels, and keeps their counts."""

    launches: list[Launch] = field(default_factory=list)

    def launch(self, kernel: Any, blocks: int, threads: int, *arguments: Any, shared: int = 0) -> None:
        """Stand in for `runtime.launch`."""
        runtime = import_module(f"{BACKEND}.runtime")
        signature = tuple(map(runtime.numba_type, map(runtime.type_of, arguments)))
        program = program_of_numba(kernel, signature)
        (entry,) = program.module.kernels
        words, function = list(runtime.pack(arguments)), kernel.py_func
        counted = program.run(entry, blocks, threads, words, shared, memory_of(arguments))
        self.launches.append(Launch(f"{function.__module__.rpartition('.')[2]}.{function.__name__}", *counted))

    def run(self, name: str, blocks: int, threads: int, *arguments: Any, shared: int = 0, variant: Any = None) -> None:
        """Stand in for `raw.run`."""
        raw = import_module(f"{BACKEND}.raw")
        program = program_of_source(raw.source_of(raw.FILES[name]), raw.options_of(variant or {}))
        words = [word.data.ptr if hasattr(word, "held") else word for word in raw.flatten(arguments)]
        counted = program.run(name, blocks, threads, words, shared, memory_of(arguments))
        label = ", ".join([f"{name}.cu", *map(str, (variant or {}).values())])
        self.launches.append(Launch(label, *counted))


@contextmanager
def counting(settings: dict[str, int]) -> Iterator[tuple[list[Launch], list[Any]]]:
    """Run the kernels launched inside the block; yield their counts, and the other calls that reach the device.

    Parameters
    ----------
    settings : dict
        Thresholds of the backend by "module.NAME"; "*.NAME" is set in every module that has it.
    """
    recorder, noted, machine = import_module("tests.cuda.call_recorder"), None, Machine()
    runtime, raw = import_module(f"{BACKEND}.runtime"), import_module(f"{BACKEND}.raw")
    with pytest.MonkeyPatch.context() as patch:
        modules = [module for name, module in sys.modules.items() if f"{name}.".startswith(f"{BACKEND}.")]
        for name, value in settings.items():
            where, _, constant = name.rpartition(".")
            named = [each for each in modules if where in ("*", each.__name__.rpartition(".")[2])]
            found = [module for module in named if hasattr(module, constant)]
            if not found:
                raise LookupError(f"{BACKEND} has no {name}")
            for module in found:
                patch.setattr(module, constant, value)
        recorder.replace_everywhere(patch, runtime.launch, machine.launch)
        recorder.replace_everywhere(patch, raw.run, machine.run)
        noted = recorder.Recorder()
        recorder.watch_arrays(patch, noted)
        yield machine.launches, noted.events
