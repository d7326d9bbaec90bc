"""Targets of several terms: selections of rows select every term, and ties longer than a tile stay ties."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cpu_fallback
import cpu_fallback.compiled
from cpu_fallback.types import Rows
from gpu_encode import GradientEncoder, Ordered, StatisticEncoder
from gpu_encode.seam.ops import Ops, use_backend
from gpu_encode.sums.targets import Termwise
from tests import naive
from tests.family.members import AMOUNT, GRADIENTS, WEIGHTS, N
from tests.family.test_statistic_terms import skewness

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:.*see no rows")]
RNG = np.random.default_rng(5)
# Times stand in no order, and all but the first two are those of more rows than three tiles have.
X = pd.DataFrame(
    {"city": RNG.choice(list("abc"), N), "time": RNG.permutation(np.repeat([1, 2, 3, 4, 5], [3, 4, 20, 40, 23]))}
)
TILE = 6


@pytest.fixture(params=["numpy", "compiled"])
def _small_tiles(request, monkeypatch):
    for backend in (cpu_fallback, cpu_fallback.compiled):
        monkeypatch.setattr(backend, "TILE", TILE)
    with use_backend(request.param):
        yield


def seen_by(row, weights):
    """Rows of earlier times: those of the row's city, or all of them where there are none."""
    earlier = [other for other in range(N) if X["time"][other] < X["time"][row] and weights[other] > 0]
    own = [other for other in earlier if X["city"][other] == X["city"][row]]
    return own or earlier


@pytest.mark.usefixtures("_small_tiles")
@pytest.mark.parametrize("weights", [np.ones(N, int), WEIGHTS], ids=["unweighted", "weighted"])
def test_ratios_of_ties_longer_than_a_tile(weights):
    encoder = GradientEncoder(regularization=0.5, cv=Ordered(time="time"), columns=["city"])
    encodings = encoder.fit_transform(X, GRADIENTS, sample_weight=weights)["city"]
    for row in range(N):
        seen = seen_by(row, weights)
        exact = [sum(int(weights[each]) * Fraction(float(column[each])) for each in seen) for column in GRADIENTS.T]
        gradient, hessian = map(naive.nearest, exact)
        expected = gradient / (hessian + 0.5) if seen else math.nan
        assert encodings[row] == expected or (math.isnan(expected) and math.isnan(encodings[row]))


@pytest.mark.usefixtures("_small_tiles")
def test_skewness_of_ties_longer_than_a_tile():
    encoder = StatisticEncoder(["skew"], cv=Ordered(time="time"), columns=["city"])
    encodings = encoder.fit_transform(X, AMOUNT)["city_skew"]
    for row in range(N):
        expected = skewness(AMOUNT[seen_by(row, np.ones(N))].tolist(), 1)
        assert encodings[row] == pytest.approx(expected, rel=4e-15, nan_ok=True)


@pytest.mark.parametrize("backend", [cpu_fallback, cpu_fallback.compiled])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
@pytest.mark.parametrize("powers", [(0, 1), (0, 1, 2)])
def test_terms_of_zeros_touch_no_places(backend, order, powers):
    terms = np.array([[0.0, 2.0**700, 0.0, 2.0**650], [0.0, 3 * 2.0**640, 0.0, 0.0]])[:, order]
    weight, first = np.array([0.5, 3.0]), terms[:, 0].copy()
    kept = [term.copy() for term in terms.T if term.any()]
    lows, highs = zip(*(backend.extents(term, weight, (1,))[0] for term in kept), strict=True)
    # Only the first term has squares.
    weights, squares = backend.extents(first, weight, (0,)), backend.extents(first, weight, powers[2:])
    expected = [*weights, (min(lows), max(highs)), *squares]
    assert Termwise(backend).extents(np.asfortranarray(terms), weight, powers) == expected


TAKE_ROWS = {
    name: list(inspect.signature(function).parameters)[1:]
    for name, function in vars(Ops).items()
    if inspect.isfunction(function) and {"target", "rows"} & set(inspect.signature(function).parameters)
}


def test_all_that_takes_rows_of_terms_is_given_them_one_by_one():
    """`Termwise` overrides every operation on rows: it passes others on, and nobody would notice a missing override."""
    annotated = {
        name
        for name, function in vars(Ops).items()
        if inspect.isfunction(function) and Rows in inspect.get_annotations(function, eval_str=True).values()
    }
    assert annotated | {"extents"} == set(TAKE_ROWS)
    for name, parameters in TAKE_ROWS.items():
        assert name in vars(Termwise), f"{name} takes rows, and would be given those of terms as they are"
        inspect.signature(vars(Termwise)[name]).bind("self", *parameters)
