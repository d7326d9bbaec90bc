"""Records of calls: which ones this library served, on which device and how fast; which ones it did not, and why."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from gpu_encode.seam.devices import DEVICES
from gpu_encode.words.terminal import printable

LOGGER = logging.getLogger("gpu_encode.accel")
Method = Callable[..., Any]
HEADINGS = ("method", "served by", "calls", "rows", "seconds", "why not")


class NotServedError(Exception):
    """A call, or a column, that the original library must compute; the message says why."""


@dataclass(frozen=True)
class Line:
    """Calls of one method with the same outcome.

    Parameters
    ----------
    method : str
        For example "OneHotEncoder.fit".
    served_by : {"cpu", "cuda", "scikit-learn", "category_encoders"}
        The device, if this library computed; otherwise the library that did.
    reason : str
        Why the other library computed all columns, or some of them.
    n_calls, n_rows : int
    seconds : float
    """

    method: str
    served_by: str
    reason: str
    n_calls: int = 0
    n_rows: int = 0
    seconds: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its line in the table."""
        return (
            self.method,
            self.served_by,
            f"{self.n_calls:,}",
            f"{self.n_rows:,}",
            f"{self.seconds:.3f}",
            self.reason,
        )


@dataclass(frozen=True)
class Report:
    """The calls since `install`; as text, a table.

    Parameters
    ----------
    lines : tuple of Line
        In the order of their first calls.
    """

    lines: tuple[Line, ...]

    @property
    def n_served(self) -> int:
        """Number of calls that this library served."""
        return sum(line.n_calls for line in self.lines if line.served_by in DEVICES)

    def __str__(self) -> str:
        if not self.lines:
            return "gpu_encode.accel: no encoder was called."
        rows = [HEADINGS, *([*map(printable, line.cells)] for line in self.lines)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        numeric = [name in ("calls", "rows", "seconds") for name in HEADINGS]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in rows
        )


def count_rows(X: Any) -> int:
    """Give the number of rows of a table; 0 for anything else."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
        return shape[0]
    return len(X) if isinstance(X, list) else 0


@dataclass
class Outcome:
    """Which library served a call; filled in while the call runs."""

    served_by: str = "scikit-learn"
    reason: str = ""


class Records:
    """Calls of all threads, added up by method and outcome."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, str], Line] = {}
        self._lock = threading.Lock()

    @contextmanager
    def of(self, method: str, n_rows: int) -> Iterator[Outcome]:
        """Record a call, whose outcome is known at its end."""
        outcome, start = Outcome(), perf_counter()
        try:
            yield outcome
        finally:
            self._add((method, outcome.served_by, outcome.reason), n_rows, perf_counter() - start)

    def _add(self, key: tuple[str, str, str], n_rows: int, seconds: float) -> None:
        LOGGER.info("%s of %d rows: %s", key[0], n_rows, ", ".join(filter(None, key[1:])))
        with self._lock:
            line = self._lines.get(key, Line(*key))
            self._lines[key] = Line(*key, line.n_calls + 1, line.n_rows + n_rows, line.seconds + seconds)

    def report(self) -> Report:
        """Give the records so far."""
        return Report(tuple(self._lines.values()))

    def clear(self) -> None:
        """Forget all calls."""
        self._lines.clear()


RECORDS = Records()
