"""Arrays that go to the host once somebody asks for them there: most of what a model keeps is never looked at."""

import os
from contextlib import nullcontext
from typing import Any
from weakref import WeakSet

from gpu_encode.cuda.memory import to_host, wait_for_stream
from gpu_encode.cuda.runtime import SIMULATED, current_device, xp


class DeferredCopy:
    """The copy on the host of an array, which its device holds until it is made."""

    def __init__(self, array: Any) -> None:
        # Whoever asks may be on another stream.
        wait_for_stream()
        self._device, self._array, self.shape = current_device(), array, array.shape
        PENDING.add(self)

    def on_device(self) -> Any:
        """Give the array, where the current device still holds it, or None."""
        return self._array if current_device() == self._device else None

    @property
    def on_host(self) -> Any:
        """The copy, after which the device holds nothing."""
        array = self._array
        if array is not None:
            with nullcontext() if SIMULATED else xp.cuda.Device(self._device):
                self._copy = to_host(array)
            # Threads may make it twice: whoever finds no array finds the copy.
            self._array = None
            PENDING.discard(self)
        return self._copy


PENDING: "WeakSet[DeferredCopy]" = WeakSet()


def copy_all() -> None:
    """Make all copies that are still to be made: the child of a fork cannot reach a device."""
    for each in list(PENDING):
        _ = each.on_host


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=copy_all)


def defer_copy(array: Any, /) -> DeferredCopy:
    """Promise the copy of an array."""
    return DeferredCopy(array)
