"""Warnings that point at the user's own line, however deep in the library they arise."""

import sys
import warnings
from itertools import count

PACKAGES = ("gpu_encode.", "sklearn.", "joblib.", "contextlib")


def warn(message: str) -> None:
    """Warn at the first caller outside of the library and of scikit-learn, whose pipelines call it through joblib."""
    for level in count(1):
        frame = sys._getframe(level)
        inside = str(frame.f_globals.get("__name__", "")).startswith(PACKAGES)
        if not inside or frame.f_back is None:
            warnings.warn(message, UserWarning, stacklevel=level + 1)
            return
