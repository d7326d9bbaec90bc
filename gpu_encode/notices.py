"""Warnings that point at the user's own line, however deep in the library they arise."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

PACKAGES = ("gpu_encode.", "sklearn.", "joblib.", "contextlib")

# Of a thread alone, unlike the filters of `warnings`.
_KEPT: ContextVar[list[str] | None] = ContextVar("kept", default=None)


@contextmanager
def kept() -> Iterator[list[str]]:
    """Keep messages, for another process or thread to warn of where the user is.

    Examples
    --------
    >>> from gpu_encode import notices
    >>> with notices.kept() as messages:
    ...     notices.warn("Something is odd.")
    >>> messages
    ['Something is odd.']
    """
    messages: list[str] = []
    token = _KEPT.set(messages)
    try:
        yield messages
    finally:
        _KEPT.reset(token)


def warn(message: str) -> None:
    """Warn at the first caller outside of the library and of scikit-learn, whose pipelines call it through joblib."""
    messages = _KEPT.get()
    if messages is not None:
        messages.append(message)
        return
    for level in count(1):
        frame = sys._getframe(level)
        inside = str(frame.f_globals.get("__name__", "")).startswith(PACKAGES)
        if not inside or frame.f_back is None:
            warnings.warn(message, UserWarning, stacklevel=level + 1)
            return
