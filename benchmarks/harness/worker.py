"""Contenders in a process of their own: requests are read from a pipe and answered."""

import gc
import os
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.harness.grid import Cell, Grid, Prepared, Topic
from benchmarks.harness.memory import forget_peak, peak_over

WARM_UP_ROWS = 3_000
LINES_OF_TRACE = 4
# A call that takes longer than this number of seconds warms its caches long before it ends.
LONGEST_COLD = 0.3
Record = dict[str, Any]


class Worker:
    """A contender of a grid, and the rows on which it works.

    Parameters
    ----------
    grid : Grid
    name : str
        Contender.
    """

    def __init__(self, grid: Grid, name: str) -> None:
        self.grid, self.contender = grid, grid.contender(name)
        self.prepared: Prepared | None = None

    def open(self, cell: Cell, folder: str, warm: bool = True) -> Record:
        """Warm up on a few rows, then run on all rows once, and judge the result."""
        self.close()
        many = warm and cell.get("rows", 0) > WARM_UP_ROWS
        if many:
            # Free reference cycles that libraries left; objects that remain are not looked at again.
            gc.unfreeze()
            gc.collect()
            few = self.contender.prepare(self.grid.open(Path(folder), cell, WARM_UP_ROWS))
            few.call()
            few.finish()
        self.prepared = self.contender.prepare(self.grid.open(Path(folder), cell))
        if many and self.contender.compiles:
            # Few rows take another path, so the kernels are compiled by a call with many rows.
            self.prepared.call()
        gc.freeze()
        before = forget_peak()
        seconds, answer = self.grid.time_call(self.prepared.call)
        size = int(getattr(answer, "nbytes", 0))
        peak = peak_over(before, size)
        said, difference = self.prepared.expected.verdict(answer)
        record = {"status": "wrong" if said else "right", "said": said, "difference": difference, "first": seconds}
        record |= {"peak bytes": peak, "bytes out": size}
        return record if said else record | self.prepared.watch()

    def run(self) -> Record:
        """Run on all rows again, on caches that other processes left cold, and once more if that can matter."""
        cold = seconds = self.once()
        if cold < LONGEST_COLD:
            seconds = self.once()
        return {"status": "right", "cold": cold, "seconds": seconds}

    def once(self) -> float:
        """Give the seconds of one call."""
        assert self.prepared is not None
        gc.collect()
        return float(self.grid.time_call(self.prepared.call)[0])

    def close(self) -> Record:
        """Release the rows."""
        if self.prepared is not None:
            self.prepared.finish()
        self.prepared = None
        return {"status": "closed"}


class Workers:
    """The contenders of a topic that one process has run.

    Parameters
    ----------
    topic : Topic
    """

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.known: dict[tuple[str, str], Worker] = {}

    def ask(self, grid: str, name: str, what: str, **details: Any) -> Record:
        """Run a request; if the contender breaks, its error is the answer."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if (grid, name) not in self.known:
                    self.known[grid, name] = Worker(self.topic.grid(grid), name)
                record: Record = getattr(self.known[grid, name], what)(**details)
        except MemoryError as error:
            return {"status": "out of memory", "said": str(error)}
        except Exception:
            return {"status": "failed", "said": traceback.format_exc(limit=-LINES_OF_TRACE)}
        return record

    def end(self) -> None:
        """Release all rows."""
        for worker in self.known.values():
            worker.close()
        self.known.clear()


def serve(module: str, pipe: Connection) -> None:
    """Answer requests of the parent process until it sends no more."""
    # Output of libraries does not belong to the report.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    workers = Workers(import_module(module).TOPIC)
    with suppress(EOFError):
        while True:
            pipe.send(workers.ask(**pipe.recv()))
    workers.end()
