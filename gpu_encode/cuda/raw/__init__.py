"""Kernels in CUDA C++ beside their twins in numba: more shared memory, vector loads, launches at a tenth of the cost.

They have the names and arguments of the kernels in `gpu_encode.cuda.counters`, `gather` and `sum_kernels`, which define
them; where a kernel is there for several sizes of an entry, its name says how many bits.
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from gpu_encode.cuda.runtime import is_device_array, xp

# What the kernels that count are compiled for at most; two such blocks fill a multiprocessor.
THREADS = 1024
# No product is fused with a sum, as in every kernel of the backend.
OPTIONS = ("--std=c++17", "--fmad=false")
# The file of each kernel, and what all files include.
FILES = {
    "count_rows": "counting.cu",
    "count_in_memory": "counting.cu",
    "measure_buckets": "counting.cu",
    "fill_buckets": "counting.cu",
    "count_buckets": "counting.cu",
    "gather_one_32": "gather.cu",
    "gather_one_64": "gather.cu",
    "gather_several_32": "gather.cu",
    "gather_several_64": "gather.cu",
    "add_in_cells": "sums.cu",
    "add_in_tables": "sums.cu",
    "add_hot_in_tables": "sums.cu",
}
SHARED_FILE = "rows.cuh"


def source_of(file: str) -> str:
    """Give a file with the text that it includes: CuPy keeps kernels by the text that it gets, and sees no folder."""
    folder = files(__name__)
    shared = folder.joinpath(SHARED_FILE).read_text()
    return folder.joinpath(file).read_text().replace(f'#include "{SHARED_FILE}"\n', shared)


@cache
def module(file: str) -> Any:
    """Give the kernels of a file; CuPy compiles them at the first launch on a device, and keeps them on disk."""
    return xp.RawModule(code=source_of(file), options=OPTIONS)


@cache
def function(name: str) -> Any:
    """Give a kernel by name."""
    return module(FILES[name]).get_function(name)


def table_bytes() -> int:
    """Shared memory that a block may ask for on the current device: 227 KiB on an H200, where numba stops at 48."""
    wanted = xp.cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin
    return int(xp.cuda.runtime.deviceGetAttribute(wanted, xp.cuda.Device().id))


def flatten(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Give arrays each with its length, numbers in 64 bits, and of a tuple what it holds."""
    for each in arguments:
        if isinstance(each, tuple):
            yield from flatten(each)
        elif is_device_array(each):
            yield each
            yield np.int64(each.size)
        else:
            yield each if isinstance(each, np.uint64) else np.int64(each)


def run(name: str, blocks: int, threads: int, *arguments: Any, shared: int = 0) -> None:
    """Launch a kernel on CuPy's current stream."""
    kernel = function(name)
    if shared:
        # A setting of the function on the current device; beyond 48 KiB no launch succeeds without it.  The largest,
        # since another thread may set it, too, before this one launches.
        kernel.max_dynamic_shared_size_bytes = table_bytes()
    kernel((blocks,), (threads,), tuple(flatten(arguments)), shared_mem=shared)
