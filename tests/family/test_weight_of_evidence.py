"""WeightOfEvidenceEncoder against its formula, and the laws of every encoder."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cpu_fallback.elementary import log
from gpu_encode import LeaveOneOut, WeightOfEvidenceEncoder
from tests.bits import assert_same_bits


def test_category_encoders_numbers():
    X, y = np.array([["a"], ["a"], ["b"], ["b"]]), [1, 0, 0, 0]
    encoder = WeightOfEvidenceEncoder().fit(X, y)
    hand = [math.log((2 / 3) / (2 / 5)), math.log((1 / 3) / (3 / 5))]
    np.testing.assert_allclose(encoder.encodings_[0], hand, rtol=1e-15)
    np.testing.assert_allclose(encoder.encodings_[0], [0.5108256237659907, -0.587786664902119], rtol=1e-15)
    assert encoder.transform([["c"]]).tolist() == [[0.0]]


@pytest.mark.parametrize("r", [0.0, 1.0])
def test_the_information_value_is_the_exact_sum(r):
    generator = np.random.default_rng(3)
    X, y = generator.integers(0, 9, (200, 2)), generator.integers(0, 2, 200)
    encoder = WeightOfEvidenceEncoder(regularization=r).fit(X, y)
    for column, encodings, value in zip(X.T, encoder.encodings_, encoder.information_value_, strict=True):
        total = Fraction(0)
        for category, encoding in enumerate(encodings.tolist()):
            members = y[column == category]
            with_label = (float(members.sum()) + r) / (float(y.sum()) + 2 * r)
            with_others = (float(len(members) - members.sum()) + r) / (float(len(y) - y.sum()) + 2 * r)
            total += Fraction(with_label - with_others) * Fraction(encoding)
        assert value == float(total)


def test_information_without_end():
    encoder = WeightOfEvidenceEncoder(regularization=0).fit([["a"], ["a"], ["b"]], [0, 1, 1])
    assert encoder.information_value_.tolist() == [math.inf]
    assert encoder.encodings_[0].tolist() == [log(np.array([0.5]))[0], math.inf]


def test_one_label_alone_is_no_evidence():
    encoder = WeightOfEvidenceEncoder(regularization=0).fit([["a"], ["b"]], [1, 1])
    assert encoder.encodings_[0].tolist() == [0.0, 0.0]


def test_information_takes_what_counts():
    X, y = [["a"], ["a"], ["b"], [None]], [0, 1, 1, 0]
    every = WeightOfEvidenceEncoder().fit(X, y).information_value_[0]
    no_missing = WeightOfEvidenceEncoder(handle_missing="zero").fit(X, y).information_value_[0]
    frequent = WeightOfEvidenceEncoder(handle_missing="zero", min_count=2).fit(X, y).information_value_[0]
    assert every > no_missing > frequent == 0.0


def test_each_label_has_a_column():
    X, y = np.array([list("aaabbbcc")]).T, np.array(list("uvwuvuww"))
    encoder = WeightOfEvidenceEncoder().fit(X, y)
    assert encoder.get_feature_names_out().tolist() == ["x0_u", "x0_v", "x0_w"]
    assert encoder.information_value_.shape == (3,)


@pytest.mark.parametrize(
    ("policy", "code"), [("zero", 0.0), ("nan", math.nan), (-1.5, -1.5)], ids=["zero", "nan", "number"]
)
def test_unseen_values(policy, code):
    encoder = WeightOfEvidenceEncoder(handle_unknown=policy, cv=LeaveOneOut())
    codes = encoder.fit_transform([["a"], ["b"], ["b"]], [0, 1, 0])
    assert_same_bits(codes[0], [code])
    assert_same_bits(encoder.transform([["c"]]), [[code]])
