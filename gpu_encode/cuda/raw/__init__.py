"""Kernels in CUDA C++, compiled by CuPy: unlike numba's, they use all shared memory, vector loads, and own types.

If there are several versions of a kernel for different sizes of entries, the name gives the number of bits.  Types and
choices that are fixed at compilation are a variant of the kernel: definitions for the preprocessor, by name.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from gpu_encode.cuda.runtime import MULTIPROCESSORS, SHARED_BYTES, SIMULATED, blocks_for, is_device_array, xp

# Threads and blocks of kernels that fill the GPU: two such blocks fill a multiprocessor.
THREADS = 64 if SIMULATED else 1024
BLOCKS = 3 if SIMULATED else 2 * MULTIPROCESSORS
# Shared memory that a multiprocessor reserves for each block.
KEPT_BYTES = 1024
# Products and sums are not fused, as in all kernels of this backend.
OPTIONS = ("--std=c++17", "--fmad=false")
# The file that contains each kernel.
FILES = {
    "count_rows": "count_rows.cu",
    "count_in_memory": "counting.cu",
    "partition_rows": "partition.cu",
    "partition_pairs_32": "partition.cu",
    "partition_pairs_64": "partition.cu",
    "count_buckets": "partition.cu",
    "add_buckets": "bucket_sums.cu",
    "gather_rows": "gather.cu",
    "measure_extents": "extents.cu",
    "measure_range": "ranges.cu",
    "mark_numbers": "ranges.cu",
    "mark_numbers_by_block": "ranges.cu",
    "leave_out_estimate": "leave_out.cu",
    "leave_out_blend": "leave_out.cu",
    "add_in_cells": "sums.cu",
    "add_in_tables": "sums.cu",
    "add_hot_in_tables": "sums.cu",
    "add_in_windows": "windows.cu",
    "number_cells": "ordered.cu",
    "count_chunks": "ordered.cu",
    "scan_chunks": "ordered.cu",
    "walk_chunks": "ordered.cu",
    "number_folds": "folds.cu",
    "sort_places": "ordered_sums.cu",
    "sum_pieces": "ordered_sums.cu",
    "scan_pieces": "ordered_sums.cu",
    "walk_pieces": "ordered_sums.cu",
    "walk_rows_32": "permutation.cu",
    "walk_rows_64": "permutation.cu",
    "walk_blocks": "permutation.cu",
    "shuffle_blocks": "permutation.cu",
    "measure_columns": "columns.cu",
    "mark_columns": "columns.cu",
    "narrow_columns": "columns.cu",
    "number_rows": "number_rows.cu",
    "count_keys": "count_keys.cu",
    "encode_keys": "encode_keys.cu",
    "gather_keys": "gather_keys.cu",
    "spread_keys": "look_up_keys.cu",
    "count_unknown": "look_up_keys.cu",
}
# Types of unsigned words by number of bytes, with their names in raw/vectors.cuh; types of targets; types of encodings
# by number of bytes.
TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "Word"}
KEYS = tuple(TYPES.values())
NARROW, WORDS = KEYS[:2], KEYS[2:]
VALUES, ENCODINGS = ("float", "double", "Long"), {4: "float", 8: "double"}
# Whether a formula is an m-estimate, and whether it uses squares.
OF_FORMULAS = (("1", "0"), ("0", "0"), ("0", "1"))
# The variants that the library uses, by file; a file that is missing here has only the plain variant.
VARIANTS: dict[str, list[dict[str, str]]] = {
    "count_rows.cu": [
        {"KEY": key, "CLASSES": classes, "SOURCE": source}
        for key in WORDS
        for source, numbers in (("HashedFolds", "012"), ("StraightFolds", "012"), ("ComputedFolds", "01"))
        for classes in numbers
    ],
    "gather.cu": [
        {"KEY": key, "ENTRY": entry, "OUTPUTS": outputs, "SOURCE": source}
        for sources, keys, entries, numbers in (
            (("HashedFolds", "StraightFolds"), WORDS, WORDS, "01"),
            (("ComputedFolds",), KEYS, WORDS, "0"),
            (("ComputedFolds",), ("unsigned",), NARROW, "0"),
        )
        for source in sources
        for key in keys
        for entry in entries
        for outputs in numbers
    ],
    "extents.cu": [{"VALUE": value} for value in VALUES],
    "ranges.cu": [{"KEY": key} for key in KEYS],
    "leave_out.cu": [
        {"KEY": key, "VALUE": value, "ENCODING": encoding}
        for key, value, encoding in product(WORDS, VALUES, ENCODINGS.values())
    ],
    "windows.cu": [
        {"VALUE": value, "SQUARES": squares, "SOURCE": source}
        for value, squares, source in product(VALUES, "01", ("StraightFolds", "ComputedFolds", "HashedFolds"))
    ],
    "bucket_sums.cu": [{"VALUE": value, "SQUARES": squares} for value, squares in product(VALUES, "01")],
    "ordered_sums.cu": [
        {"ENCODING": encoding, "ESTIMATES": estimates, "SQUARES": squares, "SUM_WORDS": words}
        for encoding, (estimates, squares), words in product(ENCODINGS.values(), OF_FORMULAS, "45")
    ],
    "ordered.cu": [
        {"ENCODING": encoding, "ESTIMATES": estimates} for encoding, estimates in product(ENCODINGS.values(), "01")
    ],
    "number_rows.cu": [{"NARROW": narrow} for narrow in KEYS[:3]],
    "encode_keys.cu": [
        {"ENCODING": encoding, "ESTIMATES": estimates} for encoding, estimates in product(ENCODINGS.values(), "01")
    ],
    "gather_keys.cu": [{"ENTRY": entry, "OUTPUTS": outputs} for entry, outputs in product(WORDS, "01")],
    "look_up_keys.cu": [{"ENTRY": entry} for entry in WORDS],
}


def source_of(file: str) -> str:
    """Give a file with all text that it includes: CuPy caches kernels by their text, and searches no folders."""
    folder = files(__name__)
    lines, included = [], set()

    def read(name: str) -> None:
        for line in folder.joinpath(name).read_text().splitlines(keepends=True):
            if not line.startswith('#include "'):
                lines.append(line)
            elif (other := line.split('"')[1]) not in included:
                included.add(other)
                read(other)

    read(file)
    return "".join(lines)


def options_of(variant: Mapping[str, str]) -> tuple[str, ...]:
    """Give the compiler's options for a variant."""
    return (*OPTIONS, *(f"-D{name}={value}" for name, value in sorted(variant.items())))


