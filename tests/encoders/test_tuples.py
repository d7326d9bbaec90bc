"""Combinations of values behind joint keys: by numbers and by sorted keys, made only when somebody asks for them."""

import pickle

import numpy as np
import pytest

from gpu_encode import KFold, TargetEncoder, load
from gpu_encode.seam.ops import resolve
from gpu_encode.tables.categories import keys
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec, Tuples
from gpu_encode.tables.frames import read
from tests.bits import assert_same_bits

N = 400
RANDOM = np.random.default_rng(3)
# Values, two of which are missing in some rows.
SIZES = (5, 3, 40)
COLUMNS = [RANDOM.integers(0, size, N).astype(object) for size in SIZES]
for column in COLUMNS[1:]:
    column[RANDOM.integers(0, N, 60)] = None
X, Y = np.column_stack(COLUMNS), RANDOM.integers(0, 2, N)


def in_order(row):
    """Return the sort key of a row: a missing value comes after the others."""
    return [(value is None, value or 0) for value in row]


def combinations(n_columns):
    return sorted({tuple(row) for row in X[:, :n_columns]}, key=in_order)


def key_of(n_columns, missing_is_category=True):
    entry = KeySpec("joint", tuple(range(n_columns)))
    ops = resolve(N)
    key, codes = CategoryIndex.fit(entry, read(X), ops, missing_is_category)
    return key, ops.to_host(codes)


@pytest.fixture
def asked(monkeypatch):
    """Return a list that collects the names of the functions called."""
    calls = []
    for name in ("split_keys", "join_values"):
        own = getattr(keys, name)
        monkeypatch.setattr(keys, name, lambda *given, own=own, name=name: calls.append(name) or own(*given))
    return calls


@pytest.mark.parametrize("n_columns", [2, 3])
def test_combinations_are_those_of_the_rows(n_columns):
    key, codes = key_of(n_columns)
    expected = combinations(n_columns)
    words = [[*vocabulary.to_numpy().tolist(), None] for vocabulary in key.vocabularies]
    found = [tuple(column[place] for column, place in zip(words, row, strict=True)) for row in key.tuples.members]
    assert found == expected
    assert len(key.tuples) == key.n_categories == len(expected)
    assert [expected[code] for code in codes] == [tuple(row) for row in X[:, :n_columns]]


@pytest.mark.parametrize("n_columns", [2, 3])
@pytest.mark.parametrize("missing_is_category", [True, False])
def test_numbers_and_keys_are_made_of_each_other(n_columns, missing_is_category):
    found = key_of(n_columns, missing_is_category)[0].tuples
    again = Tuples(found.sizes, found.members)
    for prefix, expected in zip(found.prefixes, again.prefixes, strict=True):
        assert prefix.dtype == expected.dtype == np.int64
        assert prefix.tolist() == expected.tolist()
    back = Tuples(found.sizes, prefixes=again.prefixes)
    assert back.members.dtype == np.int32
    assert back.members.tolist() == found.members.tolist()


def test_no_combination_at_all():
    for n_columns in (2, 3):
        nothing = Tuples([0] * n_columns, np.zeros((0, n_columns), np.int32))
        assert [len(prefix) for prefix in nothing.prefixes] == [0] * (n_columns - 1)
        assert Tuples(nothing.sizes, prefixes=nothing.prefixes).members.shape == (0, n_columns)


def test_bytes_that_leave_the_process_are_those_of_the_combinations():
    found = key_of(3)[0].tuples
    others = [Tuples(found.sizes, found.members), Tuples(found.sizes, prefixes=found.prefixes), key_of(3)[0].tuples]
    assert {pickle.dumps(each) for each in others} == {pickle.dumps(found)}
    copy = pickle.loads(pickle.dumps(others[1]))
    assert copy.prefixes[-1].tolist() == found.prefixes[-1].tolist()


@pytest.mark.parametrize("cv", [None, KFold(3)])
def test_rows_ask_for_no_value_numbers(cv, asked):
    encoder = TargetEncoder(columns=[(0, 1, 2)], target_type="binary", **({} if cv is None else {"cv": cv}))
    encoder.fit_transform(X, Y)
    expected = encoder.transform(X)
    assert asked == []
    names = encoder.categories_[0]
    assert asked == ["split_keys"]
    assert names.tolist() == combinations(3)
    # Objects stay once they are made.
    assert len(encoder.categories_[0]) == len(names)
    assert asked == ["split_keys"]
    assert_same_bits(np.asarray(encoder.transform(X)), np.asarray(expected))


def test_whoever_needs_combinations_gets_the_same(tmp_path):
    make = {"columns": [(0, 1, 2), (0, 1)], "target_type": "binary"}
    whole = TargetEncoder(**make).fit(X, Y)
    expected = np.asarray(whole.transform(X))
    # Asked for by a file, another process, a second part and a merge, each of which has seen no other before.
    fitted = [TargetEncoder(**make).fit(X, Y) for _ in range(2)]
    fitted[0].save(tmp_path / "saved")
    halves = [TargetEncoder(**make).fit(X[rows], Y[rows]) for rows in (slice(0, 150), slice(150, N))]
    grown = TargetEncoder(**make).partial_fit(X[:150], Y[:150]).partial_fit(X[150:], Y[150:])
    others = [load(tmp_path / "saved"), pickle.loads(pickle.dumps(fitted[1])), halves[0].merge(halves[1]), grown]
    for other in others:
        assert_same_bits(np.asarray(other.transform(X)), expected)
        assert [names.tolist() for names in other.categories_] == [names.tolist() for names in whole.categories_]
