"""The CUDA backend itself, for tests of what only it has."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from gpu_encode.ops import Ops
from tests.backends import ON_CUDA, backend
from tests.cuda.emulated import emulate


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


@pytest.fixture(scope="module", params=["numba", "CUDA C++"])
def kernels(request: pytest.FixtureRequest, counting: Any, runtime: Any, tmp_path_factory: Any) -> Any:
    """Both sets of kernels that count; in the simulator CUDA C++ runs on the CPU as well."""
    if request.param == "numba":
        return counting.compiled_engine()
    if runtime.SIMULATED:
        run = emulate("counting.cu", tmp_path_factory.mktemp("raw"))
        return counting.Engine(run, 64, 3, runtime.SHARED_BYTES)
    return counting.engine()


@pytest.fixture(scope="module", params=["numba", "CUDA C++"])
def gathering(request: pytest.FixtureRequest, runtime: Any, tmp_path_factory: Any) -> Iterator[Any]:
    """Give the module that looks rows up, with one set of kernels; in the simulator CUDA C++ runs on the CPU, too."""
    module = import_module("gpu_encode.cuda.gather")
    start = module.launch_compiled if request.param == "numba" else module.launch_raw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fastest", lambda: start)
        if runtime.SIMULATED and request.param == "CUDA C++":
            patch.setattr(module.raw, "run", emulate("gather.cu", tmp_path_factory.mktemp("raw")))
            patch.setattr(module, "MOST_RAW_BLOCKS", 3)
        yield module
