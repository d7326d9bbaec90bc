"""Transfers through pinned buffers, on a stand-in that copies as late as a GPU may; and errors if memory runs out."""

import ctypes
import sys
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_encode import TargetEncoder
from gpu_encode.fitting import fit
from gpu_encode.seam import devices

pytest.importorskip("cupy", reason="the CUDA wheels are not installed")

STAGE = 64


class Stream:
    """A stream whose copies run only when something waits for them."""

    def __init__(self):
        self.waiting = []

    def synchronize(self, upto=None):
        for _ in range(len(self.waiting) if upto is None else upto - self.done()):
            self.waiting.pop(0)()
            self.finished += 1

    finished = 0

    def done(self):
        return self.finished


class Event:
    """A place in the stream."""

    stream: Stream
    place = 0

    def __init__(self, disable_timing):
        assert disable_timing

    def record(self):
        self.place = self.stream.finished + len(self.stream.waiting)

    def synchronize(self):
        if self.place > self.stream.finished:
            self.stream.synchronize(self.place)


class Pinned(ctypes.c_uint8 * STAGE):
    """A buffer that another owner overwrites as soon as it is released."""

    def __del__(self):
        ctypes.memset(self, 255, STAGE)


class Array:
    """What `memory` uses of CuPy's arrays; copies go by addresses, and keep no buffer from being let go."""

    stream: Stream
    # The memory of all buffers, by address.
    pinned: dict[int, np.ndarray]

    def __init__(self, held):
        self.held = held
        self.shape, self.dtype, self.nbytes = held.shape, held.dtype, held.nbytes

    def reshape(self, *shape):
        return Array(self.held.reshape(*shape))

    def view(self, dtype):
        return Array(self.held.view(dtype))

    def __getitem__(self, key):
        return Array(self.held[key])

    def set(self, array, stream=None):
        if stream is None:
            self.held[...] = array
        else:
            source = self.at_its_address(array)
            self.stream.waiting.append(lambda: self.held.__setitem__(..., source))

    def get(self, out=None, blocking=True):
        if out is None:
            return self.held.copy()
        assert not blocking
        target = self.at_its_address(out)
        self.stream.waiting.append(lambda: target.__setitem__(..., self.held))
        return out

    @classmethod
    def allocate(cls, n_bytes):
        memory = np.zeros(n_bytes, np.uint8)
        cls.pinned[memory.ctypes.data] = memory
        return Pinned.from_buffer(memory)

    @classmethod
    def at_its_address(cls, buffer):
        return cls.pinned[buffer.ctypes.data][: len(buffer)]


@pytest.fixture
def memory(monkeypatch):
    module = import_module("gpu_encode.cuda.memory")
    stream = Stream()
    Event.stream = Array.stream = stream
    Array.pinned = {}
    cuda = SimpleNamespace(alloc_pinned_memory=Array.allocate, Event=Event, get_current_stream=lambda: stream)
    library = SimpleNamespace(
        cuda=cuda,
        uint8=np.uint8,
        ndarray=Array,
        empty=lambda shape, dtype, order: Array(np.zeros(shape, dtype, order)),
        ascontiguousarray=lambda array: array,
    )
    monkeypatch.setattr(module, "xp", library)
    monkeypatch.setattr(module, "SIMULATED", False)
    monkeypatch.setattr(module, "STAGE", STAGE)
    monkeypatch.setattr(module, "is_device_array", lambda array: isinstance(array, Array))
    return module


@pytest.mark.parametrize(
    "n_bytes", [0, 1, STAGE - 1, STAGE, STAGE + 1, 2 * STAGE, 2 * STAGE + 1, 3 * STAGE, 5 * STAGE - 8]
)
def test_what_goes_there_comes_back(memory, n_bytes):
    given = np.random.default_rng(n_bytes).integers(0, 256, n_bytes).astype(np.uint8)
    there = memory.to_device(given)
    assert np.array_equal(there.held, given)
    assert np.array_equal(memory.to_host(there), given)


