"""CUDA C++ kernels, compiled for the CPU (emulator.h) and called with NumPy arrays."""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_encode

RAW = Path(gpu_encode.__file__).parent / "cuda" / "raw"
KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\)\s+(\w+)\(')
INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)
# Vectors that do not lie on a vector, shifts too far: the program stops where a GPU would go wrong.
CHECKS = ("alignment", "bounds", "shift", "signed-integer-overflow", "null", "integer-divide-by-zero")
WRONG = {-1: "another number of arguments", -2: "writes beyond the shared memory asked for"}


def kernels_of(source: Path) -> list[str]:
    return KERNEL.findall(source.read_text())


def threads_of(source: Path) -> list[int]:
    """Threads of a block, at most, that each kernel is compiled for."""
    return [int(number) for number in re.findall(r"__launch_bounds__\((\d+)\)", source.read_text())]


def text_of(source: Path) -> str:
    """Text of a source with that of the files that it includes."""
    return INCLUDE.sub(lambda name: text_of(source.parent / name[1]), source.read_text())


def words_of(arguments: tuple[Any, ...]) -> Iterator[int]:
    """Arguments as the kernels take them, in 64 bits: an array is its address and its length, a tuple what it holds."""
    for argument in arguments:
        # The simulator's device arrays may be wrapped ones.
        array = getattr(argument, "held", argument)
        if isinstance(argument, tuple):
            yield from words_of(argument)
        elif isinstance(array, np.ndarray):
            assert array.flags.c_contiguous
            yield from (array.ctypes.data, array.size)
        else:
            yield int(argument) % 2**64


def emulate(name: str, folder: Path) -> Callable[..., None]:
    """Compile a source; gives what launches its kernels: run(kernel, blocks, threads, *arguments, shared=0)."""
    compiler = shutil.which("g++")
    if compiler is None:
        # Continuous integration must have one: a test that is left out there is no test.
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no g++ to run CUDA C++ on the CPU")
    source = RAW / name
    program, library = folder / f"{source.stem}.cpp", folder / f"{source.stem}.so"
    wrappers = "".join(f"EMULATE({kernel})\n" for kernel in kernels_of(source))
    program.write_text(f'#include "emulator.h"\n#include "{source}"\n{wrappers}')
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-Wall", "-Werror", "-Wno-unknown-pragmas"]
    checks = [f"-fsanitize={','.join(CHECKS)}", "-fsanitize-undefined-trap-on-error"]
    include = f"-I{Path(__file__).parent}"
    subprocess.run([compiler, *options, *checks, include, "-o", str(library), str(program)], check=True)
    loaded = ctypes.CDLL(str(library))

    def run(kernel: str, blocks: int, threads: int, *arguments: Any, shared: int = 0) -> None:
        words = np.array(list(words_of(arguments)), np.uint64)
        address = ctypes.c_void_p(words.ctypes.data)
        wrong = getattr(loaded, f"emulate_{kernel}")(blocks, threads, shared, address, len(words))
        assert not wrong, f"{kernel}: {WRONG[wrong]}"

    return run
