"""Vocabularies: order, exact comparison, storage."""

import datetime as dt
import json
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode.tables.categories import values
from gpu_encode.tables.categories.vocabulary import Vocabulary

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_infinity=False, allow_nan=False),
    st.booleans(),
    st.decimals(allow_infinity=False, allow_nan=False, places=3),
    st.sampled_from([2**53, 2**53 + 1, float(2**53), 2**63 - 1, 2**63, float(2**63), 2**64 - 1, 0.5, Decimal("0.5")]),
)


def make(given, column="c"):
    return Vocabulary.from_values(given, column)[0]


def unique(drawn):
    return list(dict.fromkeys(drawn))


@given(st.lists(NUMBERS), st.lists(NUMBERS))
def test_numbers_are_compared_as_python_compares_them(here, there):
    here, there = unique(here), unique(there)
    expected = [here.index(value) if value in here else -2 for value in there]
    assert make(here).positions(make(there), "c").tolist() == expected


@given(st.lists(NUMBERS), st.lists(NUMBERS))
def test_union_is_sorted_and_does_not_depend_on_order(here, there):
    one, other = make(unique(here)), make(unique(there))
    both, places, other_places = one.union(other, "c")
    assert both.to_numpy().tolist() == sorted(set(here) | set(there))
    assert both.positions(one, "c").tolist() == places.tolist()
    assert both.positions(other, "c").tolist() == other_places.tolist()
    assert other.union(one, "c")[0].values.array.dtype == both.values.array.dtype


def test_numbers_out_of_the_range_of_the_others():
    assert make([1]).positions(make([2**70, Decimal(1), Decimal("1.5")]), "c").tolist() == [-2, 0, -2]
    assert make([0.5]).positions(make([10**400, Decimal("0.5")]), "c").tolist() == [-2, 0]
    assert make([10**400, 0.5]).positions(make([0.5]), "c").tolist() == [1]


@pytest.mark.parametrize("count", [3, 64, 65, 200, 999, 5000])
@pytest.mark.parametrize("keep_order", [True, False])
def test_every_way_to_look_text_up(count, keep_order):
    generator = np.random.default_rng(count)
    known = [f"v{number}" for number in generator.permutation(3000)]
    vocabulary = make(known) if keep_order else make(sorted(known))
    wanted = [f"v{number}" for number in generator.integers(0, 6000, count)]
    codes = {value: code for code, value in enumerate(vocabulary.to_numpy())}
    expected = np.array([codes.get(value, -2) for value in wanted], np.int32)
    np.testing.assert_array_equal(vocabulary.positions(values.from_arrow(pa.array(wanted)), "c"), expected, strict=True)


def test_moments_are_compared_whatever_their_unit():
    days = make([dt.date(2020, 1, 1), dt.date(2021, 1, 1)])
    fine = np.array(["2021-01-01T00:00:00.000000001", "2021-01-01", "2020-01-01"], "M8[ns]")
    assert days.positions(make(fine), "c").tolist() == [-2, 1, 0]
    assert make(fine).positions(days, "c").tolist() == [2, 1]
    far = make(np.array(["9000-01-01", "2021-01-01"], "M8[s]"))
    assert make(fine).positions(far, "c").tolist() == [-2, 1]
    with pytest.raises(ValueError, match="64 bits in 'ns' cannot hold"):
        make(fine).union(far, "c")
    with pytest.raises(ValueError, match="64 bits in 'ns' cannot hold"):
        make([dt.date(1, 1, 1), fine[0]])
    both = make(fine[1:]).union(make([dt.date(1999, 1, 1)]), "c")[0]
    assert both.to_numpy().tolist() == np.sort(np.append(fine[1:], np.datetime64("1999-01-01"))).tolist()


def test_other_kinds_are_refused_unless_empty():
    numbers, text = make([1, 2]), make(["a"])
    empty = make([])
    assert numbers.positions(empty, "c").tolist() == []
    assert empty.positions(text, "c").tolist() == [-2]
    assert text.union(empty, "c")[0] == text == empty.union(text, "c")[0]
    assert empty.union(empty, "c")[0] == empty
    with pytest.raises(ValueError, match="column 'city' was fitted on number values and now holds text values"):
        numbers.positions(text, "city")
    with pytest.raises(ValueError, match="fitted on text values and now holds bytes"):
        text.union(make([b"a"]), "c")


GIVEN = {
    "list": (["b", "a", None], ["b", "a"], True),
    "floats": (np.array([3.0, 1.0, np.nan], np.float32), [3.0, 1.0], True),
    "arrow": (pa.array(["b", "a"]), ["b", "a"], False),
    "text": (np.array(["b", "a"]), ["b", "a"], False),
    "truth values": (np.array([True, False]), [True, False], False),
    "days": (np.array(["2020-01-01", "NaT"], "M8[D]"), [dt.date(2020, 1, 1)], True),
}


