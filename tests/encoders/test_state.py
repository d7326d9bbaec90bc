"""What a fitted encoder holds: built in pieces, merged, copied, pickled and cloned without a change of a bit."""

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
    weight = weight if weighted else None

    def part(chosen):
        return {"X": frame[chosen], "y": y[chosen], "sample_weight": None if weight is None else weight[chosen]}

    def encoder():
        return ge.TargetEncoder(target_type=kind, **parameters)

    whole = encoder().fit(**part(slice(None)))
    bounds = [(0, 1), (1, 7), (7, 40), (40, 60)]
    pieces = encoder()
    for start, stop in bounds:
        pieces.partial_fit(**part(slice(start, stop)))
    new = pd.concat([frame, rows(40, seed=1)[0]], ignore_index=True)
    assert_same_knowledge(pieces, whole, new)
    merged, *others = [encoder().fit(**part(slice(start, stop))) for start, stop in reversed(bounds)]
    assert merged.merge(*others) is merged
    assert_same_knowledge(merged, whole, new)
    # fit_transform leaves the same knowledge as fit, and a copy holds all of it.
    trained = encoder()
    trained.fit_transform(**part(slice(None)))
    assert_same_knowledge(trained, whole, new)
    assert_same_knowledge(pickle.loads(pickle.dumps(pieces)), whole, new)


def test_merge_leaves_the_others_as_they_were_and_merging_nothing_oneself():
    frame, y, _, _ = rows(30)
    one, other = ge.TargetEncoder().fit(frame[:10], y[:10]), ge.TargetEncoder().fit(frame[10:], y[10:])
    before = other.transform(frame)
    one.merge(other)
    pd.testing.assert_frame_equal(other.transform(frame), before, check_exact=True)
    pd.testing.assert_frame_equal(other.merge().transform(frame), before, check_exact=True)


def test_labels_are_the_union_of_those_of_all_pieces():
    frame, _, _, _ = rows(40)
    y = np.array(["b"] * 20 + ["a", "c"] * 10)
    pieces = ge.TargetEncoder(target_type="multiclass")
    for start in (0, 10, 20, 30):
        pieces.partial_fit(frame[start : start + 10], y[start : start + 10])
    assert pieces.classes_.tolist() == ["a", "b", "c"]
    assert_same_knowledge(pieces, ge.TargetEncoder(target_type="multiclass").fit(frame, y), frame)


def test_a_binary_target_may_begin_with_one_label():
    frame, _, _, _ = rows(40)
    y = np.arange(40) >= 20
    pieces = ge.TargetEncoder().partial_fit(frame[:20], y[:20]).partial_fit(frame[20:], y[20:])
    assert_same_knowledge(pieces, ge.TargetEncoder().fit(frame, y), frame)


def test_partial_fit_goes_on_after_fit_and_fit_starts_anew():
    frame, y, _, _ = rows(40)
    encoder = ge.TargetEncoder().fit(frame[:20], y[:20]).partial_fit(frame[20:], y[20:])
    assert_same_knowledge(encoder, ge.TargetEncoder().fit(frame, y), frame)
    assert_same_knowledge(encoder.fit(frame[:20], y[:20]), ge.TargetEncoder().fit(frame[:20], y[:20]), frame)


def test_sums_that_outgrow_an_integer():
    frame = pd.DataFrame({"city": ["a", "b"]})
    y = np.array([2**62, -(2**62)])
    pieces = ge.TargetEncoder(target_type="continuous", smooth=None)
    for _ in range(7):
        pieces.partial_fit(frame, y)
    assert pieces.encodings_[0].tolist() == [2.0**62, -(2.0**62)]
    assert pieces.target_mean_ == 0.0


def test_a_pickle_holds_no_rows():
    def size(count):
        frame, y, _, _ = rows(count)
        frame["zip"] %= 3
        return len(pickle.dumps(ge.TargetEncoder(smooth=ge.MEstimate()).fit(frame, np.sign(y))))

    few, many = size(300), size(30_000)
    assert abs(many - few) < 500


