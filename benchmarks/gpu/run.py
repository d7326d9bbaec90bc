"""What a step is given: where to write, how much time is left, and how large the data may be."""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.gpu.report import Report
from benchmarks.gpu.tables import Row, figures

T = TypeVar("T")
LINES_OF_TRACE = 6
# An error of the device stays: all work after it fails as well.
MOST_BROKEN = 8


class OutOfTimeError(Exception):
    """The time limit has passed; what was found so far is on disk."""


@dataclass(frozen=True)
class Run:
    """One step of a run.

    Parameters
    ----------
    step : str
    report : Report
    tiny : bool
        Data so small that the simulator can do it.
    deadline : float
        When to stop, in the time of `time.monotonic`.
    """

    step: str
    report: Report
    tiny: bool
    deadline: float
    broken: list[str] = field(default_factory=list)

    @property
    def simulated(self) -> bool:
        """Whether there is no GPU: nothing that is measured means anything."""
        return bool(self.report.document["simulated"])

    @property
    def backend(self) -> str:
        """Name of the backend on the device."""
        return "cuda-simulator" if self.simulated else "cuda"

    def size(self, full: T, tiny: T) -> T:
        """Choose."""
        return tiny if self.tiny else full

    def left(self) -> float:
        """Seconds left."""
        return self.deadline - time.monotonic()

    def pause(self) -> None:
        """Stop between two things if time is up."""
        if self.left() < 0:
            raise OutOfTimeError

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Write down what breaks, and let the rest go on, unless everything breaks."""
        self.pause()
        try:
            yield
        except OutOfTimeError:
            raise
        except Exception:
            self.broken.append(what)
            self.fail(f"{what}\n{traceback.format_exc(limit=-LINES_OF_TRACE)}")
            if len(self.broken) >= MOST_BROKEN:
                raise

    def row(self, title: str, **cells: object) -> None:
        """Add a row to a table; keys may be any text: `row(title, **{"G rows/s": 3.0})`."""
        self.report.add(self.step, title, dict(cells))
        if cells.get("same") is True or self.simulated:
            return
        print(f"  {title}: " + ", ".join(f"{key} {value}" for key, value in cells.items() if value is not None))

    def note(self, text: str) -> None:
        """Add a note."""
        self.report.say(self.step, "notes", text)
        print("  " + text.replace("\n", "\n  "))

    def fail(self, text: str) -> None:
        """Say that something is wrong; the run goes on."""
        self.report.say(self.step, "failures", text)
        print("  FAILED: " + text.replace("\n", "\n  "))

    def copy_rate(self) -> float | None:
        """Bytes that a copy reads and writes a second, as the first step measured it."""
        rows = self.report.rows("machine", "copy")
        return None if not rows or "GB/s" not in rows[-1] else float(rows[-1]["GB/s"]) * 1e9

    def figures(self, seconds: float, items: int, moved: int) -> Row:
        """Columns of a measurement; of the simulator's, none that looks like one."""
        if self.simulated:
            return {"rows": items, "bytes a row": moved, "ran": True}
        return figures(seconds, items, moved, self.copy_rate())


Step = Callable[[Run], None]
