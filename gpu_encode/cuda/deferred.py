"""Arrays that are copied to the host only when the host needs them: most arrays of a model are never read there."""

import os
from contextlib import nullcontext
from typing import Any
from weakref import WeakSet

from gpu_encode.cuda.memory import to_host, wait_for_stream
from gpu_encode.cuda.runtime import SIMULATED, current_device, xp


class DeferredCopy:
    """A copy on the host of an array, which the device holds until the copy is made."""

    def __init__(self, array: Any) -> None:
        # The reader may be on another stream.
        wait_for_stream()
        self._device, self._array, self.shape = current_device(), array, array.shape
        PENDING.add(self)

    def on_device(self) -> Any:
        """Give the array if the current device still holds it, otherwise None."""
        return self._array if current_device() == self._device else None

    @property
    def on_host(self) -> Any:
        """Give the copy, after which the device no longer holds the array."""
        array = self._array
        if array is not None:
            with nullcontext() if SIMULATED else xp.cuda.Device(self._device):
                self._copy = to_host(array)
            # Two threads may both copy the array; a thread that no longer finds the array finds the copy.
            self._array = None
            PENDING.discard(self)
        return self._copy


PENDING: "WeakSet[DeferredCopy]" = WeakSet()


def copy_all() -> None:
    """Make all copies that were deferred, since the child of a fork cannot reach a device."""
    for each in list(PENDING):
        _ = each.on_host


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=copy_all)


def defer_copy(array: Any, /) -> DeferredCopy:
    """Defer the copy of an array."""
    return DeferredCopy(array)
