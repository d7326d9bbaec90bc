"""Every backend, and the compiled one on one, two and three threads."""

import os
from collections.abc import Iterator
from importlib import import_module
from typing import cast

import pytest

from gpu_encode.ops import Ops

AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Run as plain Python, the kernels wrap around 2**64 on purpose, of which NumPy warns.
    for item in items if AS_PYTHON else []:
        item.add_marker(pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"))


@pytest.fixture(scope="module", params=["numpy", "compiled-1", "compiled-2", "compiled-3"])
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    name, _, number = request.param.partition("-")
    if name == "numpy":
        yield cast(Ops, import_module("cpu_fallback"))
        return
    threads = import_module("cpu_fallback.compiled.threads")
    with pytest.MonkeyPatch.context() as patch:
        for module in (threads, import_module("cpu_fallback.compiled.moments")):
            patch.setattr(module, "SMALLEST_SHARE", 1)
        threads.set_threads(int(number))
        yield cast(Ops, import_module("cpu_fallback.compiled"))
        threads.set_threads(None)
