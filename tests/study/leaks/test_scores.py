"""Scores, and tests of scores, compared with plain definitions."""

from itertools import product
from statistics import mean

import numpy as np
import pytest

from gpu_encode.study.leaks.scores import allowance, p_values, read_by_tree

pytestmark = pytest.mark.host


@pytest.mark.parametrize("number", [3, 6])
def test_p_values_count_patterns_of_signs(number):
    differences = np.random.default_rng(number).normal(0.3, 1, (number, 3))
    rows = differences.tolist()
    columns = sorted(range(3), key=lambda column: -mean(row[column] for row in rows))
    expected, before = {}, 0.0
    for first, column in enumerate(columns):
        seen, counted = mean(row[column] for row in rows), 0
        for signs in product((1, -1), repeat=number):
            signed = [[sign * value for value in row] for sign, row in zip(signs, rows, strict=True)]
            of_columns = [mean(row[one] for row in signed) for one in columns[first:]]
            counted += max(of_columns) >= seen - 1e-12
        before = expected[column] = max(before, counted / 2**number)
    np.testing.assert_allclose(p_values(differences, np.random.default_rng(0)), [expected[one] for one in range(3)])


def test_a_strong_column_does_not_hide_another():
    differences = np.column_stack([np.full(6, 0.9), np.full(6, 0.1)])
    assert p_values(differences, np.random.default_rng(0)).tolist() == [1 / 64, 1 / 64]


def test_many_shuffles_are_tested_by_random_patterns():
    differences = np.column_stack([np.full(20, 0.1), np.tile([0.1, -0.1], 10)])
    chances = p_values(differences, np.random.default_rng(0))
    assert chances[0] < 0.001
    assert 0.3 < chances[1] < 0.9


def test_a_tree_reads_copies_of_the_target_and_nothing_of_noise():
    random = np.random.default_rng(0)
    labels, others = random.integers(2, size=(2, 400))
    assert read_by_tree((labels * 0.1, labels), (others * 0.1, labels), random)[0] == 1.0
    for scores in (read_by_tree((random.random(400), labels), (random.random(400), others), random) for _ in range(3)):
        assert all(abs(score - 0.5) < 5 * allowance(labels) / 3 for score in scores)


def test_encodings_that_differ_in_their_last_bit_are_told_apart():
    labels = np.arange(200) % 2
    encodings = np.where(labels == 1, 0.1, np.nextafter(0.1, 1))
    assert read_by_tree((encodings, labels), (encodings, labels), np.random.default_rng(0)) == (1.0, 1.0)


def test_trees_of_many_classes_do_not_warn(recwarn):
    labels = np.arange(100) % 60
    read_by_tree((labels * 0.1, labels), (labels * 0.1, labels), np.random.default_rng(0))
    assert not recwarn.list


def test_three_classes_and_missing_encodings():
    labels = np.arange(300) % 3
    encodings = np.where(labels == 2, np.nan, labels)
    assert read_by_tree((encodings, labels), (encodings[::-1], labels), np.random.default_rng(0))[0] == 1.0


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_what_is_allowed_is_three_standard_errors_of_a_score_without_meaning(share):
    n, random = 400, np.random.default_rng(0)
    labels = (np.arange(n) < share * n).astype(int)
    ranks = [np.argsort(random.random(n))[labels == 1].sum() for _ in range(2000)]
    areas = (np.array(ranks) - labels.sum() * (labels.sum() - 1) / 2) / (labels.sum() * (n - labels.sum()))
    assert allowance(labels) == pytest.approx(3 * areas.std(), rel=0.1)
    assert allowance(np.arange(1_000_000) % 2) == 0.03
