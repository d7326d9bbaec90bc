"""The stand-in refuses what CuPy refuses, and exact numbers have NumPy's bits under CuPy's rules."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from cpu_fallback.digits import mantissas
from cpu_fallback.exact import Limbs
from tests.bits import assert_same_bits
from tests.cuda.strict import Library

# It needs no simulator.
pytestmark = pytest.mark.host

cupy = Library()


def test_exact_numbers_below_the_smallest_normal_one_and_beyond_one_word():
    values = np.array([[5e-324, 3e-310, 1e-160], [1 / 3, 2.0**60 + 2**9, 1e300], [-0.1, 0.0, 7.0]])
    whole = np.array([[-(2**63), 2**62, 3]])

    def numbers(floats, integers):
        exact, large = Limbs.of_floats(floats), Limbs.of_integers(integers)
        results = [exact, exact * exact, exact * large - exact, large * large, large + large]
        arrays = [number.to_floats() for number in results] + [number.canonical().digits for number in results]
        return [*arrays, *(number.to_scaled().exponent for number in results), *mantissas(integers.ravel())]

    on_device = numbers(cupy.asarray(values), cupy.asarray(whole))
    for array, expected in zip(on_device, numbers(values, whole), strict=True):
        assert_same_bits(array.get(), expected)


# What the stand-in is for: each of these runs on NumPy's arrays.
WRONG = {
    "host array in arithmetic": lambda a, mask: a + np.ones(3),
    "host array on the left": lambda a, mask: np.ones(3) * a,
    "host array among several": lambda a, mask: np.concatenate([a, np.ones(3)]),
    "host array in an index": lambda a, mask: a[np.array([0, 1])],
    "host mask": lambda a, mask: a[np.array([True, False, True])],
    "host array assigned": lambda a, mask: a.__setitem__(slice(None), np.ones(3)),
    "implicit transfer": lambda a, mask: np.asarray(a),
    "ufunc.at": lambda a, mask: np.add.at(a, mask, 1),
    "accumulate": lambda a, mask: np.maximum.accumulate(a),
    "a function that CuPy lacks": lambda a, mask: np.insert(a, 0, 1.0),
    "an option that CuPy lacks": lambda a, mask: np.min(a, initial=0.0),
    "where in a ufunc": lambda a, mask: np.add(a, a, where=mask),
    "a number as an index": lambda a, mask: range(a.astype(np.int64)[0]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_stand_in_refuses_what_cupy_refuses(wrong):
    array = cupy.asarray(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError):
        WRONG[wrong](array, array > 1)


def test_the_stand_in_refuses_what_cupy_does_otherwise():
    array = cupy.asarray(np.array([1.0, 2.0, 3.0]))
    twice = cupy.asarray(np.array([1, 1]))
    for wrong in (
        lambda: array.put(twice, array[:2]),
        lambda: array.__setitem__(twice, 0.0),
        lambda: np.zeros_like(array, shape=()),
    ):
        with pytest.raises(AssertionError):
            wrong()
