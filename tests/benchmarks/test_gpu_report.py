"""`python -m benchmarks.gpu`: what it writes, and that every line of it runs in the simulator."""

import argparse
import json
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import pytest

from benchmarks.gpu import goals, suites, tables
from benchmarks.gpu import run as running
from benchmarks.gpu.report import SIMULATOR, Report, folder_for, slug
from benchmarks.gpu.run import OutOfTimeError, Run

program = import_module("benchmarks.gpu.__main__")
GPU = "NVIDIA H200"


@pytest.fixture
def report(tmp_path):
    """Give a report of a GPU, in which one step has begun."""
    found = Report.open(tmp_path, GPU)
    found.begin("bits", "abc")
    return found


@pytest.fixture
def step(report):
    """Give a step that has all the time there is."""
    return Run("bits", report, True, time.monotonic() + 1e6)


@pytest.fixture
def simulated(tmp_path):
    """Give a step in the simulator."""
    found = Report.open(tmp_path, SIMULATOR)
    found.begin("bits", "abc")
    return Run("bits", found, True, time.monotonic() + 1e6)


def on_disk(report):
    return json.loads((report.folder / "report.json").read_text())


def test_results_of_the_simulator_are_kept_apart(tmp_path):
    assert folder_for(tmp_path, GPU, "2027-01-02") == tmp_path / "benchmarks/results/nvidia-h200-2027-01-02"
    assert folder_for(tmp_path, SIMULATOR, "2027-01-02") == tmp_path / "build/gpu-simulator"
    assert slug("NVIDIA GeForce RTX 4090 (Laptop)") == "nvidia-geforce-rtx-4090-laptop"


def test_a_row_is_on_disk_at_once(step):
    step.row("copy", what="copy", **{"GB/s": 3940.0})
    assert on_disk(step.report)["steps"]["bits"]["tables"] == {"copy": [{"what": "copy", "GB/s": 3940.0}]}
    assert "| copy | 3,940 |" in (step.report.folder / "report.md").read_text()
    assert not list(step.report.folder.glob("*.part"))


def test_what_is_wrong_is_in_the_report_and_makes_the_run_fail(step):
    step.fail("bits differ\nat row 3")
    assert step.report.failed() == ["bits"]
    assert "**failed:**\n```\nbits differ\nat row 3\n```" in (step.report.folder / "report.md").read_text()


def test_a_later_run_keeps_the_other_steps(report):
    report.add("bits", "table", {"a": 1})
    again = Report.open(report.folder, GPU)
    again.begin("races", "def")
    again.begin("bits", "def")
    assert list(on_disk(again)["steps"]) == ["races", "bits"]
    assert again.rows("bits", "table") == []
    assert again.rows("kernels", "table") == []
    again.begin("races", "def")
    assert Report.open(report.folder, GPU).step("bits")["commit"] == "def"


def test_another_device_begins_anew(report):
    assert Report.open(report.folder, SIMULATOR).document["steps"] == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "yes"), (False, "**NO**"), (1234567, "1,234,567"), (0.12345, "0.123"), (45678.9, "45,679")],
)
def test_values_in_tables(value, text):
    assert tables.cell(value) == text


def test_a_table_has_a_column_for_every_key():
    assert tables.table([{"a": "x", "b": 1}, {"a": "y|z", "c": 2.5}]) == [
        "| a | b | c |",
        "| --- | ---: | ---: |",
        "| x | 1 |  |",
        "| y\\|z |  | 2.5 |",
    ]


def test_figures_are_rates_and_a_share_of_the_copy():
    found = tables.figures(0.5, 10**9, 8, 64e9)
    assert found == {
        "rows": 10**9,
        "ms": 500.0,
        "G rows/s": 2.0,
        "bytes a row": 8,
        "GB/s": 16.0,
        "share of copy": 0.25,
    }


def test_shares_are_of_the_copy_that_was_measured(step):
    assert step.figures(0.5, 10**9, 8)["share of copy"] is None
    step.report.begin("machine", "abc")
    step.report.add("machine", "copy", {"GB/s": 64.0})
    assert step.figures(0.5, 10**9, 8)["share of copy"] == 0.25


def test_the_simulator_gives_no_figures(simulated):
    assert simulated.figures(0.5, 100, 8) == {"rows": 100, "bytes a row": 8, "ran": True}
    assert "Nothing here is a measurement" in tables.markdown(simulated.report.document)


