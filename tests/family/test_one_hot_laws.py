"""Laws of OneHotEncoder: the same columns, however rows come, are weighted, are cut, are kept, and where they lie."""

import pickle
import sys
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import clone

from gpu_encode import OneHotEncoder, encode_dataset, load, ops, transform_dataset
from gpu_encode.encoders.one_hot.rows import places_of
from gpu_encode.fitting.columns import locate_columns
from gpu_encode.fitting.inputs import Inputs
from tests.backends import ON_CUDA
from tests.strategies import examples

HOSTS = ON_CUDA[:1] or ("numpy", "compiled")
EXAMPLES = 10 if ON_CUDA else 50
TOWNS, SIZES = ["Oslo", "Lima", "Bonn", None], [1, 2, 3, 10]
PARAMETERS = [
    {},
    {"min_frequency": 3, "handle_unknown": "infrequent_if_exist"},
    {"max_categories": 2, "drop": "if_binary", "handle_unknown": "infrequent_if_exist"},
    {"drop": ["Lima", 3]},
    {"min_frequency": 0.3, "drop": "first", "sparse_output": False, "dtype": "float32"},
    {"handle_missing": "zero", "handle_unknown": "ignore"},
]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Give sixty rows of two columns."""
    random = np.random.default_rng(0)
    towns = pd.Series([TOWNS[i] for i in random.choice(4, 60, p=[0.5, 0.3, 0.1, 0.1])], dtype=object)
    return pd.DataFrame({"town": towns, "size": np.array(SIZES)[random.choice(4, 60, p=[0.6, 0.2, 0.15, 0.05])]})


def bits(found) -> tuple[object, ...]:
    """Give all that a result of `transform` is, to be compared."""
    if sparse.issparse(found):
        return (found.shape, found.dtype, *(getattr(found, name).tobytes() for name in ("data", "indices", "indptr")))
    array = np.ascontiguousarray(found)
    return array.shape, array.dtype, array.tobytes()


def known(encoder: OneHotEncoder) -> str:
    """Give all that a fitted encoder says of itself."""
    names = encoder.get_feature_names_out().tolist()
    return repr((encoder.categories_, encoder.drop_idx_, encoder.infrequent_categories_, encoder.encodings_, names))


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_training_rows_are_rows(frame, parameters):
    """`fit_transform` is `fit` and `transform`; the target plays no part."""
    encoder = OneHotEncoder(**parameters)
    found = bits(encoder.fit_transform(frame))
    assert bits(clone(encoder).fit(frame).transform(frame)) == found
    assert bits(clone(encoder).fit_transform(frame, np.arange(60.0))) == found


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_order_of_rows_plays_no_part(frame, parameters):
    """Rows that change places take their columns with them."""
    order = np.random.default_rng(1).permutation(60)
    encoder, other = OneHotEncoder(**parameters).fit(frame), OneHotEncoder(**parameters).fit(frame.iloc[order])
    assert known(encoder) == known(other)
    assert bits(encoder.transform(frame)[order] if encoder.sparse_output else encoder.transform(frame).iloc[order]) == (
        bits(other.transform(frame.iloc[order]))
    )


@examples(EXAMPLES)
@given(data=st.data(), parameters=st.sampled_from(PARAMETERS))
def test_whole_weights_are_repeated_rows(data, parameters):
    """A row of weight w is w rows, and one of weight zero none."""
    size = data.draw(st.integers(4, 20))
    towns = ["Lima", *data.draw(st.lists(st.sampled_from(TOWNS), min_size=size - 1, max_size=size - 1))]
    sizes = [3, *data.draw(st.lists(st.sampled_from(SIZES), min_size=size - 1, max_size=size - 1))]
    weights = [1, *data.draw(st.lists(st.integers(0, 3), min_size=size - 1, max_size=size - 1))]
    # "Lima" and 3 are to be dropped where they are frequent alone.
    frame = pd.DataFrame({"town": pd.Series(towns, dtype=object), "size": sizes})
    repeated = frame.loc[np.repeat(np.arange(size), weights)]
    found = []
    for rows, own in ((frame, weights), (repeated, None)):
        encoder = OneHotEncoder(**parameters).fit(rows, sample_weight=own)
        found.append((known(encoder), bits(encoder.transform(repeated))))
    assert found[0] == found[1]


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("cuts", [(0, 60), (0, 1, 59, 60), (0, 20, 20, 45, 60)])
def test_tables_in_pieces(frame, parameters, cuts):
    """Several tables of several kinds are fitted as one, and each gets a matrix of its own."""
    whole = OneHotEncoder(**parameters)
    matrix = whole.fit_transform(frame)
    parts = [frame.iloc[start:stop] for start, stop in pairwise(cuts)]
    kinds = [lambda each: each, pl.from_pandas, lambda each: pa.Table.from_pandas(each, preserve_index=False)]
    pieces = [kinds[number % 3](part) for number, part in enumerate(parts)]
    encoder = OneHotEncoder(**parameters)
    found = [encoder.fit_transform(pieces), encoder.transform(iter(pieces))]
    assert known(encoder) == known(whole)
    rows = [slice(start, stop) for start, stop in pairwise(cuts)]
    for each in found:
        assert isinstance(each, list)
        if whole.sparse_output:
            assert [bits(own) for own in each] == [bits(matrix[own]) for own in rows]
        else:
            assert [type(own) for own in each] == [type(piece) for piece in pieces]
            for own, part in zip(each, rows, strict=True):
                array = own.to_numpy() if hasattr(own, "to_numpy") else np.array(own.to_pandas())
                assert np.array_equal(array, matrix.iloc[part].to_numpy())


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_rows_that_come_later(frame, parameters):
    """`partial_fit` in any number of calls is one `fit`."""
    whole = OneHotEncoder(**parameters).fit(frame)
    # Whatever is to be dropped has to be there from the first call on.
    order = frame.sort_values("size", key=lambda sizes: sizes != 3, kind="stable").index
    first = frame.loc[[*order[:1], *frame.index[frame.town == "Lima"][:8]]]
    rest = frame.drop(first.index)
    later = OneHotEncoder(**parameters).partial_fit(first).partial_fit(rest.iloc[:20]).partial_fit(rest.iloc[20:])
    assert known(later) == known(whole)
    assert bits(later.transform(frame)) == bits(whole.transform(frame))


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_what_is_kept(frame, parameters, tmp_path):
    """A file and a pickle give the encoder that they were made of."""
    encoder = OneHotEncoder(**parameters).fit(frame)
    encoder.save(tmp_path / "encoder")
    for other in (load(tmp_path / "encoder"), pickle.loads(pickle.dumps(encoder))):
        assert other.get_params() == encoder.get_params()
        assert known(other) == known(encoder)
        assert bits(other.transform(frame)) == bits(encoder.transform(frame))
        assert other.inverse_transform(encoder.transform(frame)).tolist() == (
            encoder.inverse_transform(encoder.transform(frame)).tolist()
        )


def test_parameters_of_the_fit_count(frame):
    """What is set later changes the container, and no column."""
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
    """Columns come back in the library, and with the index, of the table; sparse ones are the same for all."""
    frame = frame.set_index(np.arange(60) * 2)
    tables = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False), frame.to_numpy()]
    thin, whole = OneHotEncoder().fit(frame), OneHotEncoder(sparse_output=False).fit(frame)
    expected = bits(thin.transform(frame))
    for table in tables:
        found = whole.transform(table)
        assert type(found) is type(table)
        if hasattr(found, "columns"):
            names = found.column_names if isinstance(found, pa.Table) else list(found.columns)
            assert names == whole.get_feature_names_out().tolist()
        array = found.to_pandas().to_numpy() if isinstance(found, pa.Table) else np.asarray(found)
        assert np.array_equal(array, thin.transform(frame).toarray())
        if not isinstance(table, np.ndarray):
            assert bits(thin.transform(table)) == expected
    assert whole.transform(frame).index.equals(frame.index)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_a_container_asked_for(frame, container):
    """`set_output` gives frames of named columns."""
    encoder = OneHotEncoder(sparse_output=False).set_output(transform=container)
    found = encoder.fit_transform(frame.to_numpy())
    assert type(found).__module__.split(".")[0] == container
    assert list(found.columns) == encoder.get_feature_names_out().tolist()


def test_joint_keys(frame):
    """A joint key has a column for each combination that occurs, as a column of tuples would have."""
    encoder = OneHotEncoder(columns=[("town", "size")])
    found = encoder.fit_transform(frame)
    pairs = list(zip(frame["town"], frame["size"], strict=True))
    distinct = sorted(set(pairs), key=lambda pair: (pair[0] is None, pair[0] or "", pair[1]))
    assert encoder.categories_[0].tolist() == distinct
    assert found.indices.tolist() == [distinct.index(pair) for pair in pairs]
    assert [tuple(row[0]) for row in encoder.inverse_transform(found)] == pairs
    assert encoder.get_feature_names_out()[0] == f"town_x_size_{distinct[0][0]}_x_{distinct[0][1]}"
    dropped = OneHotEncoder(columns=[("town", "size"), "size"], drop=[("Oslo", 2), 10]).fit(frame)
    assert [each[at] for each, at in zip(dropped.categories_, dropped.drop_idx_, strict=True)] == [("Oslo", 2), 10]
    assert dropped.inverse_transform(dropped.transform(frame))[:, 0].tolist() == pairs


def test_columns_that_pass_through(frame):
    """They stand behind the encoded ones, in a table; a sparse matrix has no place for them."""
    encoder = OneHotEncoder(columns=["town"], sparse_output=False, dtype="int8")
    found = encoder.fit_transform(frame)
    assert list(found.columns) == ["town_Bonn", "town_Lima", "town_Oslo", "town_None", "size"]
    pd.testing.assert_series_equal(found["size"], frame["size"])
    assert np.array_equal(found.iloc[:, :4], OneHotEncoder().fit_transform(frame[["town"]]).toarray())
    # By name, wherever the column is.
    assert encoder.transform(frame[["size", "town"]]).equals(encoder.transform(frame))
    assert encoder.inverse_transform(found.iloc[:, :4]).ravel().tolist() == frame["town"].tolist()


def test_times_numbers_and_truth_values_come_back():
    """Categories of any type are found again, among those to drop too, and given back."""
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-02"]),
            "flag": [True, False, True],
            "blob": pd.Series([b"x", b"y", b"y"], dtype=object),
        }
    )
    encoder = OneHotEncoder(drop=[pd.Timestamp("2024-01-02"), False, b"y"]).fit(frame)
    assert encoder.drop_idx_.tolist() == [1, 0, 1]
    back = encoder.inverse_transform(encoder.transform(frame))
    assert back[:, 1:].tolist() == frame.iloc[:, 1:].to_numpy().tolist()
    assert [pd.Timestamp(each) for each in back[:, 0]] == frame["day"].tolist()


@pytest.mark.parametrize("name", HOSTS)
def test_the_three_arrays_of_the_backend(frame, name):
    """Columns of rows are found by array expressions where the backend computes."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(frame.iloc[:30])
    expected = encoder.transform(frame)
    with ops.use_backend(name):
        backend = ops.resolve(len(frame))
        at = locate_columns(Inputs(frame).frame, encoder._model.selection, encoder._model.feature_names, 2)
        codes = [key.lookup(at, backend, True) for key in encoder._model.keys]
        places = places_of(encoder._columns, encoder._model.keys, codes, at, backend)
        assert isinstance(places, type(backend.empty((1,), np.int32)))
        places = backend.to_host(places)
    rows = [[each for each in row if each >= 0] for row in places.tolist()]
    assert [each for row in rows for each in row] == expected.indices.tolist()


