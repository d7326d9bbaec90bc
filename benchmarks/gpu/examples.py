"""The examples on cuDF's frames, each script in a process of its own."""

import re
import sys
import time

from benchmarks.gpu.report import Run
from benchmarks.gpu.suites import left_out, run_command
from benchmarks.harness.machine import ROOT

EXAMPLES = ROOT / "examples"
# What each script needs beside cuDF, where frames are cuDF's.
NEEDS = {
    "dask_cluster": ("dask_cudf", "dask_cuda"),
    "dask_cudf_partitions": ("dask_cudf",),
    "logistic_regression": ("cuml",),
    "pipeline": ("xgboost",),
    "xgboost_on_gpu": ("xgboost",),
}
# Seconds of an example, compilation of the kernels included.
LONGEST = 300.0


def run(step: Run) -> None:
    """Run every script on cuDF's frames, as far as its libraries are here, and write down its scores on new rows."""
    for script, needed in NEEDS.items():
        if left_out(step, "cudf", *needed):
            continue
        with step.attempt(script):
            command = [sys.executable, str(EXAMPLES / f"{script}.py"), "--frames", "cudf", "--device", "cuda"]
            limit, begun = min(LONGEST, step.left()), time.monotonic()
            status, output = run_command(step, script, command, limit)
            seconds, scores = round(time.monotonic() - begun, 1), re.findall(r"test AUC (\d\.\d+)", output)
            found = {"ran": status == 0, "test AUC": ", ".join(scores)}
            step.row("examples", script=script, seconds=seconds, **found)
            if wrong := complain(status, output, [float(score) for score in scores], limit):
                step.fail(f"{script}: {wrong}")


def complain(status: int | None, output: str, scores: list[float], limit: float) -> str:
    """What is wrong with a run; nothing is where only the time of all steps was up."""
    if status is None:
        return f"it did not end in {limit:.0f} s" if limit >= LONGEST else ""
    if status != 0:
        return f"it ended with status {status}"
    if not scores or min(scores) <= 0.5:
        return f"its scores on new rows are {scores or 'missing'}"
    return "encodings differ from those of one frame" if "False" in output else ""
