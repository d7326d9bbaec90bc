"""Only one thread at a time loads modules or compiles, and no process forks meanwhile: the child would wait forever."""

# Locks are taken at a fork in the reverse order of their registration.  Modules take the lock of logging while they are
# loaded, so a fork has to wait for modules before it takes that lock.  So this import registers that lock first.
import concurrent.futures.thread  # noqa: F401
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Two threads that load modules which import one another could each find a module that is only half loaded.
LOADING = threading.RLock()


def stop_loading() -> None:
    """Wait until no other thread loads a module or compiles, and let no thread begin."""
    LOADING.acquire()
    # Numba is asked only now: the other thread may have been loading it.
    numba_lock = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if numba_lock is not None:
        numba_lock.acquire()
        _compiling.append(numba_lock)


def resume_loading() -> None:
    """Let other threads go on."""
    while _compiling:
        _compiling.pop().release()
    LOADING.release()


# Numba's lock, which this process holds while it forks.
_compiling: list[threading.RLock] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=stop_loading, after_in_parent=resume_loading, after_in_child=resume_loading)


def door_to(address: str) -> Callable[[str], Any]:
    """Give the ``__getattr__`` of a module with the names of another module, which is loaded at the first use."""

    def find(name: str) -> Any:
        # Names that Python itself asks for are not found: a path, for example, would make the module a package.
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        with LOADING:
            return getattr(import_module(address), name)

    return find
