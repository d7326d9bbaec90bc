"""`python -m benchmarks.family` on a few rows, and how its matrices are judged."""

import json

import numpy as np
import pytest

from benchmarks.family.__main__ import TOPIC, WORKS
from benchmarks.family.contenders import CONTENDERS
from benchmarks.family.indicators import MOST_DENSE, Indicators
from benchmarks.harness import program
from gpu_encode import devices

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")


def run(folder, *arguments):
    status = program.main(TOPIC, arguments=["--quick", "--out", str(folder), *arguments])
    return status, json.loads((folder / "family.json").read_text())


def test_ours_is_right_in_every_work(tmp_path):
    status, found = run(tmp_path, "--contenders", "ours,ours-objects")
    assert (status, {cell["work"] for cell in found["cells"]}) == (0, {*WORKS, "glmm", "glmm-folds"})


@pytest.mark.slow
def test_every_contender_is_right(tmp_path, capsys):
    status, found = run(tmp_path)
    assert status == 0, capsys.readouterr().out
    statuses = {(name, record["status"]) for cell in found["cells"] for name, record in cell["contenders"].items()}
    known = [each for grid in TOPIC.grids for each in grid.contenders]
    assert statuses == {(each.name, "timed") for each in known if not each.missing}


def test_dense_columns_of_many_categories_are_not_asked_for():
    few = {"rows": 10_000, "categories": MOST_DENSE, "keys": "int", "work": "one-hot"}
    many = few | {"categories": MOST_DENSE + 1}
    dense = {"ce-one-hot", "polars-dummies", "pandas-dummies"}
    assert {each.name for each in CONTENDERS if each.does(few) and not each.does(many)} == dense


def test_matrices_are_judged_by_the_one_of_each_row():
    scipy = pytest.importorskip("scipy.sparse")
    dense = np.eye(4)[[2, 0, 3]]
    for matrix in (dense, scipy.csr_matrix(dense)):
        assert np.asarray(Indicators(matrix)).tolist() == [2, 0, 3]
        assert Indicators(matrix).nbytes > 0
    for wrong in ([[1, 1]], [[0, 0]], [[0, 2]], [[1, 0.5]]):
        assert np.asarray(Indicators(np.array(wrong))).tolist() == [-1]
        assert np.asarray(Indicators(scipy.csr_matrix(np.array(wrong)))).tolist() == [-1]
