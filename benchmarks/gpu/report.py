"""report.json and report.md: all that is known so far, on disk at any time."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.gpu.tables import Document, Row, markdown

SIMULATOR = "simulator"


def slug(device: str) -> str:
    """Name of a device that a folder can have."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def folder_for(root: Path, device: str, date: str) -> Path:
    """Where results go unless the user says so: those of the simulator are none."""
    return root / "build/gpu-simulator" if device == SIMULATOR else root / f"benchmarks/results/{slug(device)}-{date}"


def write_whole(path: Path, text: str) -> None:
    """Write a file such that nobody ever finds half of it."""
    beside = path.with_suffix(path.suffix + ".part")
    beside.write_text(text)
    beside.replace(path)


class Report:
    """A report in a folder; steps of an older one there stay until they run again."""

    def __init__(self, folder: Path, document: Document) -> None:
        self.folder, self.document = folder, document

    @classmethod
    def open(cls, folder: Path, device: str) -> Self:
        """Go on with the report in a folder, if there is one of the same device, or begin one."""
        path = folder / "report.json"
        if path.exists():
            document = json.loads(path.read_text())
            if document["device"] == device:
                return cls(folder, document)
        return cls(folder, {"device": device, "simulated": device == SIMULATOR, "steps": {}})

    def begin(self, step: str, commit: str) -> None:
        """Forget what a step found before, and keep the steps in the order in which they ran."""
        steps = self.document["steps"]
        steps.pop(step, None)
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        steps[step] = {"status": "running", "commit": commit, "begun": begun, "seconds": None}
        steps[step] |= {"failures": [], "notes": [], "tables": {}}
        self.save()

    def step(self, name: str) -> Document:
        """Give what a step found."""
        found: Document = self.document["steps"][name]
        return found

    def end(self, step: str, status: str, seconds: float | None) -> None:
        """Say how a step ended."""
        self.step(step).update(status=status, seconds=None if seconds is None else round(seconds, 1))
        self.save()

    def add(self, step: str, title: str, row: Row) -> None:
        """Add a row to a table."""
        self.step(step)["tables"].setdefault(title, []).append(row)
        self.save()

    def say(self, step: str, kind: str, text: str) -> None:
        """Add to the "notes" or the "failures"."""
        self.step(step)[kind].append(text)
        self.save()

    def failed(self) -> list[str]:
        """Steps that found something wrong."""
        return [name for name, step in self.document["steps"].items() if step["failures"]]

    def rows(self, step: str, title: str) -> list[dict[str, Any]]:
        """Rows of a table so far; none where the step has not run."""
        found: list[dict[str, Any]] = self.document["steps"].get(step, {}).get("tables", {}).get(title, [])
        return found

    def save(self) -> None:
        """Write both files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / "report.json", json.dumps(self.document, indent=1) + "\n")
        write_whole(self.folder / "report.md", markdown(self.document))
