"""The other end of the pipe: a process of contenders, asked one thing at a time."""

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.harness.machine import ROOT
from benchmarks.harness.worker import Record


class Process:
    """A process of contenders, begun when it is first asked, and again after it died.

    Parameters
    ----------
    module : str
        Holds the topic.
    limit : float
        Seconds after which an answer is waited for no longer.
    environment : callable, optional
        Gives variables of its environment when it begins.
    """

    def __init__(self, module: str, limit: float, environment: Callable[[], dict[str, str]] = dict) -> None:
        self.module, self.limit, self.environment = module, limit, environment
        self.worker: subprocess.Popen[bytes] | None = None

    def begin(self) -> subprocess.Popen[bytes]:
        """Give the process."""
        if self.worker is None or self.worker.poll() is not None:
            # libgomp's threads would spin between the calls of others.
            environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **self.environment()}
            environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.harness.worker", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self.worker

    def ask(self, grid: str, name: str, what: str, **details: Any) -> Record:
        """Ask a contender for something, and wait for the answer."""
        worker = self.begin()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps({"grid": grid, "name": name, "what": what, **details}).encode() + b"\n")
            worker.stdin.flush()
        except BrokenPipeError:
            return self.tell_death()
        ready, _, _ = select.select([worker.stdout], [], [], self.limit)
        if not ready:
            self.end()
            return {"status": "not run", "said": f"no answer in {self.limit:.0f} s", "about": self.limit}
        line = worker.stdout.readline()
        return json.loads(line) if line else self.tell_death()

    def tell_death(self) -> Record:
        """Say how the process ended."""
        status = self.worker.wait() if self.worker is not None else None
        self.end()
        return {"status": "failed", "said": f"its process ended with status {status}"}

    def end(self) -> None:
        """End the process."""
        if self.worker is None:
            return
        self.worker.kill()
        self.worker.wait()
        for stream in (self.worker.stdin, self.worker.stdout):
            # What was never read by a process that died cannot be flushed.
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self.worker = None
