"""The backends of the suites: OPS_BACKENDS names them, separated by commas; if one cannot run, the tests fail.

Names are "numpy", "compiled-1" (1 is the number of threads), "cuda-simulator" and "cuda".
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest

from cpu_fallback.exact import Limbs, Ratio
from cpu_fallback.types import Carry, Rows
from gpu_encode.seam import ops as seam
from gpu_encode.seam.ops import Ops

DEFAULT = "numpy,compiled-1,compiled-2,compiled-3"
BACKENDS = tuple(os.environ.get("OPS_BACKENDS", DEFAULT).split(","))
ON_CUDA = tuple(name for name in BACKENDS if name.startswith("cuda"))

# Kernels launched in the simulator, each with the types of its arguments.
LAUNCHED: set[str] = set()


def record_launches() -> None:
    """Record every launch in the simulator, which has no types, so that a machine without a GPU can compile them."""
    runtime = import_module("gpu_encode.cuda.runtime")
    launch = runtime.launch

    def noted(kernel: Any, blocks: int, threads: int, *arguments: Any, shared: int = 0) -> None:
        module = kernel.fn.__module__.rsplit(".", 1)[-1]
        launch(kernel, blocks, threads, *arguments, shared=shared)
        # A refused call is not a launch.
        LAUNCHED.add(f"{module}.{kernel.fn.__name__}({', '.join(map(type_of, arguments))})")

    # By now every module with kernels has imported `launch`.
    for name, module in list(sys.modules.items()):
        if name.startswith("gpu_encode.cuda") and getattr(module, "launch", None) is launch:
            module.launch = noted  # type: ignore[attr-defined]


def type_of(argument: Any) -> str:
    """Return the name of the type that numba gives to an argument."""
    if hasattr(argument, "ndim") and argument.ndim:
        return f"{argument.dtype}{'[]' * argument.ndim}"
    if isinstance(argument, tuple):
        return f"{type(argument).__name__}({', '.join(map(type_of, argument))})"
    plain = {bool: "bool", int: "int64", float: "float64"}
    return plain[type(argument)] if type(argument) in plain else str(np.asarray(argument).dtype)


class Lazily:
    """A module of the CUDA backend, loaded on first use; if it cannot be loaded, the tests that use it are skipped."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.name), name)


memory = Lazily("gpu_encode.cuda.memory")


@contextmanager
def backend(name: str) -> Iterator[Ops]:
    """Return one backend, ready for host arrays."""
    kind, _, threads = name.partition("-") if name.startswith("compiled") else (name, "", "")
    if kind.startswith("cuda"):
        with seam.use_backend(kind):
            yield cast(Ops, OnHost(seam.resolve(0)))
    elif kind == "numpy":
        yield cast(Ops, import_module("cpu_fallback"))
    else:
        with on_threads(int(threads or 1)):
            yield cast(Ops, import_module("cpu_fallback.compiled"))


@contextmanager
def on_threads(number: int) -> Iterator[None]:
    """Let the compiled backend use `number` threads, however few rows there are."""
    pool = import_module("cpu_fallback.compiled.threads")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("threads", "moments", "blending", "views", "ordered_digits"):
            patch.setattr(import_module(f"cpu_fallback.compiled.{name}"), "SMALLEST_SHARE", 1)
        pool.set_threads(number)
        yield
        pool.set_threads(None)


@contextmanager
def small_tiles(rows: int) -> Iterator[None]:
    """Let backends work through tiles of `rows` rows; GPU kernels have their own tiles."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("cpu_fallback", "cpu_fallback.compiled", *(["gpu_encode.cuda"] if ON_CUDA else [])):
            patch.setattr(import_module(name), "TILE", rows)
        yield


class OnHost:
    """A device backend that takes and returns host arrays, so that one suite tests all backends."""

    def __init__(self, ops: Ops) -> None:
        self.ops = ops

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.ops, name)
        return self._around(operation) if callable(operation) else operation

    def _around(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(operation)
        def call(*arguments: Any) -> Any:
            return self.off(operation(*(self.on(each) for each in arguments)))

        return call

    def on(self, value: Any) -> Any:
        """Bring arrays to the device."""
        if isinstance(value, np.ndarray):
            return self.ops.to_device(value)
        if isinstance(value, Rows):
            return Rows(*(self.on(part) for part in (value.codes, value.classes, value.target, value.weight)))
        if isinstance(value, Ratio):
            return Ratio(*map(self.on, value))
        return replace(value, digits=self.on(value.digits)) if isinstance(value, Limbs) else value

    def off(self, value: Any) -> Any:
        """Bring arrays back."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.off, value))
        if isinstance(value, tuple | list):
            return type(value)(map(self.off, value))
        return self.ops.to_host(value) if hasattr(value, "shape") else value

    def gather(self, table: Any, codes: Any, folds: Any, out: Any) -> None:
        """Gather into a device array with the same memory layout as `out`, as far as the device has that layout."""
        self._written(self.ops.gather, table, codes, folds, out=out)

    def gather_numbers(self, table: Any, values: Any, categories: Any, out: Any) -> None:
        """Do the same for a column of numbers."""
        self._written(self.ops.gather_numbers, table, values, categories, out=out)

    def _written(self, operation: Any, *given: Any, out: Any) -> None:
        order = "F" if out.flags.f_contiguous else "C"
        found = self.ops.xp.empty(out.shape, out.dtype.newbyteorder("="), order=order)
        operation(*map(self.on, given), found)
        out[...] = self.off(found)

    def accumulate(self, rows: Rows, shape: Any, folds: Any = None, sums: Any = None) -> Any:
        """Bring the sums that are given there and back."""
        there = self.on(sums)
        found = self.ops.accumulate(self.on(rows), shape, self.on(folds), there)
        if found is not there:
            return self.off(found)
        sums[...] = self.off(there)
        return sums

    def ordered(self, rows: Rows, ties: Any, layout: Any, carry: Carry) -> Any:
        """Bring the carry there and back as well."""
        there = Carry(*(self.on(part.copy()) for part in (carry.sums, carry.at_tie, carry.last_tie)))
        seen = self.off(self.ops.ordered(self.on(rows), self.on(ties), layout, there))
        for name in ("sums", "at_tie", "last_tie"):
            getattr(carry, name)[...] = self.off(getattr(there, name))
        return seen
