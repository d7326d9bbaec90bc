"""The model of a real target, compared with lme4 and with its definition, and its edge cases."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cpu_fallback.exact import Scaled
from gpu_encode.formulas.glmm import gaussian
from tests.mixed_models.models import (
    REFERENCES,
    STATSMODELS,
    column,
    fit_gaussian,
    plain,
    restricted_likelihood,
    sums_of,
    to_scaled,
)
from tests.strategies import examples

REAL = [name for name, table in REFERENCES.items() if "within" in table]
SIX = [[1.0, 2.0, 4.0], [2.0, 3.5], [6.0, 7.0, 7.5, 9.0], [5.0], [3.0, 3.0], [8.0, 1.0, 4.0]]


def same(left, right):
    return np.array_equal(left, right, equal_nan=True)


# lme4's search ends at that distance from the top.
PEERS = [
    *((name, REFERENCES[name]["fits"][0], 2e-6, 2e-5, 1e-6) for name in REAL),
    *((name, reference, 5e-9, 1e-8, 1e-9) for name, reference in STATSMODELS.items()),
]


@pytest.mark.parametrize(("name", "reference", "encodings", "between", "within"), PEERS)
def test_peers_on_real_data(name, reference, encodings, between, within):
    table = REFERENCES[name]
    fit = fit_gaussian(table["n"], table["mean"], table["within"])
    assert fit.intercept.item() == pytest.approx(reference["intercept"], rel=within)
    assert fit.values.ravel() == pytest.approx(np.array(reference["codes"]), rel=encodings)
    assert plain(fit.between).item() == pytest.approx(reference["between"], rel=between)
    assert plain(fit.within).item() == pytest.approx(reference["within"], rel=within)


@examples(60)
@given(st.lists(st.lists(st.integers(-20, 20), min_size=1, max_size=5), min_size=2, max_size=6))
def test_the_restricted_likelihood_is_highest(categories):
    n, mean, within = sums_of(categories)
    assume(sum(within) > 0 and sum(n) > len(n))
    fit = fit_gaussian(n, mean, within)
    ratio = (plain(fit.between) / plain(fit.within)).item()
    grid = np.linspace(-12, 12, 200)
    start = grid[np.argmin([restricted_likelihood(categories, power) for power in np.exp(grid)])]
    near = minimize_scalar(lambda power: restricted_likelihood(categories, np.exp(power)), (start - 0.1, start + 0.1))
    lowest = min(near.fun, restricted_likelihood(categories, 0.0))
    assert restricted_likelihood(categories, ratio) <= lowest + 1e-9 * (1 + abs(lowest))


def test_categories_of_one_size_have_a_closed_form():
    categories = [[1, 2, 6], [2, 3, 5], [9, 8, 11], [4, 4, 5], [0, 1, 1]]
    means = [Fraction(sum(rows), 3) for rows in categories]
    middle = sum(means) / 5
    between = 3 * sum((mean - middle) ** 2 for mean in means) / 4
    within = sum((y - mean) ** 2 for rows, mean in zip(categories, means, strict=True) for y in rows) / 10
    lam = 1 - within / between
    fit = fit_gaussian(*sums_of(categories))
    assert fit.lam.ravel().tolist() == pytest.approx([float(lam)] * 5, rel=1e-12)
    assert plain(fit.within).item() == pytest.approx(float(within), rel=1e-12)
    assert plain(fit.between).item() == pytest.approx(float((between - within) / 3), rel=1e-12)
    codes = [float(middle + lam * (mean - middle)) for mean in means]
    assert fit.values.ravel().tolist() == pytest.approx(codes, rel=1e-12)


def test_codes_are_drawn_towards_the_intercept_less_with_more_rows():
    n, mean = [1, 2, 5, 30, 1000, 10**9], [9.0, 0.0, 8.0, 1.0, 7.0, 2.0]
    fit = fit_gaussian(n, mean, np.multiply(n, 4.0))
    lam = fit.lam.ravel()
    assert (np.diff(lam) > 0).all()
    assert 0 < lam[0] < 0.8
    assert lam[-1] < 1
    noise, spread = plain(fit.within).item(), plain(fit.between).item()
    assert lam == pytest.approx([each * spread / (each * spread + noise) for each in n], rel=1e-13)
    b = fit.intercept.item()
    assert fit.values.ravel() == pytest.approx(b + lam * (np.array(mean) - b), rel=1e-13)


def test_categories_that_differ_no_more_than_rows_do():
    fit = fit_gaussian([4, 4, 6], [2.0, 2.1, 2.05], [9.0, 7.0, 8.0])
    assert plain(fit.between).item() == 0
    assert not fit.lam.any()
    assert same(fit.values.ravel(), np.repeat(fit.intercept, 3))
    assert fit.intercept.item() == pytest.approx((8 + 8.4 + 12.3) / 14, rel=1e-15)


def test_rows_that_do_not_differ_within_categories():
    mean = [0.1, 0.7, 1 / 3]
    fit = fit_gaussian([2, 1, 5], mean, [0, 0, 0])
    assert fit.values.ravel().tolist() == mean
    assert fit.intercept.item() == pytest.approx(sum(mean) / 3, rel=1e-15)
    assert plain(fit.within).item() == 0
    assert plain(fit.between).item() == pytest.approx(np.var(mean, ddof=1), rel=1e-14)


@pytest.mark.parametrize(
    ("n", "mean", "within"),
    [([7], [3.0], [2.0]), ([1, 1, 1], [1.0, 2.0, 6.0], [0, 0, 0]), ([0.25, 0.25], [2.0, 4.0], [0.5, 0.5])],
    ids=["one category", "a row each", "less than a row"],
)
def test_variances_that_cannot_be_told_apart(n, mean, within):
    fit = fit_gaussian(n, mean, within)
    assert plain(fit.between).item() == 0
    assert same(fit.values.ravel(), np.repeat(fit.intercept, len(n)))
    assert fit.intercept.item() == 3.0


@pytest.mark.parametrize("constant", [0.1, -1 / 3, 0.0, 1e-310, 1.7e308])
@pytest.mark.parametrize("n", [[1, 2, 7, 3], [1, 1, 1, 1], [0.3, 0.7, 1e9, 5]])
def test_a_constant_target_gives_itself(constant, n):
    fit = fit_gaussian(n, [constant] * 4, [0] * 4, [True, True, True, False])
    assert set(fit.values.ravel().tolist()) == {constant} == {fit.intercept.item()}


@pytest.mark.parametrize("power", [-1060, -500, -3, 1, 498, 1018])
def test_a_power_of_two_changes_no_digit(power):
    n, mean, within = sums_of(SIX)
    deviation = np.multiply(n, within)
    mean = np.round(np.multiply(mean, 2.0**6)) / 2.0**6
    one = fit_gaussian(n, mean, within)
    wide = Scaled(column(deviation), np.full((6, 1, 1), 2 * power))
    other = gaussian(column(n), column(np.ldexp(mean, power)), wide, np.ones((6, 1, 1), bool))
    assert same(other.lam, one.lam)
    assert one.lam.all()
    assert same(other.values, np.ldexp(one.values, power))
    assert same(other.between.fraction, one.between.fraction)
    assert (other.between.exponent - one.between.exponent).item() == 2 * power


def test_targets_of_both_ends_of_the_range():
    # The squares within categories are smaller than the last digit of the squares between them.
    fit = fit_gaussian([2, 2, 2], [-1.7e308, 1.7e308, 1e-300], [1e-300, 0, 0])
    assert fit.values.ravel().tolist() == [-1.7e308, 1.7e308, 1e-300]


def test_views_and_outputs_are_fitted_apart():
    rng = np.random.default_rng(1)
    n = rng.integers(0, 6, (40, 3, 1)).astype(float)
    mean = np.where(n > 0, rng.normal(size=(40, 3, 2)), np.nan)
    deviation = Scaled(rng.chisquare(3, (40, 3, 2)), rng.integers(-2, 3, (40, 3, 2)))
    counted = (n > 0) & (rng.random((40, 3, 1)) < 0.8)
    counted[:, 2] = False
    fit = gaussian(n, mean, deviation, counted)
    for view in range(3):
        for output in range(2):
            here = np.s_[:, view : view + 1, output : output + 1]
            alone = gaussian(
                n[:, view : view + 1],
                mean[here],
                Scaled(deviation.fraction[here], deviation.exponent[here]),
                counted[:, view : view + 1],
            )
            assert same(fit.values[here], alone.values)
            assert same(fit.lam[here], alone.lam)
    # Values in uncounted rows take no part, whatever they are.
    without = gaussian(n, np.where(counted, mean, np.nan), deviation, counted)
    assert same(fit.values, without.values)
    assert same(plain(fit.within), plain(without.within))
    assert same(plain(fit.between), plain(without.between))


def test_the_lesser_of_two_minima_is_taken():
    # Many small categories that agree and two large ones that do not: the likelihood has two tops.
    n = [1] * 60 + [400, 400]
    mean = [0.0] * 30 + [0.4] * 30 + [-0.6, 0.6]
    fit = fit_gaussian(n, mean, [0.0] * 60 + [400.0, 400.0])
    rows = sum(n)
    ratio = (plain(fit.between) / plain(fit.within)).item()

    def height(g):
        w = np.array(n) / (1 + g * np.array(n))
        b = w @ mean / w.sum()
        spread = 800 + w @ (np.array(mean) - b) ** 2
        return (rows - 1) * np.log(spread) + np.log1p(g * np.array(n)).sum() + np.log(w.sum())

    assert height(ratio) <= min(height(each) for each in [0.0, *np.exp(np.linspace(-14, 8, 4000))]) + 1e-9


def test_inputs_are_left_alone():
    n, mean, within = sums_of(SIX)
    arrays = [column(n), column(mean), column(within)]
    for each in arrays:
        each.flags.writeable = False
    deviation = Scaled(arrays[2], to_scaled(n).exponent)
    assert np.isfinite(gaussian(arrays[0], arrays[1], deviation, np.ones((6, 1, 1), bool)).values).all()
