"""Energy that the GPU has taken, asked of the driver's own library (NVML); nothing where it does not say."""

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

# The counter moves in steps: shorter work is repeated.
SHORTEST = 0.3


class Meter:
    """The energy counter of one GPU.

    Parameters
    ----------
    bus : str
        Its PCI bus number, as CUDA names it.

    Raises
    ------
    OSError
        If there is no such library, GPU or counter.
    """

    def __init__(self, bus: str) -> None:
        self.library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        self.handle = ctypes.c_void_p()
        handle_of = self.library.nvmlDeviceGetHandleByPciBusId_v2
        if self.library.nvmlInit_v2() or handle_of(bus.encode(), ctypes.byref(self.handle)):
            message = "the driver gives no access to its counters"
            raise OSError(message)
        self.joules()

    def joules(self) -> float:
        """Energy since the driver was loaded."""
        taken = ctypes.c_ulonglong()
        if self.library.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(taken)):
            message = "this GPU counts no energy"
            raise OSError(message)
        return taken.value / 1000

    def joules_of(self, call: Callable[[], Any], seconds: float) -> float:
        """Energy of one call, measured over as many as take a while.

        Parameters
        ----------
        call : callable
            Must wait for the device.
        seconds : float
            What one call takes.
        """
        turns = max(1, round(SHORTEST / max(seconds, 1e-4)))
        # Begin where the counter has just moved.
        before, until = self.joules(), time.perf_counter() + SHORTEST
        while (begun := self.joules()) == before and time.perf_counter() < until:
            pass
        for _ in range(turns):
            call()
        return (self.joules() - begun) / turns


def meter_of(bus: str | None) -> Meter | None:
    """Give the counter of a GPU, where there is one."""
    try:
        return None if bus is None else Meter(bus)
    except (OSError, AttributeError):
        return None
