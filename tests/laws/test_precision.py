"""Encodings are as near to the exact results of the formulas as the docstrings of the smoothings say."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import EmpiricalBayes, JamesStein, MEstimate, PartialPooling, Sigmoid
from tests import strategies
from tests.laws import encoding
from tests.strategies import examples

pytestmark = pytest.mark.host

sizes = st.floats(-5, 15).map(lambda power: 10.0**power)


def variance(numbers, less=0):
    n = len(numbers)
    return (n * sum(x * x for x in numbers) - sum(numbers) ** 2) / n / (n - less) if n > less else Fraction(0)


def share(own, other):
    return own / (own + other) if own + other else Fraction(1)


def m_estimate(own, everything, means):
    return share(Fraction(len(own)), Fraction(0.3))


def sigmoid(own, everything, means):
    with localcontext() as context:
        context.prec = 60
        z = (Fraction(len(own)) - 3) / Fraction(1.5)
        return 1 / (1 + Fraction((Decimal(-z.numerator) / Decimal(z.denominator)).exp()))


def bayes(own, everything, means):
    return share(len(own) * variance(everything), variance(own))


def between(own, everything, means):
    return share(len(own) * variance(means), variance(own))


def pooled(own, everything, means):
    # The library measures distances from the mean as it is rounded.
    distance = sum((mean - Fraction(float(sum(everything) / len(everything)))) ** 2 for mean in means)
    k = len(means)
    if k <= 3 or not distance:
        return Fraction(1 if k <= 3 or not variance(everything) else 0)
    return 1 - min((k - 3) * variance(everything, 1) * k / len(everything) / distance, 1)


def partial(own, everything, means):
    if not variance(means, 1):
        return Fraction(0)
    n = len(own)
    return share(n * variance(means, 1), (n * variance(own, 1) + variance(everything)) / (n + 1))


CASES = {
    "m-estimate": (MEstimate(0.3), m_estimate, Fraction(1, 2)),
    "sigmoid": (Sigmoid(3.0, 1.5), sigmoid, 8 + 3 * 8),
    "auto": (EmpiricalBayes(), bayes, 20),
    "between": (EmpiricalBayes("between"), between, 20),
    "james-stein": (JamesStein(), pooled, 20),
    "partial-pooling": (PartialPooling(), partial, 32),
}


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("name", CASES)
@examples(60)
@given(
    keys=st.lists(st.integers(0, 5), min_size=4, max_size=14),
    values=st.lists(sizes, min_size=14, max_size=14),
    sign=st.sampled_from([1.0, -1.0]),
)
def test_encodings_lie_within_their_bound(name, backend, keys, values, sign):
    smooth, weigh, k = CASES[name]
    values = [sign * value for value in values[: len(keys)]]
    drawn = strategies.Drawn(np.array([f"k{key}" for key in keys], object), np.array(values), None, "continuous")
    present = sorted(set(keys))
    found = encoding.new_row_encodings(drawn, [f"k{key}" for key in present], 5, smooth, backend)[:, 0]
    rows = [[Fraction(value) for value, own in zip(values, keys, strict=True) if own == key] for key in present]
    everything = [row for own in rows for row in own]
    means = [sum(own) / len(own) for own in rows]
    rounded = [Fraction(float(mean)) for mean in means]
    prior = sum(everything) / len(everything)
    for own, mean, encoded in zip(rows, means, found.tolist(), strict=True):
        lam = weigh(own, everything, rounded)
        exact = lam * mean + (1 - lam) * prior
        near = max(abs(mean), abs(prior)) if name == "james-stein" else abs(exact)
        assert abs(Fraction(encoded) - exact) <= k * Fraction(float(np.spacing(float(near))))


@pytest.mark.parametrize("backend", encoding.BACKENDS)
def test_a_large_prior_takes_little_from_a_small_mean(backend):
    drawn = strategies.Drawn(
        np.array(["a"] + ["b"] * 1000, object), np.array([1e17] + [0.1] * 1000), None, "continuous"
    )
    m = 1e-14
    found = encoding.new_row_encodings(drawn, ["b"], 5, m, backend)[0, 0]
    total = 1000 * Fraction(0.1)
    assert found == float((total + Fraction(m) * (total + Fraction(1e17)) / 1001) / (1000 + Fraction(m)))
