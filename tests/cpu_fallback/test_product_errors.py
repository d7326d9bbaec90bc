"""The rounding error of a product, by one instruction or by halves, is exact: compared with fractions."""

from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from cpu_fallback.compiled import product_errors
from cpu_fallback.compiled.product_errors import FUSES, halve, multiply_add


def numbers():
    random = np.random.default_rng(5)
    drawn = np.ldexp(random.normal(size=400), random.integers(-200, 200, 400))
    return [0.0, 1.0, -3.0, 2.0**53 - 1, 1 / 3, 0.1, 2.0**-300, *drawn]


def test_the_rest_is_exact():
    left = numbers()
    for a, b in zip(left, left[::-1], strict=True):
        product = a * b
        assert Fraction(product_errors.product_error(product, a, b)) == Fraction(a) * Fraction(b) - Fraction(product)


def fuse(left, right, added):
    return multiply_add(left, right, added)


@pytest.mark.skipif(not FUSES, reason="kernels are compiled for a processor without this instruction")
def test_the_instruction_rounds_once():
    fused = njit(fuse)
    for a, b in zip(numbers(), numbers()[::-1], strict=True):
        for added in (-a * b, 0.1, -b):
            assert fused(a, b, added) == float(Fraction(a) * Fraction(b) + Fraction(added))


def test_halves_have_half_the_bits():
    for value in numbers():
        top = halve(value)
        assert Fraction(top * top) == Fraction(top) ** 2
        assert abs(Fraction(value) - Fraction(top)) <= abs(Fraction(value)) / 2**26


def test_processors_that_users_name_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(product_errors.config, "CPU_NAME", "generic")
    assert not product_errors.fuses()
