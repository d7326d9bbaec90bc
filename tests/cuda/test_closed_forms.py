"""Closed forms of encodings, compared with fractions: errors stay within bounds, and hardly any row is undecided.

The forms run on a CPU (emulator.h), on lines that are computed here from fractions.
"""

import math
from fractions import Fraction
from importlib import import_module
from itertools import product

import numpy as np
import pytest

from tests.cuda.emulated import RawModule

# The emulator runs on the CPU.
pytestmark = pytest.mark.host

pytest.importorskip("cupy")
raw = import_module("gpu_encode.cuda.raw")

PROBES = """
typedef long long Long;
// A pair rounded to one double, an odd one unless it is all.
__device__ double odd_sum(const double *pair) {
    unsigned long long bits = __double_as_longlong(pair[0]);
    if (pair[1] != 0)
        bits = (bits - ((pair[1] < 0) != (pair[0] < 0))) | 1;
    return __longlong_as_double(bits);
}
#define EACH_ROW for (Long i = threadIdx.x; i < n; i += blockDim.x)

extern "C" __global__ void estimates_32(const double *lines, const double *weights, const double *v, Long n,
                                        double *near, float *found, bool *sure) {
    EACH_ROW {
        Estimate<float> estimate{odd_sum(lines + 4 * i), lines[4 * i + 2]};
        Near<float> got = estimate.of(weights[2 * i], v[i]);
        near[3 * i] = got.value, near[3 * i + 1] = 0, near[3 * i + 2] = got.error;
        sure[i] = got.round(found[i]) || estimate.settle(weights[2 * i], v[i], found[i]);
    }
}

extern "C" __global__ void estimates_64(const double *lines, const double *weights, const double *v, Long n,
                                        double *near, double *found, bool *sure) {
    EACH_ROW {
        const double *line = lines + 4 * i;
        Estimate<double> estimate{{line[0], line[1]}, {line[2], line[3]}};
        Near<double> got = estimate.of(Pair{weights[2 * i], weights[2 * i + 1]}, v[i]);
        near[3 * i] = got.value.high, near[3 * i + 1] = got.value.low, near[3 * i + 2] = got.error;
        Pair weight{weights[2 * i], weights[2 * i + 1]};
        sure[i] = got.round(found[i]) || estimate.settle(weight, v[i], found[i]);
    }
}

__device__ Sums<float> narrow(const double *line) {
    return {odd_sum(line), line[2], line[4], line[7] * line[0], line[6], line[8]};
}
__device__ Sums<double> wide(const double *line) {
    return {{line[0], line[1]}, {line[2], line[3]}, {line[4], line[5]}, line[6], line[7]};
}

extern "C" __global__ void blends_32(const double *lines, const double *all, const double *priors, const double *v,
                                     Long n, double *near, float *found, bool *sure) {
    EACH_ROW {
        Prior prior{priors[i] != priors[i], priors[i]};
        Near<float> got = blend(narrow(lines + 9 * i), narrow(all + 9 * i), prior, v[i], sure[i]);
        near[3 * i] = got.value, near[3 * i + 1] = 0, near[3 * i + 2] = sure[i] ? got.error : INFINITY;
        sure[i] = (got.round(found[i]) & sure[i]) || narrow(lines + 9 * i).settle(v[i], found[i]);
    }
}

extern "C" __global__ void blends_64(const double *lines, const double *all, const double *priors, const double *v,
                                     Long n, double *near, double *found, bool *sure) {
    EACH_ROW {
        Prior prior{priors[i] != priors[i], priors[i]};
        sure[i] = round_blend(wide(lines + 9 * i), wide(all + 9 * i), prior, v[i], found[i]);
        Near<double> moments[4] = {wide(lines + 9 * i).mean(v[i]), wide(all + 9 * i).mean(v[i]),
                                   wide(lines + 9 * i).variance(v[i]), wide(all + 9 * i).variance(v[i])};
        for (int k = 0; k < 4; ++k) {
            double *to = near + 12 * i + 3 * k;
            to[0] = moments[k].value.high, to[1] = moments[k].value.low, to[2] = moments[k].error;
        }
    }
}
"""
PARTS = {32: 3, 64: 12}
# Lines have numbers between them.
NEAREST, FARTHEST = Fraction(2) ** -280, Fraction(2) ** 280


def run(name, *arrays):
    """Output of a probe for each row: values with the bounds of their errors, encodings, and which are certain."""
    n, width = len(arrays[-1]), 12 if name == "blends_64" else 3
    near, sure = np.zeros((n, width)), np.zeros(n, np.bool_)
    found = np.zeros(n, np.float32 if name.endswith("32") else np.float64)
    kernel = RawModule(raw.source_of("closed_forms.cuh") + PROBES).get_function(name)
    kernel((1,), (32,), (*(np.ascontiguousarray(each, np.float64) for each in arrays), n, near, found, sure))
    return near.reshape(n, -1, 3), found, sure


