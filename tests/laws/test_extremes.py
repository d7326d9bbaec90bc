"""Targets and weights of extreme size: encodings compared with the exact results of the formulas, by fractions."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial as partial_of

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_encode import (
    EmpiricalBayes,
    Greedy,
    JamesStein,
    KFold,
    LeaveOneOut,
    Ordered,
    PartialPooling,
    Sigmoid,
    StatisticEncoder,
    TargetEncoder,
)
from gpu_encode.seam import ops
from tests.bits import assert_same_bits
from tests.laws import encoding
from tests.strategies import examples

pytestmark = pytest.mark.host


class Sums:
    """Exact sums of weighted rows."""

    def __init__(self, rows):
        self.n = sum((w for _, w in rows), Fraction(0))
        self.mean = sum((w * y for y, w in rows), Fraction(0)) / self.n if self.n else None
        self.squares = sum((w * (y - self.mean) ** 2 for y, w in rows), Fraction(0)) if self.n else None
        self.cubes = sum((w * (y - self.mean) ** 3 for y, w in rows), Fraction(0)) if self.n else None
        self.fourths = sum((w * (y - self.mean) ** 4 for y, w in rows), Fraction(0)) if self.n else None

    def variance(self, less):
        return self.squares / (max(self.n - 1, self.n / 2) if less else self.n) if self.n else Fraction(0)


def spread(numbers, less):
    k = len(numbers)
    return (k * sum(x * x for x in numbers) - sum(numbers) ** 2) / Fraction(k * (k - less)) if k > less else Fraction(0)


def share(own, other):
    return own / (own + other) if own + other else Fraction(1)


def plain(own, everything, means):
    return Fraction(1)


def sigmoid(own, everything, means):
    z = (own.n - 3) / Fraction(1.5)
    if abs(z) > 2000:
        return Fraction(int(z > 0))
    with localcontext(prec=60):
        return 1 / (1 + Fraction((Decimal(-z.numerator) / Decimal(z.denominator)).exp()))


def total(own, everything, means):
    return share(own.n * everything.variance(0), own.variance(0)) if own.squares else Fraction(1)


def between(own, everything, means):
    return share(own.n * spread(means, 0), own.variance(0)) if own.squares else Fraction(1)


def pooled(own, everything, means):
    k, center = len(means), Fraction(float(everything.mean))
    distance = sum((mean - center) ** 2 for mean in means)
    if k <= 3 or not distance:
        return Fraction(int(k <= 3 or not everything.variance(1)))
    return 1 - min((k - 3) * everything.variance(1) * k / everything.n / distance, Fraction(1))


def independent(own, everything, means):
    k, noise = len(means), own.variance(1)
    return 1 - noise / (everything.variance(1) + noise) * Fraction(k - 3, k - 1) if k > 3 and noise else Fraction(1)


def partial(own, everything, means):
    signal = own.n * spread(means, 1)
    return share(signal, (own.n * own.variance(1) + everything.variance(0)) / (own.n + 1)) if signal else Fraction(0)


# The smoothing, the weight of the category's own mean, and the tolerance of encodings in ulp.
SMOOTHINGS = {
    "none": (None, plain, 0.5),
    "sigmoid": (Sigmoid(3.0, 1.5), sigmoid, None),
    "auto": (EmpiricalBayes(), total, 20),
    "between": (EmpiricalBayes("between"), between, 20),
    "james-stein": (JamesStein(), pooled, 20),
    "james-stein-independent": (JamesStein("independent"), independent, 20),
    "partial-pooling": (PartialPooling(), partial, 32),
}
# These smoothings take weights as numbers of rows.
OF_SAMPLES = ("james-stein", "james-stein-independent", "partial-pooling")
SCHEMES = {
    "greedy": (Greedy(), lambda row, size: range(size)),
    "folds": (KFold(3, order="interleaved"), lambda row, size: [i for i in range(size) if i % 3 != row % 3]),
    "leave-one-out": (LeaveOneOut(), lambda row, size: [i for i in range(size) if i != row]),
    "ordered": (Ordered(shuffle=False), lambda row, size: range(row)),
}

signs = st.sampled_from([1.0, 1.0, -1.0])
wide = st.tuples(signs, st.floats(-320, 308)).map(lambda pair: pair[0] * 10.0 ** pair[1])
TARGETS = [
    st.sampled_from([1e300, -1e300, 3e299, 1.0, 2.5, -1e16, 1e16]),
    st.sampled_from([1.7e308, -1.7e308, 1e308, 1e154, 1e-154, 5e-324, 0.0]),
    st.integers(-5, 20).map(lambda number: number * 5e-324),
    st.tuples(signs, st.integers(0, 5000)).map(lambda pair: int(pair[0]) * (2**63 - 1 - pair[1])),
    wide,
    st.floats(-3, 3),
]
WEIGHTS = [
    st.sampled_from([1e190, 2e190, 3e189, 0.0]),
    st.sampled_from([1e-270, 2e-270, 3e-271]),
    st.integers(1, 9).map(lambda number: number * 5e-324),
    st.floats(-280, 280).map(lambda power: 10.0**power),
    st.floats(0.01, 3),
]


@st.composite
def extreme_rows(draw):
    """Draw (key, target, weight) of rows, each with one kind of magnitude; weights may be None."""
    size, weighted = draw(st.integers(4, 14)), draw(st.sampled_from([None, *WEIGHTS]))
    target = draw(st.sampled_from(TARGETS))
    keys = draw(st.lists(st.sampled_from("abcde"), min_size=size, max_size=size))
    targets = draw(st.lists(target, min_size=size, max_size=size))
    weights = draw(st.lists(weighted, min_size=size, max_size=size).filter(any)) if weighted is not None else None
    return keys, targets, weights


def encode(make, rows, method):
    """Return the encodings of rows, equal from every backend."""
    keys, targets, weights = rows
    X, found = np.array([list(keys)]).T, []
    for backend in encoding.BACKENDS:
        with ops.use_backend(backend):
            found.append(np.asarray(getattr(make(), method)(X, np.array(targets), sample_weight=weights)))
        assert_same_bits(found[-1], found[0])
    return found[0]


def too_light(rows):
    """Whether fractional weights of different rows sum to one row or less."""
    weigh = [(y, w) for y, w in rows if w]
    fractions = any(w.denominator > 1 for _, w in weigh)
    return fractions and sum(w for _, w in weigh) <= 1 and len({y for y, _ in weigh}) > 1


def ulp(number):
    return Fraction(math.ulp(float(number)))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SMOOTHINGS)
@examples(12)
@given(rows=extreme_rows(), scheme=st.sampled_from(list(SCHEMES)), prior=st.sampled_from(["mean", 2.5, -1e308, 5e-324]))
@example(("abaab", [1.0, 2.0, 4.0, 7.0, 3.0], [1e190] * 5), "greedy", "mean")
@example(("abaab", [1.0, 2.0, 4.0, 7.0, 3.0], [1e-270] * 5), "folds", "mean")
@example(("abaab", [1.0, 2.0, 4.0, 7.0, 3.0], [5e-324] * 5), "ordered", "mean")
@example(("aabbccdd", [1.0, 2.0, 4.0, 7.0, 3.0, 9.0, 1.0, 1.5], [1e190, 2e190] * 4), "leave-one-out", 2.5)
@example(("aabb", [1.7e308, -1e308, -1.7e308, -1.5e308], None), "greedy", 1.7e308)
@example(("abaab", [5e-324, 1e-323, 1.5e-323, 3e-323, -5e-324], None), "leave-one-out", "mean")
@example(("abaab", [2**63 - 1, 5 - 2**63, 2**63 - 2, 2**62, 3 - 2**63], None), "greedy", "mean")
def test_encodings_are_near_the_real_numbers(name, rows, scheme, prior):
    (smooth, weigh, units), (cv, sees) = SMOOTHINGS[name], SCHEMES[scheme]
    keys, targets, weights = rows
    exact = list(zip(map(Fraction, targets), map(Fraction, weights or [1] * len(keys)), strict=True))
    make = partial_of(TargetEncoder, cv=cv, smooth=smooth, target_type="continuous", prior=prior)
    if name in OF_SAMPLES and too_light(exact):
        with pytest.raises(ValueError, match="takes weights as numbers of rows"):
            encode(make, rows, "fit_transform")
        return
    found = encode(make, rows, "fit_transform")
    for row, encoded in enumerate(found[:, 0].tolist()):
        seen = sees(row, len(keys))
        everything = Sums([exact[i] for i in seen])
        of_key = {key: Sums([exact[i] for i in seen if keys[i] == key]) for key in keys}
        counted = [own for own in of_key.values() if own.n]
        if not everything.n and prior == "mean":
            assert math.isnan(encoded)
            continue
        mu, own = everything.mean if prior == "mean" else Fraction(prior), of_key[keys[row]]
        mean = own.mean if own.n else mu
        lam = weigh(own, everything, [Fraction(float(each.mean)) for each in counted]) if own.n else Fraction(1)
        expected = lam * mean + (1 - lam) * mu
        apart = mean * mu <= 0 or "james-stein" in name
        near = max(abs(mean), abs(mu)) if apart and lam != 1 else abs(expected)
        k = 8 + 3 * min(abs(own.n - 3) / Fraction(1.5), 800) if units is None else Fraction(units)
        # A weight below 2**-1022 of the other's has few digits, or none.
        assert abs(Fraction(encoded) - expected) <= k * ulp(near) + abs(mean - mu) / 2**1022


def root(number):
    with localcontext(prec=80):
        return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).sqrt())


def statistics_of(own, ddof):
    """Return mean, variance, deviation, its error, skewness and kurtosis; None for a statistic that does not exist."""
    n, less = own.n, own.n - ddof
    if less <= 0:
        return [own.mean, None, None, None, None, None]
    variance = own.variance(ddof)
    skew = own.cubes / n / root(own.squares / n) ** 3 if own.squares else Fraction(0)
    if ddof:
        skew = skew * root(n * (n - 1)) / (n - 2) if n > 2 else None
    return [own.mean, variance, root(variance), root(variance / n), skew, kurtosis_of(own, ddof)]


def kurtosis_of(own, ddof):
    """Return the fourth standardized moment less 3; None with ddof=1 and up to three rows."""
    n = own.n
    if ddof and n <= 3:
        return None
    if not own.squares:
        return Fraction(0)
    excess = own.fourths / n / (own.squares / n) ** 2 - 3
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6) if ddof else excess


def cubed(numbers):
    return all(type(number) is float and (number == 0 or 1e-90 <= abs(number) <= 1e100) for number in numbers)


def to_the_fourth(numbers):
    return all(number == 0 or 1e-55 <= abs(number) <= 1e75 for number in numbers)


@pytest.mark.filterwarnings("ignore::UserWarning")
@examples(15)
@given(rows=extreme_rows().filter(lambda rows: cubed(rows[1])), ddof=st.sampled_from([0, 1]))
@example(("aaa", [1.0, 2.0, 4.0], [2 / 3, 2 / 3, 2 / 3 + 1e-7]), 1)
@example(("aaab", [1.0, 2.0, 4.0, 1.0], [1e190, 1e191, 2e190, 1.0]), 1)
@example(("aab", [1.0, 1.0 + 2.0**-52, 1.0], [1e-270, 3e-271, 1.0]), 0)
@example(("aaaaa", [1e75, 1.0, 1e-55, -3.0, 2.5], None), 1)
@example(("aaaab", [1.0, 1.0 + 2.0**-52, 1.0, 1.0, 2.0], [1.0, 1.0, 0.5, 2.0**-30, 1.0]), 1)
def test_statistics_are_near_the_real_numbers(rows, ddof):
    keys, targets, weights = rows
    names = ["mean", "var", "std", "sem", "skew", *["kurt"] * to_the_fourth(targets)]
    found = encode(lambda: Fitted(StatisticEncoder(names, ddof=ddof)), rows, "encode")
    exact = list(zip(map(Fraction, targets), map(Fraction, weights or [1] * len(keys)), strict=True))
    for row, numbers in enumerate(found.tolist()):
        own = Sums([pair for pair, key in zip(exact, keys, strict=True) if key == keys[row]])
        exact_ones = statistics_of(own, ddof)[: len(names)] if own.n else []
        for number, expected in zip(numbers, exact_ones, strict=bool(own.n)):
            if expected is None:
                assert math.isnan(number)
            else:
                assert abs(Fraction(number) - expected) <= 4 * ulp(expected)


class Fitted:
    """New rows equal to the training rows see all of them."""

    def __init__(self, encoder):
        self.encoder = encoder

    def encode(self, X, y, sample_weight):
        return self.encoder.fit(X, y, sample_weight=sample_weight).transform(X)


@pytest.mark.parametrize("weight", [1e291, 1.7e308])
def test_weights_whose_sum_may_overflow_are_refused(weight):
    with pytest.raises(ValueError, match=r"1 weights above 1e\+290, the first in row 2 \(.*one power of two"):
        TargetEncoder(target_type="continuous").fit([["a"]] * 4, [1.0] * 4, sample_weight=[1.0, 1e290, weight, 1.0])


def test_whole_weights_beyond_int64_are_weights():
    weight, X = np.array([2**63, 2**63 + 2**11, 2**63], np.uint64), [["a"], ["a"], ["b"]]
    encoder = TargetEncoder(target_type="continuous", smooth=None).fit(X, [1.0, 2.0, 5.0], sample_weight=weight)
    total = 2**64 + 2**11
    assert encoder.encodings_[0].tolist() == [float(Fraction(2**63 + 2 * (2**63 + 2**11), total)), 5.0]
