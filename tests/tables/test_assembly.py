"""Output tables have the library, the index and the order of X, and columns that pass through do not change."""

import datetime as dt

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpu_encode.tables.frames import Frame, read
from tests.cases import named

ENCODED = np.array([[0.5, 1.5], [2.5, np.nan], [4.5, 5.5]])
NAMES = ["one", "two"]
KEPT = pd.DataFrame(
    {
        "time": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
        "category": pd.Categorical(["b", None, "a"], categories=["b", "a", "unused"], ordered=True),
        "encoded": ["x", "y", "z"],
        "whole": pd.array([2**60 + 1, None, 3], dtype="Int64"),
    },
    index=[7, 7, 3],
)


def columns_of(matrix):
    return [matrix[:, position] for position in range(matrix.shape[1])]


def without_index(table):
    """Give a pandas table that Arrow takes without its index."""
    return table.reset_index(drop=True) if isinstance(table, pd.DataFrame) else table


TABLE = pa.table(without_index(KEPT))
TABLE = TABLE.replace_schema_metadata(TABLE.schema.metadata | {b"owner": b"me"})
SOURCES = {"pandas": KEPT, "polars": pl.from_pandas(KEPT), "pyarrow": TABLE, "batch": TABLE.to_batches()[0]}


@pytest.mark.parametrize("passed", [[], [3, 0, 1]])
@pytest.mark.parametrize("data", named(SOURCES))
def test_tables_of_every_library(data, passed):
    result = read(data).assemble(NAMES, columns_of(ENCODED), passed)
    assert type(result) is type(data)
    table, source = (
        (pa.table(result.reset_index(drop=True)), TABLE) if data is KEPT else (pa.table(result), pa.table(data))
    )
    source = source.select(passed)
    assert table.schema.names == NAMES + source.schema.names
    assert table.columns[2:] == source.columns
    assert list(table.schema)[2:] == list(source.schema)
    if data is KEPT:
        pd.testing.assert_frame_equal(result.iloc[:, 2:], KEPT.iloc[:, passed])
        np.testing.assert_array_equal(result[NAMES].to_numpy(), ENCODED)
    else:
        # NaN is not null.
        np.testing.assert_array_equal(np.transpose(table.columns[:2]), ENCODED)
        assert table.column(1).null_count == 0
    if isinstance(result, pa.Table | pa.RecordBatch):
        assert result.schema.metadata == {b"owner": b"me"}


@pytest.mark.parametrize("passed", [[], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("names", [[], NAMES])
@pytest.mark.parametrize("label", [None, "what", ("a", 1)])
def test_attributes_and_the_name_of_the_columns(passed, names, label):
    table = KEPT.copy()
    table.columns = table.columns.rename(label)
    table.attrs = {"unit": "kg"}
    frame = read(table)
    made = frame.assemble(names, columns_of(ENCODED)[: len(names)], passed)
    assert made.attrs == {"unit": "kg"}
    assert made.columns.name == label
    assert table.columns.name == label
    made.attrs["unit"] = "g"
    assert table.attrs == {"unit": "kg"}


def test_pandas_objects_stay_the_same_objects():
    marker = object()
    frame = pd.DataFrame({"a": [1, 2], "b": [marker, None]})
    assert read(frame).assemble(["f"], [np.zeros(2)], [1])["b"].iloc[0] is marker
    assert list(read(frame).assemble([], [], [1]).columns) == ["b"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_of_one_matrix_are_not_copied(order):
    matrix, array = np.array(ENCODED, order=order), read(np.zeros((3, 1)))
    assert np.shares_memory(read(KEPT).assemble(NAMES, columns_of(matrix), []).to_numpy(), matrix)
    assert array.assemble(NAMES, columns_of(matrix), []) is matrix
    np.testing.assert_array_equal(array.assemble(NAMES, columns_of(matrix)[::-1], []), matrix[:, ::-1])
    np.testing.assert_array_equal(array.assemble(NAMES, columns_of(matrix[::-1]), []), matrix[::-1])


def test_different_types_of_columns():
    arrays = [np.array([0.5, 1, 2], np.float32), np.array([0, 1, 0], np.uint8)]
    for data in (KEPT, pl.from_pandas(KEPT), pa.table(KEPT)):
        table = nw.from_native(read(data).assemble(NAMES, arrays, []))
        assert table.schema == {"one": nw.Float32(), "two": nw.UInt8()}
    assert read(np.zeros((3, 1))).assemble(NAMES, arrays, []).dtype == np.float32


@pytest.mark.parametrize(
    ("passing", "dtype"),
    [
        (np.array([[1, 2], [3, 4], [5, 6]]), np.float64),
        (np.array([[1, 2], [3, 4], [5, 2**60 + 1]]), object),
        (np.array([["a", 2], [3, 4], [5, 6]], object), object),
        (np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.float64),
        (np.zeros((3, 2), "M8[s]"), object),
    ],
)
def test_numpy(passing, dtype):
    result = read(passing).assemble(NAMES, columns_of(ENCODED), [1])
    assert result.dtype == dtype
    np.testing.assert_array_equal(result[:, :2].astype(float), ENCODED)
    assert result[:, 2].tolist() == passing[:, 1].tolist()


KINDS = {"numpy": np.ndarray, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passed", [[], [2, 0]])
@pytest.mark.parametrize("data", named(SOURCES | {"narwhals": nw.from_native(KEPT)}))
def test_another_container_on_request(data, kind, passed):
    result = nw.to_native(read(data).assemble(NAMES, columns_of(ENCODED), passed, kind=kind), pass_through=True)
    assert type(result) is KINDS[kind]
    assert result.shape == (3, 2 + len(passed))
    if kind != "numpy":
        table = nw.from_native(result, eager_only=True)
        assert table.columns == NAMES + [KEPT.columns[position] for position in passed]
        if passed:
            assert table["encoded"].to_list() == ["x", "y", "z"]
            assert table["time"].to_list()[0] == dt.datetime(2020, 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_another_container_of_an_array(kind):
    array = read(np.array([["a", 1], ["b", 2], ["c", 3]], object))
    result = array.assemble(NAMES, columns_of(ENCODED), [1], kind=kind)
    assert type(result) is KINDS[kind]
    if kind != "numpy":
        assert nw.from_native(result, eager_only=True).columns == [*NAMES, "x1"]
    with pytest.raises(ValueError, match="kind 'duckdb' of table is not known"):
        array.assemble(NAMES, columns_of(ENCODED), [], kind="duckdb")


def test_other_libraries_by_way_of_narwhals(ops):
    eager = nw.from_native(pl.DataFrame({"a": ["y", None, "x"], "b": [1, 2, 3]}))
    frame = Frame(eager, "other", eager.shape, eager.columns)
    assert frame.keys(0, ops).codes.tolist() == [1, -1, 0]
    result = frame.assemble(NAMES, columns_of(ENCODED), [1])
    assert isinstance(result, pl.DataFrame)
    assert result.columns == [*NAMES, "b"]
    assert frame.assemble(NAMES, columns_of(ENCODED), []).columns == NAMES
    assert frame.assemble([], [], [1]).columns == ["b"]
    assert frame.assemble(NAMES, columns_of(ENCODED), [1], kind="numpy").shape == (3, 3)
    assert isinstance(frame.assemble(NAMES, columns_of(ENCODED), [1], kind="pandas"), pd.DataFrame)
