"""Coordinate ascent, tested alone."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gpu_encode.methods.votes.ascent import ascend

pytestmark = pytest.mark.host


def raise_each(scores):
    """Give the judge that scores all numbers with one of them raised at a time."""
    return lambda numbers, step: scores(numbers + step * np.eye(len(numbers)))


def test_of_equal_rises_the_first_counts():
    found = ascend(raise_each(lambda tried: (-abs(tried.sum(axis=1) - 1.5)).tolist()), np.zeros(3), 0.5)
    assert found.numbers.tolist() == [1.5, 0.0, 0.0]
    assert found.path == [[0.0, 1.0, -0.5], [0.0, 0.5, 0.0]]
    # Two rises, and after each a round without one.
    assert found.n_rounds == 4
    assert found.score == 0.0


def test_rises_that_become_less_and_less_end():
    found = ascend(raise_each(lambda tried: (-1 - 1 / (1 + tried[:, 0])).tolist()), np.zeros(1), 0.5, 1e-3)
    assert len(found.path) < 50
    assert found.numbers[0] > 20


def test_scores_may_be_whole_numbers_of_any_size():
    unit = 10**400
    found = ascend(raise_each(lambda tried: [-unit * abs(int(4 * x) - 10) for (x,) in tried]), np.zeros(1), 0.25)
    assert found.numbers.tolist() == [2.5]
    assert found.score == 0


def test_rounds_have_an_end():
    with pytest.warns(ConvergenceWarning, match="max_rounds=7 rounds"):
        found = ascend(raise_each(lambda tried: tried.sum(axis=1).tolist()), np.zeros(2), 0.5, max_rounds=7)
    assert found.numbers.tolist() == [7.0, 0.0]
    assert found.n_rounds == 7


def test_scores_are_asked_for_one_after_another():
    asked = []

    def judge(numbers, step):
        for number in range(len(numbers)):
            asked.append((number, step))
            raised = numbers.copy()
            raised[number] += step
            yield -abs(raised - 1).sum()

    assert ascend(judge, np.array([1.0, 0.0, 2.0]), 1.0).numbers.tolist() == [1.0, 1.0, 2.0]
    # The start has one score, and each of two rounds as many as there are numbers.
    assert asked == [(0, 0.0), *((number, 1.0) for _ in range(2) for number in range(3))]
