"""The CUDA backend itself, for tests of what only it has."""

from collections.abc import Iterator

import pytest

from gpu_encode.ops import Ops
from tests.backends import ON_CUDA, backend


@pytest.fixture(scope="module", params=ON_CUDA)
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    with backend(request.param) as found:
        yield found
