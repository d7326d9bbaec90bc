"""The binary digits that targets need, read as vectors: the same as by the definition, number by number."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from tests.backends import memory

pytestmark = pytest.mark.cuda

POWERS = (1, 2)
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 129, 3071, 3072, 3073, 6145, 20_001)
SPECIAL = {
    "float32": [0.0, -0.0, 1.5, -3.0, 2.0**-126, 2.0**-149, -(2.0**-140), 2.0**127, 1 + 2.0**-23, 3.4028235e38],
    "float64": [0.0, -0.0, 1.5, -3.0, 2.0**-1022, 5e-324, -1e-320, 2.0**1023, 1 + 2.0**-52, 1 + 2.0**-20, 2.0**53 - 1],
    "int64": [0, 1, -1, 6, -(2**63), 2**63 - 1, 2**40, -(2**40), 3 * 2**31, 2**32],
}


@pytest.fixture(scope="module")
def extents():
    return import_module("gpu_encode.cuda.extents").extents


def check(extents, numbers, offset=0):
    """Compare with the definition, which takes only float64 and int64."""
    there = memory.to_device(np.concatenate([numbers[:1].repeat(offset), numbers]))[offset:]
    wide = numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers
    assert extents(there, None, POWERS) == cpu_fallback.extents(wide, None, POWERS)


@pytest.mark.parametrize("dtype", SPECIAL)
def test_numbers_one_by_one_and_in_pairs(extents, dtype):
    numbers = np.array(SPECIAL[dtype], dtype)
    for first in numbers:
        for second in numbers:
            check(extents, np.array([first, second]))


@pytest.mark.parametrize("dtype", SPECIAL)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_any_number_of_rows_that_begin_anywhere(extents, dtype, offset):
    random = np.random.default_rng(offset)
    for size in SIZES:
        numbers = random.integers(-(2**40), 2**40, size).astype(np.int64) << random.integers(0, 20, size)
        check(extents, numbers if dtype == "int64" else (numbers / 2.0**50).astype(dtype), offset)


@pytest.mark.parametrize("dtype", SPECIAL)
@pytest.mark.parametrize("at", [0, 1, 2, 5, 500, -4, -1])
def test_one_number_anywhere_is_seen(extents, dtype, at):
    for special in (*SPECIAL[dtype][2:], 1):
        numbers = np.full(1003, 4, dtype)
        numbers[at] = special
        check(extents, numbers, 1)


@pytest.mark.parametrize("dtype", SPECIAL)
def test_zeros_touch_nothing(extents, dtype):
    check(extents, np.zeros(77, dtype))
