"""Contenders in a process of their own: what is asked is read from a pipe and answered, a line of JSON each."""

import gc
import json
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, TextIO

from benchmarks.cpu.contenders import contender
from benchmarks.cpu.contenders.base import Prepared
from benchmarks.cpu.grid import WARM_UP_ROWS, Cell
from benchmarks.cpu.judge import verdict
from benchmarks.cpu.memory import forget_peak, peak_over
from benchmarks.cpu.rows import Array, Rows

LINES_OF_TRACE = 4
# Seconds above which a call has warmed its own caches up long before it ends.
LONGEST_COLD = 0.3
Answer = dict[str, Any]


class Worker:
    """A contender, and the rows it works on.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name: str) -> None:
        self.contender = contender(name)
        self.prepared: Prepared | None = None

    def open(self, cell: dict[str, Any], folder: str) -> Answer:
        """Warm up on a few rows, then do all of them once, judged."""
        self.close()
        found = Cell(**cell)
        if found.rows > WARM_UP_ROWS:
            # What libraries leave in cycles goes here; what stays is then looked at no more.
            gc.unfreeze()
            gc.collect()
        given = (Path(folder), found.keys, found.work, found.target, found.categories)
        if found.rows > WARM_UP_ROWS:
            warm = self.contender.prepare(Rows(*given, first=WARM_UP_ROWS))
            warm.call()
            warm.finish()
        rows = Rows(*given)
        rows.touched()
        self.prepared = self.contender.prepare(rows)
        if self.contender.compiles and rows.n_rows > WARM_UP_ROWS:
            # Few rows take another path, so that its kernels are compiled by many.
            self.prepared.call()
        gc.freeze()
        seconds, result, peak = self.watched()
        said, difference = verdict(rows, self.prepared.expected, result)
        answer = {"status": "wrong" if said else "right", "said": said, "difference": difference, "first": seconds}
        return answer | {"peak bytes": peak, "bytes out": int(result.nbytes)}

    def watched(self) -> tuple[float, Array, int | None]:
        """Seconds, result and peak memory of one call."""
        assert self.prepared is not None
        before = forget_peak()
        begun = time.perf_counter()
        result = self.prepared.call()
        seconds = time.perf_counter() - begun
        return seconds, result, peak_over(before, result.nbytes)

    def run(self) -> Answer:
        """Do all of the rows once more, on caches that other processes left cold, and again where that can matter."""
        cold = seconds = self.timed()
        if cold < LONGEST_COLD:
            seconds = self.timed()
        return {"status": "right", "cold": cold, "seconds": seconds}

    def timed(self) -> float:
        """Seconds of one call."""
        assert self.prepared is not None
        gc.collect()
        begun = time.perf_counter()
        result = self.prepared.call()
        seconds = time.perf_counter() - begun
        del result
        return seconds

    def close(self) -> Answer:
        """Give the rows back."""
        if self.prepared is not None:
            self.prepared.finish()
        self.prepared = None
        return {"status": "closed"}

    def answer(self, asked: dict[str, Any]) -> Answer:
        """Do what is asked."""
        try:
            what = asked.pop("do")
            found: Answer = getattr(self, what)(**asked)
        except MemoryError as error:
            return {"status": "out of memory", "said": str(error)}
        except Exception:  # a contender that breaks is part of the answer
            return {"status": "failed", "said": traceback.format_exc(limit=-LINES_OF_TRACE)}
        return found


def serve(asked: TextIO, answers: TextIO) -> None:
    """Answer until nobody asks."""
    workers: dict[str, Worker] = {}
    for line in asked:
        what = json.loads(line)
        name = what.pop("name")
        if name not in workers:
            workers[name] = Worker(name)
        answers.write(json.dumps(workers[name].answer(what)) + "\n")
        answers.flush()
    for worker in workers.values():
        worker.close()


def main() -> None:
    """Serve the process that began this one."""
    # Whatever a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
