"""Rows whose columns predict the target, and in which some categories occur only once."""

from typing import Any

import numpy as np
import pandas as pd

Rows = tuple[pd.DataFrame, np.ndarray[Any, Any]]


def draw(kind: str, n_rows: int = 120, seed: int = 0) -> Rows:
    """Draw three columns, of 3, 12 and 60 categories, and a target of two classes, three classes or a quantity."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n_rows) for size in (3, 12, 60)]
    frame = pd.DataFrame({f"c{size}": [f"v{code}" for code in of] for size, of in zip((3, 12, 60), codes, strict=True)})
    strength = codes[0] + codes[1] / 4 + rng.normal(size=n_rows)
    if kind == "continuous":
        return frame, np.abs(strength)
    if kind == "binary":
        return frame, np.where(strength > np.median(strength), "yes", "no")
    return frame, np.digitize(strength, np.quantile(strength, [0.3, 0.7]))
