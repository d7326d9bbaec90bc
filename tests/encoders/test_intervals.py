"""Intervals and periods of pandas are categories: equal ones are one category, sorted as pandas sorts them."""

import pickle
from itertools import permutations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode as ge
from gpu_encode.schemes import KFold
from gpu_encode.tables.categories import intervals
from tests.bits import assert_same_bits
from tests.strategies import examples

NUMBERS = np.arange(60) * 7 % 40 / 4
Y = np.arange(60) % 7 / 4
TIMES = pd.Timestamp("2020-01-31 22:00") + pd.to_timedelta(NUMBERS, "D")


def with_missing(values):
    column = pd.Series(values)
    column[[3, 50]] = None
    return column


COLUMNS = {
    "numbers": with_missing(pd.cut(NUMBERS, [-np.inf, 0, 2.5, 4, 10])),
    "whole numbers": with_missing(pd.cut(NUMBERS, [-1, 0, 3, 4, 10])),
    "left": with_missing(pd.cut(NUMBERS, [0, 3, 4, 11], right=False)),
    "dates": with_missing(pd.cut(TIMES, 4)),
    "dates with a zone": with_missing(pd.cut(TIMES.tz_localize("Asia/Tokyo"), 3)),
    "durations": with_missing(pd.cut(pd.to_timedelta(NUMBERS, "h"), 3)),
    "days": with_missing(pd.PeriodIndex(TIMES, freq="D").astype("category")),
    "quarters": with_missing(pd.PeriodIndex(TIMES + pd.to_timedelta(40 * NUMBERS, "D"), freq="Q").astype("category")),
}


def encoder(**parameters):
    return ge.TargetEncoder(columns=["a"], target_type="continuous", cv=KFold(3), smooth=3.0, **parameters)


def numbered(column):
    """The same groups as whole numbers, in pandas' order of the values."""
    return pd.DataFrame({"a": column.cat.codes.where(column.notna()).astype("Int64")})


def uncategorized(column):
    """The same in pandas' own type, whose whole ends become floats where an interval is missing."""
    kind = pd.IntervalIndex if isinstance(column.cat.categories, pd.IntervalIndex) else pd.PeriodIndex
    return pd.Series(kind(column.astype(object)))


def forms(column):
    plain = uncategorized(column)
    yield pd.DataFrame({"a": column})
    yield pd.DataFrame({"a": plain})
    yield pd.DataFrame({"a": column.astype(object)})
    yield pd.DataFrame({"a": plain.astype("category")})
    yield pa.table({"a": pa.array(plain)})
    yield pa.table({"a": pa.chunked_array([pa.array(plain[:7]), pa.array(plain[7:])])})
    yield pl.from_pandas(pd.DataFrame({"a": plain}))
    yield column.astype(object).to_numpy()[:, None]


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_groups(column):
    of_numbers = encoder()
    expected = of_numbers.fit_transform(numbered(column), Y)["a"].to_numpy()
    of_new_rows = of_numbers.transform(numbered(column))["a"].to_numpy()
    values = sorted(column.dropna().unique())
    for table in forms(column):
        fitted = encoder() if not isinstance(table, np.ndarray) else encoder().set_params(columns=[0])
        assert_same_bits(np.asarray(fitted.fit_transform(table, Y))[:, 0].astype(float), expected)
        assert_same_bits(np.asarray(fitted.transform(table))[:, 0].astype(float), of_new_rows)
        assert [*fitted.categories_[0][:-1]] == values
        assert fitted.categories_[0][-1] is None


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_states(column, tmp_path):
    X = pd.DataFrame({"a": column})
    fitted = encoder(categories=[[*column.cat.categories]]).fit(X, Y)
    fitted.save(tmp_path / "model")
    for again in (ge.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        assert_same_bits(again.transform(X), fitted.transform(X))
        assert [*again.categories_[0]] == [*fitted.categories_[0]] == again.categories[0]
        assert_same_bits(again.fit(X, Y).transform(X), fitted.transform(X))


@pytest.mark.host
@pytest.mark.parametrize("name", ["whole numbers", "dates with a zone", "quarters"])
def test_parts(name, tmp_path):
    column = COLUMNS[name]
    plain = pd.DataFrame({"a": uncategorized(column), "y": Y})
    X, whole = plain[["a"]], encoder()
    expected = whole.fit_transform(X, Y)
    for order in permutations((slice(0, 20), slice(20, 41), slice(41, 60))):
        merged = encoder()
        for rows in order:
            merged.partial_fit(X[rows], Y[rows])
        assert_same_bits(merged.transform(X), whole.transform(X))
    partitions = dd.from_pandas(plain, npartitions=3)
    assert_same_bits(encoder().fit_transform(partitions[["a"]], partitions["y"]).compute(), expected)
    pq.write_table(pa.Table.from_pandas(plain), tmp_path / "rows.parquet")
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "encoded.parquet", encoder(), target="y")
    assert_same_bits(pd.read_parquet(tmp_path / "encoded.parquet")[["a"]], expected)


