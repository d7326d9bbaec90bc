"""A process of its own for what is measured, its memory read from outside."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu.machine import ROOT

# Seconds between two looks; every other sample is dropped when there are more than the most.
EVERY, MOST_SAMPLES = 0.1, 240
# Seconds after which memory may be said to grow or not.
SHORTEST = 20.0


class ProcessFailedError(RuntimeError):
    """The process ended without an answer."""


@dataclass
class Memory:
    """Resident memory of another process, as Linux tells it: now and then, and the most there ever was."""

    pid: int
    peak: int = 0
    samples: list[tuple[float, int]] = field(default_factory=list)
    every: float = EVERY

    def look(self, seconds: float) -> None:
        """Read it, so many seconds after the start."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return
        sizes = {
            line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.startswith(("VmHWM", "VmRSS"))
        }
        self.peak = max(self.peak, sizes.get("VmHWM", 0))
        if "VmRSS" in sizes and (not self.samples or seconds - self.samples[-1][0] >= self.every):
            self.samples.append((round(seconds, 2), sizes["VmRSS"]))
        if len(self.samples) > MOST_SAMPLES:
            self.samples, self.every = self.samples[::2], 2 * self.every

    def later_growth(self) -> float | None:
        """Mean of the last quarter of the time over that of the second: 1 where memory does not grow.

        None of a run that is too short to tell.
        """
        if not self.samples or self.samples[-1][0] < SHORTEST:
            return None
        quarter = len(self.samples) // 4
        sizes = [size for _, size in self.samples]
        return sum(sizes[-quarter:]) / sum(sizes[quarter : 2 * quarter])


def ask(module: str, question: dict[str, Any], threads: int) -> tuple[dict[str, Any], Memory]:
    """Have a module's process answer a question in JSON, and watch its memory until it has.

    The process stays until its memory was read once more, after the answer.
    """
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    begun = time.perf_counter()
    with (
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        ) as process,
        selectors.DefaultSelector() as selector,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # What ends at once is known by its silence.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(question | {"threads": threads}).encode() + b"\n")
                process.stdin.flush()
            selector.register(process.stdout, selectors.EVENT_READ)
            memory = Memory(process.pid)
            while not selector.select(EVERY):
                memory.look(time.perf_counter() - begun)
            memory.look(time.perf_counter() - begun)
            line = process.stdout.readline()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        except BaseException:
            process.kill()
            raise
    if not line:
        message = f"{module} ended with status {process.returncode} and without an answer"
        raise ProcessFailedError(message)
    return json.loads(line), memory


def answer(found: Any) -> None:
    """Give the answer of this process, and stay until it was read."""
    print(json.dumps(found), flush=True)
    sys.stdin.read()


def question() -> dict[str, Any]:
    """Read what this process is asked, and keep to as many processors as it says."""
    asked: dict[str, Any] = json.loads(sys.stdin.readline())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked["threads"]])
    import pyarrow as pa

    pa.set_cpu_count(asked["threads"])
    pa.set_io_thread_count(asked["threads"])
    return asked
