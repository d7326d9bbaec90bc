"""Sparse matrices of OneHotEncoder have the same bits for all forms of input, all formats and both devices."""

import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import clone

from gpu_encode import OneHotEncoder, load
from gpu_encode.encoders.one_hot.rows import columns_of_ones
from gpu_encode.fitting.columns import locate_columns
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.seam import ops
from tests.backends import ON_CUDA

HOSTS = ON_CUDA[:1] or ("numpy", "compiled")
PARAMETERS = [
    {},
    {"min_frequency": 3, "handle_unknown": "infrequent_if_exist"},
    {"max_categories": 2, "drop": "if_binary", "handle_unknown": "infrequent_if_exist"},
    {"drop": ["Lima", 3]},
    {"drop": {"size": 3}},
    {"handle_missing": "zero", "handle_unknown": "ignore"},
]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Give sixty rows of two columns; the first rows hold the values to drop."""
    random = np.random.default_rng(0)
    towns = np.array(["Oslo", "Lima", "Bonn", None], object)[random.choice(4, 60, p=[0.5, 0.3, 0.1, 0.1])]
    sizes = np.array([1, 2, 3, 10])[random.choice(4, 60, p=[0.6, 0.2, 0.15, 0.05])]
    towns[:9], sizes[:9] = "Lima", 3
    return pd.DataFrame({"town": pd.Series(towns, dtype=object), "size": sizes})


def bits(matrix) -> tuple[object, ...]:
    """Give all properties of a result of `transform`, for a comparison."""
    if sparse.issparse(matrix):
        arrays = (matrix.data, matrix.indices, matrix.indptr)
        return matrix.shape, matrix.dtype, *((array.dtype, array.tobytes()) for array in arrays)
    array = np.ascontiguousarray(matrix)
    return array.shape, array.dtype, array.tobytes()


def known(encoder: OneHotEncoder) -> str:
    """Give all fitted attributes of an encoder."""
    names = encoder.get_feature_names_out().tolist()
    return repr((encoder.categories_, encoder.drop_idx_, encoder.infrequent_categories_, encoder.encodings_, names))


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_every_way_gives_one_matrix(frame, parameters, tmp_path):
    """Rows in another order, in steps, in pieces, from a file or a pickle give one matrix; `members` has dense ones."""
    whole = OneHotEncoder(**parameters)
    matrix = whole.fit_transform(frame)
    whole.save(tmp_path / "encoder")
    pieces = [frame[:20], pl.from_pandas(frame[20:45]), pa.Table.from_pandas(frame[45:], preserve_index=False)]
    in_pieces = clone(whole)
    in_steps = clone(whole).partial_fit(frame[:9]).partial_fit(frame[9:30]).partial_fit(frame[30:])
    rows = [slice(0, 20), slice(20, 45), slice(45, 60)]
    for matrices in (in_pieces.fit_transform(pieces), whole.transform(iter(pieces))):
        assert [bits(piece) for piece in matrices] == [bits(matrix[part]) for part in rows]
    kept = [load(tmp_path / "encoder"), pickle.loads(pickle.dumps(whole))]
    for other in (*kept, in_pieces, in_steps, clone(whole).fit(frame[::-1])):
        assert known(other) == known(whole)
        assert bits(other.transform(frame)) == bits(matrix)
        np.testing.assert_array_equal(other.inverse_transform(matrix), whole.inverse_transform(matrix))


def test_parameters_of_the_fit_count(frame):
    """A later setting changes the container, and no column."""
    encoder = OneHotEncoder(drop="first").fit(frame)
    before = encoder.transform(frame).toarray()
    encoder.set_params(drop=None, max_categories=1, sparse_output=False, dtype="int16")
    after = encoder.transform(frame)
    assert set(after.dtypes) == {np.dtype("int16")}
    assert np.array_equal(after, before)
    with pytest.raises(ValueError, match="parameters"):
        encoder.partial_fit(frame)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_kinds_of_tables(frame):
    """Sparse matrices are the same for all libraries; `set_output` gives frames of named columns."""
    encoder = OneHotEncoder().fit(frame)
    expected = bits(encoder.transform(frame))
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.set_index(np.arange(60) * 2)):
        assert bits(encoder.transform(table)) == expected
    for container in ("pandas", "polars"):
        dense = OneHotEncoder(sparse_output=False).set_output(transform=container)
        table = dense.fit_transform(frame.to_numpy())
        assert type(table).__module__.split(".")[0] == container
        assert list(table.columns) == dense.get_feature_names_out().tolist()


def test_joint_keys(frame):
    """A joint key has a column for each combination that occurs, as a column of tuples would have."""
    encoder = OneHotEncoder(columns=[("town", "size")])
    matrix = encoder.fit_transform(frame)
    pairs = list(zip(frame["town"], frame["size"], strict=True))
    distinct = sorted(set(pairs), key=lambda pair: (pair[0] is None, pair[0] or "", pair[1]))
    assert encoder.categories_[0].tolist() == distinct
    assert matrix.indices.tolist() == [distinct.index(pair) for pair in pairs]
    assert [tuple(row[0]) for row in encoder.inverse_transform(matrix)] == pairs
    assert encoder.get_feature_names_out()[0] == f"town_x_size_{distinct[0][0]}_x_{distinct[0][1]}"
    dropped = OneHotEncoder(columns=[("town", "size"), "size"], drop=[("Oslo", 2), 10]).fit(frame)
    drops = [values[number] for values, number in zip(dropped.categories_, dropped.drop_idx_, strict=True)]
    assert drops == [("Oslo", 2), 10]
    by_key = OneHotEncoder(columns=[("town", "size"), "town", "size"], drop={1: 10, ("town", 1): ("Oslo", 2)})
    assert list(by_key.fit(frame).drop_idx_) == [dropped.drop_idx_[0], None, dropped.drop_idx_[1]]
    assert dropped.inverse_transform(dropped.transform(frame))[:, 0].tolist() == pairs


def test_columns_that_pass_through(frame):
    """Passed columns follow the encoded ones in a table; a sparse matrix cannot hold them."""
    encoder = OneHotEncoder(columns=["town"], sparse_output=False, dtype="int8")
    table = encoder.fit_transform(frame)
    assert list(table.columns) == ["town_Bonn", "town_Lima", "town_Oslo", "town_None", "size"]
    pd.testing.assert_series_equal(table["size"], frame["size"])
    assert np.array_equal(table.iloc[:, :4], OneHotEncoder().fit_transform(frame[["town"]]).toarray())
    # Selected by name, at any position.
    assert encoder.transform(frame[["size", "town"]]).equals(encoder.transform(frame))
    assert encoder.inverse_transform(table.iloc[:, :4]).ravel().tolist() == frame["town"].tolist()


def test_times_numbers_and_truth_values_come_back():
    """Categories of any type are recognized, among those to drop too, and restored."""
    days = ["2024-01-02", "2024-01-01", "2024-01-02"]
    blobs = pd.Series([b"x", b"y", b"y"], dtype=object)
    frame = pd.DataFrame({"day": pd.to_datetime(days), "flag": [True, False, True], "blob": blobs})
    encoder = OneHotEncoder(drop=[pd.Timestamp("2024-01-02"), False, b"y"]).fit(frame)
    assert encoder.drop_idx_.tolist() == [1, 0, 1]
    back = encoder.inverse_transform(encoder.transform(frame))
    assert back[:, 1:].tolist() == frame.iloc[:, 1:].to_numpy().tolist()
    assert [pd.Timestamp(day) for day in back[:, 0]] == frame["day"].tolist()


@pytest.mark.parametrize("name", HOSTS)
def test_the_three_arrays_of_the_backend(frame, name):
    """Columns of rows are found by array expressions where the backend computes."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(frame.iloc[:30])
    expected = encoder.transform(frame)
    with ops.use_backend(name):
        backend = ops.resolve(len(frame))
        at = locate_columns(Inputs(frame).frame, encoder._model.selection, encoder._model.feature_names, 2, "")
        codes = [key.lookup(at, backend, True) for key in encoder._model.keys]
        columns = columns_of_ones(encoder._columns, encoder._model.keys, codes, at, backend)
        assert isinstance(columns, type(backend.empty((1,), np.int32)))
        columns = backend.to_host(columns)
    assert columns[columns >= 0].tolist() == expected.indices.tolist()


