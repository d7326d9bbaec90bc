"""Calls of cuDF, RMM and events, and of pandas, which replaces them if there is no GPU."""

import gc
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from gpu_encode.seam import devices

# An odd factor maps numbers below 2**40 one to one: these are numbers of customers, for example, without an order.
SPREAD, BITS = 2_654_435_761, 40
# All texts have ten digits.
FIRST_TEXT = 10**9
# Share of the free memory for frames; the rest is for the driver and the kernels.
USABLE = 0.9


class Pandas:
    """Pandas in place of cuDF: every line runs, and nothing is measured."""

    name, stand_in = "pandas", True

    def __init__(self) -> None:
        self.module: Any = import_module(self.name)
        self.xp: Any = import_module("numpy" if self.stand_in else "cupy")
        self.device = "cuda" if devices.has_gpu() else "cpu"

    def key(self, kind: str, codes: Any) -> Any:
        """Give a column of keys of this kind, with a value for each category number."""
        if kind == "int":
            return self.module.Series((codes.astype(np.int64) * SPREAD) & ((1 << BITS) - 1))
        text = self.module.Series(codes.astype(np.int64) + FIRST_TEXT).astype("str")
        return text if kind == "string" else text.astype("category")

    def hold(self, array: Any) -> Any:
        """Give an array in the memory of the library."""
        return array.get() if self.stand_in and hasattr(array, "get") else array

    def row_numbers(self, n_rows: int) -> Any:
        """Give the numbers of the rows."""
        return self.xp.arange(n_rows, dtype=np.int32)

    def matrix(self, encodings: Any) -> Any:
        """Give encodings as an array of (rows, columns)."""
        plain = encodings.to_cupy() if hasattr(encodings, "to_cupy") else self.xp.asarray(encodings)
        return plain.reshape(len(plain), -1)

    def on_host(self, frame: Any) -> Any:
        """Give the frame for the CPU path: a frame on the device becomes an Arrow table."""
        return frame if self.stand_in else frame.to_arrow(preserve_index=False)

    def seconds(self, call: Callable[[], Any]) -> float:
        """Measure the seconds of a call."""
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun

    def watch(self, call: Callable[[], Any]) -> dict[str, Any]:
        """Run a call once more; its memory is not known here."""
        call()
        return {"peak bytes": None}

    def machine(self) -> dict[str, Any]:
        """Describe the device and the versions."""
        return {"device": "no GPU: pandas stands in for cuDF"}


class Cudf(Pandas):
    """cuDF, with a memory pool of RMM, from which CuPy's memory comes, too, since cuDF sets its allocator."""

    name, stand_in = "cudf", False

    def __init__(self) -> None:
        super().__init__()
        machine, timing = import_module("benchmarks.gpu.machine"), import_module("benchmarks.gpu.timing")
        memory, self.statistics = import_module("rmm").mr, import_module("rmm.statistics")
        self.timing, self.card = timing, machine.card()
        # The free memory is read before the pool takes it.
        usable = int(timing.free_memory() * USABLE) // 256 * 256
        pool = memory.PoolMemoryResource(memory.CudaMemoryResource(), usable, usable)
        # This adaptor counts memory in use: a pool does not tell it, and the driver only sees the whole pool.
        memory.set_current_device_resource(memory.StatisticsResourceAdaptor(pool))

    def seconds(self, call: Callable[[], Any]) -> float:
        """Measure the seconds of a call between two events."""
        return float(self.timing.seconds_of(call))

    def watch(self, call: Callable[[], Any]) -> dict[str, Any]:
        """Measure the peak of RMM's bytes in a call, minus the bytes before it."""
        # Frames in reference cycles keep their memory until the garbage collector finds them.
        gc.collect()
        with self.statistics.statistics():
            self.seconds(call)
            most = self.statistics.get_statistics().peak_bytes
        return {"peak bytes": int(most), "bytes out": 0}

    def machine(self) -> dict[str, Any]:
        """Describe the device and the driver."""
        return self.card


@cache
def library() -> Pandas:
    """Give the library of frames: pandas if cuDF cannot work."""
    lacking = devices.simulated() or find_spec("cudf") is None or not devices.has_gpu()
    return Pandas() if lacking else Cudf()
