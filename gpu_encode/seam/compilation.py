"""Kernels are compiled in a child process of low priority.  No call waits for the child; it ends with its parent.

Numba holds the interpreter's lock while it compiles, so a thread would block the caller.
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
except ImportError:  # without file locks two processes may both compile, to the same files
    fcntl = None  # type: ignore[assignment]

SETTING = kernel_folder.COMPILE_SETTING
MODES = ("background", "now", "never")
# Seconds between two checks of the child whether its parent still runs.
PATIENCE = 0.5
# The child imports from the folders that its parent imports from, and not from the folder that it was started in.
PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; from gpu_encode.seam import compilation; "
    "compilation.end_with(int(sys.argv[1])); from gpu_encode.warm_up import compile_all; compile_all()"
)

# The child of each process, by the number of the process: a forked process has not started its parent's child.
_children: dict[int, "subprocess.Popen[bytes]"] = {}


def mode() -> str:
    """Give the mode of compilation: the environment variable GPU_ENCODE_COMPILE, by default in the background."""
    given = os.environ.get(SETTING) or MODES[0]
    if given not in MODES:
        message = f"the environment variable {SETTING} must be one of {', '.join(MODES)}. Got {given!r}."
        raise ValueError(message)
    return given


def is_ready() -> bool:
    """Tell whether a call may use kernels, compiled before or by the call itself; reap a child that has ended."""
    if _children and (child := _children.get(os.getpid())) is not None:
        child.poll()
    return is_compiled() or mode() == "now" or bool(os.environ.get("NUMBA_DISABLE_JIT"))


def is_compiled() -> bool:
    """Tell whether every kernel is on disk."""
    return kernel_folder.is_complete()


def folder() -> Path:
    """Give the folder of the kernels."""
    return kernel_folder.folder()


def is_private() -> bool:
    """Tell whether the folder belongs to this process alone, since no shared folder could be written."""
    return bool(kernel_folder.environment())


def start() -> None:
    """Start to compile all kernels, once for all processes that share a folder."""
    if os.getpid() in _children or mode() != "background" or not is_python(sys.executable):
        return
    if (lock := take_lock()) is not None:
        try:
            _children[os.getpid()] = launch(lock)
        except OSError:  # the system has no process or memory to give: a later call tries again
            pass
        finally:
            os.close(lock)


def is_python(program: str) -> bool:
    """Tell whether a program is Python itself, and not another program with Python inside."""
    return "python" in Path(program or "").name.lower() and not getattr(sys, "frozen", False)


def take_lock() -> int | None:
    """Open and lock the file of the process that compiles; None if another process has it, or there is no folder."""
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
    except OSError:  # this file system has no locks, so two processes may both compile
        pass
    return lock


def launch(lock: int) -> "subprocess.Popen[bytes]":
    """Start the process, which inherits the lock and holds it until it ends."""
    # The folder's removal is registered by now, so that at the end the child stops before its folder is removed.
    atexit.register(stop)
    # The child has a session of its own, so that Ctrl-C does not reach it; it still ends when its parent ends.
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
    """End the child that this process started."""
    if (child := _children.pop(os.getpid(), None)) is not None:
        with contextlib.suppress(OSError):
            child.kill()
            child.wait()


def end_with(process: int) -> None:
    """Give this process the lowest priority, and end it when its parent has ended."""
    if hasattr(os, "nice"):
        os.nice(19)

    def wait() -> None:
        while os.getppid() == process:
            time.sleep(PATIENCE)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
