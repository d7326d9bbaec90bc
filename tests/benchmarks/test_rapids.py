"""`python -m benchmarks.rapids` from end to end, with pandas for cuDF: judgements, errors and stored results."""

import json
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.harness.worker import Worker
from benchmarks.rapids import contenders, formulation, job, judge
from gpu_encode.seam import devices
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
        (work, keys, how) for work in job.WORKS for keys in program.AXES["keys"] for how in ("uniform", "zipf")
    }
    for cell in cells:
        missing = {"cuml", *(["ours-own-prior"] if cell["work"] == "mean" else [])}
        known = {each.name for each in contenders.CONTENDERS} - missing
        assert {name: each["status"] for name, each in cell["contenders"].items()} == dict.fromkeys(known, "timed")


@pytest.mark.parametrize("work", ["folds", "mean", "leave-one-out", "classes", "pairs"])
def test_rows_come_back_into_order_after_a_merge_that_keeps_none(work, monkeypatch):
    keeping = pd.DataFrame.merge

    def merge(left, right, **options):
        return keeping(left, right, **options).sample(frac=1, random_state=1, ignore_index=True)

    monkeypatch.setattr(pd.DataFrame, "merge", merge)
    assert answer("cudf", work)["said"] == ""


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
    spoil(monkeypatch, lambda encodings: encodings[1:])
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
    # So few rows of a category that the prior weighs more, and ranks in an order that have ten digits.
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


def test_without_a_gpu_it_says_so(capsys):
    assert program.main([]) == 2
    assert "--quick" in capsys.readouterr().err
