"""The analysis of variance behind ``EmpiricalBayes(tau="anova", pooled=True)``, in plain loops."""

import numpy as np
import pytest

import gpu_encode as ge
from tests.bits import assert_same_bits


def rows_of(keys, target):
    return {key: [y for own, y in zip(keys, target, strict=True) if own == key] for key in dict.fromkeys(keys)}


def components(keys, target):
    """Variance within and between categories, as Searle, Casella and McCulloch have it."""
    groups, center = rows_of(keys, target), sum(target) / len(target)
    n_rows, n_groups, inside, among, squares = len(target), len(groups), 0.0, 0.0, 0
    for own in groups.values():
        mean = sum(own) / len(own)
        for y in own:
            inside += (y - mean) ** 2
        among += len(own) * (mean - center) ** 2
        squares += len(own) ** 2
    within = inside / (n_rows - n_groups)
    return within, max(0.0, (among - (n_groups - 1) * within) / (n_rows - squares / n_rows))


def encoded(keys, target, smooth):
    X = np.array([keys], dtype=object).T
    return ge.TargetEncoder(smooth=smooth, target_type="continuous").fit(X, target).transform(X)[:, 0]


KEYS = list("aaabbbbccdeeeeef")
TARGET = [1.0, 2.0, 4.0, 6.0, 7.5, 6.5, 8.0, 0.5, 1.5, 9.0, 3.0, 3.5, 2.0, 4.5, 3.0, 5.0]


@pytest.mark.parametrize("pooled", [False, True])
def test_by_definition(pooled):
    within, between = components(KEYS, TARGET)
    prior = sum(TARGET) / len(TARGET)
    expected = []
    for key in KEYS:
        own = rows_of(KEYS, TARGET)[key]
        mean = sum(own) / len(own)
        noise = within if pooled else sum((y - mean) ** 2 for y in own) / len(own)
        share = len(own) * between / (noise + len(own) * between)
        expected.append(share * mean + (1 - share) * prior)
    smooth = ge.EmpiricalBayes("anova", pooled=pooled)
    np.testing.assert_allclose(encoded(KEYS, TARGET, smooth), expected, rtol=1e-13)


def test_equal_means_give_the_prior():
    keys, target = list("aabbcccc"), [1.0, 3.0, 0.0, 4.0, 2.0, 2.0, -7.0, 11.0]
    assert_same_bits(encoded(keys, target, ge.EmpiricalBayes("anova", pooled=True)), np.full(8, 2.0))
    assert_same_bits(encoded(keys, target, ge.EmpiricalBayes("anova")), np.full(8, 2.0))


def test_a_pooled_variance_shrinks_single_rows():
    alone = KEYS.index("d"), KEYS.index("f")
    for tau in ("total", "between", "anova"):
        own, pooled = (encoded(KEYS, TARGET, ge.EmpiricalBayes(tau, pooled=choice)) for choice in (False, True))
        center = sum(TARGET) / len(TARGET)
        for row in alone:
            assert own[row] == TARGET[row]
            assert 0 < abs(pooled[row] - center) < abs(TARGET[row] - center)


def test_without_two_rows_of_a_category_nothing_is_shrunk():
    target = [1.0, 5.0, 2.0]
    for smooth in (ge.EmpiricalBayes("anova", pooled=True), ge.EmpiricalBayes(pooled=True)):
        assert_same_bits(encoded(list("abc"), target, smooth), np.array(target))


def test_a_single_category_gets_its_mean():
    assert_same_bits(encoded(list("aaa"), [1.0, 2.0, 6.0], ge.EmpiricalBayes("anova", pooled=True)), np.full(3, 3.0))


def test_impact_of_an_analysis_of_variance():
    X = np.array([KEYS], dtype=object).T
    smooth = ge.EmpiricalBayes("anova", pooled=True)
    parts = ge.ImpactEncoder(["impact", "deviation"], smooth=smooth, target_type="continuous").fit(X, TARGET)
    alone = ge.ImpactEncoder(["impact"], smooth=smooth, target_type="continuous").fit(X, TARGET).transform(X)
    own = ge.ImpactEncoder(["deviation"], target_type="continuous").fit(X, TARGET).transform(X)
    assert_same_bits(parts.transform(X), np.column_stack([alone, own]))
    np.testing.assert_allclose(alone[:, 0] + np.mean(TARGET), encoded(KEYS, TARGET, smooth), rtol=1e-14)


@pytest.mark.host
def test_errors():
    with pytest.raises(ValueError, match="'pooled' parameter of EmpiricalBayes must be one of True, False"):
        encoded(KEYS, TARGET, ge.EmpiricalBayes(pooled="yes"))