def check_on_device(xp, there, host, new):
    """Compare a matrix in a device's memory with that of the host; CuPy's sparse ones are arrays in the simulator."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "cuda-simulator" in ON_CUDA:
            made = SimpleNamespace(csr_matrix=lambda parts, shape: SimpleNamespace(parts=parts, shape=shape))
            patch.setitem(sys.modules, "cupyx.scipy.sparse", made)
        matrix, whole = there.transform(xp.asarray(new)), host.transform(new)
    if not host.sparse_output:
        assert isinstance(matrix, xp.ndarray)
        assert bits(matrix.get()) == bits(whole)
        assert there.inverse_transform(matrix).tolist() == host.inverse_transform(whole).tolist()
        return
    arrays = getattr(matrix, "parts", None) or (matrix.data, matrix.indices, matrix.indptr)
    assert matrix.shape == whole.shape
    for array, expected in zip(arrays, (whole.data, whole.indices, whole.indptr), strict=True):
        assert isinstance(array, xp.ndarray)
        assert bits(array.get()) == bits(expected)


@pytest.mark.cuda
@pytest.mark.parametrize("parameters", [{}, {"sparse_output": False, "drop": [5, 2]}], ids=["sparse", "dense"])
def test_rows_in_a_devices_memory(xp, parameters):
    """Numbers on a GPU stay there: a matrix of CuPy, or the three arrays of a sparse one."""
    rows = np.array([[3, 1], [5, 1], [3, 2], [7, 2]])
    host = OneHotEncoder(handle_unknown="ignore", **parameters).fit(rows)
    there = clone(host).fit(xp.asarray(rows))
    assert known(there) == known(host)
    for new in (rows, np.array([[7, 2], [4, 1]])):
        check_on_device(xp, there, host, new)


@pytest.mark.skipif(bool(ON_CUDA), reason="Dask's partitions are read on the host")
def test_promises_and_partitions(frame):
    """Lazy tables are encoded like one table; if rows are counted elsewhere, their counts are refused."""
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    frame = frame.fillna({"town": "Rome"})
    encoder = OneHotEncoder(min_frequency=3, drop="first")
    expected = encoder.fit_transform(frame)
    promises = [dask.delayed(frame.iloc[:25]), dask.delayed(frame.iloc[25:])]
    for matrices in (clone(encoder).fit_transform(promises), clone(encoder).fit(promises).transform(promises)):
        assert bits(sparse.vstack(dask.compute(*matrices), format="csr")) == bits(expected)
    listed = OneHotEncoder(categories=[["Oslo", "Lima"], [1, 2, 3, 10]])
    with pytest.raises(ValueError, match="Found unknown categories"):
        listed.fit(dd.from_pandas(frame, npartitions=2))
    assert not hasattr(listed, "n_features_in_")
