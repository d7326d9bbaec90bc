"""Several tables as one frame: each is numbered by itself, and codes and vocabulary are those of one table."""

import collections
import itertools
import re
from datetime import date, datetime
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import cpu_fallback
from gpu_encode.tables.frames import Pieces, in_line, is_partitioned, read, read_pieces, read_targets, tables_of
from gpu_encode.tables.frames.pieces import concatenate
from tests.tables.conftest import KINDS

FRAMES = {kind: make for kind, make in KINDS.items() if kind != "list"}
SAMPLES = {
    "text": ["b", "a", None, "ä", "b", "", "c", "z"],
    "integers": [5, -3, None, 2**50 + 1, 5, 0, None, 2**50],
    "integers that no float is": [2**53 + 1, 2**53, -3, 2**53 + 1, 0, 2**62, 2**62 + 1, 4],
    "floats": [0.5, None, -2.25, 0.5, 1e300, 3.0, None, -1e-300],
    "booleans": [True, None, True, True, False, None, True, False],
    "large": [2**64 - 1, 3, 3, 2**64 - 2, 2**63, 0, 1, 1],
    "nothing": [None] * 8,
}
CUTS = [[], [3], [0, 2, 2, 5, 6, 7]]


def pieces_of(values, cuts):
    edges = [0, *cuts, len(values)]
    return [values[start:stop] for start, stop in itertools.pairwise(edges)]


def define(values):
    """Give codes and distinct values by definition."""
    distinct = sorted({value for value in values if value is not None})
    return [distinct.index(value) if value is not None else -1 for value in values], distinct


def plain(vocabulary):
    return [value.item() if isinstance(value, np.generic) else value for value in vocabulary.to_numpy()]


@pytest.mark.parametrize("cuts", CUTS, ids=len)
@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES.keys())
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_numbered_as_one_column(make, values, cuts, ops):
    pieces = read_pieces([make(part) for part in pieces_of(values, cuts)])
    codes, vocabulary, _ = pieces.keys(0, ops)
    expected, distinct = define(values)
    assert (codes.dtype, codes.tolist(), plain(vocabulary)) == (np.int32, expected, distinct)
    assert pieces.lookup(0, vocabulary, ops).tolist() == expected
    present = [value is not None for value in values]
    assert pieces.values(0)[present].tolist() == list(itertools.compress(values, present))


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=30), st.data())
def test_any_cuts_of_any_kinds(values, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=6)))
    named = st.sampled_from([make for kind, make in FRAMES.items() if kind != "numpy"])
    pieces = read_pieces([data.draw(named)(part) for part in pieces_of(values, cuts)])
    codes, vocabulary, _ = pieces.keys(0, cpu_fallback)
    assert (codes.tolist(), plain(vocabulary)) == define(values)
    assert pieces.lookup(0, vocabulary, cpu_fallback).tolist() == codes.tolist()


def test_values_unknown_to_a_vocabulary(ops):
    _, known, _ = read(pd.DataFrame({"c": ["a", "c"]})).keys(0, ops)
    pieces = read_pieces([pd.DataFrame({"c": ["c", "b"]}), pl.DataFrame({"c": [None, "a"]})])
    assert pieces.lookup(0, known, ops).tolist() == [1, -2, -1, 0]


