"""The examples on cuDF's frames, each script in a process of its own."""

import re
import sys
import time
from importlib.util import find_spec

from benchmarks.gpu.machine import ROOT
from benchmarks.gpu.run import Run
from benchmarks.gpu.suites import run_command

FOLDER = ROOT / "examples"
# What each script imports beside cuDF, where frames are cuDF's.
NEEDS = {
    "dask_cluster": ("dask_cudf", "dask_cuda"),
    "dask_cudf_partitions": ("dask_cudf",),
    "logistic_regression": ("cuml",),
    "pipeline": ("xgboost",),
    "xgboost_on_gpu": ("xgboost",),
}
# Seconds, compilation of the kernels included.
LONGEST = 300.0


def run(step: Run) -> None:
    """Run every script on cuDF's frames, as far as its libraries are here."""
    if step.tiny or step.simulated:
        step.note("left out: on cuDF's frames the examples need a GPU; `tests/guides` runs them on pandas and polars")
        return
    for script, needed in NEEDS.items():
        missing = [name for name in ("cudf", *needed) if find_spec(name) is None]
        if missing:
            step.note(f"{script} left out: {', '.join(missing)} not installed")
            continue
        with step.attempt(script):
            run_script(step, script)


def run_script(step: Run, script: str) -> None:
    """Run one script, and write down its scores on new rows."""
    command = [sys.executable, str(FOLDER / f"{script}.py"), "--frames", "cudf", "--device", "cuda"]
    limit, begun = min(LONGEST, step.left()), time.monotonic()
    status, output = run_command(step, script, command, limit)
    seconds = time.monotonic() - begun
    wrong = complaint(status, output, limit)
    scores = ", ".join(re.findall(r"test AUC (\d\.\d+)", output))
    step.row("examples", script=script, seconds=round(seconds, 1), ran=status == 0, **{"test AUC": scores})
    if wrong:
        step.fail(f"{script}: {wrong}")


def complaint(status: int | None, output: str, limit: float) -> str:
    """What is wrong with a run; nothing is where only the time of all steps was up."""
    if status is None:
        return f"it did not end in {limit:.0f} s" if limit >= LONGEST else ""
    if status != 0:
        return f"it ended with status {status}"
    scores = [float(score) for score in re.findall(r"test AUC (\d\.\d+)", output)]
    if not scores or min(scores) <= 0.5:
        return f"its scores on new rows are {scores or 'missing'}"
    return "codes differ from those of one frame" if "False" in output else ""
