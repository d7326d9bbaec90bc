"""Every test restores scikit-learn."""

import pytest

from gpu_encode.serve import accel


@pytest.fixture(autouse=True)
def uninstalled():
    yield
    accel.uninstall()


@pytest.fixture
def served():
    """Accelerate every call, however few rows it has."""
    accel.install(fewest_rows=0)