# The content of each table, and the type in which users see all values, for any order of the tables.
TYPES = {
    "widths": ([np.array([1, 2], "int8"), np.array([3, 2], "int16")], "int64", [1, 2, 3]),
    "one width": ([np.array([1, 2], "int8"), np.array([3, 2], "int8")], "int8", [1, 2, 3]),
    "int and float": ([np.array([1, 2], "int32"), np.array([2.5, 2.0])], "float64", [1.0, 2.0, 2.5]),
    "float32 and float64": ([np.array([0.5], "float32"), np.array([0.1])], "float64", [0.1, 0.5]),
    "int and bool": ([np.array([1, 2]), np.array([True, False])], "int64", [0, 1, 2]),
    "bool": ([np.array([True]), np.array([False])], "bool", [False, True]),
    "signed and unsigned": ([np.array([-1, 3]), np.array([2**64 - 1, 3], "uint64")], "decimal", [-1, 3, 2**64 - 1]),
    "integers that no float is": ([np.array([2**53 + 1]), np.array([0.5])], "decimal", [0.5, 2**53 + 1]),
    "int and NaN alone": ([np.array([1, 2]), np.array([np.nan])], "float64", [1.0, 2.0]),
    "int and None alone": ([np.array([1, 2]), np.array([None], object)], "int64", [1, 2]),
    "text and NaN alone": ([np.array(["b"], object), np.array([np.nan])], "str", ["b"]),
    "text and category": ([np.array(["b"], object), pd.Categorical(["a"])], "str", ["a", "b"]),
    "category of int": ([pd.Categorical([3, 1]), np.array([2])], "int64", [1, 2, 3]),
    "nothing": ([np.array([None], object), np.array([np.nan])], "float64", []),
    "nothing of two types": ([np.array([np.nan], "float32"), np.array([np.nan])], "float32", []),
    "no rows of another kind": ([np.array([1, 2]), np.array([], object)], "int64", [1, 2]),
    "decimals": ([pd.array([Decimal("0.1")], dtype=object), np.array([1])], "decimal", [Decimal("0.1"), 1]),
    "days and seconds": (
        [np.array(["2024-01-02"], "M8[ns]"), np.array(["2024-01-01"], "M8[s]")],
        "datetime64[ns]",
        [np.datetime64("2024-01-01", "ns"), np.datetime64("2024-01-02", "ns")],
    ),
}


@pytest.mark.parametrize(("arrays", "dtype", "values"), TYPES.values(), ids=TYPES.keys())
def test_the_type_of_all_values_hangs_on_no_order(arrays, dtype, values, ops):
    for order in itertools.permutations(arrays):
        codes, vocabulary, _ = read_pieces([pd.DataFrame({"c": array}) for array in order]).keys(0, ops)
        assert vocabulary.metadata()["dtype"] == dtype
        assert vocabulary.to_numpy().tolist() == np.array(values, vocabulary.to_numpy().dtype).tolist()
        counts = [pd.notna(pd.Series(array)).sum() for array in order]
        assert (codes >= 0).sum() == sum(counts)


def test_time_zones_are_those_of_an_object_column(ops):
    zones = ["Europe/Oslo", "Asia/Kolkata"]
    series = {zone: pd.Series(pd.date_range("2024-01-01", periods=1, tz=zone)) for zone in zones}
    for order in itertools.permutations(zones):
        _, vocabulary, _ = read_pieces([series[zone].to_frame("c") for zone in order]).keys(0, ops)
        whole = pd.DataFrame({"c": pd.concat([series[zone] for zone in order]).astype(object)})
        assert vocabulary.metadata()["timezone"] == read(whole).keys(0, ops).vocabulary.metadata()["timezone"] == "UTC"


MIXED = {
    "text": (["a"], [1]),
    "bytes": ([b"a"], ["a"]),
    "moments": ([datetime(2024, 1, 1)], [1.5]),
    "dates": ([date(2024, 1, 1)], ["2024-01-01"]),
    "zones": (pd.to_datetime(["2024-01-01"]).tz_localize("UTC"), pd.to_datetime(["2024-01-01"])),
}


@pytest.mark.parametrize(("one", "other"), MIXED.values(), ids=MIXED.keys())
def test_values_that_cannot_be_compared_are_refused_as_in_one_column(one, other, ops):
    with pytest.raises(TypeError, match=r"column 'c' mixes .* and .*: the argument must be uniformly") as expected:
        read(pd.DataFrame({"c": pd.Series([*one, *other], dtype=object)})).keys(0, ops)
    for first, last in ((one, other), (other, one)):
        tables = [pd.DataFrame({"c": values}) for values in (first, [None], last)]
        with pytest.raises(TypeError, match=r"column 'c' mixes .* and .* \(in X\[2\]\): the argument") as refused:
            read_pieces(tables).keys(0, ops)
        assert str(refused.value).partition(": ")[2] == str(expected.value).partition(": ")[2]


