"""SpectralEncoder gives the singular vectors of one-hot columns, and never builds these columns."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from gpu_encode import SpectralEncoder, interactions, load
from gpu_encode.methods.factors import one_hot_products, spectra
from gpu_encode.seam.ops import use_backend
from tests.backends import ON_CUDA
from tests.bits import assert_same_bits
from tests.methods.factors import definitions
from tests.methods.factors.drawn import FRESH, NEW, RNG, ROWS, WEIGHTS, N, X

KEYS = {"columns": ([0, 1, 2], [(0,), (1,), (2,)]), "joint": ([0, (1, 2)], [(0,), (1, 2)])}
# Singular values are roots of eigenvalues of F'F: at 8 vectors they lose the square of their ratio, a few hundred.
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def rank_of(keys) -> int:
    known = [definitions.categories_of(ROWS, key) for key in keys]
    return int(np.linalg.matrix_rank(definitions.one_hot(ROWS, known, keys)))


@pytest.fixture
def by_rows(monkeypatch):
    """Multiply by the rows, and ask an iterative solver, however few categories there are."""
    monkeypatch.setattr(one_hot_products, "MOST_COUNTED", 0)
    monkeypatch.setattr(one_hot_products, "TILE_ROWS", 7)
    monkeypatch.setattr(spectra, "WHOLE_SIDE", 0)


@pytest.fixture
def by_counts(monkeypatch):
    """Multiply by sparse counts of pairs, found by sorting, and ask an iterative solver."""
    monkeypatch.setattr(one_hot_products, "PAIRS_A_CODE", 1 << 20)
    monkeypatch.setattr("gpu_encode.sums.pairs.FEW_CELLS", 0)
    monkeypatch.setattr(spectra, "WHOLE_SIDE", 0)


@pytest.mark.host
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("ridge", [0.0, 2.5])
@pytest.mark.parametrize("weighting", [None, "eta", "mu", "tfidf"])
@pytest.mark.parametrize("keys", KEYS)
def test_encodings_are_those_of_the_definition(keys, weighting, ridge, weight):
    columns, groups = KEYS[keys]
    encoder = SpectralEncoder(4, columns=columns, weighting=weighting, ridge=ridge)
    found = encoder.fit_transform(X, sample_weight=WEIGHTS[weight])
    values, training, fresh = definitions.spectral(ROWS, NEW, groups, 4, weighting, ridge, WEIGHTS[weight])
    np.testing.assert_allclose(encoder.singular_values_, values, **CLOSE)
    np.testing.assert_allclose(found[:, :4].astype(float), training, **CLOSE)
    np.testing.assert_allclose(encoder.transform(FRESH)[:, :4].astype(float), fresh, **CLOSE)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_training_rows_are_encoded_as_new_ones_and_orthonormal(weight):
    encoder = SpectralEncoder(5)
    training = encoder.fit_transform(X, sample_weight=WEIGHTS[weight])
    assert_same_bits(training, encoder.transform(X))
    weights = np.ones(N) if WEIGHTS[weight] is None else WEIGHTS[weight]
    np.testing.assert_allclose((training.T * weights) @ training, np.eye(5), atol=1e-11)
    np.testing.assert_allclose(encoder.components_ @ encoder.components_.T, np.eye(5), atol=1e-12)


@pytest.mark.host
@pytest.mark.parametrize("weighting", [None, "eta", "mu", "tfidf"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("way", ["by_rows", "by_counts"])
def test_every_way_finds_the_same_vectors(way, weight, weighting, request):
    made = [SpectralEncoder(3, weighting=weighting, tol=0.0) for _ in range(2)]
    expected = made[0].fit_transform(X, sample_weight=WEIGHTS[weight])
    request.getfixturevalue(way)
    found = made[1].fit_transform(X, sample_weight=WEIGHTS[weight])
    np.testing.assert_allclose(made[1].singular_values_, made[0].singular_values_, rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_many_components_of_an_iterative_solver(by_rows):
    """For a quarter of all vectors or more, the whole matrix of counts is decomposed."""
    encoder = SpectralEncoder(10).fit(X)
    values, training, _ = definitions.spectral(ROWS, NEW, KEYS["columns"][1], 10)
    np.testing.assert_allclose(encoder.singular_values_, values, rtol=1e-9)
    np.testing.assert_allclose(encoder.transform(X), training, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("keys", KEYS)
def test_components_end_at_the_rank(keys):
    columns, groups = KEYS[keys]
    rank = rank_of(groups)
    assert len(SpectralEncoder(rank, columns=columns).fit(X).singular_values_) == rank
    whole = SpectralEncoder(rank, columns=columns).fit(X)
    for wanted in (rank + 1, 1000):
        with pytest.raises(ValueError, match=f"is more than the rank of the one-hot matrix, {rank}"):
            SpectralEncoder(wanted, columns=columns, strict=True).fit(X)
        capped = SpectralEncoder(wanted, columns=columns).fit(X)
        assert capped.n_components_ == len(capped.singular_values_) == len(capped.components_) == rank
        np.testing.assert_allclose(capped.singular_values_, whole.singular_values_, rtol=1e-9)
        assert capped.transform(X).shape[1] == len(capped.get_feature_names_out()) == whole.transform(X).shape[1]
    assert not hasattr(SpectralEncoder(wanted), "components_")


def test_the_rank_of_an_iterative_solver(by_rows, monkeypatch):
    monkeypatch.setattr(spectra, "WHOLE_SHARE", 0)
    rows = np.array([["a", "x"], ["b", "y"], ["c", "z"]] * 5, dtype=object)
    with pytest.raises(ValueError, match="is more than the rank of the one-hot matrix, 3"):
        SpectralEncoder(4, strict=True).fit(rows)
    assert SpectralEncoder(4).fit(rows).n_components_ == 3


def test_nothing_is_left_of_columns_that_all_rows_have():
    with pytest.raises(ValueError, match=r"the rank of the one-hot matrix, 0\. It is all zero"):
        SpectralEncoder(1, weighting="tfidf").fit([["a"], ["a"]])


def test_signs():
    """The largest entry is positive, the first among ties; for these rows the vectors are known."""
    rows = [["a", "x"], ["a", "x"], ["b", "y"], ["b", "y"], ["b", "y"]]
    found = SpectralEncoder(2).fit(rows).components_
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found, [[0, half, 0, half], [half, 0, half, 0]], atol=1e-12)
    # Columns that swap: the second vector is (1, -1, 1, -1) / 2 or its opposite.
    again = SpectralEncoder(2).fit([["a", "x"]] * 3 + [["b", "y"]] * 3 + [["a", "y"], ["b", "x"]]).components_
    np.testing.assert_allclose(again, [[0.5, 0.5, 0.5, 0.5], [0.5, -0.5, 0.5, -0.5]], atol=1e-12)


def test_signs_of_near_ties_are_those_of_the_first():
    vectors = np.array([[-1.0, 0.5, 0.0], [1.0 + 1e-9, -1.0, -0.1], [0.3, 1.0 - 1e-3, 0.0]])
    assert spectra.settle_signs(vectors).tolist() == [-1.0, -1.0, -1.0]


def test_exact_counts_know_no_order_of_rows(by_counts):
    order = RNG.permutation(N)
    for weight in WEIGHTS.values():
        one = SpectralEncoder(3).fit(X, sample_weight=weight)
        other = SpectralEncoder(3).fit(X[order], sample_weight=None if weight is None else weight[order])
        assert_same_bits(one.components_, other.components_)


def test_whole_weights_are_repeated_rows():
    repeated = np.repeat(X, WEIGHTS["whole"], axis=0)
    one, other = SpectralEncoder(3).fit(X, sample_weight=WEIGHTS["whole"]), SpectralEncoder(3).fit(repeated)
    assert [len(values) for values in one.categories_] == [len(values) for values in other.categories_]
    assert_same_bits(one.components_, other.components_)


def test_pieces_are_one_table():
    pieces = [X[:31], X[31:32], X[32:]]
    encoder = SpectralEncoder(3, indicators=True)
    assert_same_bits(
        np.concatenate(encoder.fit_transform(pieces)), SpectralEncoder(3, indicators=True).fit_transform(X)
    )


def test_a_seed_gives_the_same_bits(by_rows):
    one, same, other = (SpectralEncoder(2, random_state=seed, tol=0.0).fit_transform(X) for seed in (5, 5, 6))
    assert_same_bits(one, same)
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.skipif(bool(ON_CUDA), reason="backends of the CPU")
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("way", [None, "by_rows", "by_counts"])
def test_backends_give_the_same_bits(way, weight, request):
    if way:
        request.getfixturevalue(way)
    found = []
    for name in ("numpy", "compiled"):
        with use_backend(name):
            encoder = SpectralEncoder(3, weighting="eta", indicators=True)
            found.append((encoder.fit_transform(X, sample_weight=WEIGHTS[weight]), encoder.transform(FRESH)))
    for one, other in zip(*found, strict=True):
        assert_same_bits(one, other)


@pytest.mark.skipif(not ON_CUDA, reason="the CUDA backend")
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("way", [None, "by_counts"])
def test_the_cuda_backend_gives_the_bits_of_numpy(way, weight, request):
    if way:
        request.getfixturevalue(way)
    found = []
    for name in ("numpy", ON_CUDA[0]):
        with use_backend(name):
            encoder = SpectralEncoder(3, weighting="mu", indicators=True)
            encoder.fit(X, sample_weight=WEIGHTS[weight])
            found.append((encoder.components_, encoder.transform(X), encoder.transform(FRESH)))
    for one, other in zip(*found, strict=True):
        assert_same_bits(one, other)


def test_tiles_of_rows_are_encoded_alike(monkeypatch):
    encoder = SpectralEncoder(3).fit(X)
    expected = encoder.transform(X)
    monkeypatch.setattr(one_hot_products, "TILE_ENTRIES", 0)
    assert_same_bits(encoder.transform(X), expected)


@pytest.mark.host
@pytest.mark.parametrize("weighting", [None, "eta"])
def test_memory_is_that_of_codes(weighting):
    """The one-hot matrix would be 36 gigabytes, its ones alone as CSR a tenth of what is allowed here."""
    n, categories = 50_000, 30_000
    many = RNG.integers(0, categories, (n, 3)).astype(np.int32)
    SpectralEncoder(2).fit(many[:100])
    tracemalloc.start()
    SpectralEncoder(2, weighting=weighting, tol=0.1).fit_transform(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * n * 3


def test_unseen_values_add_nothing_and_are_marked():
    encoder = SpectralEncoder(2, indicators=True).fit(X)
    found = encoder.transform(FRESH)
    assert found[:, 2:].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]]
    assert found[3, :2].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="pine"):
        SpectralEncoder(2, handle_unknown="error").fit(X).transform(FRESH)
    with pytest.raises(ValueError, match="missing"):
        SpectralEncoder(2, handle_missing="error").fit(X)


def test_frames_names_and_columns_that_pass_through():
    frame = pd.DataFrame(X, columns=["tree", "soil", "site"]).assign(price=np.arange(N))
    encoder = SpectralEncoder(2, columns=interactions(["tree", "soil"], 2), indicators=True)
    found = encoder.fit_transform(frame)
    names = ["spectral_0", "spectral_1", "tree_unseen", "soil_unseen", "tree_x_soil_unseen", "site", "price"]
    assert found.columns.tolist() == encoder.get_feature_names_out().tolist() == names
    in_polars = encoder.transform(pl.from_pandas(frame))
    assert isinstance(in_polars, pl.DataFrame)
    assert_same_bits(in_polars.select("spectral_0", "spectral_1").to_numpy(), found[["spectral_0", "spectral_1"]])
    with pytest.raises(ValueError, match="Two output columns would be called 'spectral_0'"):
        SpectralEncoder(1, columns=["tree"]).fit(frame.rename(columns={"site": "spectral_0"}))


def test_float32_is_the_rounded_number():
    found = SpectralEncoder(2, dtype="float32").fit_transform(X)
    assert found.dtype == np.float32
    assert np.array_equal(found, SpectralEncoder(2).fit_transform(X).astype(np.float32))


def test_copies_and_files_encode_alike(tmp_path):
    encoder = SpectralEncoder(3, weighting="tfidf", ridge=0.5, indicators=True, columns=[0, (1, 2)]).fit(X)
    encoder.save(tmp_path / "spectral")
    for again in (pickle.loads(pickle.dumps(encoder)), load(tmp_path / "spectral"), clone(encoder).fit(X)):
        assert again.get_params() == encoder.get_params()
        assert again.transform(FRESH).tolist() == encoder.transform(FRESH).tolist()
        assert_same_bits(again.components_, encoder.components_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "'n_components' parameter of SpectralEncoder must be an integer of at least 1"),
        ({"weighting": "idf"}, "'weighting' parameter of SpectralEncoder must be one of None, 'eta', 'mu', 'tfidf'"),
        ({"ridge": -1.0}, "'ridge' parameter of SpectralEncoder must be a finite number of at least 0"),
        ({"tol": -1.0}, "'tol' parameter of SpectralEncoder must be a finite number of at least 0"),
        ({"random_state": "a"}, "random_state must be an integer"),
        ({"indicators": ["missing"]}, "'indicators' parameter of SpectralEncoder must be one of True, False"),
        ({"handle_unknown": "nan"}, "'handle_unknown' parameter of SpectralEncoder must be one of 'zero', 'error'"),
        ({"handle_missing": "zero"}, "'handle_missing' parameter of SpectralEncoder must be one of 'category'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SpectralEncoder(**parameters).fit(X)


def test_pairs_that_are_too_many_are_refused_in_parts(by_rows):
    parts = [SpectralEncoder(2).partial_fit(X[:50]), SpectralEncoder(2).fit(X[:50])]
    with pytest.raises(ValueError, match=r"3 columns with \d+ categories have too many"):
        parts[0].transform(X)
    with pytest.raises(ValueError, match="keeps no counts of pairs that others could be added to"):
        parts[1].merge(SpectralEncoder(2).fit(X[50:]))
