"""Records every call that would reach a GPU, on the strict arrays that replace CuPy's in the simulator.

The record of a call has the line that made it, and the number of items that it reads and writes.  Each array counts
once, however often a kernel reads or writes it.  A gather by an index array reads as many items as it gives.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from pkgutil import walk_packages
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.cuda.strict import Library, StrictArray, index

ROOT = Path(__file__).parents[2]
PACKAGES = ("gpu_encode", "cpu_fallback")
LAUNCHES = ("gpu_encode/cuda/runtime.py", "gpu_encode/cuda/raw/__init__.py")
# For calls of these modules the caller, who asks for memory or a transfer, is recorded too.
MEMORY = "gpu_encode/cuda/memory.py"

KERNEL, RAW, TO_DEVICE, SYNC = "KERNEL", "RAW", "H2D", "SYNC"
# Methods that wait for the device: a number or an array comes to the host.
WAITING = ("__bool__", "__float__", "__int__", "get", "item", "tolist")
# Functions whose result has a length that depends on the data: CuPy waits inside them.
SIZED_BY_DATA = ("argwhere", "extract", "flatnonzero", "nonzero", "unique")
# They only allocate memory: no kernel runs.
UNWRITTEN = ("empty", "empty_like")
SHAPED = ("full_like", "ones_like", "zeros_like")


@dataclass(frozen=True)
class Event:
    """One thing that a call does on the device: a launch, a copy, a wait or a CuPy call.

    Parameters
    ----------
    kind : str
        KERNEL and RAW are launches, TO_DEVICE a copy from the host, SYNC a wait for the device; CuPy has other kinds.
    name : str
    where : str
        File and line of the package that made the call.
    arrays : tuple of (int, int)
        Number of items, and bytes per item, of each array that is read or written.
    numbers : tuple of int
        Integer arguments of the launch.
    """

    kind: str
    name: str
    where: str
    arrays: tuple[tuple[int, int], ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The fields that are equal in all calls from one line."""
        return self.kind, self.name, self.where


def caller() -> str:
    """Return the innermost line of the package, and for memory and transfers also its caller; otherwise "test"."""
    lines: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (not lines or lines[-1].startswith(MEMORY)):
        path = Path(frame.f_code.co_filename)
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
        if name.split("/")[0] in PACKAGES and name not in LAUNCHES:
            lines.append(f"{name}:{frame.f_lineno}")
        frame = frame.f_back
    return " for ".join(dict.fromkeys((lines[0], lines[-1]))) if lines else "test"


