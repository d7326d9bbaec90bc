"""The model of a 0/1 target, compared with lme4 and with its likelihood, and its edge cases."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from gpu_encode.formulas.glmm import binomial, likelihood
from tests.mixed_models.models import REFERENCES, fit_binomial, laplace, log_likelihood
from tests.strategies import examples

COUNTS = [name for name, table in REFERENCES.items() if "within" not in table]
N, ONES = [3, 5, 1, 8, 2, 6, 1, 4, 9, 7], [0, 4, 1, 2, 2, 1, 0, 4, 8, 0]


def fit_of(fit):
    return fit.intercept.item(), fit.between.item()


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("place", [0, 1])
def test_lme4(name, place):
    table = REFERENCES[name]
    reference = table["fits"][place]
    n, mean = np.array(table["n"], float).reshape(-1, 1, 1), np.array(table["mean"]).reshape(-1, 1, 1)
    fit = binomial(n, mean, n > 0, reference["points"])
    # lme4's search ends at that distance from the top.
    assert fit.intercept.item() == pytest.approx(reference["intercept"], rel=1e-5)
    assert fit.between.item() == pytest.approx(reference["between"], rel=3e-5)
    logits = fit.intercept.item() + fit.effects.ravel()
    assert logits == pytest.approx(np.array(reference["codes"]), rel=1e-5, abs=1e-5)
    assert fit.values.ravel() == pytest.approx(1 / (1 + np.exp(-np.array(reference["codes"]))), rel=1e-5)


@examples(25)
@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1)), min_size=3, max_size=7))
def test_laplaces_likelihood_is_highest(pairs):
    n = [each for each, _ in pairs]
    ones = [round(rows * share) for rows, share in pairs]
    assume(0 < sum(ones) < sum(n) and sum(n) > len(n))
    fit = fit_binomial(n, ones)
    b, variance = fit_of(fit)
    top = laplace(n, ones, b, max(variance, 1e-12))
    for other in (1e-3, 0.1, 0.7, 2.0, 7.0, 30.0, variance * 0.9 + 1e-6, min(variance * 1.1, 4096.0) + 1e-6):
        best = minimize_scalar(lambda at, v=other: -laplace(n, ones, at, v), (b - 0.5, b + 0.5))
        assert -best.fun <= top + 1e-7


def test_the_true_likelihood_is_highest_with_many_points():
    b, variance = fit_of(fit_binomial(N, ONES, points=25))
    best = minimize(
        lambda at: -log_likelihood(N, ONES, at[0], np.exp(at[1])),
        [0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-12},
    )
    assert b == pytest.approx(best.x[0], abs=1e-5)
    assert variance == pytest.approx(np.exp(best.x[1]), rel=1e-5)
    assert log_likelihood(N, ONES, b, variance) == pytest.approx(-best.fun, abs=1e-9)


def test_more_points_come_closer():
    exact = fit_of(fit_binomial(N, ONES, points=25))[1]
    far = [abs(fit_of(fit_binomial(N, ONES, points=points))[1] - exact) for points in (1, 3, 5, 9)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.02 * far[0]


@pytest.mark.parametrize("points", [1, 2, 5])
def test_codes_are_those_of_the_likeliest_effects(points):
    fit = fit_binomial(N, ONES, points=points)
    b, variance = fit_of(fit)
    codes = fit.values.ravel()
    assert fit.effects.ravel() == pytest.approx(variance * (np.array(ONES) - np.array(N) * codes), abs=1e-12)
    assert codes == pytest.approx(1 / (1 + np.exp(-(b + fit.effects.ravel()))), rel=1e-14)
    assert fit.root.item() == pytest.approx(1 / (1 + np.exp(-b)), rel=1e-14)


def test_a_category_of_one_class_is_drawn_towards_the_others_less_with_more_rows():
    n = [1, 2, 10, 1000, 10**9, 30, 30]
    fit = fit_binomial(n, [1, 2, 10, 1000, 10**9, 8, 12])
    codes = fit.values.ravel()[:5]
    assert (np.diff(codes) > 0).all()
    assert fit.root.item() < codes[0]
    assert 0.999 < codes[-1] < 1


@pytest.mark.parametrize("points", [1, 4])
def test_categories_that_are_told_apart_by_the_target(points):
    fit = fit_binomial([50] * 6, [0, 50] * 3, points=points)
    codes = fit.values.ravel()
    assert np.isfinite(fit.effects).all()
    assert ((codes > 0) & (codes < 1)).all()
    assert codes[1] > 0.98
    assert codes[0] == pytest.approx(1 - codes[1], rel=1e-6)
    assert 0 < fit.between.item() <= 4096


@pytest.mark.parametrize(("share", "intercept"), [(0.0, -np.inf), (1.0, np.inf)])
def test_one_class_alone(share, intercept):
    fit = fit_binomial([3, 1, 5, 2], np.multiply([3, 1, 5, 2], share), [True, True, True, False])
    assert set(fit.values.ravel().tolist()) == {share}
    assert fit_of(fit) == (intercept, 0.0)
    assert fit.root.item() == share


@pytest.mark.parametrize(
    ("n", "ones"),
    [([8], [2]), ([1, 1, 1, 1], [0, 0, 0, 1]), ([8, 12, 4], [2, 3, 1])],
    ids=["one category", "a row each", "no difference"],
)
def test_nothing_to_tell_categories_apart_by(n, ones):
    fit = fit_binomial(n, ones)
    assert fit.between.item() == 0
    assert set(fit.values.ravel().tolist()) == {0.25} == {fit.root.item()}
    assert not fit.effects.any()


def test_the_other_class_is_the_mirror_image():
    fit, other = fit_binomial(N, ONES), fit_binomial(N, np.subtract(N, ONES))
    assert other.values.ravel() == pytest.approx(1 - fit.values.ravel(), rel=1e-9)
    assert other.between.item() == pytest.approx(fit.between.item(), rel=1e-9)


def test_blocks_are_parts_of_one_likelihood(monkeypatch):
    whole = fit_binomial(N, ONES)
    monkeypatch.setattr(likelihood, "BLOCK", 3)
    parts = fit_binomial(N, ONES)
    assert fit_of(parts) == pytest.approx(fit_of(whole), rel=1e-9)
    assert parts.values.ravel() == pytest.approx(whole.values.ravel(), rel=1e-9)


def test_views_and_outputs_are_fitted_apart():
    rng = np.random.default_rng(1)
    n = rng.integers(0, 6, (40, 3, 1)).astype(float)
    with np.errstate(invalid="ignore"):
        mean = rng.binomial(n.astype(int), 0.3, (40, 3, 1)) / n
    mean = np.concatenate([mean, 1 - mean, np.where(n > 0, 1.0, np.nan)], axis=2)
    counted = rng.random((40, 3, 1)) < 0.8
    fit = binomial(n, mean, counted)
    for view in range(3):
        for output in range(3):
            alone = binomial(
                n[:, view : view + 1], mean[:, view : view + 1, output : output + 1], counted[:, view : view + 1]
            )
            assert np.array_equal(fit.values[:, view, output], alone.values.ravel())
    without = binomial(n, np.where(counted & (n > 0), mean, np.nan), counted)
    assert np.array_equal(fit.values, without.values)
    assert np.isfinite(fit.values).all()


def test_weights_need_not_be_whole():
    whole, halves = fit_binomial(N, ONES), fit_binomial(np.multiply(N, 0.5), np.multiply(ONES, 0.5))
    assert 0 <= halves.between.item() < whole.between.item()
