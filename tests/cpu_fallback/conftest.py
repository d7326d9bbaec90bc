"""Every backend, and the compiled one on one, two and three threads."""

import os
from collections.abc import Iterator

import pytest

from gpu_encode.seam.ops import Ops
from tests.backends import BACKENDS, backend

# Passes that only the CPU backends have: the GPU backend uses array expressions instead.
if os.environ.get("OPS_BACKENDS", "").startswith("cuda"):
    HOST_ONLY = ("blending", "rounding", "row_encodings", "sorting", "strings")
    collect_ignore = [f"test_{name}.py" for name in HOST_ONLY]
AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Run as plain Python, the kernels wrap around at 2**64 on purpose, and NumPy warns of it.
    for item in items if AS_PYTHON else []:
        item.add_marker(pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"))


@pytest.fixture(scope="module", params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    with backend(request.param) as operations:
        yield operations


@pytest.fixture(scope="module")
def compiled() -> Iterator[Ops]:
    """The compiled backend, on as many threads as it takes."""
    with backend("compiled") as operations:
        yield operations


@pytest.fixture(params=[1, 2, 3])
def n_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many threads of the compiled backend, however few rows there are."""
    with backend(f"compiled-{request.param}"):
        yield request.param
