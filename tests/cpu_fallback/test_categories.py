"""factorize, lookup and combine, compared with dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cpu_fallback.definitions import column, read_only
from tests.strategies import examples

DTYPES = (np.int64, np.uint64, np.float64, np.int8, np.uint8, np.int32, np.float32)


@st.composite
def values(draw, dtypes=DTYPES):
    """Draw numbers of any type, from a few values or from the whole range."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "f":
        entries = st.sampled_from(
            [0.0, -0.0, 1.0, -1.5, float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)]
        ) | st.floats(-100, 100, width=8 * dtype.itemsize)
    else:
        limits = np.iinfo(dtype)
        entries = st.integers(0, 5) | st.sampled_from([limits.min, limits.max]) | st.integers(limits.min, limits.max)
    return read_only(draw(column(draw(st.integers(0, 20)), entries, dtype)))


def check_codes(codes, distinct, given):
    assert codes.dtype == np.int32
    assert distinct.dtype == given.dtype
    assert distinct.tolist() == sorted(set(given.tolist()))
    assert [distinct[code] for code in codes.tolist()] == given.tolist()


@examples(150)
@given(given_=values())
def test_factorize_numbers_distinct_values_in_sorted_order(ops, given_):
    check_codes(*ops.factorize(given_), given_)


@pytest.mark.parametrize("spread", [1, 10**12])
@pytest.mark.parametrize("distinct", [3, 2500])
def test_factorize_of_many(ops, spread, distinct):
    given_ = np.random.default_rng(1).integers(-distinct, distinct, 3000) * spread
    check_codes(*ops.factorize(given_), given_)
    check_codes(*ops.factorize(given_ / 7), given_ / 7)


@pytest.mark.host
@pytest.mark.parametrize("n_rows", [0, 1, 9000])
@pytest.mark.parametrize("distinct", [1, 3, 2500])
def test_numbers_counted_as_they_are_first_seen(ops, distinct, n_rows):
    given_ = np.random.default_rng(1).integers(-distinct, distinct, n_rows)[::3] * 10**12
    rows = {}
    for row, value in enumerate(given_.tolist()):
        rows.setdefault(value, row)
    codes, first = ops.number_in_order(given_)
    assert codes.dtype == np.int32
    assert first.tolist() == list(rows.values())
    assert given_[first][codes].tolist() == given_.tolist()


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint64])
def test_factorize_of_numbers_that_hardly_repeat(ops, dtype):
    given_ = (np.random.default_rng(1).random(40_000) * 2.0**60).astype(dtype)
    given_[[5, 39_999, 20_000]] = given_[7]
    if given_.dtype.kind == "f":
        given_[[0, 1, 2]] = -0.0, 0.0, -0.0
    codes, distinct = ops.factorize(given_)
    check_codes(codes, distinct, given_)
    assert not np.signbit(distinct).any()


@pytest.mark.parametrize("rare", [-1, -4000, 9, 30, 31, 4000, 12_000, 10**9])
@pytest.mark.parametrize("first", [0, 5, -7])
@pytest.mark.parametrize("lowest", [0, 10**12])
def test_factorize_of_a_value_that_no_sample_holds(ops, rare, first, lowest):
    given_ = np.random.default_rng(1).integers(0, 16, 3000) + lowest
    given_[0], given_[1] = first + lowest, rare + lowest
    check_codes(*ops.factorize(given_), given_)


@examples(100)
@given(data=st.data())
def test_lookup_finds_the_index_or_nothing(ops, data):
    given_ = data.draw(values())
    known = np.unique(np.append(given_[::2], data.draw(values([given_.dtype]))))
    codes = ops.lookup(given_, read_only(known))
    index = {value: code for code, value in enumerate(known.tolist())}
    assert codes.dtype == np.int32
    assert codes.tolist() == [index.get(value, -2) for value in given_.tolist()]


@pytest.mark.parametrize("spread", [1, 10**12])
@pytest.mark.parametrize("n_values", [1, 3000])
def test_lookup_of_many(ops, spread, n_values):
    random = np.random.default_rng(2)
    known = np.unique(random.integers(-(10**4), 10**4, 1500)) * spread
    given_ = random.integers(-(10**4), 10**4, n_values) * spread
    index = {value: code for code, value in enumerate(known.tolist())}
    assert ops.lookup(given_, known).tolist() == [index.get(value, -2) for value in given_.tolist()]
    assert ops.lookup(given_ / 7, known / 7).tolist() == [index.get(value, -2) for value in given_.tolist()]


def test_lookup_in_nothing_and_of_values_outside(ops):
    assert ops.lookup(np.array([1, 2]), np.zeros(0, np.int64)).tolist() == [-2, -2]
    assert ops.lookup(np.zeros(0, np.int64), np.array([1, 2])).tolist() == []
    assert ops.lookup(np.array([-(2**63), 2**63 - 1, 5]), np.array([5])).tolist() == [-2, -2, 0]
    assert ops.lookup(np.array([np.nan, np.inf, 5.0]), np.array([5.0])).tolist() == [-2, -2, 0]


@examples(30)
@given(data=st.data())
def test_combine_is_one_number_for_each_pair(ops, data):
    n_left, n_right = data.draw(st.sampled_from([(3, 2**31 - 1), (2**32, 2**30), (5, 4), (1, 1)]))
    size = data.draw(st.integers(0, 10))
    left = data.draw(column(size, st.integers(0, n_left - 1), np.int64 if n_left > 2**31 else np.int32))
    right = data.draw(column(size, st.integers(0, n_right - 1), np.int32))
    keys = ops.combine(read_only(left), read_only(right), n_right)
    assert keys.dtype == np.int64
    assert keys.tolist() == [a * n_right + b for a, b in zip(left.tolist(), right.tolist(), strict=True)]
