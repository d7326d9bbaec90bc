"""Every example runs at tiny size, prints its scores, and its scores say what the example says they do."""

import importlib
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from benchmarks.gpu.examples import NEEDS
from tests.guides.libraries import ON_CUDF, require_modules

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "orders")
ROWS = 4000
FRAMES = ["pandas", "polars", *(["cudf"] if ON_CUDF else [])]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example in this process, where warnings are errors, and give the lines that it prints; cuDF's on a GPU."""
    monkeypatch.syspath_prepend(FOLDER)

    def main(script, frames):
        device = "cuda" if frames == "cudf" else "cpu"
        require_modules(*NEEDS[script])
        given = {"rows": ROWS, "device": device, "frames": frames}
        monkeypatch.setattr(sys, "argv", [script, *(f"--{name}={value}" for name, value in given.items())])
        with warnings.catch_warnings():
            if device == "cuda":
                # XGBoost warns of frames on the host that a model on the GPU predicts, as cross-validation has it.
                warnings.simplefilter("default")
            importlib.import_module(script).main()
        return capsys.readouterr().out.splitlines()

    yield main
    for name in (*SCRIPTS, "orders"):
        sys.modules.pop(name, None)


def score(line, which):
    return float(re.search(rf"{which} AUC (\d\.\d+)", line)[1])


@pytest.mark.parametrize("frames", FRAMES)
@pytest.mark.parametrize("script", ["logistic_regression", "xgboost_on_gpu"])
def test_cross_fitted_codes_beat_greedy_ones_on_new_rows(run, script, frames):
    cross_fitted, greedy = run(script, frames)
    assert cross_fitted.startswith("cross-fitted: ")
    assert greedy.startswith("greedy: ")
    assert score(greedy, "train") > score(cross_fitted, "train") + 0.05
    assert score(cross_fitted, "test") > score(greedy, "test") + 0.02 > 0.52


@pytest.mark.parametrize("frames", FRAMES)
def test_a_pipeline_is_scored_on_new_rows_and_by_cross_validation(run, frames):
    once, by_folds = run("pipeline", frames)
    assert score(once, "test") > 0.55
    assert score(by_folds, "test") > 0.55


@pytest.mark.parametrize("frames", [name for name in FRAMES if name != "polars"])
def test_partitions_have_the_bits_of_one_frame(run, frames):
    same, scores = run("dask_cudf_partitions", frames)
    assert same == "the same bits as one frame of all rows: training True, new rows True"
    assert abs(score(scores, "train") - score(scores, "test")) < 0.05
    assert score(scores, "test") > 0.55


def test_dask_has_no_polars(run):
    with pytest.raises(SystemExit, match="--frames pandas"):
        run("dask_cudf_partitions", "polars")


@pytest.mark.parametrize("frames", [name for name in FRAMES if name != "cudf"])
def test_a_cluster_makes_and_encodes_partitions(frames, tmp_path):
    command = [sys.executable, str(FOLDER / "dask_cluster.py"), "--rows", "2000", "--frames", frames, "--device", "cpu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ)
    size, scores = done.stdout.splitlines()
    assert size == "8 partitions, 2000 rows"
    assert score(scores, "test") > 0.55


def test_rows_are_the_same_every_time(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    orders = importlib.import_module("orders")
    first, again = orders.columns(50), orders.columns(50)
    assert {len(column) for column in first.values()} == {100}
    for name, column in first.items():
        assert column.tolist() == again[name].tolist()
    sys.modules.pop("orders", None)


def test_every_example_is_listed():
    listed = re.findall(r"^\| `(\w+)\.py`", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == SCRIPTS
