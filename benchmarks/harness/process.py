"""The parent's end of the pipe: a process of contenders, which gets one request at a time."""

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any
from unittest import mock

from benchmarks.harness.worker import Record, serve


class Process:
    """A process of contenders, started at the first request, and again after it died.

    Parameters
    ----------
    module : str
        The module with the topic.
    limit : float
        Most seconds to wait for an answer.
    environment : callable, optional
        Gives the environment variables of the process when it starts.
    """

    def __init__(self, module: str, limit: float, environment: Callable[[], dict[str, str]] = dict) -> None:
        self.module, self.limit, self.environment = module, limit, environment
        self.worker: tuple[SpawnProcess, Connection] | None = None

    def begin(self) -> Connection:
        """Start the process if necessary, and give the pipe to it."""
        if self.worker is None:
            context = get_context("spawn")
            pipe, its_pipe = context.Pipe()
            process = context.Process(target=serve, args=(self.module, its_pipe))
            # Otherwise threads of libgomp would spin, and a process would compile, while others are timed.
            quiet = {"OMP_WAIT_POLICY": "PASSIVE", "GPU_ENCODE_COMPILE": "now"}
            with mock.patch.dict(os.environ, {**quiet, **os.environ, **self.environment()}):
                process.start()
            its_pipe.close()
            self.worker = process, pipe
        return self.worker[1]

    def ask(self, grid: str, name: str, what: str, **details: Any) -> Record:
        """Send a request to a contender, and wait for the answer."""
        pipe = self.begin()
        try:
            pipe.send({"grid": grid, "name": name, "what": what, **details})
            if pipe.poll(self.limit):
                answer: Record = pipe.recv()
                return answer
        except (EOFError, OSError):
            return {"status": "failed", "said": f"its process ended with status {self.end()}"}
        self.end()
        return {"status": "not run", "said": f"no answer in {self.limit:.0f} s", "about": self.limit}

    def end(self) -> int | None:
        """End the process, and give its exit status."""
        if self.worker is None:
            return None
        process, pipe = self.worker
        self.worker = None
        pipe.close()
        process.kill()
        process.join()
        return process.exitcode
