"""CUDA C++ kernels, compiled for the CPU with emulator.h: they replace CuPy's RawModule for the stand-in's arrays."""

import ctypes
import hashlib
import os
import re
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_encode

RAW = Path(gpu_encode.__file__).parent / "cuda" / "raw"
HEADER = Path(__file__).parent / "emulator.h"
# Folder of compiled libraries, named by the hash of their sources, so that processes share them.
FOLDER = Path("build") / "emulated"
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')
# With misaligned vectors, or shifts too far, the program stops where a GPU would go wrong.
CHECKS = ("alignment", "bounds", "shift", "signed-integer-overflow", "null", "integer-divide-by-zero")
OPTIONS = (
    *("-std=c++20", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unknown-pragmas"),
    *(f"-fsanitize={','.join(CHECKS)}", "-fsanitize-undefined-trap-on-error"),
)
WRONG = {
    -1: "another number of arguments",
    -2: "writes beyond the shared memory asked for",
    -3: "a barrier that not all threads reach",
}


def kernels_of(text: str) -> list[str]:
    """Return the names of the kernels in a source text."""
    return KERNEL.findall(text)


def words_of(arguments: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Return the arguments as 64-bit words for the kernels: the address of an array, otherwise the number."""
    held = [getattr(argument, "held", argument) for argument in arguments]
    assert all(array.flags.c_contiguous for array in held if isinstance(array, np.ndarray))
    return np.array([word_of(each) for each in held], np.uint64)


def word_of(argument: Any) -> int:
    """Return the address of an array, the bits of a float, or a whole number."""
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    return int(argument.view(np.uint64)) if isinstance(argument, np.float64) else int(argument) % 2**64


@cache
def load(text: str, definitions: tuple[str, ...]) -> ctypes.CDLL:
    """Compile a source text, unless it is compiled already, and load it."""
    compiler = shutil.which("g++")
    if compiler is None:
        # CI must have a compiler: a test that CI skips is no test.
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no g++ to run CUDA C++ on the CPU")
    wrappers = "".join(f"EMULATE({kernel})\n" for kernel in kernels_of(text))
    program, options = f'#include "{HEADER}"\n{text}\n{wrappers}', (*OPTIONS, *definitions)
    name = hashlib.sha256("\n".join([HEADER.read_text(), program, *options]).encode()).hexdigest()[:32]
    library = (FOLDER / f"{name}.so").absolute()
    if not library.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        own = FOLDER / f"{name}.{os.getpid()}"
        source, made = own.with_suffix(f"{own.suffix}.cpp"), own.with_suffix(f"{own.suffix}.so")
        source.write_text(program)
        # The time limit of a test does not include compiling.
        left = signal.alarm(0)
        subprocess.run([compiler, *options, "-o", str(made), str(source)], check=True)
        signal.alarm(left)
        source.unlink()
        # Another process may have compiled the same text meanwhile.
        made.replace(library)
    return ctypes.CDLL(str(library))


class RawModule:
    """Stand-in for CuPy's class of this name: a source text, and its kernels by name."""

    def __init__(self, code: str, options: tuple[str, ...] = ()) -> None:
        self.code = code
        self.definitions = tuple(option for option in options if option.startswith("-D"))

    def get_function(self, name: str) -> "Function":
        """Return a kernel by name."""
        return Function(self, name)


class Function:
    """A kernel; its source text is compiled at the first launch, as in CuPy."""

    def __init__(self, module: RawModule, name: str) -> None:
        assert name in kernels_of(module.code), f"no kernel {name}"
        self.module, self.name = module, name
        self.max_dynamic_shared_size_bytes = 48 * 1024

    def __call__(self, grid: tuple[int], block: tuple[int], args: tuple[Any, ...], *, shared_mem: int = 0) -> None:
        assert 1 <= grid[0] < 2**31
        assert 1 <= block[0] <= 1024
        assert block[0] % 32 == 0, "whole warps"
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        words = words_of(args)
        run = getattr(load(self.module.code, self.module.definitions), f"emulate_{self.name}")
        wrong = run(grid[0], block[0], shared_mem, ctypes.c_void_p(words.ctypes.data), len(words))
        assert not wrong, f"{self.name}: {WRONG[wrong]}"
