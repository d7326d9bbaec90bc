"""One cell: every contender is judged first, then timed in turns with the others."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf
from pathlib import Path
from statistics import median

from benchmarks.harness.grid import Cell, Grid, Topic, name_of
from benchmarks.harness.process import Process
from benchmarks.harness.worker import Record, Workers

# Timed calls of fast contenders and of slow ones; still slower contenders have only their judged call.
FEWEST, FEW = 5, 3
SLOW, SLOWEST = 2.0, 10.0
# Seconds that the timed calls of a fast contender may take.
ENOUGH = 1.5
# In addition to the call, rows are opened, warmed up and judged, and bare loops try several arrangements.
CALLS, PATIENCE = 20, 60.0
TIME_WAS_UP = "time was up"


def n_turns(first: float, repeats: int | None, most: int = 15) -> int:
    """Choose the number of timed calls of a contender from the seconds of its first call."""
    if first > SLOWEST:
        return 0
    if repeats is not None:
        return repeats
    return FEW if first > SLOW else min(max(ceil(ENOUGH / first), FEWEST), most)


@dataclass
class Turns:
    """The processes of the contenders, for all cells of a topic.

    Parameters
    ----------
    topic : Topic
    limit : float
        Most seconds of one call.
    repeats : int, optional
        Timed calls of each contender; by default, the number follows from its speed.
    together : bool
        Whether all contenders run in this process, against the grid's setting, if times do not matter.
    deadline : float
        After this time of `time.monotonic`, no call is started.
    """

    topic: Topic
    limit: float
    repeats: int | None = None
    together: bool = False
    deadline: float = inf
    processes: dict[tuple[str, ...], Process | Workers] = field(default_factory=dict)

    def process(self, grid: Grid, name: str, cell: Cell, folder: Path) -> Process | Workers:
        """Give the process of a contender."""
        if self.together or not grid.isolated:
            return self.processes.setdefault((), Workers(self.topic))
        key = (grid.name, name) if grid.environment is None else (grid.name, name, name_of(cell))
        if key not in self.processes:
            environment = dict if grid.environment is None else partial(grid.environment, cell, folder)
            self.processes[key] = Process(self.topic.module, CALLS * self.limit + PATIENCE, environment)
        return self.processes[key]

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.deadline

    def measure(
        self, grid: Grid, cell: Cell, folder: Path, names: Sequence[str], guess: Callable[[str], float | None]
    ) -> dict[str, Record]:
        """Measure a cell, and give the record of every contender.

        Parameters
        ----------
        grid : Grid
        cell : Cell
        folder : Path
            The folder with its rows.
        names : sequence of str
            Contenders.
        guess : callable
            Estimates the seconds of a contender from its times for fewer rows.
        """
        records: dict[str, Record] = {}
        processes = {name: self.process(grid, name, cell, folder) for name in names}
        opened = {"cell": cell, "folder": str(folder), "warm": not grid.fresh}
        for name in names:
            seconds = guess(name)
            record = records[name] = {"family": grid.contender(name).family}
            if self.late:
                record |= {"status": "not run", "said": TIME_WAS_UP}
            elif seconds is not None and seconds > self.limit:
                record |= {"status": "not run", "said": f"about {seconds:.0f} s", "about": seconds}
            else:
                record |= processes[name].ask(grid.name, name, "open", **opened)
        times: dict[str, list[Record]] = {name: [] for name in names}
        wanted = {
            name: n_turns(record["first"], self.repeats, grid.most_turns)
            for name, record in records.items()
            if is_right(record)
        }
        for turn in range(max(wanted.values(), default=0)):
            for name, most in wanted.items():
                if turn < most and is_right(records[name]) and not self.late:
                    answer = self.take_turn(grid, name, processes[name], opened)
                    if is_right(answer):
                        times[name].append(answer)
                    else:
                        records[name] |= answer
        for name, record in records.items():
            if is_right(record):
                record.update(figures(cell, times[name] or [record]))
            self.close(grid, name, processes[name])
        return records

    def take_turn(self, grid: Grid, name: str, process: Process | Workers, opened: Record) -> Record:
        """Let a contender make one more call; if first calls are measured, in a new process."""
        if not grid.fresh or self.together:
            return process.ask(grid.name, name, "run")
        process.end()
        return process.ask(grid.name, name, "open", **opened)

    def close(self, grid: Grid, name: str, process: Process | Workers) -> None:
        """Let a contender release the rows of a cell."""
        if isinstance(process, Workers) or process.worker is not None:
            process.ask(grid.name, name, "close")
        if isinstance(process, Process) and (grid.fresh or grid.environment is not None):
            process.end()

    def end(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.end()


def is_right(record: Record) -> bool:
    """Whether a contender may be timed."""
    return bool(record["status"] == "right")


def figures(cell: Cell, turns: list[Record]) -> Record:
    """Summarise the times of all turns."""
    times = [turn.get("seconds", turn.get("first")) for turn in turns]
    seconds = median(times)
    summary = {"status": "timed", "seconds": seconds, "fastest": min(times), "turns": len(times)}
    summary["spread"] = (max(times) - min(times)) / seconds if seconds else 0.0
    summary["cold"] = median(turn.get("cold", turn.get("first")) for turn in turns)
    return summary | ({"rows a second": cell["rows"] / seconds} if "rows" in cell and seconds else {})
