"""The backends on which the calls of this folder compute."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from gpu_encode.seam import ops
from tests.backends import BACKENDS, on_threads
from tests.family.conftest import backend

__all__ = ["backend"]


@pytest.fixture(params=BACKENDS)
def each_backend(request) -> Iterator[str]:
    """Compute on each backend in turn."""
    kind, _, threads = request.param.partition("-")
    compiled = kind == "compiled"
    sized = on_threads(int(threads)) if compiled else nullcontext()
    with sized, ops.use_backend("compiled" if compiled else request.param):
        yield request.param
