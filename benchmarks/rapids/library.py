"""All that is done with cuDF, RMM and events, and pandas, which stands in for them where there is no GPU."""

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.gpu.machine import COPIED, card, copied
from gpu_encode import devices
from gpu_encode.cli.doctor import installed

# An odd factor is one to one below 2**40: numbers of customers, say, far apart and in no order.
SPREAD, BITS = 2_654_435_761, 40
# All texts have ten digits.
FIRST_TEXT = 10**9
# Share of the free memory that frames may have; the rest is the driver's and the kernels'.
USABLE = 0.9
PACKAGES = ("cudf-cu13", "cuml-cu13", "rmm-cu13", "pylibcudf-cu13", "pandas", "pyarrow")
RESOURCES = ("pool", "async", "cuda")
# As much as anybody wants.
ENDLESS = 1 << 62


def host_seconds(call: Callable[[], Any]) -> float:
    """Seconds of a call by the host's clock."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


class FrameLibrary(ABC):
    """What pandas and cuDF share: the names of methods.

    Parameters
    ----------
    name : {"pandas", "cudf"}
    """

    stand_in = True
    clock = "host"

    def __init__(self, name: str) -> None:
        self.name = name
        self.module: Any = import_module(name)

    @property
    def device(self) -> str:
        """Where our encoder computes."""
        return "cuda" if devices.has_gpu() else "cpu"

    def key(self, kind: str, codes: Any) -> Any:
        """Column of keys of a kind, one value for each category number."""
        if kind == "int":
            return self.module.Series((codes.astype(np.int64) * SPREAD) & ((1 << BITS) - 1))
        text = self.module.Series(codes.astype(np.int64) + FIRST_TEXT).astype("str")
        return text if kind == "string" else text.astype("category")

    def frame(self, columns: dict[str, Any]) -> Any:
        """Frame of columns."""
        return self.module.DataFrame(columns)

    def reordered(self, frame: Any, rows: Any) -> Any:
        """Rows of a frame by number, numbered anew."""
        return frame.take(rows).reset_index(drop=True)

    def bytes_of(self, frame: Any) -> int:
        """Bytes of all columns."""
        return int(frame.memory_usage(index=False, deep=True).sum())

    def versions(self) -> dict[str, str]:
        """Versions of the packages that matter."""
        found = {name: installed([name, name.replace("cu13", "cu12"), name.split("-")[0]]) for name in PACKAGES}
        return {name.split("-")[0]: version or "not installed" for name, version in found.items()}

    @abstractmethod
    def held(self, array: Any) -> Any:
        """Give an array where the library holds its own."""

    @abstractmethod
    def row_numbers(self, n_rows: int) -> Any:
        """Count rows (int32)."""

    @abstractmethod
    def matrix(self, found: Any) -> Any:
        """Codes as an array of (rows, columns)."""

    @abstractmethod
    def on_host(self, frame: Any) -> Any:
        """Give the frame as the CPU path is given it."""

    @abstractmethod
    def seconds(self, call: Callable[[], Any], on_host: bool = False) -> float:
        """Seconds of a call, by the clock for where it is done."""

    @abstractmethod
    def peak(self, call: Callable[[], Any]) -> int | None:
        """Most bytes of the device that a call holds at once, on top of those before it; None where nobody knows."""

    @abstractmethod
    def release(self) -> None:
        """Give back the memory of what nobody holds any more."""

    @abstractmethod
    def free(self) -> int:
        """Bytes that a cell may need now."""

    @abstractmethod
    def machine(self) -> dict[str, Any]:
        """Give the device, its memory resource, and how fast a copy is."""


class Pandas(FrameLibrary):
    """Pandas in cuDF's place: every line runs, and nothing is measured."""

    def __init__(self) -> None:
        super().__init__("pandas")

    def held(self, array: Any) -> Any:
        """Give an array on the host."""
        return array.get() if hasattr(array, "get") else array

    def row_numbers(self, n_rows: int) -> Any:
        """Count rows."""
        return np.arange(n_rows, dtype=np.int32)

    def matrix(self, found: Any) -> Any:
        """Codes as an array of (rows, columns)."""
        return np.asarray(found).reshape(len(found), -1)

    def on_host(self, frame: Any) -> Any:
        """Give the frame itself."""
        return frame

    def seconds(self, call: Callable[[], Any], on_host: bool = False) -> float:  # noqa: ARG002
        """Seconds of a call."""
        return host_seconds(call)

    def peak(self, call: Callable[[], Any]) -> None:
        """Nobody knows."""
        call()

    def release(self) -> None:
        """Nothing: the host has enough."""

    def free(self) -> int:
        """As much as anybody wants."""
        return ENDLESS

    def machine(self) -> dict[str, Any]:
        """Give what there is."""
        device = "numba's simulator" if devices.simulated() else "no GPU"
        return {"device": device, "memory resource": "the host's", "copy bytes a second": None}


