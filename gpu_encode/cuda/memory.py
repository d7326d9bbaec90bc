"""Memory of this backend: CuPy arrays on the GPU, from CuPy's allocator (or from RMM, if it is set).

Large host arrays are copied through two pinned buffers in turn: the GPU copies one buffer while the host fills or
empties the other.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from cpu_fallback.types import written
from gpu_encode.cuda.runtime import SIMULATED, TILE, is_device_array, xp
from gpu_encode.words.errors.resources import device_too_small

__all__ = ["TILE", "adopt", "empty", "free_bytes", "to_device", "to_host", "xp", "zeros"]

# Bytes of a pinned buffer; a smaller array is copied directly.
STAGE = 1 << 25


def empty(shape: Any, dtype: Any, order: str = "C", /) -> Any:
    """Allocate an array; MemoryError says how many bytes were needed and what to do."""
    try:
        return xp.empty(shape, dtype, order)
    except MemoryError as error:
        wanted = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        raise device_too_small(wanted, *free_bytes()) from error


def zeros(shape: Any, dtype: Any, /) -> Any:
    """Allocate an array of zeros."""
    made = empty(shape, dtype)
    made[...] = 0
    return made


def free_bytes() -> tuple[int, int]:
    """Free and total bytes of the current device."""
    free, total = (0, 0) if SIMULATED else xp.cuda.Device().mem_info
    return int(free), int(total)


def adopt(data: Any) -> Any:
    """Give a device array for device memory of other libraries, without a copy."""
    return xp.asarray(data) if SIMULATED or hasattr(data, "__cuda_array_interface__") else xp.from_dlpack(data)


def wait_for_default_stream() -> None:
    """Let later work on the caller's current stream wait for the default stream, which cuDF uses."""
    if not SIMULATED:
        xp.cuda.get_current_stream().wait_event(xp.cuda.Stream.null.record())


def default_stream_waits() -> None:
    """Let cuDF's later work on the default stream wait for all work so far on the caller's current stream."""
    if not SIMULATED:
        xp.cuda.Stream.null.wait_event(xp.cuda.get_current_stream().record())


def to_device(array: Any, /) -> Any:
    """Give a contiguous array on the device; an array that is there already is not copied."""
    array = written(array)
    if SIMULATED or is_device_array(array):
        return xp.ascontiguousarray(array)
    host = np.ascontiguousarray(array)
    made = empty(host.shape, host.dtype)
    if host.nbytes <= STAGE:
        made.set(host)
        return made
    source, target = host.reshape(-1).view(np.uint8), made.reshape(-1).view(xp.uint8)
    for start, stop, buffer, event in stages(host.nbytes):
        event.synchronize()
        buffer[: stop - start] = source[start:stop]
        target[start:stop].set(buffer[: stop - start], stream=xp.cuda.get_current_stream())
        event.record()
    return made


@lru_cache(64)
def keep_on_device(device: int, numbers: bytes) -> Any:  # noqa: ARG001 - a device does not see another one's memory
    """Give a few int64 numbers on the device and keep them for later calls, since a copy takes longer than a launch."""
    made = to_device(np.frombuffer(numbers, np.int64))
    wait_for_stream()
    return made


def wait_for_stream() -> None:
    """Wait for the work on the caller's stream, since a later call, on another stream, may use its results."""
    if not SIMULATED:
        xp.cuda.get_current_stream().synchronize()


def to_host(array: Any, /) -> Any:
    """Give an array in host memory; waits for the stream."""
    array = written(array)
    if not is_device_array(array) or isinstance(array, np.ndarray) or array.nbytes <= STAGE:
        return array if isinstance(array, np.ndarray) else array.get()
    device = xp.ascontiguousarray(array)
    made = np.empty(array.shape, array.dtype)
    source, target = device.reshape(-1).view(xp.uint8), made.reshape(-1).view(np.uint8)
    waiting: list[tuple[int, int, Any, Any]] = []
    for start, stop, buffer, event in stages(device.nbytes):
        source[start:stop].get(out=buffer[: stop - start], blocking=False)
        event.record()
        waiting.append((start, stop, buffer, event))
        if len(waiting) > 1:
            empty_buffer(waiting.pop(0), target)
    for each in waiting:
        empty_buffer(each, target)
    return made


def empty_buffer(stage: tuple[int, int, Any, Any], target: Any) -> None:
    """Wait for a buffer, and copy it to its target."""
    start, stop, buffer, event = stage
    event.synchronize()
    target[start:stop] = buffer[: stop - start]


def stages(n_bytes: int) -> Iterator[tuple[int, int, Any, Any]]:
    """Yield ranges of bytes, each with the pinned buffer for it and the event of its copy."""
    pinned = [np.frombuffer(xp.cuda.alloc_pinned_memory(STAGE), np.uint8, STAGE) for _ in range(2)]
    events = [xp.cuda.Event(disable_timing=True) for _ in range(2)]
    try:
        for number, start in enumerate(range(0, n_bytes, STAGE)):
            yield start, min(start + STAGE, n_bytes), pinned[number % 2], events[number % 2]
    finally:
        # A buffer that is released may be given to another thread, even if something still reads it.
        for event in events:
            event.synchronize()
