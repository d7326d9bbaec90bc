"""Work in steps, and their report in two files, JSON and Markdown: all results so far are on disk at any time."""

import argparse
import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.harness.machine import commit
from benchmarks.harness.tables import preface, table

Document = dict[str, Any]
LINES_OF_TRACE = 6
# After an error of the device, all later work fails as well.
MOST_BROKEN = 8


def section(name: str, step: Document) -> list[str]:
    """Give the lines of one step."""
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
    """A report in a folder; steps of an older report in the folder stay until they run again.

    Parameters
    ----------
    path : Path
        The JSON file.
    document : dict
        `title`, `head` (the description of the measurement), and `steps`.
    """

    def __init__(self, path: Path, document: Document) -> None:
        self.path, self.document = path, document
        self.steps: dict[str, Document] = document["steps"]

    @classmethod
    def open(cls, path: Path, title: str, head: Document, same: str = "device") -> Self:
        """Continue the report in a file, if its head has the same value of `same`; otherwise start a new one."""
        earlier = json.loads(path.read_text()) if path.exists() else {}
        is_same = earlier.get("head", {}).get(same) == head[same]
        return cls(path, {"title": title, "head": head, "steps": earlier["steps"] if is_same else {}})

    def begin(self, step: str, source: str | None = None) -> None:
        """Forget the earlier results of a step, and keep the steps in the order in which they ran."""
        self.steps.pop(step, None)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        self.steps[step] = {"status": "running", "commit": source or commit(), "begun": begun, "seconds": None}
        self.steps[step] |= {"failures": [], "notes": [], "tables": {}}
        self.save()

    def end(self, step: str, status: str, seconds: float | None = None) -> None:
        """Record how a step ended."""
        self.steps[step] |= {"status": status, "seconds": seconds}
        self.save()

    def failed(self) -> list[str]:
        """List the steps that found something wrong."""
        return [name for name, step in self.steps.items() if step["failures"]]

    def finish(self) -> int:
        """Print the path of the report, and everything that was wrong; return 1 if anything was."""
        text = self.path.with_suffix(".md")
        print(f"{text}: " + (f"wrong: {', '.join(self.failed())}" if self.failed() else "nothing is wrong"))
        return int(bool(self.failed()))

    def save(self) -> None:
        """Write both files."""
        lines = [*preface(self.document["head"], self.document["title"]), ""]
        for name, step in self.steps.items():
            lines += section(name, step)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for suffix, written in ((".json", json.dumps(self.document, indent=1)), (".md", "\n".join(lines))):
            # The file is replaced at once, so that no reader finds half of it.
            part = self.path.with_suffix(f"{suffix}.part")
            part.write_text(written + "\n")
            part.replace(self.path.with_suffix(suffix))


class OutOfTimeError(Exception):
    """The time limit has passed; all results so far are on disk."""


@dataclass(frozen=True)
class Step:
    """One step of a run: its report, its options, and its deadline.

    Parameters
    ----------
    name : str
    report : Report
    options : argparse.Namespace
    deadline : float
        The time to stop, by the clock `time.monotonic`.
    """

    name: str
    report: Report
    options: argparse.Namespace
    deadline: float = float("inf")
    broken: list[str] = field(default_factory=list)

    def run(self, work: Callable[[Any], None]) -> None:
        """Do the work of the step; errors become part of the report."""
        begun, status = time.monotonic(), "done"
        try:
            work(self)
        except OutOfTimeError:
            status = "cut short"
        except Exception:  # whatever is broken is what was asked about; later steps may still run
            status = "broken"
            self.fail(traceback.format_exc(limit=-LINES_OF_TRACE))
        self.report.end(self.name, status, round(time.monotonic() - begun, 1))

    def left(self) -> float:
        """Give the remaining seconds."""
        return self.deadline - time.monotonic()

    def pause(self) -> None:
        """Stop here if the time is over."""
        if self.left() < 0:
            raise OutOfTimeError

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Record an error, and continue with other work, unless all later work would fail."""
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
        self.report.steps[self.name]["tables"].setdefault(title, []).append(cells)
        self.report.save()
        if cells.get("same") is not True:
            print(f"  {title}: " + ", ".join(f"{key} {value}" for key, value in cells.items() if value is not None))

    def note(self, text: str, kind: str = "notes") -> None:
        """Add a note."""
        self.report.steps[self.name][kind].append(text)
        self.report.save()
        print("  " + text.replace("\n", "\n  "))

    def fail(self, text: str) -> None:
        """Record that something is wrong; the run continues."""
        print("  FAILED:")
        self.note(text, "failures")