class Cudf(FrameLibrary):
    """cuDF, with its memory from RMM; CuPy's comes from there too, since cuDF sees to that.

    Parameters
    ----------
    resource : {"pool", "async", "cuda"}
        Which of RMM's memory resources.
    """

    stand_in = False
    clock = "CUDA events"

    def __init__(self, resource: str) -> None:
        super().__init__("cudf")
        self.memory, self.statistics = import_module("rmm").mr, import_module("rmm.statistics")
        self.cupy, self.timing = import_module("cupy"), import_module("benchmarks.gpu.timing")
        # Before a pool takes the memory.
        self.card, available = card(), self.timing.free_memory()
        self.copy = copied(min(COPIED, available // 4))
        self.usable = int(available * USABLE) // 256 * 256
        # Counts what is in use: a pool does not say, and the driver knows only that the pool has it.
        self.counted = self.memory.StatisticsResourceAdaptor(self.resource(resource))
        self.memory.set_current_device_resource(self.counted)

    def resource(self, kind: str) -> Any:
        """One of RMM's resources."""
        if kind == "pool":
            return self.memory.PoolMemoryResource(self.memory.CudaMemoryResource(), initial_pool_size=self.usable)
        return self.memory.CudaAsyncMemoryResource() if kind == "async" else self.memory.CudaMemoryResource()

    def held(self, array: Any) -> Any:
        """Give the array: it is on the device."""
        return array

    def row_numbers(self, n_rows: int) -> Any:
        """Count rows."""
        return self.cupy.arange(n_rows, dtype=np.int32)

    def matrix(self, found: Any) -> Any:
        """Codes as an array of (rows, columns)."""
        plain = found.to_cupy() if hasattr(found, "to_cupy") else found
        return plain.reshape(len(plain), -1)

    def on_host(self, frame: Any) -> Any:
        """Give an Arrow table."""
        return frame.to_arrow(preserve_index=False)

    def seconds(self, call: Callable[[], Any], on_host: bool = False) -> float:
        """Seconds of a call, by the host's clock or between two events."""
        return host_seconds(call) if on_host else float(self.timing.seconds_of(call))

    def peak(self, call: Callable[[], Any]) -> int:
        """Most bytes of RMM's that a call holds at once, on top of those before it."""
        self.release()
        with self.statistics.statistics():
            found = call()
            self.timing.wait()
            most = self.statistics.get_statistics().peak_bytes
            del found
            self.release()
        return int(most)

    def release(self) -> None:
        """Frames in reference cycles hold memory until they are looked for."""
        gc.collect()

    def free(self) -> int:
        """What was free at the start less what is in use now."""
        self.release()
        return self.usable - int(self.counted.allocation_counts.current_bytes)

    def machine(self) -> dict[str, Any]:
        """Give device, driver, memory resource, and how fast a copy is."""
        moved, seconds = self.copy
        resource, names = self.counted.upstream_mr, []
        while resource is not None:
            names.append(type(resource).__name__)
            resource = getattr(resource, "upstream_mr", None)
        bus = self.cupy.cuda.Device().pci_bus_id
        return {
            **self.card,
            "bus": bus,
            "memory resource": " on ".join(names),
            "copy bytes a second": moved / seconds,
        }
