"""OneHotEncoder, compared with plain loops and with scikit-learn's, for random rows and parameters."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder as Theirs

from gpu_encode import OneHotEncoder
from gpu_encode.encoders.one_hot import matrices
from gpu_encode.seam import ops
from tests.backends import ON_CUDA
from tests.family.drawn import quietly
from tests.family.one_hot_definition import columns_of, encode
from tests.strategies import examples
from tests.tables.conftest import numpy_object as column
from tests.versions import as_scikit_learn_1_9

HOSTS = ON_CUDA[:1] or ("numpy", "compiled")
POLICIES = ("ignore", "infrequent_if_exist", "warn")
EXAMPLES = 15 if ON_CUDA else 60
LETTERS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=1, max_size=25)
LIMITS = st.sampled_from(
    [
        *({}, {"min_frequency": 2}, {"min_frequency": 0.2}, {"max_categories": 1}, {"max_categories": 3}),
        {"min_frequency": 2, "max_categories": 3},
    ]
)


@pytest.mark.parametrize("host", HOSTS)
@examples(EXAMPLES)
@given(data=st.data(), rows=LETTERS, new=LETTERS, limits=LIMITS)
def test_the_definition(host, data, rows, new, limits):
    """Weights, infrequent categories, dropped ones, unknown ones and missing ones, by plain loops."""
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    missing, unknown = data.draw(st.sampled_from(["category", "zero"])), data.draw(st.sampled_from(POLICIES))
    drop = data.draw(st.sampled_from([None, "first", "if_binary"]))
    columns, has_rare = columns_of(rows, weights, **limits, missing_is_category=missing == "category")
    dropped = {"first": 0 if columns else None, "if_binary": 0 if len(columns) == 2 else None, None: None}[drop]
    encoder = OneHotEncoder(drop=drop, handle_unknown=unknown, handle_missing=missing, **limits)
    with ops.use_backend(host):
        encoder.fit(column(rows), sample_weight=weights)
        matrix = quietly(encoder.transform, column(new))
    infrequent = encoder.infrequent_categories_[0]
    assert (None if infrequent is None else infrequent.tolist()) == (columns[-1] if has_rare else None)
    expected = encode(new, columns, dropped, has_rare and unknown != "ignore", missing == "zero")
    assert matrix.toarray().tolist() == expected
    for part in (matrix.indices, matrix.indptr):
        assert part.dtype == np.int32


@st.composite
def tables(draw: Any) -> pd.DataFrame:
    """Draw tables that scikit-learn and this library read in the same way."""
    size = draw(st.integers(1, 20))

    def values(choices: list[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(choices), min_size=size, max_size=size))

    return pd.DataFrame(
        {
            "text": pd.Series(values(["a", "b", "c", "dé", None]), dtype=object),
            "number": pd.Series(values([1, 2, 3, -7]), dtype=np.int64),
            "real": pd.Series(values([0.5, -1.25, 3.0, np.nan]), dtype=np.float64),
        }
    )


def observe(call: Any, *arguments: Any) -> tuple[Any, list[str]]:
    """Give the result of a call, or the type of its error, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            matrix = call(*arguments)
        except (ValueError, AttributeError):
            # scikit-learn fails in its own message if an infrequent text is dropped.
            matrix = ValueError
    return matrix, [str(each.message).replace("['text']", "[0]") for each in caught]


@as_scikit_learn_1_9
@pytest.mark.skipif(bool(ON_CUDA), reason="the same arrays as in the definition, on the host")
@examples(150)
@given(
    rows=tables(),
    new=tables(),
    limits=LIMITS,
    drop=st.sampled_from([None, "first", "if_binary", ["a", 1, 0.5], [None, 2, np.nan]]),
    unknown=st.sampled_from(["error", *POLICIES]),
    dtype=st.sampled_from([np.float64, np.float32, np.int8, bool]),
)
def test_the_bits_of_scikit_learn(rows, new, limits, drop, unknown, dtype):
    """Columns, their order, names, types, attributes, warnings and refusals are scikit-learn's."""
    parameters = {"drop": drop, "handle_unknown": unknown, "dtype": dtype, **limits}
    theirs, ours = Theirs(**parameters), OneHotEncoder(**parameters)
    fitted = [observe(each.fit, rows)[0] for each in (theirs, ours)]
    assert (fitted[0] is ValueError) == (fitted[1] is ValueError)
    if fitted[0] is ValueError:
        return
    assert list(theirs.get_feature_names_out()) == list(ours.get_feature_names_out())
    for mine, other in zip(ours.drop_idx_ if drop else [], theirs.drop_idx_ if drop else [], strict=True):
        assert mine == other
    for mine, other in zip(ours.categories_, theirs.categories_, strict=True):
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype
    if limits:
        for mine, other in zip(ours.infrequent_categories_, theirs.infrequent_categories_, strict=True):
            np.testing.assert_array_equal(mine, other)
    for X in (rows, new):
        check_same_matrix(theirs, ours, X, invertible=not (limits and drop is not None))


