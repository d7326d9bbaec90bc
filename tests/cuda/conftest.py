"""The CUDA backend itself, for tests of what only it has."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from gpu_encode.ops import Ops
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
