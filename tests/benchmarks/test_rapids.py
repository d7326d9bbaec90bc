"""`python -m benchmarks.rapids` from end to end, pandas in cuDF's place: what it judges, refuses and keeps."""

import ctypes
import json
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.harness.worker import Worker
from benchmarks.rapids import contenders, energy, formulation, job, judge, library
from gpu_encode import devices
from tests.guides import cuml_formula

program = import_module("benchmarks.rapids.__main__")
# The simulator takes its time.
pytestmark = pytest.mark.skipif(devices.simulated(), reason="pandas stands in for cuDF, not for CuPy")
ONE = ["--keys", "int", "--distributions", "uniform"]


def run(folder, *arguments):
    """Run the program; give its status and what it wrote."""
    status = program.main(["--quick", "--repeats", "1", *arguments, "--out", str(folder)])
    return status, json.loads((folder / "rapids.json").read_text())


def answer(name, work="mean", keys="int", rows=40, categories=5):
    """Ask one contender for one cell, after ours."""
    job.JOBS.clear()
    cell = {"rows": rows, "categories": categories, "distribution": "uniform", "keys": keys, "work": work}
    for each in dict.fromkeys(["ours", name]):
        found = Worker(program.GRID, each).open(cell, ".")
    return found


def test_every_cell_of_the_grid_is_right(tmp_path):
    status, found = run(tmp_path)
    assert (status, found["status"]) == (0, "done")
    cells = found["cells"]
    assert {(cell["work"], cell["keys"], cell["distribution"]) for cell in cells} == {
        (work, keys, how) for work in job.WORKS for keys in job.KEY_BYTES for how in ("uniform", "zipf")
    }
    for cell in cells:
        missing = {"cuml"} | {"mean": {"ours-own-prior"}, "ordered": {"cudf-scatter"}}.get(cell["work"], set())
        known = {each.name for each in contenders.CONTENDERS} - missing
        assert {name: each["status"] for name, each in cell["contenders"].items()} == dict.fromkeys(known, "timed")


@pytest.mark.parametrize("work", ["folds", "mean", "leave-one-out", "classes", "pairs"])
def test_rows_come_back_into_order_after_a_merge_that_keeps_none(work, monkeypatch):
    keeping = pd.DataFrame.merge

    def merge(left, right, **options):
        return keeping(left, right, **options).sample(frac=1, random_state=1, ignore_index=True)

    monkeypatch.setattr(pd.DataFrame, "merge", merge)
    assert [answer(name, work)["said"] for name in ("cudf", "cudf-scatter")] == ["", ""]


@pytest.mark.parametrize("work", ["folds", "leave-one-out", "ordered"])
def test_a_leak_is_refused_and_has_no_time(work, tmp_path, monkeypatch):
    monkeypatch.setitem(formulation.FORMS, work, formulation.mean)
    status, found = run(tmp_path, *ONE, "--work", work, "--contenders", "cudf")
    record = found["cells"][0]["contenders"]["cudf"]
    assert (status, record["status"], "seconds" in record) == (1, "wrong", False)
    assert record["said"].startswith("row ")


def spoil(monkeypatch, change):
    """Change what the form of new rows gives."""
    right = formulation.mean
    monkeypatch.setitem(formulation.FORMS, "mean", lambda *given: change(right(*given)))


def test_one_encoding_that_is_off_is_refused(monkeypatch):
    spoil(monkeypatch, lambda found: found * np.where(np.arange(40) == 38, 1 + 1e-8, 1)[:, None])
    monkeypatch.setattr(judge, "BY_DEFINITION", 0)
    assert answer("cudf")["said"].startswith("1 encodings are not ours, first in row 38: ")


def test_encodings_of_another_shape_are_refused(monkeypatch):
    spoil(monkeypatch, lambda found: found.iloc[1:])
    assert answer("cudf")["said"] == "encodings of shape (39, 1), not (40, 1)"


def test_ours_is_not_believed_and_the_cpu_must_have_our_bits(monkeypatch):
    right = contenders.from_host
    monkeypatch.setattr(contenders, "from_host", lambda found: np.nextafter(right(found), 1.0))
    assert answer("cpu")["status"] == "wrong"
    encoding_of = contenders.encoding_of
    monkeypatch.setattr(contenders, "encoding_of", lambda *given: lambda: encoding_of(*given)() + 1e-6)
    assert answer("ours")["status"] == "wrong"


@pytest.mark.parametrize("work", [name for name in job.WORKS if name != "mean"])
def test_the_own_prior_is_that_of_the_visible_rows(work, monkeypatch):
    # So few rows of a category that the prior weighs more, and places of an order that have ten digits.
    sizes = {"rows": 1100 if work == "ordered" else 40, "categories": 30}
    assert answer("ours-own-prior", work, **sizes)["status"] == "right"
    encoding_of = contenders.encoding_of
    monkeypatch.setattr(contenders, "encoding_of", lambda *given: encoding_of(*given[:4]))
    assert answer("ours-own-prior", work, **sizes)["status"] == "wrong"


@pytest.mark.parametrize("work", ["mean", "folds", "pairs"])
def test_cuml_is_asked_for_what_it_has(work, monkeypatch):
    made = SimpleNamespace(TargetEncoder=cuml_formula.TargetEncoder)
    monkeypatch.setitem(sys.modules, "cuml.preprocessing", made)
    assert answer("cuml", work, "string")["said"] == ""


def test_finished_cells_survive_a_kill(tmp_path, monkeypatch):
    asked = [*ONE, "--work", "folds,mean,leave-one-out", "--contenders", "cudf"]

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(formulation.FORMS, "mean", kill)
        run(tmp_path, *asked)
    left = json.loads((tmp_path / "rapids.json").read_text())["cells"]
    assert [cell["work"] for cell in left] == ["folds"]
    status, found = run(tmp_path, *asked, "--resume")
    assert (status, found["cells"][0]) == (0, left[0])
    assert [cell["work"] for cell in found["cells"]] == ["folds", "mean", "leave-one-out"]


def test_cells_without_room_or_time_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(library.Pandas, "free", lambda _: 1)
    _, found = run(tmp_path / "room", *ONE, "--work", "mean", "--contenders", "cudf")
    assert found["cells"][0]["contenders"]["cudf"]["status"] == "out of memory"
    _, found = run(tmp_path / "time", *ONE, "--time-limit", "0")
    assert (found["status"], found["cells"]) == ("cut short: time was up", [])


class Driver:
    """NVML that counts 2 joules with every question."""

    def __init__(self, name=None, *, status=0):
        self.status, self.millijoules = status, 0

    def nvmlInit_v2(self):  # NVML's name
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus, handle):
        return bus != b"0000:3B:00.0"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, taken):
        self.millijoules += 2000
        taken._obj.value = self.millijoules
        return self.status


def test_energy_is_that_of_one_call(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", Driver)
    meter, called = energy.meter_of("0000:3B:00.0"), []
    # The counter moves by 2 J between begin and end, whatever the calls.
    assert meter.joules_of(lambda: called.append(1), energy.SHORTEST / 8) == 2.0 / 8
    assert len(called) == 8
    assert energy.meter_of(None) is energy.meter_of("elsewhere") is None
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(status=3))
    assert energy.meter_of("0000:3B:00.0") is None


def test_without_a_gpu_it_says_so(capsys):
    assert program.main([]) == 2
    assert "--quick" in capsys.readouterr().err
