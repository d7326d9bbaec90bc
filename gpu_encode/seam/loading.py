"""One thread at a time loads modules or compiles, and no process is forked meanwhile: its child would wait for ever."""

# Locks are taken at a fork in the reverse order of their registration.  Modules take the lock of logging while they
# are loaded, so that a fork has to wait for them before it takes that lock: it is registered first.
import concurrent.futures.thread  # noqa: F401
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Modules that two threads load at once, from two ends, would find each other half made.
LOADING = threading.RLock()


def stop_loading() -> None:
    """Wait until no other thread loads a module or compiles, and let none begin."""
    LOADING.acquire()
    # Not before: numba may be what the other thread was loading.
    numba_lock = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if numba_lock is not None:
        numba_lock.acquire()
        _compiling.append(numba_lock)


def resume_loading() -> None:
    """Let other threads go on."""
    while _compiling:
        _compiling.pop().release()
    LOADING.release()


# Numba's lock, while a process is forked.
_compiling: list[threading.RLock] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=stop_loading, after_in_parent=resume_loading, after_in_child=resume_loading)


def door_to(address: str) -> Callable[[str], Any]:
    """Give the ``__getattr__`` of a module that has the names of another one, which is loaded when one is asked for."""

    def find(name: str) -> Any:
        # What Python itself asks a module for is its own: a path would make it a package.
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        with LOADING:
            return getattr(import_module(address), name)

    return find
