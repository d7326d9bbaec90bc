"""Memory of large arrays, kept for the next ones: the first touch of fresh memory takes longer than a pass over it."""

import os
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.settings import number_from_environment

if TYPE_CHECKING:
    from gpu_encode.cells import Array

# Bytes of a huge page: where the system has them, a large array begins at one.
HUGE = 1 << 21
# Times as much as was asked for that a free block may hold.
SLACK = 2
# Free MiB that are kept where the environment says nothing else.
SETTING, MOST_KEPT = "GPU_ENCODE_KEPT_MEMORY", 512


class Block:
    """Memory of an array; it goes back to its pool when no array shows it any more.

    Parameters
    ----------
    memory : uint8 array
    pool : MemoryPool
    interface : dict
        What NumPy makes an array of this from.
    """

    def __init__(self, memory: "Array", pool: "MemoryPool", interface: dict[str, Any]) -> None:
        self.__array_interface__ = memory.__array_interface__ | interface
        self.memory, self.pool = memory, pool

    def __del__(self) -> None:
        self.pool.give_back(self.memory)


class MemoryPool:
    """Free memory, to be taken again by arrays of about the same size.

    Parameters
    ----------
    most : int
        Bytes that are kept; what has been free for longest goes first.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.reset()

    def reset(self) -> None:
        """Begin with nothing."""
        self.free: list[Array] = []
        self.returned: deque[Array] = deque()
        self.lock = Lock()

    def take(self, n_bytes: int) -> "Array":
        """Memory of so many bytes or a few more, that holds anything."""
        size = rounded(n_bytes)
        with self.lock:
            self.sort_in()
            fitting = [place for place, block in enumerate(self.free) if size <= len(block) <= SLACK * size]
            if fitting:
                # The smallest, and of these the newest: a cache may still hold it.
                return self.free.pop(min(reversed(fitting), key=lambda place: len(self.free[place])))
        return fresh(size)

    def give_back(self, memory: "Array") -> None:
        """Keep what nobody shows any more."""
        self.returned.append(memory)
        # The collector of cycles may call this in the middle of a `take`, which sorts it in, now or the next time.
        if self.lock.acquire(blocking=False):
            try:
                self.sort_in()
            finally:
                self.lock.release()

    def sort_in(self) -> None:
        """Take in what came back, and let go what is too much."""
        while self.returned:
            self.free.append(self.returned.popleft())
        while sum(map(len, self.free)) > self.most:
            self.free.pop(0)

    def release(self) -> None:
        """Let all free memory go."""
        with self.lock:
            self.returned.clear()
            self.free.clear()


def rounded(n_bytes: int) -> int:
    """Bytes of a block for so many: one of four sizes between powers of two, and whole huge pages."""
    step = 1 << max(n_bytes.bit_length() - 3, HUGE.bit_length() - 1 if n_bytes >= HUGE else 0)
    return -(-n_bytes // step) * step


def fresh(size: int) -> "Array":
    """Memory that was never touched."""
    if size < HUGE:
        return np.empty(size, np.uint8)
    # NumPy asks the system for huge pages; they begin at multiples of their size.
    memory = np.empty(size + HUGE, np.uint8)
    begin = -memory.ctypes.data % HUGE
    return memory[begin : begin + size]


kept = number_from_environment(SETTING, "a number of MiB, 0 or more", 0)
pool = MemoryPool((MOST_KEPT if kept is None else kept) << 20)

if hasattr(os, "register_at_fork"):
    # A forked child may inherit the lock from a thread that it has not.
    os.register_at_fork(after_in_child=pool.reset)
