"""The backends on which the encoders of this folder compute."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from gpu_encode.seam import ops
from tests.backends import ON_CUDA


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    """Compute on the CUDA backend if the tests ask for it, otherwise on the default CPU backend."""
    with ops.use_backend(ON_CUDA[0]) if ON_CUDA else nullcontext():
        yield
