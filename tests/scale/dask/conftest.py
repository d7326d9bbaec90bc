"""Schedulers of Dask."""

from collections.abc import Iterator

import dask
import pytest


@pytest.fixture
def synchronous() -> Iterator[None]:
    """Do all tasks in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield
