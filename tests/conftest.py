"""Settings of every suite."""

import json
import os
import signal
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

# Before OpenMP is loaded: its threads would wait without sleeping, for minutes where workers share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Two fits give equal files at midnight, too: a model has the day of its fit.
os.environ.setdefault("SOURCE_DATE_EPOCH", str(int(time.time())))

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.backends import LAUNCHED, ON_CUDA, record_launches
from tests.cases import EVERY_COMBINATION

# Each test process compiles the kernels that it needs: no test waits for another process, or runs beside one.
os.environ["GPU_ENCODE_COMPILE"] = "now"
# The first call of a kernel compiles it, and CI machines are slow: a deadline for examples would mean nothing.
SLOW: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
# The same examples in every run, so that a red run is red again; `make test-long` draws new ones, ten times as many.
settings.register_profile("default", derandomize=True, database=None, **SLOW)
settings.register_profile("long", max_examples=1000, print_blob=True, **SLOW)
settings.load_profile("default")

# `make sim LONG=1` runs every test in the simulator, however long it takes.
SIMULATE_ALL = bool(os.environ.get("LONG"))
# Seconds; 0 means no limit.
LONGEST_SIMULATION = int(os.environ.get("LONGEST_SIMULATION", "0" if SIMULATE_ALL else "120"))
# `make ptx` compiles every kernel, which takes minutes and the CUDA wheels; `make rapids` needs cuDF.
collect_ignore = [folder for folder in ("ptx", "rapids") if not os.environ.get(folder.upper())]
if "cuda-simulator" in ON_CUDA:
    record_launches()


def pytest_sessionfinish() -> None:
    """Write down which kernels were launched on which types, for `make ptx`."""
    if LAUNCHED:
        folder = Path("build/launches")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.json").write_text(json.dumps(sorted(LAUNCHED)))


def left_out() -> tuple[str, ...]:
    """Return the marks of the tests to skip: long tests of rare faults run only at night.

    A GPU runs all other tests; its simulator also skips the tests that show nothing there.
    """
    rare = () if EVERY_COMBINATION else ("nightly",)
    if not ON_CUDA:
        return ("cuda", *rare)
    return ("long", "host", *rare) if "cuda-simulator" in ON_CUDA and not SIMULATE_ALL else rare


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests that need the CUDA backend if none is requested, and tests that the simulator need not run."""
    parted: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        parted[any(map(item.get_closest_marker, left_out()))].append(item)
    config.hook.pytest_deselected(items=parted[True])
    items[:] = parted[False]


@pytest.fixture(scope="module")
def xp() -> Any:
    """Return the array library of the device, or its stand-in: GPU_ENCODE_SIMULATED_ARRAYS names it."""
    found = import_module("gpu_encode.cuda.runtime").xp
    if found is np:
        pytest.skip("in the simulator, NumPy's arrays are those of the host")
    return found


@pytest.fixture
def heeded() -> Iterator[None]:
    """Let processes heed SIGINT: what a shell runs in the background ignores it, and so do all its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _short_in_the_simulator() -> Iterator[None]:
    """Fail, rather than run for an hour, if a test has too many rows for the simulator."""
    if "cuda-simulator" not in ON_CUDA:
        yield
        return

    def stop(*_: object) -> None:
        pytest.fail("too long for the simulator: mark the test `long`, or give it fewer rows")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_SIMULATION)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