@cache
def module(file: str, options: tuple[str, ...]) -> Any:
    """Give the kernels of a file; CuPy compiles them at the first launch on a device, and keeps them on disk."""
    if not hasattr(xp, "RawModule"):
        message = "The simulator runs CUDA C++ in a checkout, with GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in."
        raise RuntimeError(message)
    return xp.RawModule(code=source_of(file), options=options)


@cache
def function(name: str, options: tuple[str, ...]) -> Any:
    """Give a kernel by name."""
    return module(FILES[name], options).get_function(name)


def table_bytes() -> int:
    """Shared memory that a block can have on the current device: 227 KiB on an H200, where numba allows only 48."""
    if SIMULATED:
        return SHARED_BYTES
    wanted = xp.cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin
    return int(xp.cuda.runtime.deviceGetAttribute(wanted, xp.cuda.Device().id))


def blocks_at_work(shared: int, most: int, table_bytes: int) -> int:
    """Number of blocks that run at once: two on a multiprocessor, or one if shared memory has no room for two."""
    return most if shared <= (table_bytes - KEPT_BYTES) // 2 else most // 2


def flatten(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield arrays followed by their lengths, numbers as 64 bits, and the members of tuples; leave lists out."""
    for each in arguments:
        if isinstance(each, tuple):
            yield from flatten(each)
        elif isinstance(each, list):
            # These are arrays of which the kernel finds the addresses in another one.
            continue
        elif is_device_array(each):
            yield each
            yield np.int64(each.size)
        elif isinstance(each, float):
            yield np.float64(each)
        else:
            yield each if isinstance(each, np.uint64) else np.int64(each)


def key_of(words: Any) -> dict[str, str]:
    """Name the type of keys for which a kernel is compiled."""
    return {"KEY": TYPES[words.itemsize]}


def value_type(itemsize: int, real: bool) -> str:
    """Type of targets, one of `VALUES`."""
    return ENCODINGS[itemsize] if real else "Long"


def run(
    name: str, blocks: int, threads: int, *arguments: Any, shared: int = 0, variant: Mapping[str, str] | None = None
) -> None:
    """Launch a kernel on CuPy's current stream.

    Parameters
    ----------
    name : str
    blocks, threads : int
        Blocks of the grid and threads of a block.
    *arguments
        Contiguous device arrays, numbers, tuples of these, and lists of arrays that another array names by address.
    shared : int
        Bytes of dynamic shared memory.
    variant : mapping of str to str, optional
        Definitions for the preprocessor, one of `VARIANTS`.
    """
    kernel = function(name, options_of(variant or {}))
    if shared:
        # The limit belongs to the function on the current device; without it, no launch with more than 48 KiB succeeds.
        # It is set to the maximum, since another thread may set it before this launch.
        kernel.max_dynamic_shared_size_bytes = max(table_bytes(), shared)
    kernel((blocks,), (threads,), tuple(flatten(arguments)), shared_mem=shared)


def run_over(
    name: str, words: Any, *arguments: Any, threads: int = THREADS, shared: int = 0, variant: Mapping[str, str]
) -> int:
    """Launch a kernel that reads all numbers once, as vectors; give the number of blocks, two words for each warp."""
    blocks = blocks_for(words.nbytes, 16 * threads, blocks_at_work(shared, BLOCKS, table_bytes()))
    run(name, blocks, threads, words, *arguments, shared=max(shared, threads // 2), variant=variant)
    return blocks
