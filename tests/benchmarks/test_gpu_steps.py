"""`python -m benchmarks.gpu` in the simulator: every step at tiny size, its failures, and the stored results."""

import argparse
import json
import time
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.gpu.report import SIMULATOR, Run, open_report

pytestmark = pytest.mark.cuda

program = import_module("benchmarks.gpu.__main__")
OPTIONS = argparse.Namespace(tiny=True, time_limit=1e6)


def load(name):
    """Give a module that needs the CUDA backend to be loaded."""
    return import_module(f"benchmarks.gpu.{name}")


@pytest.fixture
def step(tmp_path):
    """Give a step of its own."""
    report = open_report(tmp_path, SIMULATOR)
    report.begin("bits", "abc")
    return Run("bits", report, OPTIONS, time.monotonic() + 1e6)


@pytest.mark.parametrize("name", program.STEPS)
def test_a_step_from_end_to_end(name, tmp_path):
    assert program.main(["--tiny", "--only", name, "--out", str(tmp_path)]) == 0
    found = open_report(tmp_path, program.device_name()).steps[name]
    assert (found["status"], found["failures"]) == ("done", [])
    assert found["tables"] or found["notes"]
    # Nothing of the simulator looks like a measurement.
    assert not any(unit in json.dumps(found["tables"]) for unit in ("GB/s", "rows/s", "goal", "share"))


def test_the_queue_is_for_the_first_minutes():
    queued, usual = program.parse(["--queue", "--tiny"]), program.parse([])
    assert (queued.only, queued.time_limit, queued.repeats) == (list(program.QUEUE), 480, 3)
    assert queued.only[:3] == ["machine", "new bits", "new kernels"]
    assert not set(usual.only) & set(queued.only) - {"machine"}
    assert program.parse(["--queue", "--time-limit", "60", "--repeats", "2"]).time_limit == 60


def test_every_kernel_in_cuda_has_a_case_that_shows_it():
    kernels, new = import_module("gpu_encode.cuda.raw").FILES.keys(), load("new_kernels")
    missing, gone = kernels - new.USES.keys() - new.BY_SUITES, (new.USES.keys() | new.BY_SUITES) - kernels
    assert not missing, (
        f'write {", ".join(sorted(missing))} into USES of benchmarks/gpu/new_kernels.py: "name": Use("case")'
    )
    assert not gone, f"take {', '.join(sorted(gone))} out of USES and BY_SUITES of benchmarks/gpu/new_kernels.py"
    encoders = load("encoders")
    assert {use.case for use in new.USES.values()} <= (encoders.CASES | encoders.MORE_CASES).keys()


def test_kernels_that_a_gpu_has_checked_are_not_new(step, tmp_path, monkeypatch):
    new = load("new_kernels")
    known = next(iter(new.USES))
    tables = {"kernels": [{"text": new.text_of(known), "same": True}, {"text": "of an older kernel", "same": True}]}
    report = {"steps": {"new bits": {"tables": tables}, "machine": {"tables": {}}}}
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "report.json").write_text(json.dumps(report))
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "report.json").write_text('{"steps": {}}')
    assert new.texts_on_a_gpu(tmp_path) == {new.text_of(known), "of an older kernel"}
    tables["kernels"][0]["same"] = False
    (tmp_path / "card" / "report.json").write_text(json.dumps(report))
    assert new.texts_on_a_gpu(tmp_path) == {"of an older kernel"}
    monkeypatch.setattr(type(step), "simulated", False)
    monkeypatch.setattr(new, "texts_on_a_gpu", lambda: {new.text_of(known)})
    assert known not in new.changed(step)
    others = {name for name in new.USES if new.text_of(name) != new.text_of(known)}
    assert new.changed(step).keys() == others


