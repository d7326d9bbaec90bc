"""Compiled kernels on disk, safe for processes that start together.

Numba keeps an index beside numbered files, and reads, changes and writes it without a lock: two processes that
compile at once can both take the number 1, and who reads it later runs machine code of another signature.  Here the
name of a file says all that it depends on, so that there is nothing to share, and a file answers for its own key.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from pickle import loads
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

KERNELS = Path(__file__).parent


@cache
def sources_stamp() -> str:
    """Tell one state of the sources from another: a kernel holds code of kernels in other files, too."""
    states = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(KERNELS.glob("*.py"))]
    return sha256(repr(states).encode()).hexdigest()[:8]


class KernelFiles(IndexDataCacheFile):
    """The files of one kernel, one for each signature and processor."""

    def __init__(self, folder: str, kernel_name: str, stamp: str) -> None:
        super().__init__(folder, kernel_name, stamp)
        self._of_version = f"{kernel_name}.{numba.__version__}."
        self._stamp = stamp

    def save(self, key: Any, data: Any) -> None:
        """Keep the machine code of one signature; a folder that takes no file costs a compilation, not the call."""
        with suppress(OSError):
            self._save_data(self._name(key), (key, data))
            for path in Path(self._cache_path).glob(f"{self._of_version}*.nbc"):
                if not path.name.startswith(f"{self._of_version}{self._stamp}."):
                    path.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        """Give what was kept for this very key, or None."""
        try:
            kept, data = loads(Path(self._data_path(self._name(key))).read_bytes())
        # Whatever is wrong with a file, the kernel can be compiled again.
        except Exception:
            return None
        return data if kept == key else None

    def flush(self) -> None:
        """Forget all signatures."""
        for path in Path(self._cache_path).glob(f"{self._of_version}*.nbc"):
            path.unlink(missing_ok=True)

    def _name(self, key: Any) -> str:
        return f"{self._of_version}{self._stamp}.{sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


class KernelCache(FunctionCache):
    """What numba asks for machine code before it compiles."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = KernelFiles(self._cache_path, self._impl.filename_base, sources_stamp())


def kept(kernel: Any) -> Any:
    """Keep what the kernel compiles to on disk, where a folder for it can be written."""
    # With NUMBA_DISABLE_JIT a kernel is the Python function itself; RuntimeError: no folder can be written.
    if hasattr(kernel, "enable_caching"):
        with suppress(RuntimeError):
            kernel._cache = KernelCache(kernel.py_func)
    return kernel
