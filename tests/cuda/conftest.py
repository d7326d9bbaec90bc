"""The CUDA backend, for tests of its own functions."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops
from tests.backends import ON_CUDA, backend


@pytest.fixture(scope="module", params=ON_CUDA)
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    with backend(request.param) as operations:
        yield operations


@pytest.fixture(scope="module")
def runtime() -> Any:
    return import_module("gpu_encode.cuda.runtime")


@pytest.fixture(scope="module")
def counting() -> Any:
    return import_module("gpu_encode.cuda.counting")


@pytest.fixture(scope="module")
def kernels(counting: Any) -> Any:
    """Give the kernels that count."""
    return counting.engine()


@pytest.fixture(scope="module")
def gathering() -> Any:
    """Give the module that looks rows up."""
    return import_module("gpu_encode.cuda.gather")


@pytest.fixture
def device(ops: Ops) -> Any:
    """Give the backend as it is, on whose device all arrays lie."""
    return import_module("gpu_encode.cuda")


@pytest.fixture
def few_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let priors be few: the simulator takes long for each.  Compiled kernels keep what they were compiled with."""
    if not devices.simulated():
        return
    monkeypatch.setattr(import_module("gpu_encode.cuda.order_segments"), "CHECKPOINT_BITS", 4)
    scans = import_module("gpu_encode.fitting.ordered")
    monkeypatch.setattr(scans, "CHECKPOINT_BITS", 4)
    monkeypatch.setattr(scans, "EXACT_RANKS", 16)


@pytest.fixture
def left_to_digits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let no rows go tile by tile; gives how many encodings are left to the digits, one number a call."""
    ordered, doubts = import_module("gpu_encode.cuda.ordered_encodings"), list[int]()
    settle = ordered.settle_rows
    monkeypatch.setattr(ordered, "encode_digits_by_tile", None)
    monkeypatch.setattr(
        ordered, "settle_rows", lambda kept, *rest: doubts.append(int(kept.counters[1])) or settle(kept, *rest)
    )
    return doubts


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of the CUDA C++ kernels that are launched."""
    raw, names = import_module("gpu_encode.cuda.raw"), list[str]()
    run = raw.run
    monkeypatch.setattr(raw, "run", lambda name, *given, **options: names.append(name) or run(name, *given, **options))
    return names
