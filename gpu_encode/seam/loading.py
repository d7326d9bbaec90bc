"""One thread at a time loads modules or compiles, and no process is forked meanwhile: its child would wait for ever."""

# Locks are taken at a fork in the reverse order of their registration.  Modules take the lock of logging while they
# are loaded, so that a fork has to wait for them before it takes that lock: it is registered first.
import concurrent.futures.thread  # noqa: F401
import os
import sys
import threading

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
