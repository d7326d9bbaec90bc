"""The cells of `python -m studies.family`, and the judge of its matrices."""

import numpy as np
import pytest

from gpu_encode.seam import devices
from studies.family.contenders import CONTENDERS
from studies.family.indicators import MOST_DENSE, Indicators

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")


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
