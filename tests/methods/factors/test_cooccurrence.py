"""CooccurrenceEncoder counts exactly which categories occur together, and decomposes the counts."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from gpu_encode import CooccurrenceEncoder, load
from gpu_encode.methods.factors import spectra
from gpu_encode.seam.ops import use_backend
from gpu_encode.sums import pairs
from tests.backends import ON_CUDA
from tests.bits import assert_same_bits
from tests.methods.factors import definitions
from tests.methods.factors.drawn import FRESH, NEW, RNG, ROWS, WEIGHTS, N, X

WEIGHTINGS = [None, "eta", "mu", "log", "ppmi"]
# With both solvers, the error of singular vectors is the rounding of the counts times the square of their ratio.
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
FRAME = pd.DataFrame(X, columns=["tree", "soil", "site"])


@pytest.fixture
def sparsely(monkeypatch):
    """Count pairs by sorting, and ask an iterative solver, however few there are."""
    monkeypatch.setattr(pairs, "FEW_CELLS", 0)
    monkeypatch.setattr(spectra, "WHOLE_SIDE", 0)
    monkeypatch.setattr(spectra, "WHOLE_SHARE", 2)


@pytest.fixture
def by_products(monkeypatch):
    """Decompose the products of columns, however few entries the counts have."""
    monkeypatch.setattr(spectra, "WHOLE_ENTRIES", 0)


def expected_of(one, other, weighting, scale, k, weight=None):
    """Singular values, and the encoding of each category of a key, as the definition has them."""
    table = definitions.weigh(definitions.counts(ROWS, one, other, weight), weighting)
    left, values, _ = definitions.singular_vectors(table, k)
    return values, left * {"unit": 1.0, "sigma": values, "root": np.sqrt(values)}[scale]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("keys", [((0,), (2,)), ((0, 1), (2,)), ((2,), (0, 1))])
def test_lines_of_counts_are_those_of_the_definition(keys, weight):
    one, other = keys
    pair = tuple(key[0] if len(key) == 1 else key for key in keys)
    encoder = CooccurrenceEncoder(None, pairs=[pair]).fit(X, sample_weight=WEIGHTS[weight])
    table = definitions.counts(ROWS, one, other, WEIGHTS[weight])
    found = encoder.transform(FRESH)[:, : table.shape[1]].astype(float)
    expected = definitions.encode_by(table, ROWS, NEW, one)
    # Fractional weights are rounded once here, and in the definition after each row.
    assert np.array_equal(found, expected) if weight != "fractions" else np.allclose(found, expected, rtol=1e-14)


@pytest.mark.host
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("scale", ["unit", "sigma", "root"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("way", [None, "sparsely", "by_products"])
def test_encodings_are_those_of_the_definition(way, weighting, scale, weight, request):
    if way:
        request.getfixturevalue(way)
    pairs = [((0,), (2,)), ((2,), (0,)), ((0, 1), (2,))]
    asked = [(0, 2), (2, 0), ((0, 1), 2)]
    encoder = CooccurrenceEncoder(2, pairs=asked, weighting=weighting, scale=scale, tol=0.0)
    found = encoder.fit_transform(X, sample_weight=WEIGHTS[weight])
    assert_same_bits(found, encoder.transform(X))
    for number, (one, other) in enumerate(pairs):
        values, table = expected_of(one, other, weighting, scale, 2, WEIGHTS[weight])
        np.testing.assert_allclose(encoder.singular_values_[number], values, **CLOSE)
        own = definitions.encode_by(table, ROWS, ROWS, one)
        np.testing.assert_allclose(found[:, 2 * number : 2 * number + 2].astype(float), own, **CLOSE)
        fresh = encoder.transform(FRESH)[:, 2 * number : 2 * number + 2].astype(float)
        np.testing.assert_allclose(fresh, definitions.encode_by(table, ROWS, NEW, one), **CLOSE)


def test_renamed_columns_give_a_permuted_diagonal():
    names = dict(zip(sorted({row[0] for row in ROWS}), "fbdaec", strict=True))
    renamed = np.array([[row[0], names[row[0]]] for row in ROWS], dtype=object)
    encoder = CooccurrenceEncoder(None, pairs=[(0, 1)]).fit(renamed)
    trees, letters = CooccurrenceEncoder(None).fit(renamed).categories_
    table = encoder.transform([[tree, "a"] for tree in trees])
    expected = [[sum(row[0] == t for row in ROWS) if names[t] == letter else 0 for letter in letters] for t in trees]
    assert table.tolist() == expected
    assert (np.count_nonzero(table, axis=0) == 1).all()
    assert (np.count_nonzero(table, axis=1) == 1).all()


def test_all_pairs_lists_and_groups():
    made = CooccurrenceEncoder(1).fit(FRAME)
    names = ["tree_by_soil_0", "tree_by_site_0", "soil_by_tree_0", "soil_by_site_0", "site_by_tree_0", "site_by_soil_0"]
    assert made.get_feature_names_out().tolist() == names
    both = made.transform(FRAME)
    some = CooccurrenceEncoder(1, pairs=[("site", "tree"), ("tree", "soil")]).fit_transform(FRAME)
    assert some.columns.tolist() == ["site_by_tree_0", "tree_by_soil_0"]
    np.testing.assert_allclose(some.to_numpy(float), both[["site_by_tree_0", "tree_by_soil_0"]], atol=1e-12)
    group = CooccurrenceEncoder(1, pairs=(["tree"], ["soil", "site"]), indicators=True).fit(FRAME)
    assert group.get_feature_names_out().tolist() == ["tree_by_soil_0", "tree_by_site_0", "tree_unseen"]
    joint = CooccurrenceEncoder(1, columns=["tree", ("tree", "soil"), "site"]).fit(FRAME)
    names = ["tree_by_site_0", "tree_x_soil_by_site_0", "site_by_tree_0", "site_by_tree_x_soil_0"]
    assert joint.get_feature_names_out().tolist() == names
    unnamed = CooccurrenceEncoder(1, columns=[0, 2]).fit(X)
    assert unnamed.get_feature_names_out(["a", "b", "c"]).tolist() == ["a_by_c_0", "c_by_a_0", "b"]


@pytest.mark.parametrize("columns", [None, ["tree", "soil", "site"], ["site", ("tree", "soil")]])
def test_against_the_rest(columns):
    encoder = CooccurrenceEncoder(2, columns=columns, against="rest").fit(FRAME)
    keys = [(0,), (1,), (2,)] if columns is None or len(columns) == 3 else [(2,), (0, 1)]
    found = encoder.transform(FRAME).to_numpy(float)
    for number, key in enumerate(keys):
        _, table = expected_of(key, tuple(sorted({0, 1, 2} - {*key})), None, "unit", 2)
        own = definitions.encode_by(table, ROWS, ROWS, key)
        np.testing.assert_allclose(found[:, 2 * number : 2 * number + 2], own, **CLOSE)
    assert encoder.get_feature_names_out()[1] == ("tree" if len(keys) == 3 else "site") + "_by_rest_1"


def test_new_rows_need_no_column_that_others_are_counted_by():
    encoder = CooccurrenceEncoder(1, pairs=[("tree", ("soil", "site"))]).fit(FRAME)
    alone = encoder.transform(FRAME[["tree"]])
    assert_same_bits(alone, encoder.transform(FRAME))
    assert alone.columns.tolist() == ["tree_by_soil_x_site_0"]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("cut", [1, 40])
def test_unlabelled_rows_are_counted(cut, weight):
    weights = WEIGHTS[weight]
    every = None if weights is None else np.concatenate([weights[:cut], np.ones(N - cut)])
    given = {} if weights is None else {"sample_weight": weights[:cut]}
    expected = CooccurrenceEncoder(2).fit(X, sample_weight=every)
    encoder = CooccurrenceEncoder(2)
    training = encoder.fit_transform(X[:cut], np.arange(cut) % 2, unlabelled=X[cut:], **given)
    assert len(training) == cut
    assert_same_bits(training, expected.transform(X[:cut]))
    assert_same_bits(encoder.transform(X), expected.transform(X))
    assert not np.array_equal(expected.transform(X), CooccurrenceEncoder(2).fit_transform(X[:80])[[0] * N])


def test_unlabelled_rows_in_other_containers():
    expected = CooccurrenceEncoder(2).fit(FRAME).transform(FRAME)
    in_pieces = [FRAME[:20], FRAME[20:50]]
    unlabelled = [pl.from_pandas(FRAME[50:70]), pa.Table.from_pandas(FRAME[70:], preserve_index=False)]
    encoder = CooccurrenceEncoder(2)
    found = encoder.fit_transform(in_pieces, unlabelled=unlabelled)
    assert [len(part) for part in found] == [20, 30]
    assert_same_bits(pd.concat(found), expected[:50])
    assert_same_bits(encoder.transform(FRAME), expected)
    assert_same_bits(CooccurrenceEncoder(2).fit(X[:50].tolist(), unlabelled=X[50:].tolist()).transform(X), expected)
    with pytest.raises(ValueError, match="column"):
        CooccurrenceEncoder(2).fit(FRAME, unlabelled=FRAME[["tree"]])


def test_components_end_at_the_rank():
    rank = np.linalg.matrix_rank(definitions.counts(ROWS, (1,), (2,)))
    CooccurrenceEncoder(rank, pairs=[(1, 2)]).fit(X)
    with pytest.raises(ValueError, match=f"is more than the rank of the counts of 'x1' by 'x2', {rank}"):
        CooccurrenceEncoder(rank + 1, pairs=[(1, 2)], strict=True).fit(X)
    capped = CooccurrenceEncoder(1000, pairs=[(1, 2)]).fit(X)
    whole = CooccurrenceEncoder(rank, pairs=[(1, 2)]).fit(X)
    assert capped.n_components_ == [rank]
    np.testing.assert_allclose(capped.singular_values_[0], whole.singular_values_[0], rtol=1e-9)


def test_one_thin_column_is_no_obstacle():
    thin = np.column_stack([X, np.where(np.arange(len(X)) % 7, "u", "v"), np.full(len(X), "w")]).astype(object)
    encoder = CooccurrenceEncoder(3).fit(thin)
    pairs = [(a, b) for a in range(5) for b in range(5) if a != b]
    texts = np.where(thin == None, "missing", thin)  # noqa: E711
    ranks = [np.linalg.matrix_rank(pd.crosstab(texts[:, a], texts[:, b])) for a, b in pairs]
    assert sorted(encoder.n_components_) == sorted(min(3, rank) for rank in ranks)
    assert encoder.transform(thin).shape == (len(thin), sum(encoder.n_components_))
    # "ppmi" leaves nothing of the counts of a column with one value.
    with pytest.raises(ValueError, match="the counts of each pair, 0"):
        CooccurrenceEncoder(3, columns=[0, 4], weighting="ppmi").fit(thin)
    some = CooccurrenceEncoder(3, columns=[0, 1, 4], weighting="ppmi").fit(thin)
    assert {name.rpartition("_")[0] for name in some.get_feature_names_out()[:-2]} == {"x0_by_x1", "x1_by_x0"}


def test_the_rank_of_products(by_products, sparsely, monkeypatch):
    monkeypatch.setattr(spectra, "WHOLE_SHARE", 0)
    beside = {"a": "uv", "b": "uv", "c": "x", "d": "yz", "e": "yz"}
    rows = np.array([[letter, other] for letter, others in beside.items() for other in others], dtype=object)
    with pytest.raises(ValueError, match="is more than the rank of the counts of 'x0' by 'x1', 3"):
        CooccurrenceEncoder(4, strict=True).fit(rows)
    assert CooccurrenceEncoder(4).fit(rows).n_components_ == [3, 3]


def test_unseen_categories_are_zeros_and_marked():
    found = CooccurrenceEncoder(1, indicators=True).fit(X).transform(FRESH)
    assert found[:, 6:].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]]
    assert found[3].tolist() == [0.0] * 6 + [1.0] * 3
    assert found[1, :2].tolist() == [0.0, 0.0]
    assert np.count_nonzero(found[0, :6]) == 6
    with pytest.raises(ValueError, match="pine"):
        CooccurrenceEncoder(1, handle_unknown="error").fit(X).transform(FRESH)


def test_pieces_and_orders_of_rows_give_the_same_bits():
    expected = CooccurrenceEncoder(2, weighting="ppmi").fit(X).transform(X)
    assert_same_bits(CooccurrenceEncoder(2, weighting="ppmi").fit([X[:31], X[31:]]).transform(X), expected)
    assert_same_bits(CooccurrenceEncoder(2, weighting="ppmi").fit(X[RNG.permutation(N)]).transform(X), expected)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("way", [None, "sparsely"])
@pytest.mark.parametrize("other", ON_CUDA or ["compiled"])
def test_backends_give_the_same_bits(other, way, weight, request):
    if way:
        request.getfixturevalue(way)
    found = []
    for name in ("numpy", other):
        with use_backend(name):
            encoder = CooccurrenceEncoder(2, pairs=[(0, 2), ((0, 1), 2)], indicators=True)
            encoder.fit(X, unlabelled=X[:9], sample_weight=WEIGHTS[weight])
            found.append((encoder.transform(X), encoder.transform(FRESH)))
    for one, same in zip(*found, strict=True):
        assert one.tolist() == same.tolist()


def test_copies_and_files_encode_alike(tmp_path):
    for given in ({"pairs": [("tree", ("soil", "site"))]}, {"pairs": (["tree"], ["soil"])}, {"against": "rest"}, {}):
        encoder = CooccurrenceEncoder(2, weighting="log", scale="root", indicators=True, **given).fit(FRAME)
        encoder.save(tmp_path / "pairs")
        for again in (pickle.loads(pickle.dumps(encoder)), load(tmp_path / "pairs"), clone(encoder).fit(FRAME)):
            assert again.get_params() == encoder.get_params()
            pd.testing.assert_frame_equal(again.transform(FRAME), encoder.transform(FRAME), check_exact=True)
            assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "'n_components' parameter of CooccurrenceEncoder must be an integer of at least 1"),
        ({"weighting": "tfidf"}, "'weighting' parameter of CooccurrenceEncoder must be one of None, 'eta'"),
        ({"scale": "identity"}, "'scale' parameter of CooccurrenceEncoder must be one of 'unit', 'sigma', 'root'"),
        ({"against": "all"}, "'against' parameter of CooccurrenceEncoder must be one of None, 'rest'"),
        ({"pairs": "some"}, "'pairs' parameter of CooccurrenceEncoder must be one of 'all', a list of pairs of keys"),
        ({"pairs": []}, "'pairs' parameter of CooccurrenceEncoder must be one of"),
        ({"pairs": ["tree", "soil"]}, "'pairs' parameter of CooccurrenceEncoder must be one of"),
        ({"pairs": [("tree", "soil")], "columns": ["tree"]}, "names the keys itself. Leave out columns and against"),
        ({"pairs": [("tree", "soil")], "against": "rest"}, "names the keys itself. Leave out columns and against"),
        ({"pairs": [("tree", ("soil", "tree"))]}, "two keys of a pair share the column 'tree'"),
        ({"pairs": [("tree", "soil")] * 2}, "pairs names a pair twice"),
        ({"pairs": [("tree", "roof")]}, "roof"),
        ({"columns": ["tree"]}, r"Found 1 keys in 3 feature\(s\), and no other key with which 'tree' could be counted"),
        ({"columns": ["tree", ("tree", "soil")]}, "no other key with which 'tree' could be counted"),
        ({"columns": ["tree"], "against": "rest"}, "no other key with which 'tree' could be counted"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CooccurrenceEncoder(**parameters).fit(FRAME)


def test_a_failed_fit_leaves_the_encoder_as_it_was():
    encoder = CooccurrenceEncoder(2).fit(FRAME)
    before = encoder.transform(FRAME)
    with pytest.raises(ValueError, match="rank"):
        encoder.set_params(n_components=50, strict=True).fit(FRAME[:30])
    pd.testing.assert_frame_equal(encoder.transform(FRAME), before, check_exact=True)
