"""The test suites on the device, and a selection of them under compute-sanitizer."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from shutil import which

from benchmarks.gpu.report import Run
from benchmarks.harness import machine

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
SUITES = ("tests/cpu_fallback", "tests/cuda", "tests/encoders")
WITH_CUDF = "tests/rapids"
# A suite may take this share of the remaining time.
SHARE = 0.5
TAIL = 60
SANITIZED = "over_several_blocks or of_many or over_several or equal_targets or chunks or permutations"
SANITIZER_WHEEL = "nvidia-cuda-sanitizer-api"
SANITIZER_ERROR, LONGEST_OF_SANITIZER = 86, 900.0


def read_counts(output: str) -> dict[str, int]:
    """Read the numbers in pytest's last line, such as {"passed": 412, "failed": 1}."""
    lines = [line for line in output.splitlines() if re.search(r"\bin [0-9.]+s\b", line)]
    counts = re.findall(r"(\d+) ([a-z]+)", lines[-1].split(" in ")[0]) if lines else []
    return {word: int(number) for number, word in counts}


def run_command(step: Run, name: str, command: list[str], limit: float) -> tuple[int | None, str]:
    """Run a command; give its status (None if it took too long) and its output, whose end is recorded."""
    environment = machine.environment(OPS_BACKENDS=step.backend, RAPIDS="1")
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, check=False, cwd=machine.ROOT, timeout=max(limit, 1.0), env=environment, **both)
        status, output = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        status, output = None, (late.stdout or b"").decode(errors="replace")
        step.note(f"{name}: stopped after {limit:.0f} s")
    tail = "\n".join(output.splitlines()[-TAIL:])
    step.note(f"{name}: {' '.join(command)}\n{tail}")
    return status, output


def left_out(step: Run, *modules: str) -> bool:
    """Whether the suites cannot run here; the reason is recorded."""
    missing = [name for name in modules if find_spec(name) is None]
    if step.tiny or step.simulated:
        step.note("left out: it needs a GPU")
    elif missing:
        step.note(f"left out: {', '.join(missing)} not installed")
    return bool(step.tiny or step.simulated or missing)


def run(step: Run) -> None:
    """Run the suites of operations, kernels and encoders, and of frames if cuDF is installed, each separately."""
    if left_out(step, "pytest", "hypothesis"):
        return
    for suite in (*SUITES, WITH_CUDF) if find_spec("cudf") is not None else SUITES:
        step.pause()
        status, output = run_command(step, suite, [*PYTEST, "--tb=short", suite], step.left() * SHARE)
        step.row("suites", suite=suite, **read_counts(output), green=status == 0)
        if status not in (0, None):
            step.fail(f"{suite}: pytest ended with status {status}")


def find_sanitizer() -> str | None:
    """Find compute-sanitizer: on the PATH, or in its wheel, which is not on the PATH."""
    try:
        paths = [str(path.locate()) for path in files(SANITIZER_WHEEL) or [] if path.match("bin/compute-sanitizer")]
    except PackageNotFoundError:
        paths = []
    return next(filter(None, map(which, ["compute-sanitizer", *paths])), None)


def sanitize(step: Run) -> None:
    """Look for wrong memory accesses and races while some operations of every kind run."""
    if left_out(step, "pytest", "hypothesis"):
        return
    program = find_sanitizer()
    if program is None:
        # With other steps, a missing sanitizer is no failure; if only this step was requested, it is one.
        say = step.fail if step.options.only == ["sanitizer"] else step.note
        say("left out: compute-sanitizer is neither on the PATH nor installed as a wheel")
        return
    for tool in ("memcheck", "racecheck"):
        step.pause()
        command = [program, "--tool", tool, "--error-exitcode", str(SANITIZER_ERROR)]
        command += [*PYTEST, "-x", "tests/cpu_fallback", "-k", SANITIZED]
        status, output = run_command(step, tool, command, min(step.left() * SHARE, LONGEST_OF_SANITIZER))
        summary = "; ".join(line.strip("= ") for line in output.splitlines() if "SUMMARY" in line)
        step.row("sanitizer", tool=tool, clean=status == 0, summary=summary or "none", **read_counts(output))
        if status not in (0, None):
            step.fail(f"{tool}: status {status}; {summary}")
