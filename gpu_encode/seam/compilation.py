"""Kernels are compiled in a process of their own, of low priority, which ends with this one: no call waits for it.

Numba compiles under the interpreter's lock, so a thread would be in the caller's way.
"""

import atexit
import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from cpu_fallback import kernel_folder

try:
    import fcntl
except ImportError:  # without it two processes may both compile, to the same files
    fcntl = None  # type: ignore[assignment]

SETTING = kernel_folder.COMPILE_SETTING
MODES = ("background", "now", "never")
# Seconds between two looks for the process that this one compiles for.
PATIENCE = 0.5
# The child imports from where this process does, and leaves the folder that it was started in alone.
PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; from gpu_encode.seam import compilation; "
    "compilation.end_with(int(sys.argv[1])); from gpu_encode.warm_up import compile_all; compile_all()"
)

# What each process started, by its number: a forked one has not started what its parent did.
_children: dict[int, "subprocess.Popen[bytes]"] = {}


def mode() -> str:
    """Give where kernels are compiled: the environment's GPU_ENCODE_COMPILE, in the background where it is not set."""
    given = os.environ.get(SETTING) or MODES[0]
    if given not in MODES:
        message = f"the environment variable {SETTING} must be one of {', '.join(MODES)}. Got {given!r}."
        raise ValueError(message)
    return given


def is_ready() -> bool:
    """Say whether a call finds its kernels compiled, or is to compile them itself; reap what has compiled them."""
    if _children and (child := _children.get(os.getpid())) is not None:
        child.poll()
    return is_compiled() or mode() == "now" or bool(os.environ.get("NUMBA_DISABLE_JIT"))


def is_compiled() -> bool:
    """Say whether every kernel is on disk."""
    return kernel_folder.is_complete()


def folder() -> Path:
    """Give the folder of the kernels."""
    return kernel_folder.folder()


def is_private() -> bool:
    """Say whether no other process finds the folder, since there was none that could be written."""
    return bool(kernel_folder.environment())


def start() -> None:
    """Start to compile all kernels, once for a process and for all that share a folder."""
    if os.getpid() in _children or mode() != "background" or not is_python(sys.executable):
        return
    if (lock := take_lock()) is not None:
        try:
            _children[os.getpid()] = launch(lock)
        except OSError:  # no process, or no memory, to be had: a later call tries again
            pass
        finally:
            os.close(lock)


def is_python(program: str) -> bool:
    """Say whether a program is an interpreter, and not one that holds an interpreter in itself."""
    return "python" in Path(program or "").name.lower() and not getattr(sys, "frozen", False)


def take_lock() -> int | None:
    """Open the file that who compiles holds locked; None while another process does, or where there is no folder."""
    folder = kernel_folder.folder()
    try:
        lock = os.open(folder / "compiling.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:  # a file system that has no locks, where two processes may both compile
        pass
    return lock


def launch(lock: int) -> "subprocess.Popen[bytes]":
    """Start the process, which inherits the lock and holds it until it ends."""
    # At the end it stops before its folder is removed, which is registered by now.
    atexit.register(stop)
    # In a session of its own, so that Ctrl-C is this process's alone; it ends all the same when this one does.
    return subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM, str(os.getpid()), *map(str, sys.path)],
        env={**os.environ, **kernel_folder.environment(), SETTING: "now", "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=() if fcntl is None else (lock,),
        start_new_session=True,
    )


def stop() -> None:
    """End what this process started."""
    if (child := _children.pop(os.getpid(), None)) is not None:
        with contextlib.suppress(OSError):
            child.kill()
            child.wait()


def end_with(process: int) -> None:
    """Let this process work where nothing else is to be done, and end when the one that started it has."""
    if hasattr(os, "nice"):
        os.nice(19)

    def wait() -> None:
        while os.getppid() == process:
            time.sleep(PATIENCE)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
