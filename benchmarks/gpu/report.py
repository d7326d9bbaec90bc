"""What a step is given, and report.json and report.md: all that is known so far, on disk at any time."""

import argparse
import json
import re
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.harness.tables import table

Document = dict[str, Any]
SIMULATOR = "simulator"
LINES_OF_TRACE = 6
# An error of the device stays: all work after it fails as well.
MOST_BROKEN = 8


def folder_for(root: Path, device: str, date: str) -> Path:
    """Where results go unless the user says so: those of the simulator are none."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return root / "build/gpu-simulator" if device == SIMULATOR else root / f"benchmarks/results/{slug}-{date}"


def section(name: str, step: Document) -> list[str]:
    """Lines of one step."""
    state = step["status"] + (f" after {step['seconds']:.0f} s" if step.get("seconds") is not None else "")
    lines = [f"## {name}: {state}", ""]
    for failure in step["failures"]:
        lines += ["**failed:**", "```", *failure.splitlines(), "```", ""]
    for note in step["notes"]:
        lines += ["```", *note.splitlines(), "```", ""] if "\n" in note else [note, ""]
    for title, rows in step["tables"].items():
        lines += [f"### {title}", "", *table(rows), ""]
    return lines


class Report:
    """A report in a folder; steps of an older one there stay until they run again."""

    def __init__(self, folder: Path, document: Document) -> None:
        self.folder, self.document = folder, document
        self.steps: dict[str, Document] = document["steps"]

    @classmethod
    def open(cls, folder: Path, device: str) -> Self:
        """Go on with the report in a folder, if there is one of the same device, or begin one."""
        path = folder / "report.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        return cls(folder, found if found.get("device") == device else {"device": device, "steps": {}})

    def begin(self, step: str, commit: str) -> None:
        """Forget what a step found before, and keep the steps in the order in which they ran."""
        self.steps.pop(step, None)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        self.steps[step] = {"status": "running", "commit": commit, "begun": begun, "seconds": None}
        self.steps[step] |= {"failures": [], "notes": [], "tables": {}}
        self.save()

    def end(self, step: str, status: str, seconds: float | None = None) -> None:
        """Say how a step ended."""
        self.steps[step] |= {"status": status, "seconds": seconds}
        self.save()

    def failed(self) -> list[str]:
        """Steps that found something wrong."""
        return [name for name, step in self.steps.items() if step["failures"]]

    def save(self) -> None:
        """Write both files."""
        lines = [f"# {self.document['device']}", ""]
        if self.document["device"] == SIMULATOR:
            lines += ["No GPU: numba's simulator ran every line once. Nothing here is a measurement.", ""]
        for name, step in self.steps.items():
            lines += section(name, step)
        self.folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in (("json", json.dumps(self.document, indent=1)), ("md", "\n".join(lines))):
            # Nobody ever finds half of a file.
            part = self.folder / f"report.{suffix}.part"
            part.write_text(text + "\n")
            part.replace(self.folder / f"report.{suffix}")


class OutOfTimeError(Exception):
    """The time limit has passed; what was found so far is on disk."""


@dataclass(frozen=True)
class Run:
    """One step of a run: where to write, how much time is left, and how large the data may be.

    Parameters
    ----------
    step : str
    report : Report
    options : argparse.Namespace
        `tiny`: data so small that the simulator can do it; and what a user asks of single steps.
    deadline : float
        When to stop, in the time of `time.monotonic`.
    """

    step: str
    report: Report
    options: argparse.Namespace
    deadline: float
    broken: list[str] = field(default_factory=list)

    @property
    def tiny(self) -> bool:
        """Whether data are small."""
        return bool(self.options.tiny)

    @property
    def simulated(self) -> bool:
        """Whether there is no GPU: nothing that is measured means anything."""
        return bool(self.report.document["device"] == SIMULATOR)

    @property
    def backend(self) -> str:
        """Name of the backend on the device."""
        return "cuda-simulator" if self.simulated else "cuda"

    def size(self, full: Any, tiny: Any) -> Any:
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
        self.report.steps[self.step]["tables"].setdefault(title, []).append(cells)
        self.report.save()
        if cells.get("same") is not True and not self.simulated:
            print(f"  {title}: " + ", ".join(f"{key} {value}" for key, value in cells.items() if value is not None))

    def note(self, text: str, kind: str = "notes") -> None:
        """Add a note."""
        self.report.steps[self.step][kind].append(text)
        self.report.save()
        print("  " + text.replace("\n", "\n  "))

    def fail(self, text: str) -> None:
        """Say that something is wrong; the run goes on."""
        print("  FAILED:")
        self.note(text, "failures")

    def figures(self, seconds: float, items: int, moved: int) -> dict[str, object]:
        """Columns of a measurement: rows and bytes a second, and the share of what a copy moves.

        Of the simulator's there is none that looks like a measurement.

        Parameters
        ----------
        seconds : float
        items : int
            Rows.
        moved : int
            Bytes that each row must move, each input read and each output written once.
        """
        if self.simulated:
            return {"rows": items, "bytes a row": moved, "ran": True}
        copies = self.report.steps.get("machine", {"tables": {}})["tables"].get("copy", [])
        rate, found = items / seconds, {"rows": items, "ms": seconds * 1e3}
        found |= {"G rows/s": rate / 1e9, "bytes a row": moved, "GB/s": rate * moved / 1e9}
        return found | {"share of copy": round(rate * moved / 1e9 / copies[-1]["GB/s"], 3) if copies else None}
