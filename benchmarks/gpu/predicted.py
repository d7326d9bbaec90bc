"""Cases compared with their predictions, and profiles of the kernels that took much longer than predicted.

`python -m benchmarks.gpu.predict --save` writes the predictions, on a machine that need not have a GPU.
"""

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

from benchmarks.gpu.drawn import COLUMNS
from benchmarks.gpu.encoders import CASES, MORE_CASES, bytes_of, call_of, table_of
from benchmarks.gpu.report import Run
from benchmarks.gpu.timing import seconds_of
from benchmarks.harness.machine import ROOT, environment

PREDICTIONS = Path(__file__).with_name("predictions.json")
ROWS, MANY_ROWS = 10**8, 10**9
# Cases of classes, which should reach the speed of a copy at 1e9 rows.
OF_MANY_ROWS = (("folds-int", 4096), ("mean-int", 4096), ("loo-int", 4096))
TINY_CASES = (("folds-int", 4096),)
PROFILER = "ncu"
PROFILED, LONGEST_PROFILE, LEAST_FOR_RAPIDS, TAIL = 3, 45.0, 45.0, 200


@cache
def predictions() -> list[dict[str, Any]]:
    """Read the predictions: case, categories, milliseconds by rows, milliseconds of each kernel at 1e8 rows."""
    found: list[dict[str, Any]] = json.loads(PREDICTIONS.read_text())["cases"] if PREDICTIONS.exists() else []
    return found


def predicted_ms(name: str, n_categories: int, n_rows: int) -> float | None:
    """Give the milliseconds that were predicted for a case."""
    of_case = [each for each in predictions() if (each["case"], each["categories"]) == (name, n_categories)]
    return of_case[0]["ms"].get(str(n_rows)) if of_case else None


def kernel_ms(kernel: str, name: str, n_categories: int, n_rows: int) -> float | None:
    """Give the milliseconds that were predicted for all launches of a CUDA C++ kernel in a case, in any variant."""
    of_case = [each for each in predictions() if (each["case"], each["categories"]) == (name, n_categories)]
    found = [ms for each in of_case for label, ms in each["kernels"].items() if label.split(", ")[0] == f"{kernel}.cu"]
    return sum(found) * n_rows / ROWS if found else None


def off(ms: float, predicted: float | None) -> float | None:
    """Give by which factor a time is longer or shorter than predicted."""
    return round(max(ms / predicted, predicted / ms), 2) if predicted else None


def measure_case(step: Run, name: str, n_categories: int, n_rows: int) -> None:
    """Time a case, and compare it with its prediction."""
    case, named = (CASES | MORE_CASES)[name], {"case": name, "categories": n_categories, "rows": n_rows}
    with step.room_for("predicted", **named):
        rows = step.size(n_rows, 16)
        call = call_of(step, case, table_of(case, rows, step.size(n_categories, 5)), COLUMNS[case.target](rows))
        call()
        if step.simulated:
            step.row("predicted", case=name, categories=n_categories, ran=True)
            return
        seconds = median(seconds_of(call) for _ in range(step.options.repeats))
        expected = predicted_ms(name, n_categories, n_rows)
        figures = step.figures(seconds, n_rows, sum(bytes_of(case)))
        step.row("predicted", **named | figures, **{"predicted ms": expected, "off": off(1e3 * seconds, expected)})


def run(step: Run) -> None:
    """Time the cases of classes with 1e9 rows, then all that have a prediction with 1e8."""
    if not predictions():
        step.note("no predictions: `python -m benchmarks.gpu.predict --save` makes them")
    known = [(each["case"], each["categories"]) for each in predictions()]
    for key in step.size(OF_MANY_ROWS, ()):
        measure_case(step, *key, MANY_ROWS)
    for key in step.size(known, TINY_CASES):
        measure_case(step, *key, ROWS)


def latest(step: Run) -> list[dict[str, Any]]:
    """List the kernels that took more milliseconds than predicted, the largest excess first."""
    rows = step.report.steps.get("new kernels", {"tables": {}})["tables"].get("kernels", [])
    late = [row for row in rows if row.get("predicted ms") and row["ms"] > row["predicted ms"]]
    return sorted(late, key=lambda row: row["predicted ms"] - row["ms"])[:PROFILED]


def profile(step: Run) -> None:
    """Profile the kernels that are furthest behind their predictions."""
    rows, program = latest(step), which(PROFILER)
    if not rows or program is None:
        step.note("no kernel is behind its prediction" if not rows else f"{PROFILER} is not on the PATH")
        return
    for row in rows:
        step.pause()
        told = ("kernel", "case", "categories", "ms", "predicted ms", "off")
        step.row("latest", **{name: row[name] for name in told})
        # Clocks are not changed, since others may use the machine.
        command = [program, "--clock-control", "none", "--set", "full", "--kernel-name", row["kernel"]]
        command += ["--launch-skip", "1", "--launch-count", "1", sys.executable, "-m", "benchmarks.gpu"]
        command += ["--step", "encoders", "--cases", row["case"], "--repeats", "1", "--rows", str(ROWS)]
        command += ["--categories", str(row["categories"]), "--out", str(step.report.path.parent / "ncu")]
        say_output(step, command, min(step.left(), LONGEST_PROFILE))


def rapids(step: Run) -> None:
    """Measure ours beside cuDF and cuML, if these are installed and time is left."""
    if find_spec("cudf") is None or step.simulated or step.left() < LEAST_FOR_RAPIDS:
        step.note("left out: cuDF is not installed" if find_spec("cudf") is None else "left out: no time")
        return
    folder = step.report.path.parent / "rapids"
    command = [sys.executable, "-m", "benchmarks.rapids", "--rows", "1e8", "--categories", "1e5", "--out", str(folder)]
    command += ["--distributions", "uniform", "--keys", "int", "--time-limit", str(step.left() - LEAST_FOR_RAPIDS / 3)]
    say_output(step, command, step.left())


def say_output(step: Run, command: list[str], limit: float) -> None:
    """Run a command, and keep the end of its output."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, check=False, cwd=ROOT, timeout=max(limit, 1.0), env=environment(), **both)
        said, status = done.stdout, f"status {done.returncode}"
    except subprocess.TimeoutExpired as late:
        said, status = late.stdout or b"", f"stopped after {limit:.0f} s"
    lines = said.decode(errors="replace").splitlines()[-TAIL:]
    step.note("\n".join([f"{' '.join(command)}: {status}", *lines]))
