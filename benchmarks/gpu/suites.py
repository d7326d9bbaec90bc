"""The test suites on the device, and a selection of them under compute-sanitizer."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from shutil import which

from benchmarks.gpu.machine import ROOT
from benchmarks.gpu.run import Run

SUITES = ("tests/cpu_fallback", "tests/cuda", "tests/encoders")
WITH_CUDF = "tests/rapids"
# A suite may take this share of the time that is left.
SHARE = 0.5
TAIL = 60
SANITIZED = "over_several_blocks or of_many or over_several or equal_targets or chunks or permutations"
SANITIZER_ERROR = 86


def closing_counts(output: str) -> dict[str, int]:
    """Numbers in pytest's closing line: {"passed": 412, "failed": 1}."""
    lines = [line for line in output.splitlines() if re.search(r"\bin [0-9.]+s\b", line)]
    found = re.findall(r"(\d+) ([a-z]+)", lines[-1].split(" in ")[0]) if lines else []
    return {word: int(number) for number, word in found}


def environment(simulated: bool) -> Mapping[str, str]:
    """Environment in which the suites and the examples run on the device; the library need not be installed."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    backend = "cuda-simulator" if simulated else "cuda"
    return {**os.environ, "OPS_BACKENDS": backend, "RAPIDS": "1", "PYTHONPATH": path}


def run_command(step: Run, name: str, command: list[str], limit: float) -> tuple[int | None, str]:
    """Run a command; gives its status (none: it took too long) and its output, the tail of which is kept."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=ROOT,
            timeout=max(limit, 1.0),
            env=environment(step.simulated),
        )
        status, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        status, output = None, (late.stdout or b"").decode(errors="replace")
        step.note(f"{name}: stopped after {limit:.0f} s")
    tail = "\n".join(output.splitlines()[-TAIL:])
    step.note(f"{name}: {' '.join(command)}\n{tail}")
    return status, output


def run(step: Run) -> None:
    """Run the suites of operations, kernels, encoders and, where cuDF is, its frames, each on its own."""
    if step.tiny:
        step.note("left out: `make sim` runs the suites in the simulator")
        return
    if find_spec("pytest") is None or find_spec("hypothesis") is None:
        step.note("left out: the suites need the extra 'test'")
        return
    for suite in (*SUITES, WITH_CUDF) if find_spec("cudf") is not None else SUITES:
        step.pause()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", suite]
        status, output = run_command(step, suite, command, step.left() * SHARE)
        step.row("suites", suite=suite, **closing_counts(output), green=status == 0)
        if status not in (0, None):
            step.fail(f"{suite}: pytest ended with status {status}")


def sanitize(step: Run) -> None:
    """Look for bad memory accesses and races while some operations of every kind run."""
    if step.tiny or which("compute-sanitizer") is None:
        step.note("left out: it needs a GPU" if step.tiny else "left out: compute-sanitizer is not on the PATH")
        return
    if find_spec("pytest") is None or find_spec("hypothesis") is None:
        step.note("left out: the suites need the extra 'test'")
        return
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "tests/cpu_fallback",
        "-k",
        SANITIZED,
    ]
    for tool in ("memcheck", "racecheck"):
        step.pause()
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(SANITIZER_ERROR), *tests]
        status, output = run_command(step, tool, command, min(step.left() * SHARE, 900.0))
        summary = [line.strip("= ") for line in output.splitlines() if "SUMMARY" in line]
        step.row(
            "sanitizer", tool=tool, clean=status == 0, summary="; ".join(summary) or "none", **closing_counts(output)
        )
        if status not in (0, None):
            step.fail(f"{tool}: status {status}; {'; '.join(summary)}")
