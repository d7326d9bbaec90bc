"""The CUDA backend itself, for tests of what only it has."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from gpu_encode.ops import Ops
from tests.backends import ON_CUDA, backend


@pytest.fixture(scope="module", params=ON_CUDA)
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    with backend(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def runtime() -> Any:
    return import_module("gpu_encode.cuda.runtime")