class Sums:
    """Return exact count, sum and sum of squares of rows, given as (number, how often it occurs)."""

    def __init__(self, rows):
        self.n = sum(times for _, times in rows)
        self.s = sum((times * Fraction(number) for number, times in rows), Fraction())
        self.q = sum((times * Fraction(number) ** 2 for number, times in rows), Fraction())

    @property
    def mean(self):
        return self.s / self.n

    @property
    def deviations(self):
        """N * Q - S**2."""
        return self.n * self.q - self.s**2

    def with_row(self, v):
        return Sums([(v, 1)]).plus(self)

    def plus(self, other):
        made = Sums([])
        made.n, made.s, made.q = self.n + other.n, self.s + other.s, self.q + other.q
        return made


def pair(number, exact=True):
    """Return a number as two doubles; the second is odd unless the pair is exact."""
    high = float(number)
    low = np.float64(number - Fraction(high))
    odd = not exact or Fraction(low) != number - Fraction(high)
    return high, float((low.view(np.int64) | np.int64(odd)).view(np.float64))


def in_range(number):
    return number == 0 or NEAREST < abs(number) < FARTHEST


def estimate_line(own, everything, m, prior):
    """Return line and weight of an estimate, from sums that include the row itself; None if there is no estimate."""
    m, weight = Fraction(m), Fraction(1)
    top, bottom, size = own.s, own.n - 1 + m, abs(own.s)
    if prior is not None:
        top, size = top + m * Fraction(prior), size + m * abs(Fraction(prior))
    elif m:
        top, size = own.s * (everything.n - 1) + m * everything.s, abs(own.s) * everything.n + m * abs(everything.s)
        bottom, weight = bottom * (everything.n - 1), everything.n - 1 + m
    if not in_range(top) or abs(top) * 2**16 < size:
        return None
    return (*pair(top, m == 0), *pair(1 / bottom)), pair(weight)


def sums_line(sums, n_all):
    spread = (sums.n - 1) * sums.q - sums.s**2
    if not (in_range(sums.s) and in_range(spread)):
        return None
    weight = (n_all - 1) / (sums.n - 1) * ((n_all - 1) / (sums.n - 1)) / (sums.n - 1)
    if sums.n == 2 or sums.deviations == 0:
        return (*pair(sums.s), *pair(Fraction(1, sums.n - 1)), *(float(sums.n == n_all), 0), 0, 0, weight)
    return (*pair(sums.s), *pair(Fraction(1, sums.n - 1)), *pair(spread), sums.n, 2.0, weight)


def blended(own, everything, prior):
    """Encode by the steps of the definition, in float64, from the rows that a row sees."""
    mean = float(own.mean)
    mu = float(everything.mean) if prior is None else prior
    fraction, power = scaled(own.deviations)
    all_fraction, all_power = scaled(everything.deviations)
    noise = fraction / own.n / own.n
    if noise == 0:
        return mean
    total = all_fraction / everything.n / everything.n
    other = math.ldexp(noise / (total * own.n), power - all_power)
    if other <= 1:
        return mean + other / (1 + other) * (mu - mean)
    return mu + 1 / (1 + other) * (mean - mu)


def scaled(number):
    """Round a number to a fraction near one and a power of two."""
    power = number.numerator.bit_length() - number.denominator.bit_length()
    return float(number / Fraction(2) ** power), power


def exact(line):
    return Fraction(line[0]) + Fraction(line[1])


def assert_within(near, true):
    """Demand that a number lies within its bound, if it has one."""
    value, low, error = near
    if math.isfinite(value) and math.isfinite(low) and math.isfinite(error):
        assert abs(Fraction(value) + Fraction(low) - true) <= Fraction(error)


NUMBERS = {
    "plain": [0.1, -2.5, 3.0, 7.25, -1e-3],
    "far from zero": [1e6 + 1 / 3, 1e6 - 1 / 7, 1e6],
    "farther": [1e9 + 0.1, 1e9, 1e9 - 0.3],
    "small beside large": [1e-30, 1e15, -1e15, 3e-20],
    "halves of floats": [1 + 2**-24, 1 + 3 * 2**-24, 1.0, 1 - 2**-25],
    "halves of doubles": [2.0**53 + 2, 2.0**53, 1.0, -1.0],
    "neighbours": [1.0, 1 + 2**-52, 1 + 3 * 2**-52, 1 - 2**-53],
    "opposite": [2.5, -2.5, 2.5],
    "zeros": [0.0, -0.0, 0.0, 5e-324],
    "alike": [0.3, 0.3, 0.3],
    "large": [1e80, -3e79, 2e80],
    "huge": [1e300, -1e300, 1e299],
    "tiny": [1e-80, 3e-80, -2e-81],
    "smallest": [5e-324, 1e-310, 3e-308],
    "whole": [1.0, 2.0, 3.0, 4.0, 5.0],
}
COUNTS = {"pairs": [1], "few": [1, 2, 1, 3], "many": [1000, 10**6, 3], "most": [2**40, 2**51]}