def test_an_error_of_one_table_says_which(ops):
    pieces = read_pieces([pd.DataFrame({"c": [0.5, 1.5]}), pd.DataFrame({"c": [0.5, np.inf]})])
    with pytest.raises(ValueError, match=r"^Input X contains infinity: column 'c', .* row 3 \(row 1 of X\[1\]\)\."):
        pieces.keys(0, ops)
    pieces = read_pieces([pd.DataFrame({"c": ["a"]}), pd.DataFrame({"c": [1]})])
    known = pieces.parts[0].keys(0, ops).vocabulary
    with pytest.raises(ValueError, match=r"^X\[1\]: column 'c' was fitted on text values and now holds number"):
        pieces.lookup(0, known, ops)


def test_shape_and_names():
    pieces = read_pieces([pd.DataFrame({"a": [1, 2], "b": [3, 4]}), pl.DataFrame({"a": [5], "b": [6]})])
    assert (pieces.shape, pieces.lengths, pieces.names, pieces.labels) == ((3, 2), [2, 1], ["a", "b"], ["a", "b"])
    assert (pieces.label(1), len(pieces.parts)) == ("b", 2)
    arrays = read_pieces([np.zeros((2, 3)), pd.DataFrame(np.zeros((1, 3)))])
    assert (arrays.shape, arrays.names, arrays.label(2)) == ((3, 3), None, 2)


def test_more_rows_than_32_bits_count():
    parts = tuple(read(np.broadcast_to(np.int8(0), (2**31 - 1, 1))) for _ in range(3))
    pieces = Pieces(parts)
    assert pieces.n_rows == 3 * (2**31 - 1)
    assert [rows.start for _, _, rows in pieces.stretches()] == [0, 2**31 - 1, 2**32 - 2]


TABLE = pd.DataFrame({"a": [1, 2, 3]})


class Shards:
    """An object that can be iterated again and again, like a reader of files."""

    def __iter__(self):
        return iter([TABLE[:1], TABLE[1:]])


COLLECTIONS = {
    "list": ([TABLE, TABLE], 2),
    "tuple": ((TABLE,), 1),
    "map": (map(pl.from_pandas, [TABLE] * 3), 3),
    "batches": (iter(pa.table({"a": [1, 2]}).to_batches(1)), 2),
    "arrays": ([np.zeros((1, 1))] * 2, 2),
    "readers": ([pl.DataFrame({"a": [1]}).lazy()], 1),
    "values of a dict": ({1: TABLE, 2: TABLE}.values(), 2),
    "deque": (collections.deque([TABLE] * 3), 3),
    "sequence": (Shards(), 2),
    "array of objects": ([np.array([["a"], [None]], object)], 1),
}


@pytest.mark.parametrize(("data", "count"), COLLECTIONS.values(), ids=COLLECTIONS.keys())
def test_collections_of_tables(data, count):
    assert len(tables_of(data)) == count


NO_COLLECTIONS = [TABLE, TABLE.to_numpy(), {"a": TABLE}, {1, 2}, None, "text"]
NO_COLLECTIONS += [np.zeros((2, 3, 1)), scipy.sparse.eye(2), pa.table({"a": [1]}).to_reader()]
ROWS = [[[1], [2]], [np.array([1]), np.array([2])], (("a", 1), ("b", 2)), ["a", "b"], [{"a": 1}]]


@pytest.mark.parametrize("data", [*NO_COLLECTIONS, *ROWS, collections.deque([[1], [2]])])
def test_rows_and_single_tables_are_no_collections(data):
    assert tables_of(data) is None


@pytest.mark.parametrize("empty", [[], (), iter([]), {}.values()], ids=["list", "tuple", "iterator", "dict_values"])
def test_a_collection_of_nothing(empty):
    with pytest.raises(ValueError, match=r"X is an empty (list|tuple|iterator|dict_values)"):
        tables_of(empty)


@pytest.mark.parametrize("data", [[TABLE, [1]], iter([TABLE, None]), (TABLE, "a")])
def test_what_is_no_table_is_named_by_its_number(data):
    with pytest.raises(TypeError, match=r"X\[1\] is no table: a (list|NoneType|str)"):
        tables_of(data)