def test_zipf_beside_uniform():
    rows = [
        {"work": "a", "categories": 5, "drawn": "uniform", "G rows/s": 6.0},
        {"work": "a", "categories": 5, "drawn": "Zipf 1.5", "G rows/s": 2.0},
        {"work": "b", "categories": 5, "drawn": "uniform", "G rows/s": 6.0},
        {"work": "b", "categories": 5, "drawn": "Zipf 1.5", "skipped": "no room"},
    ]
    (found,) = tables.against_uniform(rows, "work")
    assert found == {
        "work": "a",
        "categories": 5,
        "uniform": 6.0,
        "Zipf 1.5": 2.0,
        "times slower": 3.0,
        "at most": 2,
    }


@pytest.mark.parametrize(
    ("work", "n_categories", "goal"),
    [
        ("5 folds, 0/1", 4096, 150.0),
        ("5 folds, 0/1", 4097, 45.0),
        ("5 folds, 0/1", 10**8, None),
        ("5 folds, 10 classes", 128, 50.0),
    ],
)
def test_goals(work, n_categories, goal):
    assert goals.goal_of(goals.RATES, work, n_categories, copy_rate=4e12) == goal
    assert goals.goal_of(goals.RATES, "5 folds, 10 classes", 128) is None


def test_the_closing_line_of_pytest():
    output = "...\n5 rows in 3 s\n= 1 failed, 412 passed, 3 deselected in 71.30s (0:01:11) =\n"
    assert suites.closing_counts(output) == {"failed": 1, "passed": 412, "deselected": 3}
    assert suites.closing_counts("Segmentation fault") == {}


def test_one_broken_case_does_not_stop_a_step_and_many_do(step):
    with step.attempt("first"):
        raise ValueError("no such kernel")
    assert "first" in step.report.step("bits")["failures"][0]
    assert "no such kernel" in step.report.step("bits")["failures"][0]
    for number in range(running.MOST_BROKEN - 2):
        with step.attempt(str(number)):
            raise ValueError
    with pytest.raises(ValueError, match="last"), step.attempt("last"):
        raise ValueError("last")


def test_a_step_stops_when_time_is_up(step):
    late = Run("bits", step.report, True, time.monotonic() - 1)
    with pytest.raises(OutOfTimeError), late.attempt("never"):
        raise AssertionError
    assert step.report.failed() == []


def steps_of(monkeypatch, function):
    """Let the only step be a function."""
    monkeypatch.setitem(sys.modules, "benchmarks.gpu.made_up", SimpleNamespace(run=function))
    monkeypatch.setattr(program, "STEPS", {"bits": ("made_up", "run")})


def test_what_breaks_a_step_is_in_the_report(report, monkeypatch):
    def broken(step):
        step.row("table", a=1)
        raise KeyError("gone")

    steps_of(monkeypatch, broken)
    program.run_step("bits", report, True, 1e6)
    found = on_disk(report)["steps"]["bits"]
    assert found["status"] == "broken"
    assert found["tables"] == {"table": [{"a": 1}]}
    assert "KeyError: 'gone'" in found["failures"][0]


def test_a_step_that_is_cut_short_keeps_what_it_has(report, monkeypatch):
    def slow(step):
        step.row("table", a=1)
        step.pause()

    steps_of(monkeypatch, slow)
    program.run_step("bits", report, True, -1.0)
    found = on_disk(report)["steps"]["bits"]
    assert (found["status"], found["failures"]) == ("cut short", [])
    assert found["tables"] == {"table": [{"a": 1}]}


def test_a_process_that_ends_badly_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "device_name", lambda: GPU)
    monkeypatch.setattr(program, "STEPS", {"no such step": ("", "")})
    assert program.main(["--tiny", "--out", str(tmp_path)]) == 1
    found = Report.open(tmp_path, GPU).step("no such step")
    assert found["failures"] == ["its process ended with status 2"]


def test_no_step_begins_when_time_is_up(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "device_name", lambda: GPU)
    assert program.main(["--only", "bits", "--time-limit", "0", "--out", str(tmp_path)]) == 0
    assert Report.open(tmp_path, GPU).step("bits")["status"] == "not begun: time was up"


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(program, "device_name", lambda: None)
    assert program.main([]) == 2
    assert "NUMBA_ENABLE_CUDASIM=1" in capsys.readouterr().err


def test_unknown_steps_are_refused():
    with pytest.raises(argparse.ArgumentTypeError, match="no step kernel; there are machine, "):
        program.listed("bits,kernel")
