"""The state of a fitted encoder: building in pieces, merging, copying, pickling and cloning change no bit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gpu_encode as ge
from tests.bits import assert_same_encoder
from tests.cases import SMOOTHINGS, STRATIFIED, schemes


def rows(size, seed=0):
    """Give a frame, a quantity that strains sums, labels and weights."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "city": random.choice(["a", "b", "c", "dd", None], size),
            "zip": random.integers(0, 30, size),
            "path": random.choice(["x.y.z", "x.y", "u.y.z", "u", "x.w.z"], size),
        }
    )
    y = random.normal(size=size) * 10.0 ** random.integers(-20, 20, size)
    return frame, y, random.integers(0, 3, size), random.integers(1, 4, size) / 8


ENCODERS = {
    "default": {},
    "weighted mean": {"smooth": None, "prior": "category_mean"},
    "joint": {"columns": ["city", ("city", "zip")], "indicators": True, "min_count": 2.0},
    "hierarchy": {"columns": ["zip"], "hierarchy": {"zip": ["city"]}, "smooth": 3.0},
    "parts": {"columns": ["path"], "hierarchy": {"path": ge.Parts(".")}, "smooth": ge.PartialPooling()},
    "given": {"columns": ["city"], "categories": [["dd", "a", None]], "handle_unknown": -1.0},
    "prior for nulls": {"columns": ["city", ("city", "path")], "handle_missing": "prior", "smooth": ge.JamesStein()},
    "float32": {"columns": ["zip"], "dtype": "float32", "smooth": ge.EmpiricalBayes("between")},
}


def assert_same_knowledge(one, other, frame):
    assert_same_encoder(one, other)
    pd.testing.assert_frame_equal(one.transform(frame), other.transform(frame), check_exact=True)


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.host), True], ids=["", "weighted"])
@pytest.mark.parametrize("kind", ["continuous", pytest.param("multiclass", marks=pytest.mark.host)])
@pytest.mark.parametrize("parameters", ENCODERS.values(), ids=ENCODERS.keys())
def test_pieces_equal_the_whole(parameters, kind, weighted):
    frame, quantity, labels, weight = rows(60)
    y = quantity if kind == "continuous" else labels

    def part(start, stop):
        chosen = slice(start, stop)
        return {"X": frame[chosen], "y": y[chosen], "sample_weight": weight[chosen] if weighted else None}

    def encoder():
        return ge.TargetEncoder(target_type=kind, **parameters)

    whole, pieces, trained = encoder().fit(**part(0, 60)), encoder(), encoder()
    bounds = [(0, 1), (1, 7), (7, 40), (40, 60)]
    for edges in bounds:
        pieces.partial_fit(**part(*edges))
    merged, *others = [encoder().fit(**part(*edges)) for edges in reversed(bounds)]
    assert merged.merge(*others) is merged
    trained.fit_transform(**part(0, 60))
    new = pd.concat([frame, rows(40, seed=1)[0]], ignore_index=True)
    for other in (pieces, merged, trained, pickle.loads(pickle.dumps(pieces))):
        assert_same_knowledge(other, whole, new)


def test_merge_leaves_the_others_as_they_were_and_merging_nothing_oneself():
    frame, y, _, _ = rows(30)
    one, other = ge.TargetEncoder().fit(frame[:10], y[:10]), ge.TargetEncoder().fit(frame[10:], y[10:])
    before = other.transform(frame)
    one.merge(other)
    pd.testing.assert_frame_equal(other.transform(frame), before, check_exact=True)
    pd.testing.assert_frame_equal(other.merge().transform(frame), before, check_exact=True)


@pytest.mark.parametrize(
    ("y", "kind"),
    [(np.array(["b"] * 20 + ["a", "c"] * 10), "multiclass"), (np.arange(40) >= 20, "auto")],
    ids=["classes", "a binary target that begins with one label"],
)
def test_labels_are_the_union_of_those_of_all_pieces(y, kind):
    frame, pieces = rows(40)[0], ge.TargetEncoder(target_type=kind)
    for start in (0, 10, 20, 30):
        pieces.partial_fit(frame[start : start + 10], y[start : start + 10])
    assert_same_knowledge(pieces, ge.TargetEncoder(target_type=kind).fit(frame, y), frame)


def test_partial_fit_goes_on_after_fit_and_fit_starts_anew():
    frame, y, _, _ = rows(40)
    encoder = ge.TargetEncoder().fit(frame[:20], y[:20]).partial_fit(frame[20:], y[20:])
    assert_same_knowledge(encoder, ge.TargetEncoder().fit(frame, y), frame)
    assert_same_knowledge(encoder.fit(frame[:20], y[:20]), ge.TargetEncoder().fit(frame[:20], y[:20]), frame)


DRAW = np.random.default_rng(0)
# Every sum fits an int64 with room to spare; squares, or even the sums, of all of them together do not.
TARGETS = {
    "near 1e9": (np.repeat(np.arange(20), 2), DRAW.integers(600_000_000, 1_000_000_000, 40)),
    "near 2**61": (np.arange(10), np.full(10, 2**61 - 3 * 2**29)),
    "of either sign": (np.arange(12), np.tile([2**61 - 3 * 2**29, -(2**61) + 2**30], 6)),
    "real": (np.repeat(np.arange(20), 2), DRAW.standard_normal(40) * 1e100),
}


def encodings_of(encoder):
    """Return the bits of the fitted attributes, and of the encodings of the known categories and of a new one."""
    new = encoder.transform([[int(value)] for value in (*encoder.categories_[0], 10**6)])
    return [new.tobytes(), encoder.encodings_[0].tobytes(), np.float64(encoder.target_mean_).tobytes()]


