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


class IndexedCodes(UnwrittenCodes):
    """Codes of numbers that are all in a direct index.

    Parameters
    ----------
    words : uint array of the device
        The numbers, as unsigned words.
    index : Index
    span : tuple of int, optional
        If the offsets that have a number are consecutive: the first of them, and their number; then kernels need no
        index.
    """

    def __init__(self, words: Array, index: Index, span: tuple[int, int] | None = None) -> None:
        super().__init__(len(words))
        self.words, self.index, self.span = words, index, span

    def __getitem__(self, chosen: "slice | Array") -> Array:
        if "written" in vars(self):
            return self.written[chosen]
        return IndexedCodes(xp.ascontiguousarray(self.words[chosen]), self.index).written

    @cached_property
    def written(self) -> Array:
        """The codes as a device array."""
        codes = empty(len(self), np.int32)
        launch_rows(rank_rows, len(self), self.words, *self.index, codes)
        return codes

    @property
    def source(self) -> CodeSource:
        """The source from which kernels read the codes: the array if it has been written, otherwise the index."""
        base, mask, ranks = self.index
        first, size = self.span or (0, len(ranks))
        if "written" in vars(self) or self.words.dtype not in WORDS or size >= MOST_OFFSETS:
            return source_of(self.written)
        begin = np.uint64(int(base) + first & int(mask))
        return CodeSource(self.words, begin, mask, np.uint64(size), ranks if self.span is None else ranks[:0])


def codes_by(words: Array, index: Index, offsets: "range | Array") -> Array:
    """Give unwritten codes of numbers that are all in a direct index; `offsets` are the offsets that have a number."""
    return cast(
        Array, IndexedCodes(words, index, (offsets.start, len(offsets)) if isinstance(offsets, range) else None)
    )


def source_of(codes: "Array | CodeSource") -> CodeSource:
    """Say how kernels read codes."""
    if isinstance(codes, CodeSource):
        return codes
    if isinstance(codes, IndexedCodes):
        return codes.source
    nothing = np.uint64(0)
    return CodeSource(to_device(codes).astype(np.int32, copy=False), nothing, nothing, nothing, empty(0, np.int32))
