"""Coordinate ascent, tested alone."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gpu_encode.methods.votes.ascent import ascend

pytestmark = pytest.mark.host


def test_of_equal_rises_the_first_counts():
    found = ascend(lambda tried: (-abs(tried.sum(axis=1) - 1.5)).tolist(), np.zeros(3), 0.5)
    assert found.numbers.tolist() == [1.5, 0.0, 0.0]
    assert found.path == [[0.0, 1.0, -0.5], [0.0, 0.5, 0.0]]
    # Two rises, and after each a round without one.
    assert found.n_rounds == 4
    assert found.score == 0.0


def test_rises_that_become_less_and_less_end():
    found = ascend(lambda tried: (-1 - 1 / (1 + tried[:, 0])).tolist(), np.zeros(1), 0.5, 1e-3)
    assert len(found.path) < 50
    assert found.numbers[0] > 20


def test_scores_may_be_whole_numbers_of_any_size():
    unit = 10**400
    found = ascend(lambda tried: [-unit * abs(int(4 * x) - 10) for (x,) in tried], np.zeros(1), 0.25)
    assert found.numbers.tolist() == [2.5]
    assert found.score == 0


def test_rounds_have_an_end():
    with pytest.warns(ConvergenceWarning, match="max_rounds=7 rounds"):
        found = ascend(lambda tried: tried.sum(axis=1).tolist(), np.zeros(2), 0.5, max_rounds=7)
    assert found.numbers.tolist() == [7.0, 0.0]
    assert found.n_rounds == 7


def test_all_candidates_of_a_round_are_judged_at_once():
    shapes = []

    def judge(tried):
        shapes.append(tried.shape)
        return (-abs(tried - 1).sum(axis=1)).tolist()

    assert ascend(judge, np.array([1.0, 0.0, 2.0]), 1.0).numbers.tolist() == [1.0, 1.0, 2.0]
    assert shapes == [(1, 3), (3, 3), (3, 3)]