PARAMETERS = [*schemes().values(), *STRATIFIED.values(), *SMOOTHINGS.values()]
PARAMETERS += [ge.Prefixes(4, 3), ge.Parts("-", from_end=True), ge.Bits(24, 16, width=40)]


@pytest.mark.parametrize("parameter", [each for each in PARAMETERS if hasattr(each, "get_params")], ids=repr)
def test_parameter_objects_are_cloned(parameter):
    copy = clone(parameter)
    assert copy is not parameter
    assert copy.get_params() == parameter.get_params()
    assert repr(copy) == repr(parameter)
    assert repr(pickle.loads(pickle.dumps(parameter))) == repr(parameter)


@pytest.mark.parametrize("parameters", ENCODERS.values(), ids=ENCODERS.keys())
def test_clones_know_nothing_and_learn_the_same(parameters):
    frame, y, _, _ = rows(40)
    encoder = ge.TargetEncoder(**parameters).fit(frame, y)
    copy = clone(encoder)
    assert not hasattr(copy, "encodings_")
    assert repr(copy) == repr(encoder)
    assert_same_knowledge(copy.fit(frame, y), encoder, frame)


def test_parameters_are_reached_by_name():
    encoder = ge.TargetEncoder(smooth=ge.Sigmoid(), cv=ge.KFold(3))
    encoder.set_params(smooth__k=7.0, cv__n_splits=4, cv__order="contiguous", min_count=2)
    assert (encoder.smooth.k, encoder.cv.n_splits, encoder.cv.order) == (7.0, 4, "contiguous")
    assert encoder.get_params()["smooth__k"] == 7.0
    with pytest.raises(ValueError, match="Invalid parameter 'm' for estimator Sigmoid"):
        encoder.set_params(smooth__m=1.0)


def test_parameters_are_not_looked_at_before_fit_and_never_changed(frame, y):
    encoder = ge.TargetEncoder(smooth=-1, cv=np.array([0, 1] * 6), columns=["city"])
    given = dict(vars(encoder))
    with pytest.raises(ValueError, match="smooth"):
        encoder.fit(frame, y)
    encoder.set_params(smooth=1).fit(frame, y)
    assert all(getattr(encoder, name) is value for name, value in given.items() if name != "smooth")


def test_transform_leaves_nothing_behind(frame, y):
    encoder = ge.TargetEncoder().fit(frame, y)
    before = set(vars(encoder))
    encoder.transform(frame)
    assert set(vars(encoder)) == before


def test_what_people_look_at(frame, y):
    encoder = ge.TargetEncoder(columns=["city", ("city", "zip")], smooth=None).fit(frame, y)
    codes = dict(zip(encoder.categories_[0], encoder.encodings_[0], strict=True))
    assert encoder.categories_[0].tolist() == ["a", "b", "c", "d"]
    assert codes["d"] == -4.75
    assert encoder.categories_[1][0] == ("a", 1)
    assert len(encoder.categories_[1]) == len(encoder.encodings_[1])
    assert encoder.n_features_in_ == 4
    assert encoder.feature_names_in_.tolist() == ["city", "zip", "day", "shop"]
    assert encoder.target_type_ == "continuous"
    assert encoder.classes_ is None
    html = encoder._repr_html_()
    assert "TargetEncoder" in html
    assert "columns" in html


def test_missing_values_come_last_in_what_people_look_at(y):
    frame = pd.DataFrame({"text": ["b", None] * 6, "number": [2.0, np.nan, 1.0] * 4, "none": ["x", "y"] * 6})
    encoder = ge.TargetEncoder().fit(frame, y)
    assert encoder.categories_[0].tolist() == ["b", None]
    np.testing.assert_array_equal(encoder.categories_[1], [1.0, 2.0, np.nan])
    assert encoder.categories_[2].tolist() == ["x", "y"]
    assert [len(codes) for codes in encoder.encodings_] == [2, 3, 2]