WITH_TO_FRAME = r"\[part\.to_frame\(\) for part in X\]"
SERIES = {
    "pandas": (pd.Series(["a", "b"]), WITH_TO_FRAME),
    "times": (pd.date_range("2024-01-01", periods=2), WITH_TO_FRAME),
    "polars": (pl.Series("c", ["a", "b"]), WITH_TO_FRAME),
    "narwhals": (nw.from_native(pl.Series("c", ["a", "b"]), series_only=True), WITH_TO_FRAME),
    "arrow": (pa.array(["a", "b"]), r"pyarrow\.table\("),
    "chunks": (pa.chunked_array([["a"], ["b"]]), r"pyarrow\.table\("),
    "cudf": (type("Series", (), {"__module__": "cudf.core.series", "to_frame": None})(), WITH_TO_FRAME),
}


@pytest.mark.parametrize("many", [list, tuple, iter, collections.deque])
@pytest.mark.parametrize(("series", "advice"), SERIES.values(), ids=SERIES.keys())
def test_a_list_of_series_is_no_list_of_tables_and_no_rows(series, advice, many):
    with pytest.raises(TypeError, match=rf"X\[0\] is a series \({type(series).__name__}\).*{advice}"):
        tables_of(many([series, series]))
    with pytest.raises(TypeError, match=rf"X\[1\] is a series .*{advice}"):
        tables_of(many([TABLE, series]))


def dask_promises():
    """Give uncomputed Dask objects, by the argument that they can be."""
    dask = pytest.importorskip("dask.dataframe")
    lazy = dask.from_pandas(TABLE, npartitions=2)
    return lazy, lazy["a"], lazy.to_delayed()[0]


def test_what_dask_has_yet_to_compute_is_refused_among_other_tables():
    advice = r"of Dask, without rows yet, but other data is not of Dask.*or compute them first: X = dask\.compute"
    for promise in dask_promises():
        with pytest.raises(TypeError, match=rf"^X is a {type(promise).__name__} {advice}"):
            read(promise)
        for many in (list, iter, collections.deque):
            with pytest.raises(TypeError, match=rf"^X\[0\] is a {type(promise).__name__} {advice}"):
                tables_of(many([promise]))
            with pytest.raises(TypeError, match=rf"^X\[1\] is a {type(promise).__name__} {advice}"):
                tables_of(many([TABLE, promise]))


def test_a_promise_of_dask_is_no_vector():
    _, series, promise = dask_promises()
    for data, name in ((promise, "y"), ([promise] * 3, r"y\[0\]")):
        for frame in (PIECES, read(TABLE)):
            with pytest.raises(TypeError, match=rf"^{name} is a Delayed of Dask"):
                read_targets(in_line(data, "y", frame))
    # NumPy takes a Dask series for an array, and computes it.
    assert read_targets(series)[0][1].tolist() == [1, 2, 3]


def test_data_of_dask_is_known_by_its_type():
    frame, series, promise = dask_promises()
    assert all(map(is_partitioned, (frame, series, promise, [promise], (promise, promise))))
    assert not any(map(is_partitioned, (None, [], [frame], [1, promise], TABLE, [TABLE], "promise")))


def test_an_iterator_of_rows_is_refused_at_its_first_row():
    rows = iter([["a"], ["b"]])
    with pytest.raises(TypeError, match=r"X\[0\] is no table: a list"):
        tables_of(rows)
    assert list(rows) == [["b"]]


WIDE = pd.DataFrame({f"c{i}": [i] for i in range(7)})
SWAPPED = WIDE[["c0", "c1", "c3", "c2", "c4", "c5", "c6"]]
ONE, TWO = pd.DataFrame({1: [0]}), pd.DataFrame({1: [0], 2: [0]})
OTHER_COLUMNS = {
    "name": (TABLE, TABLE.rename(columns={"a": "b"}), "lacks 'a', which X[0] has, and has 'b', which X[0] lacks"),
    "more": (TABLE, TABLE.assign(b=1), "has 'b', which X[0] lacks"),
    "less": (TABLE.assign(b=1), TABLE, "lacks 'b', which X[0] has"),
    "many": (WIDE, WIDE[["c3"]], "lacks 'c0', 'c1', 'c2', 'c4', 'c5', ... (6 in all), which X[0] has"),
    "order": (WIDE, SWAPPED, "has the columns of X[0] in another order: at position 2 it has 'c3', but X[0] has 'c2'"),
    "no names": (WIDE[["c1"]], TABLE.to_numpy(), "has no column names, but X[0] has 'c1'"),
    "names": (TABLE.to_numpy(), TABLE, "has the column names 'a', but X[0] has none"),
    "widths": (np.zeros((1, 2)), np.zeros((1, 3)), "has 3 columns, but X[0] has 2"),
    "widths and names": (np.zeros((1, 2)), TABLE, "has 1 columns, but X[0] has 2"),
    "a number more": (ONE, TWO, "has 2, which X[0] lacks"),
    "numbers": (ONE, TWO[[2]], "lacks 1, which X[0] has, and has 2, which X[0] lacks"),
}


