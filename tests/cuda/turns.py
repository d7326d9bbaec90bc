"""Blocks of numba's simulator in turns: a thread runs until it waits for its block or ends, and then the next one does.

Numba's own simulator starts a thread of the operating system for each thread of a kernel, and polls these threads
without sleeping, which takes most of the time of a test. Here most kernels run in the thread that launches them. Only
kernels with a barrier have threads of their own, and one thread runs at a time. Turns go up and down the block
alternately. So if a barrier is missing, a thread always reads a value that one of its neighbours has not written yet.
"""

import threading
from functools import cache
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from numba.cuda.simulator.kernel import FakeCUDAKernel, normalize_kernel_dimensions
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule, FakeCUDAShared


class Device(FakeCUDAModule):  # type: ignore[misc]
    """What kernels know as `cuda`: the place of the thread whose turn it is, shared memory, and barriers."""

    threadIdx = blockIdx = Dim3(0, 0, 0)
    block: "Block | None" = None

    def begin(self, grid: Any, block: Any, shared: int) -> None:
        """Begin a launch."""
        self.gridDim, self.blockDim, self._shared = Dim3(*grid), Dim3(*block), FakeCUDAShared(shared)

    def syncthreads(self) -> None:
        """Wait for all threads of the block that have not ended."""
        assert self.block is not None, "a barrier that find_barrier has not found"
        self.block.wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(cuda, name)


DEVICE = Device((1, 1, 1), (1, 1, 1), 0)


class Block:
    """Threads of a block, each with a lock that is open when it is its turn."""

    def __init__(self, function: Any, arguments: Any, order: list[int]) -> None:
        self.locks = [threading.Semaphore(0) for _ in order]
        self.done = threading.Semaphore(0)
        self.order, self.arrived = order, []
        self.running, self.failure = None, None
        self.function, self.arguments = function, arguments

    def run(self) -> None:
        """Run all threads to their ends, or to the first that fails."""
        for number in self.order:
            threading.Thread(target=self.run_one, args=(number,), daemon=True).start()
        self.pass_on()
        self.done.acquire()
        # Threads that have ended, but are not gone, must keep no array.
        self.arguments = ()
        if self.failure:
            raise self.failure

    def run_one(self, number: int) -> None:
        """Run one thread."""
        self.take_turn(number)
        try:
            self.function(*self.arguments)
        except BaseException as failure:
            self.failure = failure
            self.done.release()
            return
        self.pass_on()

    def wait(self) -> None:
        """End a turn until all others have come as far."""
        number = DEVICE.threadIdx.x
        self.arrived.append(number)
        self.pass_on()
        self.take_turn(number)

    def give_way(self) -> None:
        """Let the others go on first, if it is the caller's turn."""
        if threading.get_ident() == self.running:
            number = DEVICE.threadIdx.x
            self.order.append(number)
            self.pass_on()
            self.take_turn(number)

    def take_turn(self, number: int) -> None:
        """Wait for a turn."""
        self.locks[number].acquire()
        self.running, DEVICE.threadIdx = threading.get_ident(), Dim3(number, 0, 0)

    def pass_on(self) -> None:
        """Give the next thread its turn: of those that wait, the last one first."""
        self.running = None
        if not self.order:
            self.order, self.arrived = self.arrived[::-1], []
        if self.order:
            self.locks[self.order.pop(0)].release()
        else:
            self.done.release()


@cache
def has_barrier(kernel: Any) -> bool:
    """Tell whether a kernel, or what it calls, waits for its block."""
    found, new = {kernel}, [kernel]
    while new:
        function = new.pop().fn
        names = function.__code__.co_names
        if "syncthreads" in names:
            return True
        called = {one for one in map(function.__globals__.get, names) if isinstance(one, FakeCUDAKernel)}
        new += called - found
        found |= called
    return False


def call(kernel: Any, *arguments: Any) -> Any:
    """Call a device function, or launch a kernel."""
    names = kernel.fn.__globals__
    if names.get("cuda") is cuda:
        names["cuda"] = DEVICE
    if kernel._device:
        return kernel.fn(*arguments)
    grid, threads = normalize_kernel_dimensions(kernel.grid_dim, kernel.block_dim)
    DEVICE.begin(grid, threads, kernel.dynshared_size)
    held = [each._ary if isinstance(each, FakeCUDAArray) else each for each in arguments]
    for block in np.ndindex(*grid):
        DEVICE.blockIdx = Dim3(*block)
        # The first thread often prepares what the others use: in every other block it is the last one.
        order = list(range(threads[0]))[:: 1 if block[0] % 2 else -1]
        if has_barrier(kernel):
            DEVICE.block = Block(kernel.fn, held, order)
            DEVICE.block.run()
            DEVICE.block = None
        else:
            for number in order:
                DEVICE.threadIdx = Dim3(number, 0, 0)
                kernel.fn(*held)
    return None


def install() -> None:
    """Let all kernels run in turns."""
    FakeCUDAKernel.__call__ = call
