"""WeightOfEvidenceEncoder, compared with its formula, and the laws of every encoder."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from cpu_fallback.elementary import log
from gpu_encode import LeaveOneOut, WeightOfEvidenceEncoder
from gpu_encode.seam import ops
from tests.bits import assert_same_bits
from tests.laws.encoding import BACKENDS


def test_category_encoders_numbers():
    X, y = np.array([["a"], ["a"], ["b"], ["b"]]), [1, 0, 0, 0]
    encoder = WeightOfEvidenceEncoder().fit(X, y)
    hand = [math.log((2 / 3) / (2 / 5)), math.log((1 / 3) / (3 / 5))]
    np.testing.assert_allclose(encoder.encodings_[0], hand, rtol=1e-15)
    np.testing.assert_allclose(encoder.encodings_[0], [0.5108256237659907, -0.587786664902119], rtol=1e-15)
    assert encoder.transform([["c"]]).tolist() == [[0.0]]


def logarithm(number):
    with localcontext(prec=400):
        return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).ln())


def ulp(number):
    return Fraction(math.ulp(float(number)))


WEIGHTS = {
    "none": None,
    "shares": [0.1 + 0.3 * (i % 7) for i in range(60)],
    "thirds": [1 / 3] * 60,
    "large integers": [2.0**52 + i * i for i in range(60)],
    "nearly equal": [1.0 + (i % 5) * 2.0**-50 for i in range(60)],
    "huge": [1e190 * (1 + i % 3) for i in range(60)],
    "tiny": [1e-270 * (1 + i % 3) for i in range(60)],
    "wild": [10.0 ** (i * i % 560 - 280) for i in range(60)],
}


@pytest.mark.host
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("r", [0.0, 1.0, 0.1, 1e-17, 1e200])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_evidence_and_information_are_near_the_real_numbers(weights, r, backend):
    generator = np.random.default_rng(5)
    X, y, weight = generator.integers(0, 3, (60, 1)), generator.integers(0, 2, 60), WEIGHTS[weights]
    with ops.use_backend(backend):
        encoder = WeightOfEvidenceEncoder(regularization=r).fit(X, y, sample_weight=weight)
        information = encoder.information_value_[0]
    sums = {(i, j): Fraction(0) for i in range(3) for j in range(2)}
    for i, j, w in zip(X[:, 0].tolist(), y.tolist(), weight or [1] * 60, strict=True):
        sums[i, j] += Fraction(w)
    others, own = (sum(sums[i, j] for i in range(3)) + 2 * Fraction(r) for j in range(2))
    value = Fraction(0)
    for i, encoding in enumerate(encoder.encodings_[0].tolist()):
        p, q = (sums[i, 1] + Fraction(r)) / own, (sums[i, 0] + Fraction(r)) / others
        expected = logarithm(p / q)
        value += (p - q) * expected
        assert abs(Fraction(encoding) - expected) <= 4 * ulp(expected) + Fraction(1, 2**100)
    assert abs(Fraction(float(information)) - value) <= 8 * ulp(value) + Fraction(1, 2**100)


@pytest.mark.parametrize("r", [1.0, 0.1])
def test_evidence_of_shares_that_are_nearly_the_same(r):
    X, y = [["a"], ["a"], ["b"], ["b"]], [0, 1, 0, 1]
    weight = [2.0**40, 2.0**40 + 1, 2.0**41, 2.0**41 + 1]
    found = WeightOfEvidenceEncoder(regularization=r).fit(X, y, sample_weight=weight).encodings_[0]
    # To half of their digits the shares are the same: their quotient as a float has half of the logarithm's.
    for found_one, (n, s) in zip(found.tolist(), [(2**40, 2**40 + 1), (2**41, 2**41 + 1)], strict=True):
        top = (s + Fraction(r)) * (3 * 2**40 + 2 * Fraction(r))
        expected = logarithm(top / ((n + Fraction(r)) * (3 * 2**40 + 2 + 2 * Fraction(r))))
        assert abs(Fraction(found_one) - expected) <= 4 * ulp(expected)


def test_regularization_has_a_range():
    with pytest.raises(ValueError, match=r"'regularization'.*at most 1e\+290"):
        WeightOfEvidenceEncoder(regularization=1e300).fit([["a"], ["b"]], [0, 1])


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