@pytest.mark.parametrize("smooth", ["auto", 2.0])
@pytest.mark.parametrize("name", TARGETS)
def test_kept_sums_give_the_encodings_of_the_fit(name, smooth, tmp_path):
    X, y = TARGETS[name][0][:, None], TARGETS[name][1]

    def new():
        return ge.TargetEncoder(target_type="continuous", smooth=smooth)

    encoder, parts = new().fit(X, y), new()
    encoder.save(tmp_path / "encoder.model")
    for rows in (slice(0, 3), slice(3, 7), slice(7, None)):
        parts.partial_fit(X[rows], y[rows])
    merged = new().fit(X[5:], y[5:]).merge(new().fit(X[:5], y[:5]))
    for other in (pickle.loads(pickle.dumps(encoder)), ge.load(tmp_path / "encoder.model"), parts, merged):
        assert encodings_of(other) == encodings_of(encoder)


def test_a_pickle_holds_no_rows():
    def size(count):
        frame, y, _, _ = rows(count)
        frame["zip"] %= 3
        return len(pickle.dumps(ge.TargetEncoder(smooth=ge.MEstimate()).fit(frame, np.sign(y))))

    few, many = size(300), size(30_000)
    assert abs(many - few) < 500


PARAMETERS = [*schemes().values(), *STRATIFIED.values(), *SMOOTHINGS.values()]
PARAMETERS += [ge.Prefixes(4, 3), ge.Parts("-", from_end=True), ge.Bits(24, 16, width=40)]


@pytest.mark.parametrize("parameter", [value for value in PARAMETERS if hasattr(value, "get_params")], ids=repr)
def test_parameter_objects_are_cloned(parameter):
    copy = clone(parameter)
    assert copy is not parameter
    assert copy.get_params() == parameter.get_params()
    assert repr(copy) == repr(parameter)
    assert repr(pickle.loads(pickle.dumps(parameter))) == repr(parameter)


def test_what_people_look_at(frame, y):
    encoder = ge.TargetEncoder(columns=["city", ("city", "zip")], smooth=None).fit(frame, y)
    encodings = dict(zip(encoder.categories_[0], encoder.encodings_[0], strict=True))
    assert encoder.categories_[0].tolist() == ["a", "b", "c", "d"]
    assert encodings["d"] == -4.75
    assert encoder.categories_[1][0] == ("a", 1)
    assert len(encoder.categories_[1]) == len(encoder.encodings_[1])
    assert encoder.n_features_in_ == 4
    assert encoder.feature_names_in_.tolist() == ["city", "zip", "day", "shop"]
    assert encoder.target_type_ == "continuous"
    assert encoder.classes_ is None


def test_missing_values_come_last_in_what_people_look_at(y):
    frame = pd.DataFrame({"text": ["b", None] * 6, "number": [2.0, np.nan, 1.0] * 4, "none": ["x", "y"] * 6})
    encoder = ge.TargetEncoder().fit(frame, y)
    assert encoder.categories_[0].tolist() == ["b", None]
    np.testing.assert_array_equal(encoder.categories_[1], [1.0, 2.0, np.nan])
    assert encoder.categories_[2].tolist() == ["x", "y"]
    assert [len(encodings) for encodings in encoder.encodings_] == [2, 3, 2]


def test_nobody_is_warned_of_encodings_that_no_row_gets(recwarn):
    encoder = ge.TargetEncoder(cv=ge.LeaveOneOut(), handle_unknown=1e300, dtype="float32", target_type="binary")
    assert np.isfinite(encoder.fit_transform([["a"]] * 3 + [["b"]] * 3, [0, 1, 1, 0, 0, 1])).all()
    assert [warning.category for warning in recwarn.list] == [ge.LeakWarning]


def test_a_class_that_weighs_nothing_keeps_its_columns():
    X, y, weight = [["a"], ["a"], ["b"], ["c"]], ["x", "z", "z", "y"], [1, 1, 1, 0]
    encoder = ge.TargetEncoder(smooth=0.0).fit(X, y, sample_weight=weight)
    assert encoder.classes_.tolist() == ["x", "y", "z"]
    assert encoder.categories_[0].tolist() == ["a", "b", "c"]
    assert encoder.transform([["a"], ["b"]]).tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("first", ["weigh something", "weigh nothing"])
def test_parts_that_weigh_nothing_add_categories_alone(first):
    parts = [([["a"], ["b"]], [0, 1], None), ([["a"], ["c"]], [1, 1], [0, 0])]
    if first == "weigh nothing":
        parts.reverse()
    known, merged = ge.TargetEncoder(smooth=0.0), []
    for X, y, weight in parts:
        known.partial_fit(X, y, sample_weight=weight)
        merged.append(ge.TargetEncoder(smooth=0.0).partial_fit(X, y, sample_weight=weight))
    for encoder in (known, merged[0].merge(merged[1])):
        assert encoder.categories_[0].tolist() == ["a", "b", "c"]
        assert encoder.encodings_[0].tolist() == [0.0, 1.0, 0.5]


def test_encodings_are_nan_until_a_row_weighs_something():
    encoder = ge.TargetEncoder().partial_fit([["a"], ["c"]], [1, 0], sample_weight=[0, 0])
    assert np.isnan(encoder.transform([["a"], ["z"]])).all()
    assert np.isfinite(encoder.partial_fit([["a"]], [1]).transform([["a"], ["z"]])).all()
