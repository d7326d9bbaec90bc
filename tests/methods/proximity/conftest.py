"""Every backend, and every way to count agreements."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from gpu_encode.seam import ops
from tests.backends import ON_CUDA


@pytest.fixture(params=ON_CUDA or ("numpy", "compiled"))
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Compute on one backend, whatever the number of rows."""
    with ops.use_backend(request.param):
        yield request.param


@pytest.fixture(params=["pairs", "groups", "listed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Count agreements by comparing pairs, by groups of joint keys, or by listing the patterns that occur."""
    histogram: Any = import_module("gpu_encode.methods.proximity.histogram")
    monkeypatch.setattr(histogram, "PAIRS_PER_ROW", 0 if request.param == "groups" else 1 << 40)
    if request.param == "listed":
        monkeypatch.setattr(histogram, "SORTED_PAIRS", 50)
        for name in ("histogram", "subsets"):
            monkeypatch.setattr(import_module(f"gpu_encode.methods.proximity.{name}"), "DENSE", 0)
    return str(request.param)
