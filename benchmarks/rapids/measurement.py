"""One cell: every contender called, judged, and timed in turns with the others."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Self, TypeVar

from benchmarks.gpu.tables import Row
from benchmarks.rapids.contenders import CONTENDERS, Contender, NotOfferedError
from benchmarks.rapids.energy import SHORTEST, Meter
from benchmarks.rapids.grid import OWN_PRIOR
from benchmarks.rapids.job import Job
from benchmarks.rapids.judge import Judge

T = TypeVar("T")

OURS = (OWN_PRIOR, "ours")
REPEATS = 5
CELL_LIMIT = 120.0
LINES_OF_TRACE = 6
TIME_WAS_UP = "time was up"


@dataclass(frozen=True)
class Settings:
    """How cells are measured.

    Parameters
    ----------
    contenders : tuple of str
    repeats : int
        Timed calls of each.
    cpu_rows : int
        Most rows of which our CPU path is asked.
    deadline : float
        When to stop, in the time of `time.monotonic`.
    cell_limit : float
        Seconds of one cell.
    cell_deadline : float
        When to go on with the next cell.
    copy_rate : float, optional
        Bytes that a copy reads and writes a second.
    meter : Meter, optional
    """

    contenders: tuple[str, ...]
    repeats: int = REPEATS
    cpu_rows: int = 10_000_000
    deadline: float = float("inf")
    cell_limit: float = CELL_LIMIT
    cell_deadline: float = float("inf")
    copy_rate: float | None = None
    meter: Meter | None = None

    def for_cell(self, also: list[str]) -> Self:
        """Settings of a cell that begins now, with further contenders."""
        contenders = tuple(dict.fromkeys([*self.contenders, *also]))
        return replace(self, contenders=contenders, cell_deadline=time.monotonic() + self.cell_limit)

    def late(self, seconds: float = 0.0, spent: float = float("inf")) -> str:
        """Why nothing may begin that takes so many seconds; nothing if it may.

        A contender that has spent less than its equal share of a cell pays for no slower one.
        """
        if time.monotonic() > self.deadline:
            return TIME_WAS_UP
        over = time.monotonic() + seconds > self.cell_deadline
        over = over and spent + seconds > self.cell_limit / len(self.contenders)
        return f"a cell may take {self.cell_limit:g} s" if over else ""


@dataclass
class Entry:
    """A contender in one cell, and what is known of it.

    Parameters
    ----------
    name : str
    record : dict
        What is known of it, as it is written down.
    contender : Contender, optional
        None until there is one.
    times : list of float
        Seconds of its calls.
    takes : float
        Seconds that its next call may take: those of the one before.
    spent : float
        Seconds of all its calls.
    stopped : str
        Why it was called no more.
    """

    name: str
    record: Row = field(default_factory=dict)
    contender: Contender | None = None
    times: list[float] = field(default_factory=list)
    takes: float = 0.0
    spent: float = 0.0
    stopped: str = ""

    def clocked(self, what: Callable[[], T]) -> T:
        """Do what calls it once."""
        begun = time.monotonic()
        found = what()
        self.takes = time.monotonic() - begun
        self.spent += self.takes
        return found

    def late(self, settings: Settings) -> str:
        """Why it may not be called once more; nothing if it may."""
        return settings.late(self.takes, self.spent)

    @property
    def call(self) -> Callable[[], object]:
        """What is measured."""
        assert self.contender is not None
        return self.contender.call

    @property
    def on_host(self) -> bool:
        """Whether the CPU does it."""
        return self.contender is not None and self.contender.on_host


def attempt(what: Callable[[], Row]) -> Row:
    """Give what there is to write down, or what went wrong."""
    try:
        return what()
    except NotOfferedError as error:
        return {"status": "not offered", "said": str(error)}
    except MemoryError as error:
        return {"status": "out of memory", "said": " ".join(str(error).splitlines()[:1])}
    except Exception:  # a contender that breaks is part of the answer
        return {"status": "failed", "said": traceback.format_exc(limit=-LINES_OF_TRACE)}


def measure(job: Job, settings: Settings) -> dict[str, Row]:
    """Give what is known of every contender in one cell, ours first."""
    judge = Judge(job)
    entries = [Entry(name) for name in sorted(settings.contenders, key=list(CONTENDERS).index)]
    for entry in entries:
        late = settings.late()
        said = {"status": f"not judged: {late}"}
        entry.record |= said if late else attempt(partial(judged, job, judge, entry, settings))
        job.library.release()
    judge.ours = None
    for step in (watch_memory, take_times, take_energy):
        step(job, [entry for entry in entries if entry.record["status"] in ("right", "timed")], settings)
    records = {entry.name: entry.record for entry in entries}
    for name in OURS:
        if "seconds" in records.get(name, {}):
            records[name]["times faster than"] = ratios(records, name)
    return records


def judged(job: Job, judge: Judge, entry: Entry, settings: Settings) -> Row:
    """First call, which compiles and warms up: what it gives is judged."""
    if entry.name == "cpu" and job.n_rows > settings.cpu_rows:
        message = f"asked up to {settings.cpu_rows:,} rows"
        raise NotOfferedError(message)
    entry.contender = CONTENDERS[entry.name](job)
    said, by = judge.verdict(entry.name, entry.contender.matrix(entry.clocked(entry.call)))
    return {"status": "wrong" if said else "right", "compared with": by} | ({"said": said} if said else {})


def watch_memory(job: Job, entries: list[Entry], settings: Settings) -> None:
    """Second call: the most memory that it holds at once."""

    def watched(entry: Entry) -> Row:
        most = entry.clocked(partial(job.library.peak, entry.call))
        return {} if most is None else {"peak bytes": most, "peak bytes a row": most / job.n_rows}

    for entry in entries:
        if not entry.on_host and not entry.late(settings):
            entry.record |= attempt(partial(watched, entry))


def take_times(job: Job, entries: list[Entry], settings: Settings) -> None:
    """Further calls, in turns, so that what disturbs the machine disturbs all."""

    def timed(entry: Entry) -> Row:
        entry.times.append(entry.clocked(partial(job.library.seconds, entry.call, entry.on_host)))
        return {}

    racing = [entry for entry in entries if entry.record["status"] == "right"]
    for _ in range(settings.repeats):
        for entry in racing:
            entry.stopped = entry.stopped or entry.late(settings)
            if entry.record["status"] == "right" and not entry.stopped:
                entry.record |= attempt(partial(timed, entry))
    for entry in racing:
        if entry.record["status"] == "right":
            entry.record |= figures(job, entry, settings)


def figures(job: Job, entry: Entry, settings: Settings) -> Row:
    """What times say; that there are fewer than wanted is said as well."""
    if not entry.times:
        return {"status": f"not timed: {entry.stopped}"}
    if job.library.stand_in:
        return {"status": "ran"}
    seconds = median(entry.times)
    rate = job.bytes_at_least / seconds
    found: Row = {"status": "timed", "clock": "host" if entry.on_host else job.library.clock}
    found |= {"seconds": seconds, "times": entry.times, "rows a second": job.n_rows / seconds}
    found |= {"bytes at least": job.bytes_at_least, "bytes a second": rate}
    if settings.copy_rate is not None and not entry.on_host:
        found["share of copy"] = rate / settings.copy_rate
    if len(entry.times) < settings.repeats:
        found["fewer"] = f"{len(entry.times)} of {settings.repeats} calls: {entry.stopped}"
    return found


def take_energy(job: Job, entries: list[Entry], settings: Settings) -> None:
    """More calls, of which the GPU says what energy they took."""
    meter = settings.meter

    def weighed(entry: Entry) -> Row:
        assert meter is not None
        # Timed, because that waits for the device.
        return {"joules": meter.joules_of(partial(job.library.seconds, entry.call), entry.record["seconds"])}

    for entry in entries:
        can = meter is not None and "seconds" in entry.record and not entry.on_host
        if can and not settings.late(max(entry.takes, 2 * SHORTEST)):
            # Times that were taken stay, whatever the counter says.
            entry.record["joules"] = attempt(partial(weighed, entry)).get("joules")


def ratios(records: dict[str, Row], ours: str) -> Row:
    """How many times faster one of ours is than each of the others that were timed."""
    seconds = records[ours]["seconds"]
    return {
        name: record["seconds"] / seconds
        for name, record in records.items()
        if name not in OURS and "seconds" in record
    }
