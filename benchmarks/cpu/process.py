"""The other end of the pipe: a process with a contender, asked one thing at a time."""

import contextlib
import json
import os
import select
import subprocess
import sys
from typing import Any

from benchmarks.gpu.machine import ROOT

Answer = dict[str, Any]


class Process:
    """A contender's process, begun when it is first asked.

    Parameters
    ----------
    limit : float
        Seconds after which an answer is waited for no longer.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.worker: subprocess.Popen[bytes] | None = None

    def begun(self) -> subprocess.Popen[bytes]:
        """The process."""
        if self.worker is None or self.worker.poll() is not None:
            # libgomp's threads would spin between the calls of others.
            environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
            environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.cpu.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self.worker

    def ask(self, name: str, what: str, **details: Any) -> Answer:
        """Ask a contender for something, and wait for the answer."""
        worker = self.begun()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps({"name": name, "do": what, **details}).encode() + b"\n")
            worker.stdin.flush()
        except BrokenPipeError:
            return self.died()
        ready, _, _ = select.select([worker.stdout], [], [], self.limit)
        if not ready:
            self.end()
            return {"status": "not run", "said": f"no answer in {self.limit:.0f} s", "about": self.limit}
        line = worker.stdout.readline()
        return json.loads(line) if line else self.died()

    def died(self) -> Answer:
        """Say how the process ended."""
        status = self.worker.wait() if self.worker is not None else None
        self.end()
        return {"status": "failed", "said": f"its process ended with status {status}"}

    def close(self, name: str) -> None:
        """Have the rows given back, if there is a process."""
        if self.worker is not None:
            self.ask(name, "close")

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
