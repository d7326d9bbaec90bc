"""The folder of compiled kernels, and whether it holds all of them: found without numba, which takes 0.25 s to load."""

import atexit
import contextlib
import os
import shutil
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import processor
from tempfile import TemporaryFile, mkdtemp

from cpu_fallback import kernel_sources
from cpu_fallback.kernel_sources import SOURCES, current_stamps, digest, sources_stamp

SETTING = "NUMBA_CACHE_DIR"
# The variable that says where kernels are compiled: see `gpu_encode.seam.compilation`.
COMPILE_SETTING = "GPU_ENCODE_COMPILE"
# All variables by which numba lets users choose the processor for which it compiles.
TARGET = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
PROCESSOR = Path("/proc/cpuinfo")

_complete: list[Path] = []


@cache
def machine_stamp() -> str:
    """Give a stamp that differs between compilers and between processors."""
    try:
        compiler = version("numba"), version("llvmlite")
    except PackageNotFoundError:
        compiler = ("unknown",) * 2
    chosen = [os.environ.get(name, "") for name in TARGET]
    return digest(*compiler, str(sys.implementation.cache_tag), *(chosen if chosen[0] else [this_processor()]))


def this_processor() -> str:
    """Give the name and the abilities of the first processor, as far as the system tells."""
    with contextlib.suppress(OSError):
        lines = PROCESSOR.read_bytes()[: 1 << 14].decode(errors="replace").split("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU ")))
    return processor()


def folders() -> list[Path]:
    """Give the folders in which kernels may lie, in the order in which numba chooses them."""
    named = f"gpu_encode_{digest(str(SOURCES))}"
    if chosen := os.environ.get(SETTING):
        return [Path(chosen, named)]
    users = os.environ.get("XDG_CACHE_HOME") or Path("~", ".cache")
    with contextlib.suppress(RuntimeError):  # the user has no home folder
        return [SOURCES / "compiled" / "__pycache__", Path(users, named).expanduser()]
    return [SOURCES / "compiled" / "__pycache__"]


@cache
def folder() -> Path:
    """Give the folder of all kernels: one that has all of them, else a writable one, else one of this process."""
    for one in folders():
        if seal(one).exists() or takes_files(one):
            return one
    with contextlib.suppress(OSError):
        private = Path(mkdtemp(prefix="gpu_encode_"))
        atexit.register(remove_of_process, private, os.getpid())
        return private / f"gpu_encode_{digest(str(SOURCES))}"
    return folders()[0]


def remove_of_process(path: Path, process: int) -> None:
    """Remove the folder at the end of the process that made it, but not at the end of a process forked from it."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def environment() -> dict[str, str]:
    """Give the variables that let other processes use the same folder."""
    return {} if folder() in folders() else {SETTING: str(folder().parent)}


def takes_files(path: Path) -> bool:
    """Tell whether files can be written to a folder."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True


def seal(path: Path) -> Path:
    """Give the file whose presence says that a folder holds all kernels of these sources for this machine."""
    return path / f"complete.{sources_stamp()}.{machine_stamp()}"


def is_complete() -> bool:
    """Tell whether every kernel is compiled."""
    if not _complete and seal(folder()).exists():
        _complete.append(folder())
    return bool(_complete)


def set_complete() -> None:
    """Write the seal, which says that every kernel is compiled, with all stamps; raise OSError if the disk is full."""
    stamps = current_stamps()
    remove_other_sources({sources_stamp(), *stamps.values()})
    seal(folder()).write_text("".join(f"{name} {stamp}\n" for name, stamp in stamps.items()), "utf-8")


def remove_other_sources(current: set[str]) -> None:
    """Remove the kernels of older sources, which nobody reads any more, and their seals; a GPU's kernels stay."""
    for file in (*folder().glob("complete.*"), *folder().glob("*.nbc")):
        if current.isdisjoint(file.name.split(".")) and not file.name.startswith("cuda."):
            file.unlink(missing_ok=True)


@cache
def stamps_told() -> dict[str, str]:
    """Read the stamps in the seal, since computing them takes longer than loading kernels."""
    with contextlib.suppress(OSError, ValueError):
        return dict(line.split() for line in seal(folder()).read_text("utf-8").splitlines())
    return {}


def stamp_of(module: str, name: str) -> str:
    """Give the stamp of a CPU kernel, which changes with the code from which the kernel is made."""
    return stamps_told().get(f"{module}.{name}") or kernel_sources.stamp_of(module, name)
