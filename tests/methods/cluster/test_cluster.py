"""ClusterEncoder, compared with plain loops over the rows that each row sees."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gpu_encode import ClusterEncoder, KFold, LeaveOneOut, MEstimate, OneHotEncoder, Ordered, TargetEncoder, load
from tests.bits import assert_same_bits
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N
from tests.methods.cluster.test_cluster_partitions import best_in_order, ward_by_definition

CITIES = ROWS["city"].fillna("missing").to_numpy()
ZIPS = ROWS["zip"].to_numpy()
PLACES = np.arange(N)
SPLITS = [(np.flatnonzero(fold != PLACES % 3), np.flatnonzero(fold == PLACES % 3)) for fold in range(3)]


def estimates(keys, y, m):
    """Give the m-estimate and the number of rows of each key, in the order of the keys."""
    names = sorted(set(keys))
    means = [(y[keys == name].sum() + m * y.mean()) / ((keys == name).sum() + m) for name in names]
    return names, np.array(means), np.array([(keys == name).sum() for name in names], dtype=float)


def test_pairs_of_the_specification():
    X = np.repeat([*"abcdef"], 10)[:, None]
    y = np.repeat([0.0, 0.0, 0.5, 0.5, 1.0, 1.0], 10)
    encoder = ClusterEncoder(3, smooth=None, target_type="continuous").fit(X, y)
    assert encoder.clusters_[0].tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("n_clusters", [1, 2, 4, 20])
@pytest.mark.parametrize("keys", [CITIES, ZIPS], ids=["city", "zip"])
def test_every_fold_has_the_best_clusters_of_what_it_sees(keys, n_clusters):
    y = np.round(AMOUNT * 64) / 64
    encoder = ClusterEncoder(n_clusters, smooth=MEstimate(2.0), cv=SPLITS, target_type="continuous")
    found = encoder.fit_transform(keys[:, None], y).ravel()
    for seen, own in SPLITS:
        names, means, counts = estimates(keys[seen], y[seen], 2.0)
        clusters = dict(zip(names, best_in_order(means, counts, n_clusters)[2], strict=True))
        assert [clusters.get(key, -1) for key in keys[own]] == found[own].tolist()
    names, means, counts = estimates(keys, y, 2.0)
    assert encoder.clusters_[0].tolist() == best_in_order(means, counts, n_clusters)[2]


def test_several_classes_are_a_profile():
    encoder = ClusterEncoder(3, smooth=None, target_type="multiclass").fit(CITIES[:, None], KIND)
    names = sorted(set(CITIES))
    profiles = np.array([[(KIND[name == CITIES] == kind).mean() for kind in "xyz"] for name in names])
    counts = np.array([(name == CITIES).sum() for name in names], dtype=float)
    merged = np.array(ward_by_definition(profiles, counts, 3))
    shares = [np.average(profiles[merged == cluster, 0], weights=counts[merged == cluster]) for cluster in range(3)]
    assert encoder.clusters_[0].tolist() == np.argsort(np.argsort(shares))[merged].tolist()


def test_profiles_over_another_column():
    X = ROWS[["city", "rank", "price"]].assign(rank=ROWS["rank"].where(ROWS["rank"] != 3))
    encoder = ClusterEncoder(3, "cooccurrence", against="rank", columns=["city"]).fit(X)
    ranks = X["rank"].fillna(-1).to_numpy()
    # None is the last category.
    names = [*sorted(set(CITIES) - {"missing"}), "missing"]
    profiles = np.array([[(ranks[name == CITIES] == rank).mean() for rank in sorted(set(ranks))] for name in names])
    counts = np.array([(name == CITIES).sum() for name in names], dtype=float)
    assert encoder.clusters_[0].tolist() == ward_by_definition(profiles, counts, 3)
    assert encoder.get_feature_names_out().tolist() == ["city", "rank", "price"]
    without = encoder.transform(X.drop(columns="rank"))
    assert_same_bits(without["city"], encoder.fit_transform(X)["city"])


def test_a_joint_column_is_one_more_label_each():
    X = ROWS[["city", "zip", "rank"]]
    joint = X.assign(both=X["zip"].astype(str) + "/" + X["rank"].astype(str)).drop(columns=["zip", "rank"])
    found = ClusterEncoder(4, "cooccurrence", against=("zip", "rank")).fit(X)
    alone = ClusterEncoder(4, "cooccurrence", against="both").fit(joint)
    assert found.clusters_[0].tolist() == alone.clusters_[0].tolist()


def test_statistics_of_a_column():
    X = ROWS[["zip", "price"]]
    encoder = ClusterEncoder(4, "statistics", statistics=["mean", "std", "max"], values=["price"]).fit(X)
    groups = X.groupby("zip")["price"]
    numbers = np.column_stack([groups.mean(), groups.std(ddof=0), groups.max()])
    everything = X["price"].mean(), X["price"].std(ddof=0), X["price"].max()
    numbers = np.where(np.isnan(numbers), everything, numbers)
    counts = X.groupby("zip").size().to_numpy(dtype=float)
    numbers -= np.average(numbers, axis=0, weights=counts)
    numbers /= np.sqrt(np.average(numbers**2, axis=0, weights=counts))
    assert encoder.clusters_[0].tolist() == ward_by_definition(numbers, counts, 4)


def test_statistics_of_the_target_are_of_what_a_fold_sees():
    encoder = ClusterEncoder(3, "statistics", cv=SPLITS, target_type="continuous")
    found = encoder.fit_transform(ZIPS[:, None], AMOUNT).ravel()
    for seen, own in SPLITS:
        alone = ClusterEncoder(3, "statistics", target_type="continuous").fit(ZIPS[seen, None], AMOUNT[seen])
        assert alone.transform(ZIPS[own, None]).ravel().tolist() == found[own].tolist()


@pytest.mark.parametrize("by", ["target", "statistics"])
@pytest.mark.parametrize("y", [SOLD, AMOUNT, KIND], ids=["binary", "quantity", "classes"])
def test_a_row_does_not_see_its_own_target(by, y):
    parameters = {"statistics": ["mean", "var"]} if by == "statistics" else {}
    encoder = ClusterEncoder(3, by, cv=KFold(4, random_state=1), output="onehot", columns=["city", ("zip", "city")])
    kind = y.dtype.kind
    encoder.set_params(**parameters, target_type={"U": "multiclass", "i": "binary", "f": "continuous"}[kind])
    before = encoder.fit_transform(ROWS, y)
    changed = 0
    for row in range(0, N, 9):
        other = y.copy()
        other[row] = {"U": "z" if y[row] == "x" else "x", "i": y[row] == 0, "f": 1e5}[kind]
        after = encoder.fit_transform(ROWS, other)
        assert_same_bits(after.iloc[[row]], before.iloc[[row]])
        changed += not after.equals(before)
    assert changed


def test_as_many_clusters_as_categories_are_one_hot_columns():
    X = ROWS[["city", "rank"]]
    found = ClusterEncoder(50, "cooccurrence", against="rank", output="onehot").fit(X).transform(X)
    one_hot = OneHotEncoder(sparse_output=False).fit_transform(X[["city"]])
    np.testing.assert_array_equal(found.to_numpy(), np.asarray(one_hot))
    assert found.columns.tolist() == [f"city_cluster{number}" for number in range(len(set(CITIES)))]
    by_target = ClusterEncoder(50, smooth=None, output="onehot", target_type="continuous").fit(X[["city"]], AMOUNT)
    means = TargetEncoder(smooth=None, target_type="continuous").fit(X[["city"]], AMOUNT).encodings_[0]
    found = by_target.transform(X[["city"]]).to_numpy()
    np.testing.assert_array_equal(found[:, np.argsort(np.argsort(means))], np.asarray(one_hot))


def test_equal_means_are_one_cluster():
    encoder = ClusterEncoder(3, smooth=None, output="onehot").fit([["a"], ["b"], ["c"]] * 2, [0, 0, 1] * 2)
    assert encoder.clusters_[0].tolist() == [0, 0, 1]
    assert encoder.transform([["a"], ["b"], ["c"]]).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("unknown", "output", "expected"),
    [
        ("own", "id", [-1.0]),
        ("own", "onehot", [0.0, 0.0]),
        ("nan", "id", [np.nan]),
        ("nan", "onehot", [np.nan, np.nan]),
        (7, "id", [7.0]),
    ],
)
def test_unseen_and_missing_values(unknown, output, expected):
    X, y = pd.DataFrame({"a": ["x", "x", "y", None]}), [0, 0, 1, 1]
    encoder = ClusterEncoder(2, smooth=None, handle_unknown=unknown, output=output).fit(X, y)
    new = pd.DataFrame({"a": ["z", None, "y"]})
    found = encoder.transform(new).to_numpy()
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], found[2])
    apart = encoder.set_params(handle_missing="own").fit(X, y).transform(new).to_numpy()
    np.testing.assert_array_equal(apart[1], expected)
    assert [len(clusters) for clusters in encoder.clusters_] == [2]


def test_refused_values():
    encoder = ClusterEncoder(2, handle_unknown="error").fit([["x"], ["y"]] * 3, [0, 1] * 3)
    with pytest.raises(ValueError, match="'z'"):
        encoder.transform([["z"]])
    with pytest.raises(ValueError, match="missing"):
        ClusterEncoder(2, handle_missing="error").fit(pd.DataFrame({"a": ["x", None]}), [0, 1])


@pytest.mark.parametrize("by", ["target", "cooccurrence", "statistics"])
def test_whole_weights_repeat_rows(by):
    parameters = {"cooccurrence": {"against": "rank"}, "statistics": {"values": ["price"]}}.get(by, {})
    encoder = ClusterEncoder(3, by, columns=["city", "zip"], **parameters)
    weighted = encoder.fit(ROWS, SOLD, sample_weight=WEIGHTS).transform(ROWS)
    counted = np.repeat(np.arange(N), WEIGHTS)
    repeated = encoder.fit(ROWS.iloc[counted], SOLD[counted]).transform(ROWS)
    known = ROWS["zip"].isin(ROWS["zip"][WEIGHTS > 0])
    assert_same_bits(weighted[known], repeated[known])
    assert (weighted["zip"][~known] == -1).all()


MADE = {
    "target": (lambda: ClusterEncoder(3, cv=KFold(3), columns=["city", ("zip", "city")]), SOLD),
    "quantity": (lambda: ClusterEncoder(3, columns=["zip"], output="onehot", target_type="continuous"), AMOUNT),
    "classes": (lambda: ClusterEncoder(3, cv=KFold(3), columns=["zip"], target_type="multiclass"), KIND),
    "cooccurrence": (lambda: ClusterEncoder(3, "cooccurrence", against="rank", columns=["city", "zip"]), None),
    "statistics": (
        lambda: ClusterEncoder(3, "statistics", statistics=["median", "skew"], values=["price"], columns=["zip"]),
        None,
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_a_fitted_encoder_outlives_its_process(name, tmp_path):
    make, y = MADE[name]
    encoder = make()
    with pytest.raises(NotFittedError):
        check_is_fitted(encoder)
    expected = encoder.fit(ROWS, y).transform(ROWS)
    encoder.save(tmp_path / "encoder")
    for other in (load(tmp_path / "encoder"), pickle.loads(pickle.dumps(encoder))):
        pd.testing.assert_frame_equal(other.transform(ROWS), expected, check_exact=True)
        assert other.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
        assert [found.tolist() for found in other.clusters_] == [found.tolist() for found in encoder.clusters_]
    pd.testing.assert_frame_equal(clone(encoder).fit(ROWS, y).transform(ROWS), expected, check_exact=True)


@pytest.mark.parametrize("name", MADE)
def test_pieces_are_one_table(name):
    make, y = MADE[name]
    cuts = [slice(0, 40), slice(40, 41), slice(41, N)]
    pieces = [ROWS.iloc[cut] for cut in cuts]
    whole = make().fit_transform(ROWS, y)
    found = make().fit_transform(pieces, None if y is None else [y[cut] for cut in cuts])
    for cut, piece in zip(cuts, found, strict=True):
        pd.testing.assert_frame_equal(piece, whole.iloc[cut], check_exact=True)


@pytest.mark.parametrize("name", MADE)
def test_frames_of_every_library_have_the_same_encodings(name):
    make, y = MADE[name]
    expected = make().fit_transform(ROWS, y)
    for frame in (pl.from_pandas(ROWS), pa.Table.from_pandas(ROWS, preserve_index=False)):
        encoder = make()
        found = encoder.fit_transform(frame, y)
        assert type(found) is type(frame)
        for column in encoder.get_feature_names_out():
            if column.split("_cluster")[0] in ("zip", "zip_x_city"):
                assert np.asarray(found[column]).tolist() == expected[column].tolist()


def test_output_of_pandas_and_float32():
    encoder = ClusterEncoder(2, output="onehot", dtype="float32").set_output(transform="pandas")
    found = encoder.fit([["a"], ["b"]] * 4, [0, 1] * 4).transform([["b"]])
    assert found.columns.tolist() == ["x0_cluster0", "x0_cluster1"]
    assert found.dtypes.tolist() == [np.float32, np.float32]


REFUSED = {
    "by must": ({"by": "chance"}, "The 'by' parameter of ClusterEncoder must be one of"),
    "clusters": ({"n_clusters": 0}, "The 'n_clusters' parameter of ClusterEncoder must be an integer of at least 1"),
    "output": ({"output": "text"}, "The 'output' parameter of ClusterEncoder must be one of"),
    "nothing against": ({"by": "cooccurrence"}, "'against' parameter of ClusterEncoder must be the name or position"),
    "against nothing": ({"against": "rank"}, "against='rank' of ClusterEncoder is for by='cooccurrence'"),
    "values": ({"values": ["price"]}, r"values=\['price'\] of ClusterEncoder is for by='statistics'"),
    "both": ({"by": "cooccurrence", "against": "rank", "columns": ["rank"]}, "'rank' is used by .* as against"),
    "no column": ({"by": "cooccurrence", "against": "rnk"}, "^against: 'rnk' is not a column"),
    "missing": ({"handle_missing": "nan"}, "The 'handle_missing' parameter of ClusterEncoder must be one of"),
    "unknown": ({"handle_unknown": "prior"}, "The 'handle_unknown' parameter of ClusterEncoder must be one of"),
    "smooth": ({"smooth": "much"}, "The 'smooth' parameter of ClusterEncoder must be one of"),
    "statistics": ({"by": "statistics", "statistics": ["middle"]}, "middle"),
    "device": ({"device": "abacus"}, "The 'device' parameter of ClusterEncoder must be one of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    parameters, message = REFUSED[name]
    encoder = ClusterEncoder(3, columns=["city"])
    with pytest.raises(ValueError, match=message):
        encoder.set_params(**parameters).fit(ROWS, SOLD)
    assert not hasattr(encoder, "_model")


@pytest.mark.parametrize("cv", [LeaveOneOut(), Ordered()])
def test_schemes_without_folds_are_refused(cv):
    with pytest.raises(ValueError, match="takes schemes with folds"):
        ClusterEncoder(3, columns=["city"], cv=cv).fit_transform(ROWS, SOLD)


def test_profiles_without_room_are_refused(monkeypatch):
    monkeypatch.setattr("gpu_encode.seam.devices.available_bytes", lambda: 100)
    with pytest.raises(ValueError, match=r"against: 11 values for \d+ categories of 'city' take .* fewer values"):
        ClusterEncoder(3, "cooccurrence", against="rank", columns=["city"]).fit(ROWS)


def test_several_targets():
    y = np.column_stack([SOLD, AMOUNT])
    with pytest.raises(ValueError, match="takes one target, and y has 2"):
        ClusterEncoder(3, columns=["zip"], target_type="continuous").fit(ROWS, y)
    both = ClusterEncoder(3, "statistics", statistics=["mean"], columns=["zip"], target_type="continuous").fit(ROWS, y)
    assert both.clusters_[0].max() == 2


@pytest.mark.parametrize(
    "damage",
    [
        {"clusters": [np.array([0, 2])]},
        {"clusters": [np.array([0, 1, 1])]},
        {"clusters": [np.array([0.0, 1.0])]},
        {"clusters": []},
        {"widths": [1]},
        {"output": "text"},
        {"unseen": None},
    ],
)
def test_clusters_that_fit_no_key_are_refused(damage):
    encoder = ClusterEncoder(2, smooth=None).fit([["a"], ["b"]] * 3, [0, 1] * 3)
    fields = encoder._model.learned.to_fields()
    encoder._rebuild(encoder._model, fields)
    with pytest.raises(ValueError, match=r"clusters|output|unseen"):
        encoder._rebuild(encoder._model, fields | damage)