def check_same_matrix(theirs: Theirs, ours: OneHotEncoder, X: pd.DataFrame, invertible: bool) -> None:
    """Compare the matrices of two encoders bit by bit, and the results of `inverse_transform`."""
    (expected, their_warnings), (found, our_warnings) = observe(theirs.transform, X), observe(ours.transform, X)
    assert len(their_warnings) == len(our_warnings)
    if expected is ValueError or found is ValueError:
        assert expected is found
        return
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        mine, other = getattr(found, name), getattr(expected, name)
        assert mine.dtype == other.dtype
        assert mine.tobytes() == other.tobytes()
    # scikit-learn refuses a matrix without columns; and if infrequent categories are joined before one is dropped, its
    # `inverse_transform` returns another category.
    if invertible and found.shape[1]:
        back, own = observe(theirs.inverse_transform, expected)[0], observe(ours.inverse_transform, found)[0]
        assert (back is ValueError) == (own is ValueError)
        if back is not ValueError:
            assert own.dtype == back.dtype
            there = ~pd.isna(back)
            np.testing.assert_array_equal(~pd.isna(own), there)
            np.testing.assert_array_equal(own[there], back[there])


def test_dense_is_sparse():
    """Both containers hold the same numbers; the requested container is returned."""
    X = column([*"abcab", None])
    for dtype in ("float64", "float32", "int32", "uint8", "bool"):
        for new in (X, column(["b", "zz", None])):
            made = [
                OneHotEncoder(sparse_output=sparse_output, dtype=dtype, drop=["b"], handle_unknown="ignore").fit(X)
                for sparse_output in (True, False)
            ]
            thin, whole = (quietly(each.transform, new) for each in made)
            assert isinstance(whole, np.ndarray)
            assert whole.dtype == thin.dtype == dtype
            assert thin.toarray().tobytes() == np.ascontiguousarray(whole).tobytes()


def test_dropped_to_nothing():
    """Dropping columns of a single value leaves a matrix without columns, and `inverse_transform` restores them."""
    X = np.array([["x", 1], ["x", 1]], dtype=object)
    for sparse_output in (True, False):
        encoder = OneHotEncoder(drop="first", sparse_output=sparse_output)
        found = encoder.fit_transform(X)
        assert found.shape == (2, 0)
        assert encoder.inverse_transform(found).tolist() == X.tolist()


def test_no_rows():
    """Without new rows the result is a matrix without rows."""
    encoder = OneHotEncoder().fit([["a"], ["b"]])
    assert encoder.transform(np.empty((0, 1), dtype=object)).shape == (0, 2)


@as_scikit_learn_1_9
@pytest.mark.parametrize(("interface", "expected"), [("spmatrix", sparse.csr_matrix), ("sparray", sparse.csr_array)])
def test_the_interface_that_scikit_learn_is_set_to(interface, expected):
    """Matrices are of the kind that scikit-learn's own encoders give."""
    import sklearn

    with sklearn.config_context(sparse_interface=interface):
        assert type(OneHotEncoder().fit_transform([["a"], ["b"]])) is expected


def test_numbers_of_columns_beyond_32_bits(monkeypatch):
    """Numbers of columns and of ones are 64 bits wide where they have to be, and not before."""
    X = column(list("abca"))
    encoder = OneHotEncoder(drop="first").fit(X)
    for most, expected in ((2, np.int32), (1, np.int64)):
        monkeypatch.setattr(matrices, "MOST_SMALL", most)
        places = np.array([[-1], [0], [1]], matrices.number_type(1))
        for part in matrices.compressed(places, ops.host(0)):
            assert part.dtype == expected
    with monkeypatch.context() as patch:
        patch.setattr(matrices, "MOST_SMALL", 0)
        assert encoder.transform(X).toarray().tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]


@pytest.mark.long
def test_nothing_dense_in_between():
    """50,000 categories of 20,000 rows take memory as the rows do: dense, they would take 8 GB."""
    import tracemalloc

    rows = (np.arange(20_000, dtype=np.int64)[:, None] * np.array([7, 11])) % 50_000
    known = np.arange(50_000, dtype=np.int64)[:, None].repeat(2, axis=1)
    encoder = OneHotEncoder().fit(known)
    encoder.transform(rows[:10])
    tracemalloc.start()
    matrix = encoder.transform(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert matrix.shape == (20_000, 100_000)
    np.testing.assert_array_equal(matrix.indices.reshape(-1, 2), rows + np.array([0, 50_000]))
    assert peak < 10_000_000
    np.testing.assert_array_equal(encoder.inverse_transform(matrix), rows)


@st.composite
def matrices_of_numbers(draw: Any) -> np.ndarray:
    """Draw matrices of any few numbers, even ones that no encoder makes."""
    size = draw(st.integers(1, 6))
    row = st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.5, -1.0, 2.0]), min_size=5, max_size=5)
    return np.array(draw(st.lists(row, min_size=size, max_size=size)))


@pytest.mark.host
@given(X=matrices_of_numbers())
def test_any_matrix_is_inverted_as_scikit_learn_does(X):
    """`inverse_transform` takes the largest number: with zeros, negative numbers and ties, sparse or not."""
    rows = np.array([["a", 1], ["b", 2], ["c", 1]], dtype=object)
    theirs, ours = (each(handle_unknown="ignore").fit(rows) for each in (Theirs, OneHotEncoder))
    expected = theirs.inverse_transform(X)
    for given_as in (X, sparse.csr_matrix(X), sparse.coo_array(X), pd.DataFrame(X)):
        np.testing.assert_array_equal(ours.inverse_transform(given_as), expected)


def test_dropped_and_infrequent_come_back_together():
    """If infrequent categories are joined, `inverse_transform` still restores the dropped category."""
    X = column(["a", "a", "a", "b", "b", "b", "c", "d"])
    encoder = OneHotEncoder(drop=["b"], min_frequency=2, handle_unknown="ignore").fit(X)
    assert (
        encoder.inverse_transform(encoder.transform(X)).ravel().tolist() == list("aaabbb") + ["infrequent_sklearn"] * 2
    )
