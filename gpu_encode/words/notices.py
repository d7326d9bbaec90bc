"""Warnings that point at the user's own line, wherever in the library they arise."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from gpu_encode.words.terminal import printable


class LeakWarning(UserWarning):
    """Warning that a learner can read a row's own target from its training encoding.

    Examples
    --------
    >>> import warnings
    >>> from gpu_encode import LeakWarning, LeaveOneOut, TargetEncoder
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", LeakWarning)
    ...     encodings = TargetEncoder(cv=LeaveOneOut()).fit_transform([["a"], ["a"], ["b"], ["b"]], [0, 1, 1, 1])
    """


class UnseenWarning(UserWarning):
    """Warning that fit has not seen most values of a column of new rows, or has not seen a column.

    Examples
    --------
    >>> import warnings
    >>> from gpu_encode import TargetEncoder, UnseenWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnseenWarning)
    ...     encodings = TargetEncoder().fit([["a"], ["b"]], [0, 1]).transform([["c"], ["d"]])
    """


PACKAGES = ("gpu_encode.", "sklearn.", "joblib.", "contextlib")

# Kept per thread, unlike the filters of `warnings`.
_KEPT: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("kept", default=None)


@contextmanager
def kept() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Keep messages and their classes, so that another process or thread can warn at the user's own line.

    Examples
    --------
    >>> from gpu_encode.words import notices
    >>> with notices.kept() as messages:
    ...     notices.warn("Something is odd.")
    >>> messages
    [('Something is odd.', <class 'UserWarning'>)]
    """
    messages: list[tuple[str, type[Warning]]] = []
    token = _KEPT.set(messages)
    try:
        yield messages
    finally:
        _KEPT.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside of the library and of scikit-learn, whose pipelines use joblib."""
    message = printable(message)
    messages = _KEPT.get()
    if messages is not None:
        messages.append((message, category))
        return
    for level in count(1):
        frame = sys._getframe(level)
        inside = str(frame.f_globals.get("__name__", "")).startswith(PACKAGES)
        if not inside or frame.f_back is None:
            warnings.warn(message, category, stacklevel=level + 1)
            return