def arrays_in(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the device arrays anywhere in an argument."""
    if isinstance(value, StrictArray):
        yield value.held
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))


def numbers_in(value: Any) -> Iterator[int]:
    """Yield the integers anywhere in the arguments of a launch."""
    if isinstance(value, (int, np.integer)):
        yield int(value)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from numbers_in(part)


def extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return how many items an array holds (a broadcast item counts once), and the bytes of an item."""
    pairs = zip(array.shape, array.strides, strict=True)
    return int(
        np.prod([length if stride else min(length, 1) for length, stride in pairs], dtype=np.int64)
    ), array.itemsize


def extents(value: Any) -> list[tuple[int, int]]:
    """Return the extents of the distinct arrays anywhere in an argument."""
    found = {(each.ctypes.data, each.shape, each.strides): extent(each) for each in arrays_in(value)}
    return list(found.values())


def is_view(result: Any, given: Any) -> bool:
    """Whether a result shares the memory of an argument, so that no kernel ran."""
    inputs = list(arrays_in(given))
    return all(any(np.may_share_memory(each, one) for one in inputs) for each in arrays_in(result))


@dataclass
class Recorder:
    """Records what reaches the device."""

    events: list[Event] = field(default_factory=list)
    launched_rows: list[int] = field(default_factory=list)

    def note(self, kind: str, name: str, arrays: list[tuple[int, int]], numbers: tuple[int, ...] = ()) -> None:
        """Add an event of the current line."""
        self.events.append(Event(kind, name, caller(), tuple(arrays), numbers))

    def note_result(self, kind: str, name: str, given: Any, options: dict[str, Any], result: Any) -> None:
        """Record a CuPy function, unless it ran no kernel: it returned a view, unwritten memory or no array."""
        if name in SIZED_BY_DATA:
            self.note(SYNC, name, [])
        written = "out" in options or result is None
        if name in UNWRITTEN or not (written or any(True for _ in arrays_in(result))):
            return
        if kind != "ufunc" and not written and is_view(result, (given, options)):
            return
        read = [] if name in SHAPED else extents((given, {k: v for k, v in options.items() if k != "out"}))
        if name == "take":
            read = [*extents(given[1:]), *extents(result)]
        self.note(kind, name, [*read, *extents(result)])

    def launch(self, run: Callable[..., None], kind: str, kernel: Any, *given: Any, **options: Any) -> None:
        """Record a launch: kernel, blocks, threads and arguments."""
        name = kernel if isinstance(kernel, str) else kernel.fn.__name__
        arguments = given[2:]
        self.note(kind, name, extents(arguments), (*self.launched_rows, *numbers_in(arguments)))
        run(kernel, *given, **options)

    def launch_rows(self, run: Callable[..., None], kernel: Any, n_rows: int, *given: Any, **options: Any) -> None:
        """Remember how many rows the kernel launched inside walks over."""
        self.launched_rows = [n_rows]
        run(kernel, n_rows, *given, **options)
        self.launched_rows = []

    def method(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Record a method of an array."""

        @wraps(run)
        def noted(array: StrictArray, *given: Any, **options: Any) -> Any:
            result = run(array, *given, **options)
            if name == "put":
                places, values = extents(given[0]), extents(given[1])
                self.note("method", name, [*places, *values, (places[0][0], array.itemsize)])
            # CuPy returns the array itself.
            elif not (name == "astype" and options.get("copy") is False and result.dtype == array.dtype):
                self.note_result("method", name, (array, *given), options, result)
            return result

        return noted

    def waiting(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Record a method that brings an array to the host."""

        def noted(array: StrictArray, *given: Any) -> Any:
            self.note(SYNC, name, extents(array))
            return run(array, *given)

        return noted

    def ufunc(self, run: Any, array: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Record an element-wise function."""
        result = run(array, ufunc, method, *inputs, **options)
        if result is not NotImplemented:
            self.note_result("ufunc", ufunc.__name__, inputs, options, result)
        return result

    def function(self, run: Any, array: Any, function: Any, types: Any, given: Any, options: dict[str, Any]) -> Any:
        """Record a NumPy function that CuPy takes over."""
        result = run(array, function, types, given, options)
        if result is not NotImplemented:
            self.note_result("func", function.__name__, given, options, result)
        return result

    def get_item(self, run: Any, array: StrictArray, key: Any) -> StrictArray:
        """Record a gather; slices are views."""
        result: StrictArray = run(array, key)
        if places := extents(key):
            if any(each.dtype == bool for each in arrays_in(key)):
                self.note(SYNC, "getitem", [])
            self.note("copy", "getitem", [*places, *extents(result), *extents(result)])
        return result

    def set_item(self, run: Any, array: StrictArray, key: Any, value: Any) -> None:
        """Record a copy, except the copy of a view to its own place, with which `a[k] += 1` ends."""
        run(array, key, value)
        target = np.asarray(array.held[index(key)])
        same = [(each.ctypes.data, each.shape, each.strides) for each in arrays_in(value)]
        if same != [(target.ctypes.data, target.shape, target.strides)]:
            self.note("copy", "setitem", [*extents(value), extent(target)])

    def attribute(self, run: Any, library: Library, name: str) -> Any:
        """Record calls of the library's functions."""
        made = run(library, name)
        if isinstance(made, type) or not callable(made):
            return made

        def noted(*given: Any, **options: Any) -> Any:
            result = made(*given, **options)
            if name not in Library.UPLOADS or isinstance(given[0], StrictArray):
                self.note_result("lib", name, given, options, result)
            elif not hasattr(given[0], "__cuda_array_interface__"):
                self.note(TO_DEVICE, name, extents(result))
            return result

        return noted


def load_backend() -> Any:
    """Load the whole backend, since a module loaded later would keep the patched functions.  Returns its runtime."""
    package = import_module("gpu_encode.cuda")
    for module in walk_packages(package.__path__, "gpu_encode.cuda."):
        import_module(module.name)
    runtime = import_module("gpu_encode.cuda.runtime")
    if not (runtime.SIMULATED and runtime.xp.ndarray is StrictArray):
        message = "Set NUMBA_ENABLE_CUDASIM=1 and GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in first."
        raise RuntimeError(message)
    return runtime


def replace_everywhere(patch: pytest.MonkeyPatch, before: Any, after: Any) -> None:
    """Replace a function under every name that modules of the backend have for it."""
    for module in [module for name, module in sys.modules.items() if name.startswith("gpu_encode.cuda")]:
        for name in [name for name, value in vars(module).items() if value is before]:
            patch.setattr(module, name, after)


def watch_arrays(patch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    """Make a recorder record the operations on arrays."""
    plain = {name: value for name, value in vars(StrictArray).items() if isfunction(value) and not name.startswith("_")}
    for name in plain.keys() - set(WAITING):
        patch.setattr(StrictArray, name, recorder.method(name, plain[name]))
    for name in WAITING:
        patch.setattr(StrictArray, name, recorder.waiting(name, vars(StrictArray)[name]))
    named = {
        (StrictArray, "__array_ufunc__"): recorder.ufunc,
        (StrictArray, "__array_function__"): recorder.function,
        (StrictArray, "__getitem__"): recorder.get_item,
        (StrictArray, "__setitem__"): recorder.set_item,
        (Library, "__getattr__"): recorder.attribute,
    }
    for (owner, name), note in named.items():
        patch.setattr(owner, name, as_method(note, vars(owner)[name]))


def as_method(note: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that records each of its calls."""
    return lambda *given, **options: note(run, *given, **options)


@contextmanager
def recording() -> Iterator[list[Event]]:
    """Record what reaches the device inside the block."""
    runtime, recorder = load_backend(), Recorder()
    raw = import_module("gpu_encode.cuda.raw")
    with pytest.MonkeyPatch.context() as patch:
        watch_arrays(patch, recorder)
        for run, note in (
            (runtime.launch, partial(recorder.launch, runtime.launch, KERNEL)),
            (raw.run, partial(recorder.launch, raw.run, RAW)),
            (runtime.launch_rows, partial(recorder.launch_rows, runtime.launch_rows)),
        ):
            replace_everywhere(patch, run, note)
        yield recorder.events