def drawn(seed):
    """Return rows with the sums that they see of their category and of all others: adversarial and random ones."""
    random = np.random.default_rng(seed)
    for numbers, counts in product(NUMBERS.values(), COUNTS.values()):
        for v in numbers:
            own = [(float(random.choice(numbers)), int(times)) for times in counts]
            rest = [(float(random.choice(numbers)), int(times)) for times in counts]
            yield v, Sums(own), Sums(own).plus(Sums(rest))
            yield v, Sums([(v, int(counts[0]))]), Sums([(v, int(counts[0]))]).plus(Sums(rest))
    for _ in range(200):
        numbers = random.standard_normal(12) * 10.0 ** random.integers(-3, 4) + random.choice([0.0, 1e3, 1e7])
        own, rest = Sums([(float(x), 1) for x in numbers[:5]]), Sums([(float(x), 1) for x in numbers[5:]])
        yield float(random.choice(numbers)), own, own.plus(rest)


def check_rounded(found, expected, bits):
    """Demand the bits of an encoding, rounded to the type of the output."""
    expected = np.float32(expected) if bits == 32 else np.float64(expected)
    assert found.tobytes() == expected.tobytes(), (found, expected)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("m", [0.0, 1e-3, 0.7, 10.0, 2.0, 1e9])
@pytest.mark.parametrize("prior", [None, 0.3, -1e7])
def test_estimates(bits, m, prior):
    rows = []
    for v, own, everything in drawn(int(m) + 1):
        line = estimate_line(own.with_row(v), everything.with_row(v), m, prior)
        if line is not None:
            mu = everything.mean if prior is None else Fraction(prior)
            rows.append((*line, v, (own.s + Fraction(m) * mu) / (own.n + Fraction(m))))
    lines, weights, v, true = zip(*rows, strict=True)
    near, found, sure = run(f"estimates_{bits}", lines, weights, v)
    for i, number in enumerate(true):
        assert_within(near[i, 0].tolist(), number)
        if sure[i]:
            check_rounded(found[i], float(number), bits)
    assert sure.mean() > 0.7


@pytest.mark.parametrize("prior", [None, 0.3, -1e7])
@pytest.mark.parametrize("bits", [32, 64])
def test_blends(bits, prior):
    rows = []
    for v, own, everything in drawn(5):
        both, n = (own.with_row(v), everything.with_row(v)), everything.n + 1
        lines = [sums_line(sums, n) for sums in both]
        if None not in lines:
            rows.append((*lines, math.nan if prior is None else prior, v, own, everything))
    lines, above, priors, v, own, everything = zip(*rows, strict=True)
    near, found, sure = run(f"blends_{bits}", lines, above, priors, v)
    for i in range(len(v)):
        expected = blended(own[i], everything[i], prior)
        if sure[i]:
            check_rounded(found[i], expected, bits)
            if bits == 32:
                assert_within(near[i, 0].tolist(), Fraction(expected))
        if bits == 64:
            assert_within(near[i, 0].tolist(), own[i].mean)
            assert_within(near[i, 1].tolist(), everything[i].mean)
            if lines[i][6]:
                assert_within(near[i, 2].tolist(), own[i].deviations)
            if above[i][6]:
                assert_within(near[i, 3].tolist(), everything[i].deviations)
    assert sure.mean() > 0.3


@pytest.mark.parametrize("bits", [32, 64])
def test_next_to_no_row_of_plain_data_stays_open(bits):
    random = np.random.default_rng(1)
    v = (random.random(200_000) - 0.5) / (random.random(200_000) + 0.25)
    codes = random.integers(0, 50, len(v))
    groups = [Sums([(x, 1) for x in v[codes == code].tolist()]) for code in range(50)]
    everything = Sums([])
    for group in groups:
        everything = everything.plus(group)
    estimates = [estimate_line(group, everything, 10.0, None) for group in groups]
    lines, weights = (np.array(part)[codes] for part in zip(*estimates, strict=True))
    assert run(f"estimates_{bits}", lines, weights, v)[2].all()
    lines = np.array([sums_line(group, everything.n) for group in groups])[codes]
    above = np.tile(sums_line(everything, everything.n), (len(v), 1))
    assert run(f"blends_{bits}", lines, above, np.full(len(v), math.nan), v)[2].all()
