"""Equal values give the same codes and the same vocabulary in every container."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpu_fallback
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import read
from tests.tables.conftest import numpy_object

BERLIN = "Europe/Berlin"
NAN = float("nan")
BIG = 2**53 + 1
COLUMNS = {
    "text": ["b", "a", None, "ß", "a", "", "None", "nan"],
    "int": [3, -1, 3, 0, BIG, BIG - 1],
    "uint64": [2**63 + 1, 2**63, 2**64 - 1, 0],
    "int with null": [7, None, 2**40, -5],
    "float": [0.1, -2.5, None, 3.0, 0.1],
    "bool": [True, False, True],
    "only true": [True, True],
    "bool with null": [True, None, False],
    "bytes": [b"b", None, b"a", b"b"],
    "date": [dt.date(2020, 5, 1), None, dt.date(1901, 1, 1), dt.date(2020, 5, 1)],
    "datetime": [dt.datetime(2020, 5, 1, 12, 0, 0, 5), None, dt.datetime(1901, 1, 1)],
    "timezone": [dt.datetime(2020, 5, 1, 12, tzinfo=dt.UTC), None, dt.datetime(2019, 5, 1, tzinfo=dt.UTC)],
    "duration": [dt.timedelta(days=2, microseconds=1), None, dt.timedelta(-1)],
    "time": [dt.time(12, 30, 1, 7), None, dt.time(0), dt.time(12, 30, 1, 7)],
    "decimal": [Decimal("1.50"), None, Decimal("-2.25"), Decimal("1.50")],
    "all null": [None, None],
    "one": ["x"],
}


def expected_codes(values):
    present = sorted({value for value in values if value is not None})
    return [-1 if value is None else present.index(value) for value in values]


def codes_of(data, ops, position=0):
    keys = read(data).keys(position, ops)
    assert keys.codes.dtype == np.int32
    assert keys.vocabulary.is_sorted
    assert not (keys.complete and (keys.codes < 0).any())
    return keys.codes.tolist(), keys.vocabulary


def test_numbers_without_a_null_are_known_to_have_none(ops):
    assert read(np.arange(6).reshape(-1, 1)).keys(0, ops).complete
    assert not read(np.array([[0.0], [np.nan]])).keys(0, ops).complete


@pytest.mark.parametrize("name", COLUMNS)
def test_same_codes_from_every_kind(build, name, ops):
    values = COLUMNS[name]
    codes, vocabulary = codes_of(build(values), ops)
    assert codes == expected_codes(values)
    reference = read(numpy_object(values)).keys(0, ops).vocabulary
    assert vocabulary == reference
    assert read(build(values)).lookup(0, reference, ops).tolist() == codes


@given(st.lists(st.none() | st.text(max_size=2), max_size=20))
def test_text_sorts_as_python_does(values):
    expected = expected_codes(values)
    table = pa.table({"c": pa.array(values, pa.string())})
    for data in (table, pl.from_arrow(table), np.array(values, object).reshape(-1, 1), table.to_pandas()):
        assert codes_of(data, cpu_fallback)[0] == expected


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_infinity=False, allow_nan=False) | st.booleans()


@given(st.lists(NUMBERS | st.sampled_from([BIG, float(BIG), Decimal(BIG), Decimal("0.1"), 0.1, 1, 1.0, True])))
def test_numbers_mixed_in_objects_are_equal_as_python_has_it(values):
    data = numpy_object(values)
    codes, vocabulary = codes_of(data, cpu_fallback)
    assert codes == expected_codes(values)
    assert vocabulary.to_numpy().tolist() == sorted(set(values))
    again = Vocabulary.from_arrow(vocabulary.to_arrow(), vocabulary.metadata())
    assert again == vocabulary


WHOLE = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]


@pytest.mark.parametrize("dtype", [*WHOLE, "f2", "f4", "f8", ">i4", ">f8", "?", "O", "U3", ">U3", "S3", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_types(dtype, order, ops):
    data = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype, order=order)
    data.setflags(write=False)
    for position in (0, 1):
        codes, vocabulary = codes_of(data, ops, position)
        assert codes == [[1, 0, 1], [0, 1, 1]][position]
        assert vocabulary.to_numpy().tolist() == sorted(set(data[:, position].tolist()))
        np.testing.assert_array_equal(read(data).lookup(position, vocabulary, ops), codes)


@pytest.mark.parametrize("unit", ["D", "W", "M", "Y", "h", "m", "s", "ms", "us", "ns", "10ms", "ps", "fs"])
def test_numpy_moments(unit, ops):
    data = np.array([3, 1, 3, np.iinfo(np.int64).min], "i8").view(f"M8[{unit}]").reshape(-1, 1)
    codes, vocabulary = codes_of(data, ops)
    assert codes == [1, 0, 1, -1]
    assert vocabulary.to_numpy().tolist() == np.unique(data[:3]).astype(vocabulary.to_numpy().dtype).tolist()
    if unit not in "MY":
        assert codes_of(data.view(f"m8[{unit}]"), ops)[0] == [1, 0, 1, -1]


def test_every_null_is_one_null(ops):
    nulls = [None, NAN, float("-nan"), pd.NA, pd.NaT, np.float32("nan"), Decimal("nan"), np.datetime64("NaT", "s")]
    for value in ("a", 1, 1.5, b"a", dt.date(2020, 1, 1)):
        data = numpy_object([*nulls, value])
        assert codes_of(data, ops)[0] == [-1] * len(nulls) + [0]


ARROW_NUMBERS = ["int32", "float", "bool"]
ORDERED = pd.Categorical(["low", None, "high"], categories=["unused", "low", "high"], ordered=True)


def pandas(values, dtype=None):
    return pd.DataFrame({"c": pd.Series(values, dtype=dtype)})


def arrow(values, type_=None):
    return pa.table({"c": pa.array(values, type_)})


def polars(values, dtype=None):
    return pl.DataFrame({"c": pl.Series(values, dtype=dtype)})


FLOATS = arrow([1.0, None, NAN, 0.5])
TEXT = pa.array(["b", None, "a"])
RUN_ENDS = pa.RunEndEncodedArray.from_arrays([1, 2, 4], TEXT)
NUMBERS_OF_PANDAS = ["Int8", "UInt64", "Float32", "Float64", "boolean", *(f"{name}[pyarrow]" for name in ARROW_NUMBERS)]
TEXT_OF_PANDAS = ["str", "string", "string[python]", "string[pyarrow]", "large_string[pyarrow]", "object"]
TEXT_OF_ARROW = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary(1)]
DECIMALS = [pa.decimal32(5, 2), pa.decimal64(9, 2)] if hasattr(pa, "decimal32") else []
DECIMALS += [pa.decimal128(20, 2), pa.decimal256(60, 2)]
EMPTY = [pa.float16(), pa.date32(), pa.date64(), pa.timestamp("s"), pa.duration("ns"), pa.time32("s"), pa.null()]
LARGE = [BIG, None, BIG - 1]
# A table of one column, and the codes of its rows.
TYPES = {
    "masked": (np.ma.MaskedArray([[1.0], [2.0], [3.0]], mask=[[0], [1], [0]]), [0, -1, 1]),
    "masked text": (np.ma.MaskedArray([["a"], ["b"]], mask=[[0], [1]]), [0, -1]),
    "masked objects": (np.ma.MaskedArray(np.array([["a"], [5]], object), mask=[[0], [1]]), [0, -1]),
    "text of any width": (np.array([["b"], ["a"]], dtype=np.dtypes.StringDType()), [1, 0]),
    "sparse": (pandas([1, 0, 1], "Sparse[int]"), [1, 0, 1]),
    "NaN in pandas": (FLOATS.to_pandas(), [1, -1, -1, 0]),
    "NaN in polars": (pl.from_arrow(FLOATS), [1, -1, -1, 0]),
    "NaN in arrow": (FLOATS, [1, -1, -1, 0]),
    "NaN in pandas of arrow": (FLOATS.to_pandas(types_mapper=pd.ArrowDtype), [1, -1, -1, 0]),
    "large integers": (arrow(LARGE), [1, -1, 0]),
    "large integers in polars": (polars(LARGE), [1, -1, 0]),
    "large integers in pandas": (pandas(LARGE, "Int64"), [1, -1, 0]),
    "run ends": (pa.table({"c": RUN_ENDS}), [1, -1, 0, 0]),
    "uuids": (arrow([b"b" * 16, None, b"a" * 16], pa.uuid()), [1, -1, 0]),
    "bool8": (pa.table({"c": pa.array([1, None, 0], pa.int8()).cast(pa.bool8())}), [1, -1, 0]),
    "int128": (polars([2**100, None, 1], pl.Int128), [1, -1, 0]),
    "times": (polars([dt.time(2), None, dt.time(1)]), [1, -1, 0]),
    "decimals": (polars([Decimal("2.5"), None, Decimal("1")]), [1, -1, 0]),
    "bytes": (polars([b"b", None, b"a"]), [1, -1, 0]),
    "objects": (polars(["b", None, "a"], pl.Object), [1, -1, 0]),
    "enumeration": (polars(["b", None, "a"], pl.Enum(["z", "b", "a"])), [1, -1, 0]),
    "categories": (polars(["b", None, "a"], pl.Categorical), [1, -1, 0]),
    "ordered categories": (pandas(ORDERED), [1, -1, 0]),
    **{f"pandas {name}": (pandas([1, 0, 1], name), [1, 0, 1]) for name in NUMBERS_OF_PANDAS},
    **{f"pandas {name}, null": (pandas([1, None, 0], name), [1, -1, 0]) for name in NUMBERS_OF_PANDAS},
    **{f"pandas {name}": (pandas(["b", None, "a"], name), [1, -1, 0]) for name in TEXT_OF_PANDAS},
    **{f"arrow {type_}": (pa.table({"c": TEXT.cast(type_)}), [1, -1, 0]) for type_ in TEXT_OF_ARROW},
    **{f"arrow {type_}": (arrow([Decimal("1.5"), None, Decimal(-3)], type_), [1, -1, 0]) for type_ in DECIMALS},
    **{f"arrow {type_}, nulls": (arrow([None, None], type_), [-1, -1]) for type_ in EMPTY},
    **{f"arrow {type_}, no rows": (pa.table({"c": pa.chunked_array([], type_)}), []) for type_ in EMPTY},
}


@pytest.mark.parametrize(("data", "expected"), TYPES.values(), ids=TYPES)
def test_types(data, expected, ops):
    codes, vocabulary = codes_of(data, ops)
    assert codes == expected
    assert len(vocabulary) == max(expected, default=-1) + 1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_datetimes_do_not_depend_on_their_unit(unit, ops):
    reference = read(arrow([dt.date(2021, 3, 1), None, dt.date(2020, 1, 1)])).keys(0, ops)
    naive = pd.Series(pd.to_datetime(["2021-03-01", None, "2020-01-01"])).astype(f"datetime64[{unit}]")
    aware = naive.dt.tz_localize(BERLIN)
    utc = read(polars(pl.from_pandas(aware.dt.tz_convert("UTC")))).keys(0, ops)
    for column, expected in (
        (naive, reference),
        (naive.astype(f"timestamp[{unit}][pyarrow]"), reference),
        (aware, utc),
    ):
        codes, vocabulary = codes_of(column.to_frame(), ops)
        assert codes == [1, -1, 0]
        assert vocabulary == expected.vocabulary
    assert vocabulary.values.timezone == BERLIN
    with pytest.raises(ValueError, match="fitted on datetime with time zone values and now holds datetime values"):
        read(naive.to_frame("c")).lookup(0, vocabulary, ops)


def test_timestamps_keep_their_nanoseconds(ops):
    stamps = [pd.Timestamp("2020-01-01 00:00:00.000000001"), pd.Timestamp("2020-01-01"), dt.date(2020, 1, 1), None]
    assert codes_of(numpy_object(stamps), ops)[0] == [1, 0, 0, -1]
    assert codes_of(pandas(stamps[:2]), ops)[0] == [1, 0]
    assert codes_of(arrow([5, 1], pa.time64("ns")), ops)[1].to_numpy().dtype == "m8[ns]"
    _, vocabulary = codes_of(arrow([5000, 1000], pa.time32("ms")), ops)
    assert vocabulary.to_numpy().tolist() == [dt.time(0, 0, 1), dt.time(0, 0, 5)]


def test_entries_of_a_dictionary_may_be_unused_repeated_and_null(ops):
    repeated = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, None, 4], pa.uint8()), pa.array(["b", "a", "b", None, "c", "unused"])
    )
    chunks = pa.chunked_array([repeated, repeated.slice(1, 2), pa.array(["z"]).dictionary_encode().cast(repeated.type)])
    for data in (pa.table({"c": repeated}), pa.record_batch({"c": repeated})):
        codes, vocabulary = codes_of(data, ops)
        assert codes == [1, 0, 1, -1, -1, 2]
        assert vocabulary.to_numpy().tolist() == ["a", "b", "c"]
    assert codes_of(pa.table({"c": chunks}), ops)[0] == [1, 0, 1, -1, -1, 2, 0, 1, 3]


@pytest.mark.parametrize(
    "values",
    [[3, 1, 3], [1.5, NAN, 0.5], [True, False], pd.to_datetime(["2020-01-02", "2020-01-01"]), [dt.date(2020, 1, 1)]],
)
def test_categories_of_other_kinds(values, ops):
    plain = pandas(values)
    assert codes_of(plain.astype("category"), ops) == codes_of(plain, ops)


def test_zeros_are_one_number_and_read_only_input_is_never_written(ops):
    zeros = np.array([[-0.0], [0.0], [1.0]])
    zeros.setflags(write=False)
    codes, vocabulary = codes_of(zeros, ops)
    assert codes == [0, 0, 1]
    assert not np.signbit(vocabulary.to_numpy()).any()
    assert np.signbit(zeros[0, 0])
    assert codes_of(zeros.astype(object), ops)[0] == [0, 0, 1]


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3])
def test_infinity_is_refused_with_its_column_and_row(build, infinity, row, ops):
    values = [1.0, None, 2.0, 1.0]
    values[row] = infinity
    frame = read(build(values))
    name = "0" if frame.kind == "numpy" else "'c'"
    with pytest.raises(ValueError, match=f"contains infinity: column {name}, the first in row {row}"):
        frame.keys(0, ops)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", 1], "column 0 mixes str and int: .* convert|Convert the column to one type"),
        (["a", b"a"], "mixes str and bytes"),
        ([1, dt.date(2020, 1, 1)], "mixes int and date"),
        ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], "mixes datetime with time zone and"),
        ([{"a": 1}, None], "holds dict values, .* argument must be uniformly strings or numbers"),
        ([(1, 2), None], "holds tuple values"),
        (["a", 1, ["b"]], "holds list values"),
        ([1 + 2j], "holds complex values"),
        ([dt.time(1, tzinfo=dt.UTC)], "holds time with time zone values"),
    ],
)
def test_objects_that_cannot_be_compared(values, message, ops):
    with pytest.raises(TypeError, match=message):
        read(numpy_object(values)).keys(0, ops)


LONG_DOUBLE = np.longdouble(1) + np.finfo(np.longdouble).eps
NO_CATEGORIES = {
    "lists": (pa.table({"c": [[1], [2]]}), TypeError, r"column 'c' holds list<.*> values"),
    "calendar steps": (pa.table({"c": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), TypeError, "interval"),
    "records": (np.zeros((2, 1), "V3"), TypeError, "V3"),
    "durations of no unit": (np.zeros((2, 1), "m8"), TypeError, "timedelta64"),
    "far days": (np.full((1, 1), 2**62).view("M8[D]"), ValueError, "64 bits in 's'"),
    "half a letter": (np.array([["\ud800"]], object), ValueError, "no valid Unicode"),
}
if np.dtype(np.longdouble).itemsize > 8:
    NO_CATEGORIES["long double"] = (np.array([[LONG_DOUBLE]]), TypeError, "float128|longdouble")
    NO_CATEGORIES["long doubles in objects"] = (numpy_object([LONG_DOUBLE]), TypeError, "float128|longdouble")


@pytest.mark.parametrize(("data", "error", "message"), NO_CATEGORIES.values(), ids=NO_CATEGORIES)
def test_types_that_cannot_be_categories(data, error, message, ops):
    with pytest.raises(error, match=message):
        read(data).keys(0, ops)


def test_fitted_on_one_kind_looked_up_in_another(ops):
    fitted = read(pa.table({"c": pa.array([1, 2, BIG], pa.int64())})).keys(0, ops).vocabulary
    for data, expected in (
        (np.array([[2.0], [NAN], [2.5], [2.0**53]]), [1, -1, -2, -2]),
        (np.array([[True], [False]]), [0, -2]),
        (np.array([[2**63 + 5], [2]], np.uint64), [-2, 1]),
        (pl.DataFrame({"c": [Decimal("2.00"), Decimal("2.01"), None]}), [1, -2, -1]),
        (np.array([[BIG], [None], [1.0]], object), [2, -1, 0]),
        (pd.DataFrame({"c": pd.Series([BIG, 7], dtype="category")}), [2, -2]),
        (pd.DataFrame({"c": [None, None]}), [-1, -1]),
        (pd.DataFrame({"c": pd.Series([None, None], dtype=pd.CategoricalDtype(["a", "b"]))}), [-1, -1]),
        (np.zeros((0, 1), object), []),
    ):
        assert read(data).lookup(0, fitted, ops).tolist() == expected
    with pytest.raises(ValueError, match="column 'c' was fitted on number values and now holds text values"):
        read(pl.DataFrame({"c": ["1"]})).lookup(0, fitted, ops)
