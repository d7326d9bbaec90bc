"""Compiled kernels on disk, safe for processes that start together.

Numba keeps an index beside numbered files, and reads, changes and writes it without a lock: two processes that
compile at once can both take the number 1, and who reads it later runs machine code of another signature.  A lock
would not do: many shared file systems of clusters, where workers start together, have none that reaches every node.
Here the name of a file says all that it depends on, so that there is nothing to share.

This is the only file that knows numba's private interface of caches.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
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

_said: list[str] = []


class KernelFiles:
    """The files of one kernel, one for each signature and processor."""

    def __init__(self, folder: Path, kernel_name: str, stamp: str) -> None:
        self.folder, self.stamp = folder, stamp
        self.of_version = f"{kernel_name}.{sys.implementation.cache_tag}.{numba.__version__}."

    def load(self, key: Any) -> Any:
        """Give what was saved for this very key, or None."""
        # Whatever is wrong with a file, the kernel can be compiled again.
        with suppress(Exception):
            saved, data = loads(self._path(key).read_bytes())
            return data if saved == key else None
        return None

    def save(self, key: Any, data: Any) -> bool:
        """Save the machine code of one signature, and say whether the folder took it; it costs no call if not."""
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
    """What numba asks for machine code before it compiles, and gives what it has compiled."""

    # Kernels compiled here, and those of them that no folder took.
    compiled = lost = 0

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.code = function, sha256(function.__code__.co_code).hexdigest()

    @cached_property
    def files(self) -> KernelFiles:
        """The kernel's files, found when it is called: its stamp is read off the sources."""
        module, name = self.function.__module__, self.function.__qualname__
        file = f"{module.rpartition('.')[2]}.{name}"
        if file_of(module) is None or "." in name:
            # Not a statement of ours: known by its line, and by all that it may use.
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
        if data is None:
            say_that_a_call_waits()
            return None
        # All that machine code needs of numba; what compiling would need as well takes it a quarter of a second.
        rtsys.initialize(target)
        return CompileResult._rebuild(target, *data)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save what was compiled, but for how its types were found."""
        KernelCache.compiled += 1
        library, *rest, environments = compiled._replace(type_annotation="")._reduce()
        # Where there is nothing in it, no code reads an environment.
        filled = tuple(environment for environment in environments if environment.consts)
        data = (names_of(library), *rest, filled)
        KernelCache.lost += not self.files.save(self._key(signature, compiled.library.codegen), data)

    def enable(self) -> None:
        """Do nothing: it always is."""

    def disable(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Forget the kernel."""
        self.files.flush()

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self.code, llvmlite.__version__


def names_of(library: Any) -> Any:
    """Give a library as numba saves it, without the code by which it could be a part of others: kernels never are.

    The names of what it defines stay; to read the code took half of the time of loading a kernel.
    """
    name, kind, (machine_code, code) = library
    module = llvm.parse_bitcode(code)
    values = [*module.functions, *module.global_variables]
    names = [value.name for value in values if not value.is_declaration and value.linkage not in HIDDEN]
    named = llvm.parse_assembly("".join(f'@"{name}" = global i8 0\n' for name in names))
    return name, kind, (machine_code, named.as_bitcode())


def say_that_a_call_waits() -> None:
    """Say once that a call compiles, unless that is what was asked for."""
    if not _said and sys.stderr is not None and os.environ.get(kernel_folder.COMPILE_SETTING) != "now":
        _said.append(WAITING)
        sys.stderr.write(WAITING)


def keep_on_disk(kernel: Any) -> Any:
    """Keep what the kernel compiles to on disk."""
    # With NUMBA_DISABLE_JIT a kernel is the Python function itself.
    if hasattr(kernel, "enable_caching"):
        kernel._cache = KernelCache(kernel.py_func)
    return kernel
