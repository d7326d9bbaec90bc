"""Targets, weights and groups from every container."""

from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from gpu_encode.tables.frames import read_targets, read_vector


@pytest.mark.parametrize("values", [[1, 0, 1], [0.5, 1.5, -1.0], [True, False, True], ["a", "b", "a"]])
def test_every_container_gives_the_same_vector(values):
    series = pd.Series(values)
    containers = [
        values,
        tuple(values),
        np.array(values),
        np.array(values, object),
        np.array(values).reshape(-1, 1),
        series,
        pd.Index(values),
        series.astype("category"),
        series.convert_dtypes(),
        series.to_frame(),
        pl.Series(values),
        pl.DataFrame({"y": values}),
        pa.array(values),
        pa.chunked_array([values[:1], values[1:]]),
        pa.array(values).dictionary_encode(),
        pa.table({"y": values}),
        pa.record_batch({"y": values}),
        nw.from_native(series, series_only=True),
        nw.from_native(series.to_frame("y")),
    ]
    for data in containers:
        vector = read_vector(data, "y", 3)
        assert vector.tolist() == values
        assert vector.dtype.kind in (np.array(values).dtype.kind, "O")


def test_read_only_vectors_are_not_copied():
    values = np.arange(3.0)
    values.setflags(write=False)
    assert np.shares_memory(read_vector(values, "y"), values)
    series = pd.Series(values)
    assert np.shares_memory(read_vector(series, "y"), series.to_numpy())


@pytest.mark.parametrize(
    "data",
    [
        [1.0, None, 2.0, None, None],
        ["a", None, "b", np.nan, None],
        pd.Series([1, None, 2, None, None], dtype="Int64"),
        pd.Series(["a", None, "b", None, None], dtype="category"),
        pl.Series([True, None, False, None, None]),
        pa.array([1, None, 2, None, None]),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2020-01-01", None, None])),
    ],
)
def test_missing_targets_are_counted(data):
    with pytest.raises(ValueError, match="y has 3 missing values, the first in row 1"):
        read_vector(data, "y")
    assert len(read_vector(data, "groups")) == 5


def test_nulls_elsewhere_are_nan_or_none():
    assert np.isnan(read_vector(pa.array([1, None]), "sample_weight")[1])
    assert np.isnan(read_vector([1, None], "sample_weight")[1])
    assert read_vector(["a", None], "groups").tolist() == ["a", None]


def test_numbers_of_python():
    assert read_vector([2**70, 1], "groups").tolist() == [2**70, 1]
    for data in (pa.array([Decimal("0.5"), Decimal(2)]), [Decimal("0.5"), 2]):
        np.testing.assert_array_equal(read_vector(data, "y"), [0.5, 2.0], strict=True)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([1, 2, 3, 4], ValueError, r"Found input variables with inconsistent numbers of samples: \[3, 4\]"),
        (np.zeros((3, 2)), ValueError, r"sample_weight should be a 1d array, got an array of shape \(3, 2\)"),
        (np.zeros((3, 2, 2)), ValueError, "should be a 1d array"),
        (1.0, ValueError, r"should be a 1d array, got an array of shape \(\)"),
        (np.zeros(3, complex), ValueError, "Complex data not supported"),
        (scipy.sparse.csr_matrix((3, 1)), TypeError, "sample_weight is sparse"),
        (None, TypeError, "sample_weight of type NoneType is not understood"),
        ([[1], [1, 2], [3]], ValueError, "different lengths"),
    ],
)
def test_what_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        read_vector(data, "sample_weight", 3)


def test_moments_are_integers_but_no_targets():
    days = np.array(["2020-01-02", "2020-01-01"], "M8[D]")
    for data in (days, pd.Series(days), pl.Series(days), pa.array(days)):
        assert read_vector(data, "groups").tolist()[0] > read_vector(data, "groups").tolist()[1]
        with pytest.raises(TypeError, match="y holds dates or times"):
            read_vector(data, "y")


TARGETS = {
    "pandas": (pd.DataFrame({"price": [1, 2], "sold": ["no", "yes"]}), [("price", [1, 2]), ("sold", ["no", "yes"])]),
    "numpy": (np.array([[1, 2], [3, 4]]), [(None, [1, 3]), (None, [2, 4])]),
    "rows": ([[1, 2], [3, 4]], [(None, [1, 3]), (None, [2, 4])]),
    "rows of one": ([[1], [3]], [(None, [1, 3])]),
    "polars": (pl.Series("y", [1, 2]), [("y", [1, 2])]),
    "pyarrow": (pa.table({"y": [1, 3], "z": [2, 4]}), [("y", [1, 3]), ("z", [2, 4])]),
}


@pytest.mark.parametrize(("data", "expected"), TARGETS.values(), ids=TARGETS)
def test_targets(data, expected):
    assert [(name, values.tolist()) for name, values in read_targets(data, 2)] == expected
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[3, 2\]"):
        read_targets(data, 3)
