"""Memory of large arrays is kept for later arrays: the first touch of new memory takes longer than a pass over it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.settings import number_from_environment

if TYPE_CHECKING:
    from cpu_fallback.types import Array

# Bytes of a huge page: if the system has huge pages, a large array begins at one.
HUGE = 1 << 21
# A free block may hold this many times the bytes that were asked for.
SLACK = 2
# The most blocks that are searched whenever an array is made or freed.
MOST_BLOCKS = 256
# MiB of free memory that are kept, unless the environment says otherwise.
SETTING, MOST_KEPT = "GPU_ENCODE_KEPT_MEMORY", 512


class Block:
    """Memory of an array; it goes back to its pool when no array uses it any more.

    Parameters
    ----------
    memory : uint8 array
    pool : MemoryPool
    interface : dict
        The description from which NumPy makes an array of this memory.
    """

    def __init__(self, memory: "Array", pool: "MemoryPool", interface: dict[str, Any]) -> None:
        self.__array_interface__ = memory.__array_interface__ | interface
        self.memory, self.pool = memory, pool

    def __del__(self) -> None:
        self.pool.give_back(self.memory)


class MemoryPool:
    """Free memory that later arrays of about the same size take.

    There is no lock: an array may be freed at any line of any thread, even in the middle of a call of this class.  Each
    step is one operation of a dictionary, which is atomic; loops go over a copy.

    Parameters
    ----------
    most : int
        Most bytes that are kept; the block that has been free for longest is dropped first.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        # Blocks by address; the block that came back last is at the end.
        self.free: dict[int, Array] = {}

    def take(self, n_bytes: int) -> "Array":
        """Give memory of `n_bytes` bytes, or of up to about twice as many, with any content."""
        size = round_up(n_bytes)
        while fitting := [
            (len(block), at) for at, block in self.free.copy().items() if size <= len(block) <= SLACK * size
        ]:
            # The smallest block is taken, and the newest of equal blocks: a cache may still hold it.
            smallest = min(length for length, _ in fitting)
            block = self.free.pop(next(at for length, at in reversed(fitting) if length == smallest), None)
            # Another thread may have taken the block first, and given back another one at the same address.
            if block is not None and len(block) >= size:
                return block
        try:
            return fresh(size)
        except MemoryError:
            self.free.clear()
            return fresh(size)

    def give_back(self, memory: "Array") -> None:
        """Keep a block that no array uses any more, and free blocks beyond the limit."""
        if len(memory) > self.most:
            return
        self.free[memory.__array_interface__["data"][0]] = memory
        blocks = self.free.copy()
        too_many, too_much = len(blocks) - MOST_BLOCKS, sum(map(len, blocks.values())) - self.most
        for at, block in blocks.items():
            if too_many <= 0 and too_much <= 0:
                break
            self.free.pop(at, None)
            too_many, too_much = too_many - 1, too_much - len(block)


def round_up(n_bytes: int) -> int:
    """Round bytes up to a size of blocks: one of four between powers of two, or whole huge pages."""
    step = 1 << max(n_bytes.bit_length() - 3, HUGE.bit_length() - 1 if n_bytes >= HUGE else 0)
    return -(-n_bytes // step) * step


def fresh(size: int) -> "Array":
    """Give memory that was never touched."""
    if size < HUGE:
        return np.empty(size, np.uint8)
    # NumPy asks the system for huge pages; they begin at multiples of their size.
    memory = np.empty(size + HUGE, np.uint8)
    begin = -memory.ctypes.data % HUGE
    return memory[begin : begin + size]


kept = number_from_environment(SETTING, "a number of MiB, 0 or more", 0)
pool = MemoryPool((MOST_KEPT if kept is None else kept) << 20)
