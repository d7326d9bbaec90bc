"""Bytes a row that a call takes on the device at its peak, beyond X, y and the codes: by counting arrays as they live.

What grows with rows alone is looked at: the difference between many rows and few.  Tiles are tiny in the simulator.
"""

import gc
import os
import weakref
from importlib import import_module

import numpy as np
import pytest

from gpu_encode import Greedy, KFold, LeaveOneOut, TargetEncoder

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        os.environ.get("GPU_ENCODE_SIMULATED_ARRAYS") != "tests.cuda.stand_in",
        reason="only the stand-in's arrays are counted; on a GPU the benchmark asks the driver",
    ),
]

FEW, MANY = 300, 800
# Codes are int32, classes as well; real targets and weights are float64, integers int64.
CODES, CLASSES, REAL, WEIGHTS = 4, 4, 8, 8
# A few checkpoints, tables and tiles that the difference does not cancel.
SLACK = 1.0


class Count:
    """Bytes of the arrays that are alive, and the most there ever were."""

    def __init__(self):
        self.known = set()
        self.bytes = self.peak = 0

    def add(self, array):
        while isinstance(array.base, np.ndarray):
            array = array.base
        if not array.flags.owndata or id(array) in self.known:
            return
        self.known.add(id(array))
        self.bytes += array.nbytes
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(array, self.remove, id(array), array.nbytes)

    def remove(self, known, n_bytes):
        self.known.discard(known)
        self.bytes -= n_bytes


@pytest.fixture
def count(monkeypatch):
    strict = import_module("tests.cuda.strict").StrictArray
    counted, begin = Count(), strict.__init__

    def made(self, held):
        begin(self, held)
        counted.add(held)

    monkeypatch.setattr(strict, "__init__", made)
    return counted


def peak(count, n_rows, scheme, target, weighted):
    rng = np.random.default_rng(0)
    memory = import_module("gpu_encode.cuda.memory")
    X = memory.to_device(rng.integers(0, 16, n_rows).astype(np.int32)).reshape(-1, 1)
    y = rng.integers(0, 2, n_rows).astype(np.int32) if target == "binary" else rng.normal(size=n_rows)
    weight = memory.to_device(rng.random(n_rows)) if weighted else None
    encoder = TargetEncoder(cv=scheme, smooth=10.0, dtype="float32", target_type=target, device="cuda")
    y = memory.to_device(y)
    gc.collect()
    before = count.peak = count.bytes
    out = encoder.fit_transform(X, y, sample_weight=weight)
    return count.peak - before - out.nbytes


@pytest.mark.filterwarnings("ignore:Greedy")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("target", "held"), [("binary", CLASSES), ("continuous", REAL)])
@pytest.mark.parametrize("scheme", [Greedy(), KFold(5), LeaveOneOut()], ids=["greedy", "folds", "leave-one-out"])
def test_a_row_takes_its_codes_and_its_target(count, scheme, target, held, weighted):
    grown = peak(count, MANY, scheme, target, weighted) - peak(count, FEW, scheme, target, weighted)
    most = CODES + held + (WEIGHTS if weighted else 0) + SLACK
    assert grown / (MANY - FEW) <= most
