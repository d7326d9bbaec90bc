"""Which inputs are tables, and what the errors about other inputs say."""

import subprocess
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from gpu_encode.tables.frames import columns, read

FRAME = pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})


def nulls(frame, position):
    return columns.plain(frame.column(position))[1]


class Stream:
    """An object that offers its columns through the Arrow C stream and nothing else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table(FRAME).__arrow_c_stream__(requested_schema)


class Interchange:
    """An object that offers the dataframe interchange protocol and nothing else."""

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return pa.table(FRAME).__dataframe__(nan_as_null, allow_copy)


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.array([[1, 2], [3, 4]], dtype)


@pytest.mark.parametrize(
    ("data", "kind", "names"),
    [
        (np.zeros((2, 2)), "numpy", None),
        ([["x", 1], ["y", 2]], "numpy", None),
        ([(1, 2), (3, 4)], "numpy", None),
        (ArrayLike(), "numpy", None),
        (FRAME, "pandas", ["a", "b"]),
        (FRAME.set_axis([0, 1], axis=1), "pandas", None),
        (FRAME.set_axis([("a", 1), ("b", 2)], axis=1), "pandas", None),
        (pl.from_pandas(FRAME), "polars", ["a", "b"]),
        (pa.table(FRAME), "pyarrow", ["a", "b"]),
        (pa.RecordBatch.from_pandas(FRAME), "pyarrow_batch", ["a", "b"]),
        (nw.from_native(FRAME), "pandas", ["a", "b"]),
        (Stream(), "pyarrow", ["a", "b"]),
        (Interchange(), "pyarrow", ["a", "b"]),
    ],
)
def test_kinds_and_names(data, kind, names):
    frame = read(data)
    assert (frame.kind, frame.names, frame.shape, frame.n_rows, frame.n_columns) == (kind, names, (2, 2), 2, 2)
    assert read(frame) is frame


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([{"a": 1}], TypeError, r"pandas.DataFrame\(rows\) or pyarrow.Table.from_pylist\(rows\)"),
        ({"a": [1]}, TypeError, "X holds dicts"),
        (scipy.sparse.coo_array((2, 2)), TypeError, "sparse"),
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array instead:(.|\n)*Reshape your data"),
        (["a", "b"], ValueError, "Expected 2D array, got 1D array instead"),
        ([[1], [1, 2]] * 6, ValueError, "rows have different lengths"),
        (object(), TypeError, "X of type object is not understood. Give a NumPy array"),
        (FRAME["a"], ValueError, r"Expected 2D array, got 1D array instead(.|\n)* One column .* X\[\['a'\]\]\."),
        (FRAME.columns, ValueError, "Expected 2D array, got 1D array instead"),
        (pl.Series([1]), ValueError, "Expected 2D array, got 1D array instead"),
        (pa.array([1]), ValueError, "Expected 2D array, got 1D array instead"),
        ("text", TypeError, "X is 'text', which is not a table. Read the file first"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
        (nw.from_native(pl.LazyFrame({"a": [1]})), TypeError, r"Call .collect\(\) first"),
        (pa.table([[1], [2], [3]], names=["u", "b", "b"]), ValueError, "duplicate column names: b"),
    ],
)
def test_what_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        read(data)


def test_lists_keep_the_types_of_their_values():
    assert list(map(type, read([["a", 1, None]]).native[0])) == [str, int, type(None)]
    assert read([[2**53 + 1, 0.5]]).native[0, 0] == 2**53 + 1
    assert read([[1, 0.5], [float("nan"), 2]]).native.dtype == np.float64
    assert read([[1, 2]]).native.dtype == np.int64


@pytest.mark.parametrize("values", [[1.5, None, 0.5], ["b", None, "a"]], ids=["numbers", "text"])
def test_plain_values(build, values):
    frame = read(build(values))
    assert nulls(frame, 0).tolist() == [False, True, False]
    assert frame.values(0)[[0, 2]].tolist() == values[::2]
    assert frame.values(0)[1] is None or np.isnan(frame.values(0)[1])
    assert nulls(read(build([None, None])), 0).tolist() == [True, True]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_plain_moments_are_integers_in_order(unit):
    times = pd.Series(pd.to_datetime(["2020-01-02", None, "2020-01-01"])).astype(f"datetime64[{unit}]")
    table = times.to_frame("c")
    for data in (table, pl.from_pandas(table), pa.table(table), times.to_numpy()[:, None], table.astype("category")):
        frame = read(data)
        values = frame.values(0)
        assert values.dtype == np.int64
        assert values[0] > values[2]
        assert nulls(frame, 0).tolist() == [False, True, False]


def test_masked_plain_values():
    frame = read(np.ma.MaskedArray([[1, 2.0], [3, 4]], mask=[[0, 1], [1, 0]]))
    assert frame.values(0)[0] == 1
    assert (nulls(frame, 0).tolist(), nulls(frame, 1).tolist()) == ([False, True], [True, False])
    whole = read(np.ma.MaskedArray([[1], [3]], mask=[[0], [1]]))
    assert whole.values(0).tolist() == [1, 0]
    assert read(pa.table({"c": pa.array([1, None])})).values(0).tolist() == [1, 0]


def test_no_frame_library_is_imported_to_find_out():
    script = (
        "import sys, numpy as np; from gpu_encode.tables.frames import read; read(np.zeros((2, 2)));"
        "print([name for name in ('pandas', 'polars', 'numba', 'sklearn', 'dask', 'cupy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_dictionary_with_an_index_outside_of_it_is_refused(ops):
    for indices in ([0, 1, 2], [0, -2]):
        damaged = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(["a", "b"]), safe=False)
        with pytest.raises(ValueError, match=f"index {indices[-1]}, but its dictionary has 2 entries"):
            read(pa.table({"a": damaged})).keys(0, ops)