@pytest.mark.parametrize(("first", "other", "message"), OTHER_COLUMNS.values(), ids=OTHER_COLUMNS.keys())
def test_other_columns_than_the_first(first, other, message):
    with pytest.raises(ValueError, match=re.escape(f"X[2] {message}. All tables must have the same columns")):
        read_pieces([first, first, other])


def test_a_table_that_cannot_be_read_is_named():
    with pytest.raises(TypeError, match=r"^X\[1\]: X is a lazy LazyFrame"):
        read_pieces([pl.from_pandas(TABLE), pl.from_pandas(TABLE).lazy()])
    with pytest.raises(ValueError, match=r"^X\[0\]: duplicate column names: a"):
        read_pieces([pd.concat([TABLE, TABLE], axis=1)])


PIECES = read_pieces([np.zeros((2, 1)), np.zeros((0, 1)), np.zeros((1, 1))])


def vectors(data, role="y"):
    return in_line(data, role, PIECES)


def test_names_and_numbers_of_targets():
    frames = [pd.DataFrame({"s": [1.0], "t": [2]}), pa.table({"s": [3.5], "t": [4]})]
    two = read_pieces([np.zeros((1, 1))] * 2)
    named = in_line(frames, "y", two).targets()
    assert [(name, values.tolist()) for name, values in named] == [("s", [1.0, 3.5]), ("t", [2, 4])]
    assert in_line([pd.Series([1], name="s"), pd.Series([2], name="s")], "y", two).targets()[0][0] == "s"
    assert in_line([pd.Series([1], name="s"), [2]], "y", two).targets()[0][0] is None
    with pytest.raises(ValueError, match=r"y\[1\] has the targets 't', 's', but y\[0\] has the targets 's', 't'\."):
        in_line([frames[0], frames[0][["t", "s"]]], "y", two).targets()
    with pytest.raises(ValueError, match=r"y\[1\] has 1 targets, but y\[0\] has 2 targets"):
        in_line([[[1, 2]], [1]], "y", two).targets()
    with pytest.raises(ValueError, match="sample_weight should be a 1d array"):
        in_line([[[1, 2]], [[3, 4]]], "sample_weight", two).vector()


# Values of two tables in one vector.
JOINED = {
    "int and float": ([1, 2], [0.5], np.array([1.0, 2.0, 0.5])),
    "bool and int": ([True, False], [3], np.array([1, 0, 3])),
    "text and number": (["a", "b"], [1], np.array(["a", "b", 1], object)),
    "text of NumPy and number": (np.array(["a", "b"]), [1], np.array(["a", "b", 1], object)),
    "text of two widths": (np.array(["a", "b"]), np.array(["cde"]), np.array(["a", "b", "cde"])),
    "signed and unsigned": ([2**62, 1], np.array([3], "u8"), np.array([2**62, 1, 3])),
    "unsigned": ([1, 2], np.array([2**64 - 1], "u8"), np.array([1, 2, 2**64 - 1], "u8")),
    "neither": ([-1, 2], np.array([2**64 - 1], "u8"), np.array([-1, 2, 2**64 - 1], object)),
    "nulls and number": ([None, None], [1], np.array([np.nan, np.nan, 1])),
    "nulls and text": ([None, None], ["a"], np.array([None, None, "a"], object)),
    "null and number": ([None, 2], [1], np.array([np.nan, 2.0, 1.0])),
    "decimals": ([Decimal("0.5"), Decimal(1)], [1], np.array([0.5, 1.0, 1.0])),
}


@pytest.mark.parametrize(("one", "other", "whole"), JOINED.values(), ids=JOINED.keys())
def test_a_type_that_holds_all(one, other, whole):
    np.testing.assert_array_equal(vectors([one, [], other], "groups").vector(), whole, strict=True)