def test_ends_of_other_types_are_equal():
    whole = pd.DataFrame({"a": pd.interval_range(0, 4)})
    floats = pd.DataFrame({"a": pd.interval_range(0.0, 4.0)})
    fitted = ge.OrdinalEncoder().fit(whole)
    assert fitted.transform(floats)["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    merged = ge.OrdinalEncoder().partial_fit(whole).partial_fit(floats)
    other = ge.OrdinalEncoder().partial_fit(floats).partial_fit(whole)
    assert [type(end.left) for end in merged.categories_[0]] == [float] * 4
    assert [*merged.categories_[0]] == [*other.categories_[0]]
    hashing = ge.HashingEncoder(n_components=64).fit(whole)
    assert_same_bits(hashing.transform(whole), hashing.transform(floats))


def test_period_is_a_time():
    X = pd.DataFrame({"a": list("xyxyxy"), "month": pd.period_range("2019-10", periods=6, freq="M")[::-1]})
    scheme = ge.Ordered(time="month")
    in_time = ge.TargetEncoder(columns=["a"], cv=scheme, smooth=None, prior=0.0, target_type="continuous")
    found = in_time.fit_transform(X, np.arange(6.0))
    assert found["a"].tolist() == [3.0, 4.0, 4.0, 5.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        (pd.interval_range(0, 4), np.arange(4), "'a' was fitted on interval of numbers values and now holds number"),
        (pd.interval_range(0, 4), pd.interval_range(TIMES[0], periods=4), "now holds interval of datetimes values"),
        (pd.period_range("2020", periods=4, freq="M"), pd.period_range("2020", periods=4, freq="D"), r"period\[D\]"),
    ],
)
def test_other_kinds(fitted, given, message):
    learned = ge.OrdinalEncoder().fit(pd.DataFrame({"a": fitted}))
    with pytest.raises(ValueError, match=message):
        learned.transform(pd.DataFrame({"a": given}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([pd.Interval(0, 1), pd.Interval(TIMES[0], TIMES[1])], "mixes interval of numbers and interval of datetimes"),
        ([pd.Period("2020", "M"), pd.Period("2020", "D")], r"mixes period\[M\] and period\[D\]"),
        ([pd.Interval(0, 1), "a"], "mixes Interval and str"),
    ],
)
def test_mixed_kinds(values, message):
    with pytest.raises(TypeError, match=message):
        ge.OrdinalEncoder().fit(pd.DataFrame({"a": pd.Series(values, dtype=object)}))


ENDS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False))


@examples(100)
@given(st.lists(ENDS, min_size=2, max_size=6))
def test_ends_are_spelled_in_order(ends):
    spelled = [intervals.spell_end(end) for end in ends]
    assert sorted(spelled) == [intervals.spell_end(end) for end in sorted(ends)]
    for end, text in zip(ends, spelled, strict=True):
        name = "int64" if isinstance(end, int) else "float64"
        assert intervals.maker_of(name)(*intervals.read_end(text)) == end
