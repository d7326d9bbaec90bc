"""The parts of both mixed models: searches, sums in a defined order, and the Gauss-Hermite rule."""

from math import sqrt

import numpy as np
import pytest

from gpu_encode.formulas.glmm.quadrature import gauss_hermite
from gpu_encode.formulas.glmm.search import lowest, total, zero_between
from tests.mixed_models.models import fit_binomial, fit_gaussian


def test_a_sum_goes_from_the_first_to_the_last():
    values = np.random.default_rng(0).normal(size=1001)
    expected = 0.0
    for value in values.tolist():
        expected += value
    assert total(values) == expected
    assert total(values[:0]) == 0.0


def test_the_lowest_of_several_places():
    # (x - 1)**2 * (x - 300)**2 has two zeros; a tilt makes the second one lower.
    def height(x):
        return (x - 1) ** 2 * (x - 300) ** 2 - 1e4 * x

    def slope(x):
        return 2 * (x - 1) * (x - 300) * (2 * x - 301) - 1e4

    argument = lowest(slope, height, 2.0**-10, 1024.0)
    assert abs(slope(argument)) < 1e-2
    assert argument == pytest.approx(300.056, abs=1e-3)


@pytest.mark.parametrize(
    ("slope", "expected"),
    [(lambda x: 1.0, 0.0), (lambda x: 0.0 * x, 0.0), (lambda x: -1.0, 8.0), (lambda x: x - 0.001, 0.001)],
)
def test_the_ends_are_places_too(slope, expected):
    assert lowest(slope, lambda x: 0.0, 0.01, 8.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "curve", [lambda x: x**9 - 1e-9, lambda x: 1 - 1 / x, lambda x: x - 0.25, lambda x: -1.0 if x < 3 else 1.0]
)
def test_a_zero_is_found_where_the_curve_is_bent(curve):
    place = zero_between(curve, (0.01, 100.0), (curve(0.01), curve(100.0)))
    assert curve(place * (1 - 1e-9)) <= 0 <= curve(place * (1 + 1e-9))


@pytest.mark.parametrize("points", [1, 2, 3, 8, 25])
def test_the_rule_is_exact_for_polynomials(points):
    x, weights = np.array(gauss_hermite(points)).T
    theirs, others = np.polynomial.hermite.hermgauss(points)
    assert x == pytest.approx(theirs, abs=1e-13)
    assert weights == pytest.approx(others / sqrt(np.pi), rel=1e-11)
    assert (x == -x[::-1]).all()
    moment = 1.0
    for degree in range(0, 2 * points, 2):
        assert (weights * x**degree).sum() == pytest.approx(moment, rel=1e-11)
        moment *= (degree + 1) / 2


MODELS = {
    "gaussian": lambda n, share, counted: fit_gaussian(n, share, np.multiply(share, 1 - share) + 0.5, counted),
    "binomial": lambda n, share, counted: fit_binomial(n, np.round(n * share), counted),
    "binomial, three points": lambda n, share, counted: fit_binomial(n, np.round(n * share), counted, 3),
}


@pytest.mark.parametrize("fit", MODELS.values(), ids=MODELS)
def test_the_order_of_categories_does_not_matter(fit):
    rng = np.random.default_rng(0)
    n, share = rng.integers(1, 9, 300), rng.beta(1, 2, 300)
    n[100:110], share[100:110] = n[0], share[0]
    order = rng.permutation(300)
    one, other = fit(n, share, None), fit(n[order], share[order], None)
    assert np.array_equal(one.values[order], other.values)
    assert one.intercept == other.intercept
    assert len(set(one.values.ravel())) > 20


@pytest.mark.parametrize("fit", MODELS.values(), ids=MODELS)
def test_nothing_counts(fit):
    nothing = fit(np.array([3, 4]), np.array([0.2, 0.5]), [False, False])
    assert np.isnan(nothing.intercept).all()
    assert np.isnan(nothing.values).all()
