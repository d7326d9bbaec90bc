"""The step `examples` of `python -m benchmarks.gpu`, on scripts made up here: it runs them on a GPU alone."""

import os
import time
from importlib.util import find_spec

import pytest

from benchmarks.gpu import examples
from benchmarks.gpu.report import SIMULATOR, Report
from benchmarks.gpu.run import Run

GOOD = "print('cross-fitted: train AUC 0.700, test AUC 0.650')"
SAYS_WHAT_IT_IS_GIVEN = "import sys; print(*sys.argv[1:]); " + GOOD


@pytest.fixture
def result(tmp_path, monkeypatch):
    """Run the step with one script of given text, and give what the report has of it."""
    monkeypatch.setattr(examples, "FOLDER", tmp_path)
    monkeypatch.setattr(examples, "NEEDS", {"made_up": ("xgboost",)})

    def found(text, *, missing=(), seconds=1e6, tiny=False, device="NVIDIA H200"):
        (tmp_path / "made_up.py").write_text(text)
        monkeypatch.setattr(examples, "find_spec", lambda name: None if name in missing else find_spec("sys"))
        report = Report.open(tmp_path / device, device)
        report.begin("examples", "abc")
        examples.run(Run("examples", report, tiny, time.monotonic() + seconds))
        return report.step("examples")

    return found


def rows(result):
    return result["tables"].get("examples", [])


def test_a_script_runs_on_cudf_and_the_gpu(result):
    found = result(SAYS_WHAT_IT_IS_GIVEN)
    assert found["failures"] == []
    assert [(row["script"], row["ran"], row["test AUC"]) for row in rows(found)] == [("made_up", True, "0.650")]
    assert "--frames cudf --device cuda\ncross-fitted" in found["notes"][0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit(3)", "made_up: it ended with status 3"),
        ("print('train AUC 0.9')", "made_up: its scores on new rows are missing"),
        (f"{GOOD}; print('test AUC 0.499')", "made_up: its scores on new rows are [0.65, 0.499]"),
        (f"print('the same bits: training False'); {GOOD}", "made_up: codes differ from those of one frame"),
    ],
)
def test_what_goes_wrong_is_a_failure(result, text, said):
    assert result(text)["failures"] == [said]


@pytest.mark.parametrize("before", [None, "elsewhere"])
def test_a_script_finds_the_library_where_it_is_not_installed(result, monkeypatch, before):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if before:
        monkeypatch.setenv("PYTHONPATH", before)
    found = result(f"import os; print('path', os.environ['PYTHONPATH']); {GOOD}")
    assert f"path {os.pathsep.join(filter(None, [str(examples.ROOT), before]))}\n" in found["notes"][0]


@pytest.mark.parametrize("missing", ["cudf", "xgboost"])
def test_a_script_without_its_library_is_left_out(result, missing):
    found = result(GOOD, missing=[missing])
    assert (rows(found), found["failures"]) == ([], [])
    assert found["notes"] == [f"made_up left out: {missing} not installed"]


@pytest.mark.parametrize("how", [{"tiny": True}, {"device": SIMULATOR}])
def test_without_a_gpu_nothing_runs(result, how):
    found = result("raise SystemExit(3)", **how)
    assert (rows(found), found["failures"]) == ([], [])
    assert found["notes"][0].startswith("left out: ")


def test_a_script_that_hangs_is_a_failure_and_one_that_is_cut_short_is_none(result, monkeypatch):
    hangs = "import time; time.sleep(60)"
    assert result(hangs, seconds=1.0)["failures"] == []
    monkeypatch.setattr(examples, "LONGEST", 1.0)
    found = result(hangs)
    assert found["failures"] == ["made_up: it did not end in 1 s"]
    assert [row["ran"] for row in rows(found)] == [False]


def test_every_example_is_run():
    folder = examples.ROOT / "examples"
    assert sorted(examples.NEEDS) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "orders")