@pytest.mark.cuda
def test_rows_in_a_devices_memory(xp):
    """Numbers on a GPU stay there: a matrix of CuPy, or the three arrays of a sparse one."""
    rows = np.array([[3, 1], [5, 1], [3, 2], [7, 2]])
    for new in (rows, np.array([[7, 2], [4, 1]])):
        for encoder in (OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(sparse_output=False, drop=[5, 2])):
            host = encoder.set_params(handle_unknown="ignore").fit(rows)
            there = clone(encoder).fit(xp.asarray(rows))
            assert known(there) == known(host)
            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "cuda-simulator" in ON_CUDA:
                    made = SimpleNamespace(csr_matrix=lambda parts, shape: SimpleNamespace(parts=parts, shape=shape))
                    patch.setitem(sys.modules, "cupyx.scipy.sparse", made)
                found, whole = there.transform(xp.asarray(new)), host.transform(new)
            if not encoder.sparse_output:
                assert isinstance(found, xp.ndarray)
                assert bits(found.get()) == bits(whole)
                assert there.inverse_transform(found).tolist() == host.inverse_transform(whole).tolist()
                continue
            parts = getattr(found, "parts", None) or (found.data, found.indices, found.indptr)
            assert all(isinstance(part, xp.ndarray) for part in parts)
            assert found.shape == whole.shape
            for part, own in zip(parts, (whole.data, whole.indices, whole.indptr), strict=True):
                assert bits(part.get()) == bits(own)