def test_concatenating_keeps_single_precision_numbers():
    tiny = np.array([1e-45, 1.5], np.float32)
    assert concatenate([tiny, np.array([0.1])]).tolist() == [float(tiny[0]), 1.5, 0.1]
    assert concatenate([tiny, tiny]).dtype == np.float32


DAYS = pd.Series(pd.date_range("2024-01-01", periods=3))
OTHER_LENGTHS = r"inconsistent numbers of samples: \[0, 1\]. X\[1\] has 0 rows and "
RAGGED = "is a list whose rows have different lengths"


REFUSED_TARGETS = [
    ([[0.5, None], [], [np.nan]], ValueError, "y has 2 missing values, the first in row 1"),
    ([["a", "b"], [], [None]], ValueError, "y has 1 missing value, in row 2"),
    ([["a", "b"], [], [np.nan]], ValueError, "y has 1 missing value, in row 2"),
    ([[1, 2], [3], [4]], ValueError, OTHER_LENGTHS + r"y\[1\] 1;"),
    ([[1, 2], [], 3], ValueError, r"y\[2\] should be a 1d array"),
    (
        [[1, 2], [], "ab"],
        TypeError,
        r"y\[2\] is 'ab', which is not a vector\. Give one value for each row of X: .* table\['ab'\]",
    ),
    ([[[1], [2, 3]], [], [4]], ValueError, rf"^y\[0\] {RAGGED}"),
    ([DAYS[:2], DAYS[:0], DAYS[2:]], TypeError, "y holds dates or times"),
    ([days.to_frame() for days in (DAYS[:2], DAYS[:0], DAYS[2:])], TypeError, "y holds dates or times"),
]


@pytest.mark.parametrize(("data", "error", "message"), REFUSED_TARGETS)
def test_targets_that_are_refused(data, error, message):
    with pytest.raises(error, match=message):
        vectors(data).targets()


def test_other_vectors_that_are_refused():
    with pytest.raises(ValueError, match=OTHER_LENGTHS + r"groups\[1\] 1;"):
        vectors([["a", "b"], ["c"], ["d"]], "groups").grouping()
    with pytest.raises(ValueError, match="sample_weight holds 2 vectors for the 3 tables of X"):
        vectors([[1, 2], [3]], "sample_weight")
    with pytest.raises(ValueError, match=rf"^y {RAGGED}\. .* one value per target"):
        read_targets(in_line([[1], [2, 3], [4]], "y", read(TABLE)))
    with pytest.raises(ValueError, match=rf"^X {RAGGED}\. .* one value per column"):
        read([[1], [2, 3]])


@pytest.mark.parametrize("role", ["y", "sample_weight", "groups"])
@pytest.mark.parametrize("data", [[[1, 2], [3]], [np.array([1, 0]), np.array([1, 0])], ([1], [0, 1], [], [1])])
def test_vectors_for_each_table_where_there_is_one(data, role):
    lengths = rf"numbers of samples: \[3, {len(data)}\]\."
    with pytest.raises(ValueError, match=rf"{lengths} X is one table of 3 rows, and {role} holds {len(data)} vectors"):
        in_line(data, role, read(TABLE))


def test_moments_as_groups_are_of_one_unit():
    days = DAYS.dt.as_unit("ns")
    parts = [days[:2], days[:0], days[2:]]
    assert vectors(parts, "groups").grouping().keys(0, cpu_fallback).codes.tolist() == [0, 1, 2]
    for other in (days[2:].dt.as_unit("s"), pd.Series([5])):
        with pytest.raises(TypeError, match=r"column 'groups' mixes datetime in ns and (datetime in s|other values)"):
            vectors([*parts[:2], other], "groups").grouping()


def test_groups_are_numbered_over_all_tables():
    codes, vocabulary, _ = vectors([["q", "p"], [], ["a"]], "groups").grouping().keys(0, cpu_fallback)
    assert codes.tolist() == [2, 1, 0]
    assert plain(vocabulary) == ["a", "p", "q"]
    with pytest.raises(TypeError, match=r"column 'groups' mixes text and number \(in groups\[2\]\)"):
        vectors([["q", "p"], [], [1]], "groups").grouping().keys(0, cpu_fallback)
