"""The examples on frames of cuDF, each script in a process of its own."""

import re
import sys

from benchmarks.gpu.report import Run
from benchmarks.gpu.suites import left_out, run_command
from benchmarks.harness.machine import ROOT

# Libraries that each script needs in addition to cuDF, for frames of cuDF.
NEEDS = {
    "dask_cluster": ("dask_cudf", "dask_cuda"),
    "dask_cudf_partitions": ("dask_cudf",),
    "logistic_regression": ("cuml",),
    "pipeline": ("xgboost",),
    "xgboost_on_gpu": ("xgboost",),
}
# Most seconds of an example, including the compilation of kernels.
LONGEST = 300.0


def run(step: Run) -> None:
    """Run every script on frames of cuDF, if its libraries are installed, and record its scores on new rows."""
    for script, needed in NEEDS.items():
        if left_out(step, "cudf", *needed):
            continue
        with step.attempt(script):
            command = [sys.executable, str(ROOT / f"examples/{script}.py"), "--frames", "cudf", "--device", "cuda"]
            status, output = run_command(step, script, command, min(LONGEST, step.left()))
            scores = re.findall(r"test AUC (\d\.\d+)", output)
            step.row("examples", script=script, ran=status == 0, **{"test AUC": ", ".join(scores)})
            if not is_right(status, output, scores):
                step.fail(f"{script}: status {status}, scores on new rows {scores}")


def is_right(status: int | None, output: str, scores: list[str]) -> bool:
    """Whether a script ended without an error, scored better than chance, and had the encodings of one frame."""
    return status == 0 and float(min(scores, default="0")) > 0.5 and "False" not in output