@pytest.mark.parametrize(("given", "expected", "has_null"), GIVEN.values(), ids=GIVEN)
def test_given_order_is_kept(given, expected, has_null):
    vocabulary, null = Vocabulary.from_values(given, "c")
    assert (vocabulary.to_numpy().tolist(), null) == (expected, has_null)
    assert vocabulary.positions(make(expected), "c").tolist() == list(range(len(expected)))
    if isinstance(given, np.ndarray) and given.dtype != "U1":
        assert vocabulary.to_numpy().dtype == given.dtype


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", "b", "a"], "categories of column 'c' contain 'a' more than once"),
        ([1, 2, 1.0], "contain 1.* more than once"),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], "more than once"),
        (np.array([2, 2]), "contain .*2.* more than once"),
        (["a", None, "b"], "must be the last element"),
        ([None, None], "must be the last element, once"),
        ([1.0, np.inf], "contain infinity"),
        ([Decimal("inf")], "contain infinity"),
    ],
)
def test_bad_category_lists(given, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_values(given, "c")


STORED = {
    "text": ["b", "a", "ß"],
    "bytes": [b"\x00", b"a"],
    "int": [2**63 - 1, -5],
    "uint": [2**64 - 1, 0],
    "int8": np.array([3, 1], np.int8),
    "float32": np.array([0.5, -1.5], np.float32),
    "bool": [True, False],
    "decimal": [Decimal("1.50"), Decimal("-3E+5")],
    "mixed": [2**53 + 1, 0.1, Decimal("0.1"), True, False, 10**30],
    "date": [dt.date(2020, 1, 1), dt.date(1901, 1, 1)],
    "datetime": np.array(["2020-01-01", "2019-01-01"], "M8[ns]"),
    "aware": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
    "duration": [dt.timedelta(1), dt.timedelta(microseconds=-1)],
    "time": [dt.time(1), dt.time(0, 0, 0, 1)],
    "null": [],
}


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("chunked", [False, True])
def test_storage_round_trip(name, chunked):
    vocabulary = make(STORED[name])
    array, metadata = vocabulary.to_arrow(), json.loads(json.dumps(vocabulary.metadata()))
    array = pa.chunked_array([array.slice(0, 1), array.slice(1)]) if chunked else array
    for again in (Vocabulary.from_arrow(array, metadata), pickle.loads(pickle.dumps(vocabulary))):
        assert again == vocabulary
        assert again.metadata() == vocabulary.metadata()
        assert again.to_numpy().dtype == vocabulary.to_numpy().dtype
        assert list(map(repr, again.to_numpy())) == list(map(repr, vocabulary.to_numpy()))


@pytest.mark.parametrize(
    ("array", "changes", "message"),
    [
        (["a", "a"], {}, "more than once"),
        (["a", None], {}, "nulls"),
        ([1, 2], {}, "text values are stored as int64"),
        (["a"], {"kind": "song"}, "kind 'song'"),
        (["a"], {"dtype": None}, "is not known"),
        (["a"], {"timezone": 5}, "time zone is wrong"),
        (["a"], {"kind": "number", "dtype": "decimal"}, "damaged"),
        ([1], {"kind": "number", "dtype": "song"}, "damaged"),
        ([1], {"kind": "datetime", "dtype": "date"}, "unit"),
    ],
)
def test_damaged_storage(array, changes, message):
    stored = pa.array(array, pa.large_string()) if isinstance(array[0], str) else pa.array(array)
    metadata = {"kind": "text", "dtype": "str", "unit": None, "timezone": None} | changes
    with pytest.raises(ValueError, match=f"the stored categories are damaged: .*{message}|{message}"):
        Vocabulary.from_arrow(stored, metadata)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [([dt.date(2020, 1, 1)], "M8[D]"), ([1, 2.5], "f8"), (["a"], "O"), ([dt.timedelta(1)], "m8[us]")],
)
def test_for_people(given, dtype):
    assert make(given).to_numpy().dtype == dtype
    assert make(given) == make(given)
    assert make(given) not in (make(["b"]), make([1]), "a")


@given(st.lists(st.integers(-20, 20)), st.lists(st.integers(-20, 20)), st.sampled_from([int, float, str]))
def test_union_of_sorted_values(here, there, kind):
    here, there = sorted(set(map(kind, here))), sorted(set(map(kind, there)))
    one, other = (Vocabulary.from_unsorted(make(values).values)[0] for values in (here, there))
    both, codes, other_codes = one.union(other, "c")
    assert codes.dtype == other_codes.dtype == np.int32
    assert both.to_numpy().tolist() == sorted({*here, *there})
    assert both.to_numpy()[codes].tolist() == here
    assert both.to_numpy()[other_codes].tolist() == there
