"""The threads of a block share one memory, also in the simulator, whose threads run at any time."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cpu_fallback
import gpu_encode

KERNELS = sorted(Path(gpu_encode.__file__).parent.glob("cuda/*.py"))


@pytest.mark.host
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_shared_memory_is_asked_for_at_the_launch(path):
    # The simulator gives an array of a fixed size anew to each thread that asks before another has got it.
    assert not re.findall(r"shared\.array\((?!0,).*", path.read_text())


@pytest.mark.cuda
def test_threads_that_ask_at_one_moment_share_memory(monkeypatch, runtime):
    if not runtime.SIMULATED:
        pytest.skip("a GPU's threads share what a kernel declares")

    turns = import_module("tests.cuda.turns")

    class Slow(dict):
        def get(self, *given):
            found = super().get(*given)
            turns.DEVICE.block.give_way()
            return found

    shared = import_module("numba.cuda.simulator.kernelapi").FakeCUDAShared
    begin = shared.__init__

    def begin_slowly(self, *given):
        begin(self, *given)
        self._allocations = Slow()

    monkeypatch.setattr(shared, "__init__", begin_slowly)
    target = np.array([0.5, 1.25, 2.0**40, 2.0**-30])
    on_device = import_module("gpu_encode.cuda.memory").to_device(target)
    extents = import_module("gpu_encode.cuda.extents").extents
    assert extents(on_device, on_device, (1, 2)) == cpu_fallback.extents(target, target, (1, 2))
