"""WeightOfEvidenceEncoder against its formula, and the laws of every encoder."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from cpu_fallback.elementary import log
from gpu_encode import Greedy, LeaveOneOut, WeightOfEvidenceEncoder
from tests import strategies
from tests.bits import assert_same_bits
from tests.family.drawn import training_encodings, weights_of
from tests.laws import encoding

EVERY_SCHEME = sorted(encoding.SCHEMES)


def evidence(keys, positive, weights, key, visible, r):
    """Return the code by its formula, in plain Python: sums are exact and then rounded."""
    members = [row for row in visible if keys[row] == key and weights[row] > 0]
    if not members:
        return 0.0

    def total(rows, label):
        return float(sum((Fraction(weights[row]) for row in rows if positive[row] == label), Fraction(0)))

    shares = [(total(members, label) + r, total(visible, label) + 2.0 * r) for label in (True, False)]
    if any(above == below == 0 for above, below in shares):
        return 0.0
    if any(below == 0 for _, below in shares):
        return math.inf if shares[1][1] == 0 else -math.inf
    with_label, with_others = (above / below for above, below in shares)
    return math.inf if with_others == 0 else float(log(np.array([with_label / with_others]))[0])


@pytest.mark.long
@pytest.mark.parametrize("scheme", EVERY_SCHEME)
@strategies.examples(5)
@given(data=st.data())
def test_training_codes_are_the_formula(scheme, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(data.draw(st.sampled_from(["binary", "multiclass"])), size=size))
    r = data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    seen = list(encoding.visibility(scheme, size))
    if scheme == "ordered":
        seen[encoding.random_order("ordered", size)[0]] = ()
    labels = [1] if drawn.kind == "binary" else [0, 1, 2]
    expected = [
        [evidence(drawn.keys, drawn.target == label, weights_of(drawn), key, rows, r) for label in labels]
        for key, rows in zip(drawn.keys, seen, strict=True)
    ]
    assert_same_bits(training_encodings(WeightOfEvidenceEncoder, drawn, scheme, regularization=r), expected)


def test_category_encoders_numbers():
    X, y = np.array([["a"], ["a"], ["b"], ["b"]]), [1, 0, 0, 0]
    encoder = WeightOfEvidenceEncoder().fit(X, y)
    hand = [math.log((2 / 3) / (2 / 5)), math.log((1 / 3) / (3 / 5))]
    np.testing.assert_allclose(encoder.encodings_[0], hand, rtol=1e-15)
    np.testing.assert_allclose(encoder.encodings_[0], [0.5108256237659907, -0.587786664902119], rtol=1e-15)
    assert encoder.transform([["c"]]).tolist() == [[0.0]]


@strategies.examples(10)
@given(data=st.data())
def test_new_rows_see_all_rows(data):
    drawn = data.draw(strategies.drawn_rows("binary", nulls=True))
    encoder = WeightOfEvidenceEncoder(regularization=0.25).fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
    expected = [
        evidence(drawn.keys, drawn.target == 1, weights_of(drawn), key, range(drawn.size), 0.25) for key in drawn.keys
    ]
    assert_same_bits(encoder.transform(drawn.frame)[:, 0], expected)


@pytest.mark.parametrize("r", [0.0, 1.0])
def test_the_information_value_is_the_exact_sum(r):
    generator = np.random.default_rng(3)
    X, y = generator.integers(0, 9, (200, 2)), generator.integers(0, 2, 200)
    encoder = WeightOfEvidenceEncoder(regularization=r).fit(X, y)
    for column, codes, found in zip(X.T, encoder.encodings_, encoder.information_value_, strict=True):
        total = Fraction(0)
        for category, code in enumerate(codes.tolist()):
            own = y[column == category]
            with_label = (float(own.sum()) + r) / (float(y.sum()) + 2 * r)
            with_others = (float(len(own) - own.sum()) + r) / (float(len(y) - y.sum()) + 2 * r)
            total += Fraction(with_label - with_others) * Fraction(code)
        assert found == float(total)


def test_information_without_end():
    encoder = WeightOfEvidenceEncoder(regularization=0).fit([["a"], ["a"], ["b"]], [0, 1, 1])
    assert encoder.information_value_.tolist() == [math.inf]
    assert encoder.encodings_[0].tolist() == [log(np.array([0.5]))[0], math.inf]


def test_information_takes_what_counts():
    X, y = [["a"], ["a"], ["b"], [None]], [0, 1, 1, 0]
    every = WeightOfEvidenceEncoder().fit(X, y).information_value_[0]
    no_missing = WeightOfEvidenceEncoder(handle_missing="zero").fit(X, y).information_value_[0]
    frequent = WeightOfEvidenceEncoder(handle_missing="zero", min_count=2).fit(X, y).information_value_[0]
    assert every > no_missing > frequent == 0.0


@pytest.mark.parametrize("heavy", [1e9, 1e17])
def test_light_rows_beside_heavy_ones_keep_their_digits(heavy):
    X, y, weight = [["a"], ["a"], ["b"], ["b"]], np.array([1, 0, 1, 0]), np.array([heavy, 1e-3, 1.0, 1.0])
    encoder = WeightOfEvidenceEncoder(Greedy(), 0.0).fit(X, y, sample_weight=weight)
    expected = [evidence("aabb", y == 1, weight.tolist(), key, range(4), 0.0) for key in "ab"]
    assert_same_bits(encoder.encodings_[0], expected)
    assert np.isfinite(expected).all()
    labels = np.array(["v", "u", "v", "w"])
    several = WeightOfEvidenceEncoder(Greedy(), 0.0).fit(X, labels, sample_weight=weight)
    expected = [evidence("aabb", labels == "v", weight.tolist(), key, range(4), 0.0) for key in "ab"]
    assert_same_bits(several.encodings_[1], expected)


def test_one_label_alone_is_no_evidence():
    encoder = WeightOfEvidenceEncoder(regularization=0).fit([["a"], ["b"]], [1, 1])
    assert [codes.tolist() for codes in encoder.encodings_] == [[0.0, 0.0]]


def test_each_label_against_the_rest():
    X, y = np.array([list("aaabbbcc")]).T, np.array(list("uvwuvuww"))
    encoder = WeightOfEvidenceEncoder().fit(X, y)
    assert encoder.get_feature_names_out().tolist() == ["x0_u", "x0_v", "x0_w"]
    for label, codes in zip("uvw", encoder.encodings_, strict=True):
        alone = WeightOfEvidenceEncoder().fit(X, y == label)
        assert codes.tobytes() == alone.encodings_[0].tobytes()
    assert encoder.information_value_.shape == (3,)


@pytest.mark.parametrize(
    ("policy", "code"), [("zero", 0.0), ("nan", math.nan), (-1.5, -1.5)], ids=["zero", "nan", "number"]
)
def test_unseen_values(policy, code):
    encoder = WeightOfEvidenceEncoder(handle_unknown=policy, cv=LeaveOneOut())
    codes = encoder.fit_transform([["a"], ["b"], ["b"]], [0, 1, 0])
    assert_same_bits(codes[0], [code])
    assert_same_bits(encoder.transform([["c"]]), [[code]])


@pytest.mark.parametrize(
    ("parameters", "rows", "y", "message"),
    [
        ({}, "abb", [0.5, 1.0, 2.0], "needs a binary or multiclass target, but y is continuous"),
        ({"regularization": -1}, "abb", [0, 1, 1], "'regularization' parameter of WeightOfEvidenceEncoder must be a"),
        ({"handle_unknown": "prior"}, "abb", [0, 1, 1], "must be one of 'zero', 'nan', 'error', a number"),
        ({"handle_unknown": "error"}, "abb", [0, 1, 1], "Found unknown categories"),
        (
            {"handle_missing": "error"},
            ["a", None],
            [0, 1],
            'Fill them, or choose handle_missing="category", or another',
        ),
    ],
)
def test_refusals(parameters, rows, y, message):
    with pytest.raises(ValueError, match=message):
        WeightOfEvidenceEncoder(**parameters).fit([[each] for each in rows], y).transform([["never seen"]])


# Codes of training rows are not those of new rows, on purpose, and logarithms are too far apart for the tolerance.
OUT_OF_FOLD = dict.fromkeys(
    ("check_transformer_general", "check_transformer_data_not_an_array"), "training codes are out of fold"
)


@pytest.mark.host
@parametrize_with_checks([WeightOfEvidenceEncoder()], expected_failed_checks=lambda _: OUT_OF_FOLD)
def test_estimator_checks(estimator, check) -> None:
    """The default encoder passes scikit-learn's checks."""
    check(estimator)
