"""Every example runs at tiny size and prints its scores, and the scores agree with the example's text."""

import importlib
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.gpu.examples import NEEDS
from tests.guides.libraries import ON_CUDF, require_modules

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "orders")
ROWS = 4000
FRAMES = ["pandas", "polars", *(["cudf"] if ON_CUDF else [])]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example in this process, where warnings are errors, and return its output lines; cuDF ones need a GPU."""
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
    forget()


@pytest.fixture
def alone(monkeypatch, capsys):
    """Return a function that imports an example with its own frames, runs it with arguments, and returns its output."""
    monkeypatch.syspath_prepend(FOLDER)

    def load(script, *given):
        module = importlib.import_module(script)
        if not given:
            return module
        monkeypatch.setattr(sys, "argv", [script, *map(str, given)])
        module.main()
        return capsys.readouterr().out.splitlines()

    yield load
    forget()


def forget():
    """Let the next test import the examples anew."""
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


@pytest.mark.parametrize("frames", ["pandas", pytest.param("polars", marks=pytest.mark.nightly)])
def test_a_cluster_makes_and_encodes_partitions(frames, tmp_path):
    command = [sys.executable, str(FOLDER / "dask_cluster.py"), "--rows", "2000", "--frames", frames, "--device", "cpu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ)
    size, scores = done.stdout.splitlines()
    assert size == "8 partitions, 2000 rows"
    assert score(scores, "test") > 0.55


def test_missing_numbers_are_nearer_to_their_group(alone):
    of_all, of_group = alone("fill_missing_numbers", "--rows", 1000)
    off = [float(re.search(r"new rows (\d+\.\d+);", line)[1]) for line in (of_all, of_group)]
    assert off[1] < 0.6 * off[0]
    assert float(of_group.split()[-1]) > float(of_all.split()[-1]) + 0.1


def test_folds_and_smoothing_are_compared_on_the_same_rows(alone, tmp_path):
    fewer = "--folds", 3, 20, "leave-one-out", "--weights", 0, 5
    printed = alone("folds_and_smoothing", "--rows", 300, "--repeats", 2, *fewer)
    assert (
        len([line for line in printed if re.match(r"\| (3|20|leave-one-out) \|( \d+\.\d \(.*?\) \|){2}$", line)]) == 6
    )
    assert len([line for line in printed if re.match("best: K = (3|20|leave-one-out), m = [05]$", line)]) == 2
    assert len([line for line in printed if " of 1 cells" in line]) == 2
    X = pd.DataFrame({"a": [*"xyz?"] * 100, "b": [*"ppqqr"] * 80, "sold": ["yes", "no", "no", "yes"] * 100})
    X.to_csv(tmp_path / "rows.csv")
    given = "--target", "sold", "--columns", "a", "a+b", "--rows", 150, "--repeats", 1, "--folds", 5, "--weights", 5
    printed = alone("folds_and_smoothing", "--data", tmp_path / "rows.csv", *given)
    assert len([line for line in printed if line.startswith("| 5 | 100.0 ")]) == 2


def test_rows_without_a_target_change_no_other_row(alone):
    rest, files, scores = alone("late_targets", "--rows", 3000)
    assert re.fullmatch(r"300 orders are not known yet, [1-9]\d* shops .* the same bits: True", rest)
    assert files == "files have the bits of memory: True"
    assert score(scores, "test") > 0.6


def test_many_draws_of_random_codes_beat_one(alone):
    one, many = alone("random_codes_forest", "--rows", 600, "--draws", 8, "--trees", 8)
    assert score(many, "test") > score(one, "test") + 0.01 > 0.6
    forests = alone("random_codes_forest")
    X, y = forests.made(200)
    twice = [forests.RandomCodesForest(3, 4).fit(X, y).predict_proba(X) for _ in range(2)]
    assert twice[0].tolist() == twice[1].tolist()


def test_a_script_gets_the_same_numbers_when_it_is_served(alone):
    require_modules("category_encoders")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *compared, heading = alone("served_script", "--rows", 20_000)[:7]
    assert [line.rpartition(", ")[2] for line in compared] == ["the same numbers"] * 6
    assert heading.split()[:2] == ["method", "served"]


def test_weights_that_halve_pay_where_clicks_drift_and_not_elsewhere(alone):
    for drift, pays in ((0.25, True), (0.0, False)):
        printed = [line.split() for line in alone("drifting_clicks", "--rows", 20_000, "--drift", drift)]
        loss = {" ".join(words[:-3]): float(words[-1]) for words in printed}
        assert len(loss) == 6
        assert (loss["half_life 5d"] < loss["all earlier rows"] - 0.02) == pays
        assert (min(loss.values()) == loss["all earlier rows"]) != pays


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


def test_every_notebook_is_listed():
    listed = re.findall(r"\]\((notebooks/\w+\.md)\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == sorted(f"notebooks/{path.name}" for path in FOLDER.glob("notebooks/*.md"))


def test_three_readers_are_better_together():
    command = [sys.executable, str(FOLDER / "methods" / "blend_of_three.py"), "--rows", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    *alone, together = (float(line.rpartition(" ")[2]) for line in done.stdout.splitlines())
    assert len(alone) == 3
    assert together > max(alone) > 0.65
