"""Compiled kernels on disk, safe for processes that start together.

Numba keeps an index beside numbered files, and reads, changes and writes it without a lock: two processes that
compile at once can both take the number 1, and who reads it later runs machine code of another signature.  A lock
would not do: many shared file systems of clusters, where workers start together, have none that reaches every node.
Here the name of a file says all that it depends on, so that there is nothing to share.

This is the only file that knows numba's private interface of caches.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from pickle import loads
from tempfile import TemporaryDirectory
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

SOURCES = Path(__file__).parents[1]


@cache
def sources_stamp() -> str:
    """Tell one state of the sources from another: a kernel holds code and constants of other files, too."""
    states = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(SOURCES.rglob("*.py"))]
    return sha256(repr(states).encode()).hexdigest()[:8]


class KernelFiles:
    """The files of one kernel, one for each signature and processor; numba calls `load`, `save` and `flush`."""

    def __init__(self, folder: Path, kernel_name: str, stamp: str) -> None:
        self.folder, self.stamp = folder, stamp
        self.of_version = f"{kernel_name}.{numba.__version__}."

    def load(self, key: Any) -> Any:
        """Give what was saved for this very key, or None."""
        # Whatever is wrong with a file, the kernel can be compiled again.
        with suppress(Exception):
            saved, data = loads(self._path(key).read_bytes())
            return data if saved == key else None
        return None

    def save(self, key: Any, data: Any) -> None:
        """Save the machine code of one signature; a folder that takes no file costs a compilation, not the call."""
        with suppress(OSError), TemporaryDirectory(dir=self.folder) as unfinished:
            file = Path(unfinished, "kernel")
            file.write_bytes(dumps((key, data)))
            file.replace(self._path(key))
            self._remove(but=self.stamp)

    def flush(self) -> None:
        """Forget all signatures."""
        self._remove()

    def _path(self, key: Any) -> Path:
        return self.folder / f"{self.of_version}{self.stamp}.{sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def _remove(self, but: str | None = None) -> None:
        for path in self.folder.glob(f"{self.of_version}*.nbc"):
            if path.name.split(".")[-3] != but:
                path.unlink(missing_ok=True)


class KernelCache(FunctionCache):
    """What numba asks for machine code before it compiles."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = KernelFiles(Path(self.cache_path), self._impl.filename_base, sources_stamp())


def keep_on_disk(kernel: Any) -> Any:
    """Keep what the kernel compiles to on disk, where a folder for it can be written."""
    # With NUMBA_DISABLE_JIT a kernel is the Python function itself; RuntimeError: no folder can be written.
    if hasattr(kernel, "enable_caching"):
        with suppress(RuntimeError):
            kernel._cache = KernelCache(kernel.py_func)
    return kernel
