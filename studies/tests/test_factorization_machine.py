"""The factorisation machine of the comparison: its score by the formula, and its gradient by finite differences."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from studies.methods.factorization_machine import FactorizationMachine


@pytest.fixture
def drawn():
    """Give a machine with parameters at random, lines of rows and labels."""
    random = np.random.default_rng(0)
    codes = np.stack([random.integers(0, size, 30) for size in (4, 3, 5)], axis=1)
    y = random.integers(0, 2, 30)
    machine = FactorizationMachine(4, epochs=1).fit(codes, y)
    machine.intercept, machine.weights = 0.3, random.normal(size=13)
    machine.factors = random.normal(size=(13, 4))
    return machine, machine.lines_of(codes), y


def loss(machine, lines, y):
    """Give the logistic loss, row by row, by the formula in words."""
    total = 0.0
    for row, label in zip(lines, y, strict=True):
        pairs = sum(machine.factors[i] @ machine.factors[j] for i, j in combinations(row, 2))
        score = machine.intercept + sum(machine.weights[i] for i in row) + pairs
        total += np.log1p(np.exp(-score)) if label else np.log1p(np.exp(score))
    return total


def test_the_gradient_is_that_of_the_loss(drawn):
    machine, lines, y = drawn
    of_score, of_factors = machine.slopes(lines, y)
    weights, factors = np.zeros(13), np.zeros((13, 4))
    np.add.at(weights, lines, of_score[:, None])
    np.add.at(factors, lines, of_factors)
    for made, parameter in ((weights, machine.weights), (factors, machine.factors)):
        for index in np.ndindex(parameter.shape):
            losses = []
            for change in (1e-6, -2e-6):
                parameter[index] += change
                losses.append(loss(machine, lines, y))
            parameter[index] += 1e-6
            assert made[index] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_it_learns_what_pairs_say_and_no_column_alone():
    random = np.random.default_rng(1)
    codes = random.integers(0, 6, (4000, 2))
    y = (codes.sum(axis=1) % 2 == 0).astype(int)
    machine = FactorizationMachine(4, regularization=0.0, learning_rate=0.1).fit(codes[:3000], y[:3000])
    assert roc_auc_score(y[3000:], machine.predict_proba(codes[3000:])) > 0.99


def test_no_category_adds_nothing(drawn):
    machine, _, _ = drawn
    machine.weights[-1], machine.factors[-1] = 0.0, 0.0
    scores = machine.score(machine.lines_of(np.array([[1, -1, 99], [-1, -1, -1]])))
    assert scores == pytest.approx([machine.intercept + machine.weights[1], machine.intercept])