def test_the_kernels_that_are_furthest_behind_their_predictions_are_looked_into(step, tmp_path, monkeypatch):
    predicted = load("predicted")
    predicted.profile(step)
    assert step.report.steps["bits"]["notes"] == ["no kernel is behind its prediction"]
    # Of five kernels one has no prediction and one is early; the others are late by 1, 3 and 2 ms.
    times = {"a": (3.0, 2.0), "b": (4.0, 1.0), "c": (9.0, None), "d": (1.0, 5.0), "e": (7.0, 5.0)}
    rows = [
        {"kernel": name, "case": "folds-int", "categories": 4096, "ms": ms, "predicted ms": predicted, "off": 1.0}
        for name, (ms, predicted) in times.items()
    ]
    step.report.begin("new kernels", "abc")
    step.report.steps["new kernels"]["tables"]["kernels"] = rows
    called = []
    monkeypatch.setattr(predicted, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(predicted, "say_output", lambda _, command, limit: called.append((command, limit)))
    predicted.profile(step)
    assert [command[command.index("--kernel-name") + 1] for command, _ in called] == ["b", "e", "a"]
    for command, limit in called:
        assert command[:3] == ["/bin/ncu", "--clock-control", "none"]
        assert "folds-int" in command
        assert limit <= predicted.LONGEST_PROFILE


def operation_that_gives(*found):
    """Give an operation that gives one thing after the other."""
    given = iter(found)
    return lambda data: load("operations").Work(lambda: next(given), 1, {"codes": 4})


def test_other_bits_than_the_cpu_s_are_refused(step):
    nan = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    unlike = [(np.array([0.0]), np.array([-0.0])), (nan, nan[::-1]), (np.zeros(2), np.zeros(2, np.float32)), (1, 2)]
    operations = {str(i): operation_that_gives(*pair) for i, pair in enumerate([*unlike, (nan, nan.copy())])}
    load("bits").compare(step, {"kind": "made up"}, operations, (None, None))
    (failure,) = step.report.steps["bits"]["failures"]
    assert [line.split(":")[0] for line in failure.splitlines()[1:]] == ["0", "1", "2", "3"]
    assert step.report.failed() == ["bits"]


@pytest.mark.parametrize(
    ("second", "kernels", "said"), [(8, set(), "repetition 2"), (7, {"gather_one"}, "did not run")]
)
def test_bits_that_move_are_refused(step, second, kernels, said):
    xp = import_module("gpu_encode.cuda.runtime").xp
    operation = operation_that_gives(xp.full(3, 7), xp.full(3, second))
    load("races").repeat(step, load("paths").Path("made up", operation, 1, {}, kernels), None, 2)
    assert said in step.report.steps["bits"]["failures"][0]


def test_what_is_found_stays_whatever_becomes_of_later_steps(step, monkeypatch):
    folder, report = step.report.path.parent, step.report
    step.row("table", a=1)
    assert open_report(folder, SIMULATOR).steps["bits"]["tables"] == {"table": [{"a": 1}]}
    # One breaks, one is killed, and for one there is no time.
    monkeypatch.setitem(program.STEPS, "races", "machine.no_such_function")
    report.begin("races", "abc")
    program.run_step("races", report, OPTIONS)
    monkeypatch.setattr(program.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=-9))
    assert program.main(["--only", "examples", "--out", str(folder)]) == 1
    assert program.main(["--only", "kernels", "--time-limit", "0", "--out", str(folder)]) == 1
    found = open_report(folder, SIMULATOR).steps
    assert {name: each["status"] for name, each in found.items()} == {
        "bits": "running",
        "races": "broken",
        "examples": "its process ended with status -9",
        "kernels": "not begun: time was up",
    }
    assert found["bits"]["tables"] == {"table": [{"a": 1}]}
    assert report.failed() == ["races"]


def test_one_broken_case_does_not_stop_a_step_and_many_do(step):
    for number in range(import_module("benchmarks.harness.steps").MOST_BROKEN - 1):
        with step.attempt(str(number)):
            raise ValueError
    with pytest.raises(ValueError, match="last"), step.attempt("last"):
        raise ValueError("last")


def test_examples_that_score_no_better_than_chance_are_wrong():
    is_right = load("examples").is_right
    assert is_right(0, "", ["0.65"])
    wrong = [(3, "", ["0.65"]), (0, "", []), (0, "", ["0.499"]), (0, "same bits: False", ["0.65"]), (None, "", [])]
    assert not any(is_right(*run) for run in wrong)
