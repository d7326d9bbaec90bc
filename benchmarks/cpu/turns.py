"""One cell: every contender judged, then timed in turns with the others."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cpu.contenders import contender
from benchmarks.cpu.grid import Cell
from benchmarks.cpu.process import Process

Record = dict[str, Any]
# Calls of fast contenders, and of slow ones; what takes longer still has its one judged call.
FEWEST, FEW, MOST = 5, 3, 15
SLOW, SLOWEST = 2.0, 10.0
# Seconds that the calls of a fast contender which count may take.
ENOUGH = 1.5


def n_runs(first: float, repeats: int | None) -> int:
    """Timed calls of a contender whose first took so many seconds."""
    if first > SLOWEST:
        return 0
    if repeats is not None:
        return repeats
    return FEW if first > SLOW else min(max(ceil(ENOUGH / first), FEWEST), MOST)


@dataclass
class Turns:
    """The contenders' processes, over all cells.

    Parameters
    ----------
    limit : float
        Seconds that one call may take.
    repeats : int, optional
        Timed calls of each; as many as its speed suggests unless given.
    together : bool
        All contenders in one process, where times mean nothing.
    """

    limit: float
    repeats: int | None = None
    together: bool = False
    processes: dict[str, Process] = field(default_factory=dict)

    def process(self, name: str) -> Process:
        """Process of a contender."""
        key = "all" if self.together else name
        if key not in self.processes:
            # Beside a call, rows are loaded, warmed up and judged, and bare loops tried in several arrangements.
            self.processes[key] = Process(20 * self.limit + 60)
        return self.processes[key]

    def measure(
        self, cell: Cell, folder: Path, names: list[str], guess: Callable[[str], float | None]
    ) -> dict[str, Record]:
        """Give what is known of every contender in a cell.

        Parameters
        ----------
        cell : Cell
        folder : Path
            Where its rows are.
        names : list of str
        guess : callable
            Seconds that a contender will take, by what fewer rows took.
        """
        records: dict[str, Record] = {}
        for name in names:
            records[name] = {"family": contender(name).family}
            seconds = guess(name)
            if seconds is not None and seconds > self.limit:
                records[name] |= {"status": "not run", "said": f"about {seconds:.0f} s", "about": seconds}
                continue
            records[name] |= self.process(name).ask(name, "open", cell=cell.described, folder=str(folder))
        times: dict[str, list[Record]] = {name: [] for name in names}
        wanted = {name: n_runs(record["first"], self.repeats) for name, record in records.items() if right(record)}
        for turn in range(max(wanted.values(), default=0)):
            for name, most in wanted.items():
                if turn < most and right(records[name]):
                    self.run(name, records[name], times[name])
        for name, record in records.items():
            if right(record):
                judged = {"cold": record["first"], "seconds": record["first"]}
                record.update(figures(cell, times[name] or [judged]))
            self.process(name).close(name)
        return records

    def run(self, name: str, record: Record, times: list[Record]) -> None:
        """One turn."""
        answer = self.process(name).ask(name, "run")
        if "seconds" in answer:
            times.append(answer)
        else:
            record |= answer

    def end(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.end()


def right(record: Record) -> bool:
    """Whether a contender may be timed."""
    return bool(record["status"] == "right")


def figures(cell: Cell, turns: list[Record]) -> Record:
    """What the times of all turns say."""
    times = [turn["seconds"] for turn in turns]
    seconds = median(times)
    found = {
        "status": "timed",
        "seconds": seconds,
        "fastest": min(times),
        "spread": (max(times) - min(times)) / seconds,
    }
    cold = median(turn["cold"] for turn in turns)
    return found | {"cold": cold, "times": times, "rows a second": cell.rows / seconds}
