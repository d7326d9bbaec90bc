"""Codes that kernels look up in a direct index of numbers when they read a row, so that codes need not be written."""

from typing import NamedTuple, cast

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.compiled.border import Array
from cpu_fallback.types import UnwrittenCodes
from gpu_encode.cuda.hashing import UNKNOWN
from gpu_encode.cuda.memory import empty, to_device
from gpu_encode.cuda.runtime import cuda, device_function, kernel, launch_rows, xp

WORDS = (np.dtype(np.uint32), np.dtype(np.uint64))
# Kernels use 32 bits for offsets of the index.
MOST_OFFSETS = 1 << 31


class Index(NamedTuple):
    """A direct index of distinct numbers: its lowest word, the bits of a word, and number plus one at each offset."""

    base: np.uint64
    mask: np.uint64
    ranks: Array


class CodeSource(NamedTuple):
    """The source from which kernels read codes; gpu_encode/cuda/raw/rows.cuh does it in CUDA C++.

    Parameters
    ----------
    words : array (rows,)
        int32 codes; or numbers, as unsigned words of 32 or 64 bits.
    base, mask : uint64
        Lowest word of an index, and the bits of a word.
    size : uint64
        Length of the index; numbers outside of it are unknown; 0 if words are codes.
    ranks : int32 array
        The code plus one at each offset of the index.  If it is empty, offsets are codes.
    """

    words: Array
    base: np.uint64
    mask: np.uint64
    size: np.uint64
    ranks: Array


@device_function
def offset_at(words: Array, i: int, base: np.uint64, mask: np.uint64) -> np.uint64:
    """Offset of a row's number in a direct index."""
    return (np.uint64(words[i]) - base) & mask


@device_function
def code_at(source: CodeSource, i: int) -> np.int32:
    """Code of a row."""
    if source.size == np.uint64(0):
        return np.int32(source.words[i])
    offset = offset_at(source.words, i, source.base, source.mask)
    if offset >= source.size:
        return np.int32(UNKNOWN)
    return np.int32(source.ranks[np.int64(offset)] - 1) if len(source.ranks) else np.int32(np.int64(offset))


@kernel
def rank_rows(words: Array, base: np.uint64, mask: np.uint64, ranks: Array, codes: Array) -> None:
    """Look up the code of each row's number in a direct index; `UNKNOWN` if there is none."""
    for i in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        offset = offset_at(words, i, base, mask)
        rank = ranks[np.int64(offset)] if offset < np.uint64(len(ranks)) else 0
        codes[i] = rank - 1 if rank else UNKNOWN


@kernel
def subtract_base(words: Array, base: np.uint64, mask: np.uint64, codes: Array) -> None:
    """Write the distance of each row's number from the lowest one."""
    for i in range(cuda.grid(1), len(words), cuda.gridsize(1)):
        codes[i] = np.int64(offset_at(words, i, base, mask))


class IndexedCodes(UnwrittenCodes):
    """Codes of numbers that are all in a direct index.

    Parameters
    ----------
    numbers : CodeSource
        The words may be of 8 or 16 bits as well, and need not be contiguous.
    narrow : CodeSource, optional
        The same codes, from numbers in as few bytes as they need.
    """

    def __init__(self, numbers: CodeSource, narrow: CodeSource | None = None) -> None:
        super().__init__(len(numbers.words))
        self.numbers, self.narrow = numbers, numbers if narrow is None else narrow

    def __getitem__(self, chosen: "slice | Array") -> Array:
        if "written" in vars(self):
            return self.written[chosen]
        return IndexedCodes(self.narrow._replace(words=xp.ascontiguousarray(self.narrow.words[chosen]))).written

    @cached_property
    def written(self) -> Array:
        """The codes as a device array."""
        words, base, mask, _, ranks = self.narrow
        codes = empty(len(self), np.int32)
        if len(ranks):
            launch_rows(rank_rows, len(self), words, base, mask, ranks, codes)
        else:
            launch_rows(subtract_base, len(self), words, base, mask, codes)
        return codes

    @property
    def source(self) -> CodeSource:
        """The source from which kernels read the codes: the array if it has been written, otherwise the index."""
        words, _, _, size, _ = self.numbers
        as_they_are = words.dtype in WORDS and words.flags.c_contiguous and size < MOST_OFFSETS
        return self.numbers if as_they_are and "written" not in vars(self) else source_of(self.written)


def code_source(words: Array, index: Index, offsets: "range | Array") -> CodeSource:
    """Say how kernels read codes of numbers that are all in a direct index.

    `offsets` are the offsets that have a number.  Consecutive numbers need no ranks, which may be empty.
    """
    base, mask, ranks = index
    if isinstance(offsets, range):
        base, ranks = np.uint64(int(base) + offsets.start & int(mask)), ranks[:0]
    return CodeSource(words, base, mask, np.uint64(len(ranks) or len(offsets)), ranks)


def codes_by(words: Array, index: Index, offsets: "range | Array") -> Array:
    """Give unwritten codes of numbers that are all in a direct index; `offsets` are the offsets that have a number."""
    return cast(Array, IndexedCodes(code_source(words, index, offsets)))


def source_of(codes: "Array | CodeSource") -> CodeSource:
    """Say how kernels read codes."""
    if isinstance(codes, CodeSource):
        return codes
    if isinstance(codes, IndexedCodes):
        return codes.source
    nothing = np.uint64(0)
    return CodeSource(to_device(codes).astype(np.int32, copy=False), nothing, nothing, nothing, empty(0, np.int32))


def narrow_source_of(codes: "Array | CodeSource") -> CodeSource:
    """Say from which numbers, of any number of bytes, the codes of a column follow; codes are numbers themselves."""
    if isinstance(codes, IndexedCodes) and "written" not in vars(codes):
        return codes.narrow
    return source_of(codes)