@pytest.mark.skipif(bool(ON_CUDA), reason="Dask's partitions and files are read on the host")
def test_partitions_and_files(frame, tmp_path):
    """Partitions of Dask, promises of tables, and files are encoded as one table is."""
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    frame = frame.fillna({"town": "Rome"})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet")
    thin = OneHotEncoder(min_frequency=3, drop="first")
    expected = thin.fit_transform(frame)
    whole = clone(thin).set_params(sparse_output=False)
    partitions = dd.from_pandas(frame, npartitions=3)
    for found in (clone(whole).fit_transform(partitions), clone(whole).fit(partitions).transform(partitions)):
        assert np.array_equal(found.compute().to_numpy(), expected.toarray())
    promises = [dask.delayed(frame.iloc[:25]), dask.delayed(frame.iloc[25:])]
    for found in (clone(thin).fit_transform(promises), clone(thin).fit(promises).transform(promises)):
        assert bits(sparse.vstack(dask.compute(*found), format="csr")) == bits(expected)
    encode_dataset(tmp_path / "rows.parquet", tmp_path / "trained.parquet", whole)
    transform_dataset(tmp_path / "rows.parquet", tmp_path / "new.parquet", whole)
    for name in ("trained", "new"):
        written = pq.read_table(tmp_path / f"{name}.parquet")
        assert written.column_names == thin.get_feature_names_out().tolist()
        assert np.array_equal(written.to_pandas().to_numpy(), expected.toarray())


@pytest.mark.skipif(bool(ON_CUDA), reason="Dask's partitions are read on the host")
def test_partitions_refuse_what_a_fit_refuses(frame):
    """Where rows are counted elsewhere, their counts are refused."""
    dd = pytest.importorskip("dask.dataframe")
    partitions = dd.from_pandas(frame.fillna({"town": "Rome"}), npartitions=2)
    encoder = OneHotEncoder(categories=[["Oslo", "Lima"], SIZES])
    with pytest.raises(ValueError, match="Found unknown categories"):
        encoder.fit(partitions)
    assert not hasattr(encoder, "n_features_in_")
