"""The order of numbers by their digits, compared with NumPy's stable order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cpu_fallback.compiled import sorting
from tests.strategies import examples

WORDS = st.sampled_from([0, 1, 2, 3, 1 << 31, (1 << 32) - 1, 1 << 44, 1 << 63, (1 << 64) - 2, (1 << 64) - 1])


@pytest.fixture(autouse=True, scope="module")
def few_words():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "FEW_WORDS", 2)
        yield


def check(numbers):
    order = sorting.order_of_numbers(numbers)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, np.argsort(numbers, kind="stable"))


@examples(300)
@given(words=st.lists(WORDS | st.integers(0, 2**64 - 1), max_size=40), repeated=st.integers(1, 40))
def test_words(words, repeated):
    check(np.array(words * repeated, np.uint64))


@examples(200)
@given(numbers=arrays.arrays(np.float64, st.integers(0, 60), elements=st.floats(allow_nan=False)))
def test_reals(numbers):
    check(numbers + 0.0)


@examples(200)
@given(numbers=arrays.arrays(np.int64, st.integers(0, 60)))
def test_integers(numbers):
    check(numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        np.zeros(0, np.int64),
        np.array([7.0]),
        np.full(5000, -3),
        # The same within each share, but not in all of them.
        np.repeat([5, 4, 9], 1000),
        np.random.default_rng(0).integers(-5, 5, 5000),
        np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5000),
        np.random.default_rng(2).normal(size=5000),
        np.random.default_rng(3).integers(0, 2**64 - 1, 5000, np.uint64, endpoint=True) & np.uint64(0xF0F0F0F0F0F0F0F0),
        np.random.default_rng(4).permutation(5000) << 40 | 1 << 62,
    ],
    ids=["none", "one", "equal", "shares", "few", "wide", "reals", "runs of bits", "high bits"],
)
def test_on_threads(n_threads, numbers):
    check(numbers)


@pytest.mark.parametrize("bits", [0, 1, 1 << 63, (1 << 64) - 1, 0x8000000100000001, 0x0F0F0F0F0F0F0F0F])
@pytest.mark.parametrize("room", [1, 7, 33, 64])
def test_every_differing_bit_is_sorted_by_once(bits, room):
    groups = sorting.groups_of(bits, room)
    sorted_bits = [bit for group in groups for run in group for bit in range(*run)]
    assert sorted_bits == [bit for bit in range(64) if bits >> bit & 1]
    assert all(sum(end - begin for begin, end in group) <= room for group in groups)
    assert all(left[1] < right[0] for group in groups for left, right in pairwise(group))


@examples(200)
@given(codes=st.lists(st.integers(0, 9), max_size=60), rising=st.booleans())
def test_codes(codes, rising):
    given_codes = np.array(sorted(codes) if rising else codes, np.int32)
    rows, in_order = sorting.sort_codes(given_codes, 10)
    assert rows.dtype == in_order.dtype == np.int64
    np.testing.assert_array_equal(rows, np.argsort(given_codes, kind="stable"))
    np.testing.assert_array_equal(in_order, np.sort(given_codes))
