"""Compiled kernels on disk, safe for processes that start together.

Numba keeps numbered files and an index, and reads, changes and writes the index without a lock.  So two processes that
compile at once may both take the number 1, and a later process may run machine code of another signature.  A lock would
not help: on clusters, workers start together, and many shared file systems have no locks for all nodes.  Here the name
of a file contains all that the file depends on, so there is no index.

This is the only file that uses numba's private interface of caches.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pickle import loads
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from cpu_fallback import kernel_folder
from cpu_fallback.kernel_sources import file_of, sources_stamp

WAITING = (
    "gpu-encode: compiling for this call, which takes seconds and is kept for later processes; "
    "`gpu-encode warm-up` compiles everything beforehand\n"
)

HIDDEN = (llvm.Linkage.internal, llvm.Linkage.private)
# Module, name and types of each part with machine code of its own, by the name of its machine code.
SEPARATE: dict[str, tuple[str, str, Any]] = {}

_said: list[str] = []


class KernelFiles:
    """The files of one kernel, one for each signature and processor."""

    def __init__(self, folder: Path, kernel_name: str, stamp: str) -> None:
        self.folder, self.stamp = folder, stamp
        self.of_version = f"{kernel_name}.{sys.implementation.cache_tag}.{numba.__version__}."

    def load(self, key: Any) -> Any:
        """Give the data that was saved for exactly this key, or None."""
        # Whatever is wrong with a file, the kernel can be compiled again.
        with suppress(Exception):
            saved, data = loads(self._path(key).read_bytes())
            return data if saved == key else None
        return None

    def save(self, key: Any, data: Any) -> bool:
        """Save the machine code of one signature, and tell whether this worked; if not, no call fails."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=self.folder) as unfinished:
                file = Path(unfinished, "kernel")
                file.write_bytes(dumps((key, data)))
                file.replace(self._path(key))
                self._remove(but=self.stamp)
                return True
        return False

    def flush(self) -> None:
        """Forget all signatures."""
        self._remove()

    def _path(self, key: Any) -> Path:
        return self.folder / f"{self.of_version}{self.stamp}.{sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def _remove(self, but: str | None = None) -> None:
        for path in self.folder.glob(f"{self.of_version}*.nbc"):
            if path.name.split(".")[-3] != but:
                path.unlink(missing_ok=True)


class KernelCache:
    """The cache in which numba looks for machine code before it compiles, and to which it gives compiled code."""

    # Number of kernels compiled here, and number of kernels that could not be saved.
    compiled = lost = 0

    def __init__(self, function: Callable[..., Any], form: str = "") -> None:
        self.function, self.code = function, sha256(function.__code__.co_code).hexdigest() + form

    @cached_property
    def files(self) -> KernelFiles:
        """The kernel's files; they are found at its first call, since its stamp is computed from the sources."""
        module, name = self.function.__module__, self.function.__qualname__
        file = f"{module.rpartition('.')[2]}.{name}"
        if file_of(module) is None or "." in name:
            # A function outside of our sources has a stamp from its line and from all sources.
            line = self.function.__code__.co_firstlineno
            return KernelFiles(kernel_folder.folder(), f"{file}-{line}", sources_stamp())
        return KernelFiles(kernel_folder.folder(), file, kernel_folder.stamp_of(module, name))

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self.files.folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Give a kernel that was saved, or None."""
        data = self.files.load(self._key(signature, target.codegen()))
        if data is None or not are_loaded(data[0]):
            say_that_a_call_waits()
            return None
        # Machine code needs only this step of numba; loading numba's compiler would take a quarter of a second more.
        rtsys.initialize(target)
        return CompileResult._rebuild(target, *data[1:])

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save compiled code, without the annotations of its types."""
        KernelCache.compiled += 1
        library, *rest, environments = compiled._replace(type_annotation="")._reduce()
        # If an environment is empty, no code reads it.
        filled = tuple(environment for environment in environments if environment.consts)
        data = (*without_code(library), *rest, filled)
        KernelCache.lost += not self.files.save(self._key(signature, compiled.library.codegen), data)

    def enable(self) -> None:
        """Do nothing, since the cache is always enabled."""

    def disable(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Forget the kernel."""
        self.files.flush()

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self.code, llvmlite.__version__


def are_loaded(called: dict[str, tuple[str, str, Any]]) -> bool:
    """Load, or compile, the separate parts that a kernel calls; tell whether they have the names that it calls."""
    for module, name, types in called.values():
        getattr(import_module(module), name).compile(types)
    return called.keys() <= SEPARATE.keys()


def without_code(library: Any) -> tuple[dict[str, Any], Any]:
    """Give the separate parts that a library calls, and the library without the code that others need to include it.

    The library is in numba's form for files.  No library includes a kernel, and reading this code took half of the time
    of loading a kernel.  Names are kept.
    """
    name, kind, (machine_code, code) = library
    module = llvm.parse_bitcode(code)
    declared = [function.name for function in module.functions if function.is_declaration]
    called = {name: SEPARATE[name] for name in declared if name in SEPARATE}
    values = [*module.functions, *module.global_variables]
    names = [value.name for value in values if not value.is_declaration and value.linkage not in HIDDEN]
    named = llvm.parse_assembly("".join(f'@"{name}" = global i8 0\n' for name in names))
    return called, (name, kind, (machine_code, named.as_bitcode()))


def say_that_a_call_waits() -> None:
    """Write once to stderr that a call compiles, unless compiling was asked for."""
    if not _said and sys.stderr is not None and os.environ.get(kernel_folder.COMPILE_SETTING) != "now":
        _said.append(WAITING)
        sys.stderr.write(WAITING)


def keep_on_disk(kernel: Any, form: str = "") -> Any:
    """Keep a kernel's machine code on disk, in a file of its own for each form."""
    # With NUMBA_DISABLE_JIT a kernel is the Python function itself.
    if hasattr(kernel, "enable_caching"):
        kernel._cache = KernelCache(kernel.py_func, form)
    return kernel
