"""The data of a step on a GPU, and the folder of its report."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import ROOT
from benchmarks.harness.steps import Report, Step
from gpu_encode.seam.ops import Ops, resolve, use_backend

SIMULATOR = "simulator"


def folder_for(device: str, date: str) -> Path:
    """Give the default folder for results; results of the simulator are not measurements."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return ROOT / ("build/gpu-simulator" if device == SIMULATOR else f"benchmarks/results/{slug}-{date}")


def open_report(folder: Path, device: str) -> Report:
    """Continue the report in a folder, if it is of the same device, or start a new one."""
    return Report.open(folder / "report.json", "GPU", {"device": device, "quick": device == SIMULATOR})


class Run(Step):
    """One step on a GPU; with the option `tiny`, its data are small enough for the simulator."""

    @property
    def tiny(self) -> bool:
        """Whether data are small."""
        return bool(self.options.tiny)

    @property
    def simulated(self) -> bool:
        """Whether there is no GPU, so that times mean nothing."""
        return bool(self.report.document["head"]["device"] == SIMULATOR)

    @property
    def backend(self) -> str:
        """The name of the backend on the device."""
        return "cuda-simulator" if self.simulated else "cuda"

    @property
    def ops(self) -> Ops:
        """The operations on the device."""
        with use_backend(self.backend):
            return resolve(0)

    @contextmanager
    def room_for(self, title: str, **cells: object) -> Iterator[None]:
        """Try work that may not fit into memory; if it does not, a row of the table says so, which is no failure."""
        with self.attempt(str(cells)):
            try:
                yield
            except MemoryError as error:
                self.row(title, **cells, skipped=str(error).splitlines()[0])

    def size(self, full: Any, tiny: Any) -> Any:
        """Choose between the full and the tiny value."""
        return tiny if self.tiny else full

    def figures(self, seconds: float, items: int, moved: int) -> dict[str, object]:
        """Give the columns of a measurement: rows and bytes a second, and the share of the copy's bytes a second.

        In the simulator, no column looks like a measurement.

        Parameters
        ----------
        seconds : float
        items : int
            Rows.
        moved : int
            Bytes that each row must move, if each input is read once and each output is written once.
        """
        if self.simulated:
            return {"rows": items, "bytes a row": moved, "ran": True}
        copies = self.report.steps.get("machine", {"tables": {}})["tables"].get("copy", [])
        rate = items / seconds
        columns = {"rows": items, "ms": seconds * 1e3, "G rows/s": rate / 1e9}
        columns |= {"bytes a row": moved, "GB/s": rate * moved / 1e9}
        return columns | {"share of copy": round(rate * moved / 1e9 / copies[-1]["GB/s"], 3) if copies else None}
