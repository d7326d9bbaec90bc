"""Rows that every file of this folder encodes."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import TargetEncoder
from tests.family.conftest import backend

__all__ = ["backend"]

FRAME = pd.DataFrame(
    {
        "city": list("aabbccaabbcd"),
        "zip": [1, 1, 2, 2, 3, 3, 1, 4, 2, 2, 3, 5],
        "day": pd.date_range("2024-01-01", periods=12),
        "shop": list("pqrpqrpqrpqr"),
    }
)
Y = np.array([0.1, 2.5, 3.25, -1.0, 7.5, 0.3, 1e3, 12.0, 5.5, 8.25, 1 / 3, -4.75])
LABELS = np.array([0, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0])


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return twelve rows: a text, a number, a time and a group."""
    return FRAME.copy()


@pytest.fixture
def y() -> np.ndarray:
    """Return a quantity that is different in every row."""
    return Y.copy()


@pytest.fixture
def labels() -> np.ndarray:
    """Return a binary target, six rows each."""
    return LABELS.copy()


@pytest.fixture
def fitted(frame, y):
    """Return an encoder fitted to the good rows."""
    return TargetEncoder(target_type="continuous").fit(frame, y)