def test_shapes_and_types_stay(memory):
    given = np.arange(60.0).reshape(20, 3)[::-1]
    there = memory.to_device(given)
    back = memory.to_host(there)
    assert there.dtype == back.dtype == given.dtype
    np.testing.assert_array_equal(back, given)


def test_an_array_that_is_too_large_says_what_was_needed(memory, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(memory.xp, "empty", full)
    memory.xp.cuda.Device = lambda: SimpleNamespace(mem_info=(1000, 80_000))
    with pytest.raises(MemoryError, match=r"8,000,000 bytes more .* 80,000 bytes, 1,000 of them free.* partial_fit"):
        memory.empty((1000, 1000), np.float64)


OF_CUPY = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})
FAILURES = {
    "CuPy's": (OF_CUPY("Out of memory allocating 4,096 bytes (allocated so far: 512 bytes)."), "4,096 bytes more"),
    "bytes": (MemoryError("std::bad_alloc: CUDA error (failed to allocate 4096 bytes) at: x.hpp"), "4,096 bytes more"),
    "GiB": (MemoryError("std::bad_alloc: RMM failure: (failed to allocate 1.5 GiB)"), "1,610,612,736 bytes more"),
    "no number": (MemoryError("std::bad_alloc: std::bad_alloc"), "More memory is"),
}


@pytest.mark.parametrize(("failure", "words"), FAILURES.values(), ids=FAILURES)
def test_memory_that_runs_out_in_the_middle_is_explained(monkeypatch, failure, words):
    def train(*_):
        raise failure

    monkeypatch.setattr(fit, "train", train)
    monkeypatch.setattr(import_module("gpu_encode.cuda"), "free_bytes", lambda: (7, 9))
    with pytest.raises(MemoryError, match=rf"^{words}.* needed on the GPU, which has 9 bytes, 7 of them free"):
        TargetEncoder(cv=2).fit_transform([["a"], ["b"]] * 4, [0, 1] * 4)


def test_memory_that_the_host_lacks_is_not():
    with pytest.raises(MemoryError, match=r"^Unable"), devices.explain_memory():
        np.empty((1 << 50,), np.float64)


class Pool:
    """CuPy's own pool of memory."""

    def malloc(self):
        """The allocator that CuPy begins with."""


class CudaMemoryResource:
    """The allocator that RMM begins with."""


@pytest.fixture
def allocations(monkeypatch):
    """Stand-ins for CuPy and RMM with only their allocators, which record the one in use."""
    pool, used = Pool(), ["CuPy's"]
    cuda = SimpleNamespace(get_allocator=lambda: pool.malloc)

    @contextmanager
    def using_allocator(allocator):
        used.append(allocator)
        yield
        used.pop()

    cuda.using_allocator = using_allocator
    cuda_backend = import_module("gpu_encode.cuda")
    monkeypatch.setattr(cuda_backend, "xp", SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool))
    resources = SimpleNamespace(get_current_device_resource=object, CudaMemoryResource=CudaMemoryResource)
    monkeypatch.setitem(sys.modules, "rmm", SimpleNamespace(mr=resources))
    monkeypatch.setitem(sys.modules, "rmm.allocators", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "rmm.allocators.cupy", SimpleNamespace(rmm_cupy_allocator="RMM's"))
    monkeypatch.setattr(devices, "simulated", lambda: False)
    monkeypatch.setattr(devices, "has_gpu", lambda: True)
    return SimpleNamespace(used=used, cuda=cuda, resources=resources)


@pytest.mark.parametrize("change", ["a resource in RMM", "nothing", "an allocator in CuPy"])
def test_memory_comes_from_where_the_user_said(allocations, change):
    if change == "nothing":
        allocations.resources.get_current_device_resource = CudaMemoryResource
    elif change == "an allocator in CuPy":
        allocations.cuda.get_allocator = lambda: Pool().malloc
    with devices.explain_memory():
        assert allocations.used[-1] == ("RMM's" if change == "a resource in RMM" else "CuPy's")
    assert allocations.used == ["CuPy's"]
