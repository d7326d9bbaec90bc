"""WeightOfEvidenceEncoder against its formula, and the laws of every encoder."""

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from cpu_fallback.elementary import log
from gpu_encode import Greedy, KFold, LeaveOneOut, Ordered, WeightOfEvidenceEncoder, load, ops
from tests import strategies
from tests.laws import encoding
from tests.parts.in_parts import encoded_in_parts, parts_of
from tests.parts.test_orders import encoded

EVERY_SCHEME = sorted(encoding.SCHEMES)
WITHOUT_LEAK = [name for name in EVERY_SCHEME if name != "greedy"]


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


def first_of_order(size):
    return encoding.random_order("ordered", size)[0]


def quietly(function, *arguments, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **named)


def training_codes(drawn, scheme, **choices):
    encoder = WeightOfEvidenceEncoder(encoding.SCHEMES[scheme](), columns=["key"], **choices)
    codes = quietly(encoder.fit_transform, encoding.framed(drawn.keys), drawn.target, sample_weight=drawn.weight)
    return np.asarray(codes, dtype=np.float64)[:, :-2]


def weights_of(drawn):
    return [1] * drawn.size if drawn.weight is None else drawn.weight.tolist()


@pytest.mark.long
@pytest.mark.parametrize("scheme", EVERY_SCHEME)
@encoding.examples(5)
@given(data=st.data())
def test_training_codes_are_the_formula(scheme, data):
    size = data.draw(st.sampled_from(encoding.SIZES))
    drawn = data.draw(strategies.drawn_rows(data.draw(st.sampled_from(["binary", "multiclass"])), size=size))
    r = data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    seen = list(encoding.visibility(scheme, size))
    if scheme == "ordered":
        seen[first_of_order(size)] = ()
    labels = [1] if drawn.kind == "binary" else [0, 1, 2]
    expected = [
        [evidence(drawn.keys, drawn.target == label, weights_of(drawn), key, rows, r) for label in labels]
        for key, rows in zip(drawn.keys, seen, strict=True)
    ]
    encoding.assert_same_bits(training_codes(drawn, scheme, regularization=r), expected)


def test_category_encoders_numbers():
    X, y = np.array([["a"], ["a"], ["b"], ["b"]]), [1, 0, 0, 0]
    encoder = WeightOfEvidenceEncoder().fit(X, y)
    hand = [math.log((2 / 3) / (2 / 5)), math.log((1 / 3) / (3 / 5))]
    np.testing.assert_allclose(encoder.encodings_[0], hand, rtol=1e-15)
    np.testing.assert_allclose(encoder.encodings_[0], [0.5108256237659907, -0.587786664902119], rtol=1e-15)
    assert encoder.transform([["c"]]).tolist() == [[0.0]]


@encoding.examples(10)
@given(data=st.data())
def test_new_rows_see_all_rows(data):
    drawn = data.draw(strategies.drawn_rows("binary", nulls=True))
    encoder = WeightOfEvidenceEncoder(regularization=0.25).fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
    expected = [
        evidence(drawn.keys, drawn.target == 1, weights_of(drawn), key, range(drawn.size), 0.25) for key in drawn.keys
    ]
    encoding.assert_same_bits(encoder.transform(drawn.frame)[:, 0], expected)


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
    encoding.assert_same_bits(encoder.encodings_[0], expected)
    assert np.isfinite(expected).all()
    labels = np.array(["v", "u", "v", "w"])
    several = WeightOfEvidenceEncoder(Greedy(), 0.0).fit(X, labels, sample_weight=weight)
    expected = [evidence("aabb", labels == "v", weight.tolist(), key, range(4), 0.0) for key in "ab"]
    encoding.assert_same_bits(several.encodings_[1], expected)


def test_one_label_alone_is_no_evidence():
    encoder = WeightOfEvidenceEncoder(regularization=0).fit([["a"], ["b"]], [1, 1])
    assert [codes.tolist() for codes in encoder.encodings_] == [[0.0, 0.0]]


@pytest.mark.host
@pytest.mark.parametrize("scheme", WITHOUT_LEAK)
@encoding.examples(4)
@given(data=st.data())
def test_a_flipped_target_leaves_the_own_code_alone(scheme, data):
    drawn = data.draw(strategies.drawn_rows("binary", smallest=6, largest_size=14, nulls=True, each=2))
    row = data.draw(st.integers(0, drawn.size - 1))
    choices = {
        "regularization": data.draw(st.sampled_from([0.0, 1.0])),
        "min_count": data.draw(st.sampled_from([0, 2])),
        "handle_missing": data.draw(st.sampled_from(["category", "zero"])),
        "indicators": data.draw(st.booleans()),
    }
    target = drawn.target.copy()
    target[row] = 1 - target[row]
    other = strategies.Drawn(drawn.keys, target, drawn.weight, drawn.kind)
    before, after = (training_codes(rows, scheme, **choices)[row] for rows in (drawn, other))
    assert before.tobytes() == after.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("scheme", [5, LeaveOneOut(), Ordered(2), KFold(3, blow_up=True)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_backend_gives_the_same_bits(scheme, weighted):
    generator = np.random.default_rng(8)
    X, y = generator.integers(0, 40, (700, 2)), generator.integers(0, 2, 700)
    weight = generator.random(700) if weighted else None
    found = []
    for name in ("numpy", "compiled"):
        with ops.use_backend(name):
            found.append(WeightOfEvidenceEncoder(scheme).fit_transform(X, y, sample_weight=weight))
    assert found[0].tobytes() == found[1].tobytes()


def frame_of(n_rows=60):
    generator = np.random.default_rng(4)
    return pd.DataFrame(
        {"city": generator.choice(["x", "y", "z", None], n_rows), "zip": generator.integers(0, 5, n_rows)}
    ), generator.choice(["no", "yes"], n_rows)


@pytest.mark.host
@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_every_frame_gives_the_same_bits(convert):
    X, y = frame_of()
    expected = WeightOfEvidenceEncoder().fit_transform(X, y)
    found = WeightOfEvidenceEncoder().fit_transform(convert(X), y)
    for name in expected.columns:
        assert np.asarray(found[name]).tobytes() == expected[name].to_numpy().tobytes()


@pytest.mark.parametrize("cv", [5, LeaveOneOut(), Ordered()])
def test_pieces_and_parts_are_one_table(cv):
    X, y = frame_of()
    encoder = WeightOfEvidenceEncoder(cv=cv)
    whole = encoder.fit_transform(X, y)
    pieces = encoder.fit_transform([X[:10], X[10:11], X[11:]], [y[:10], y[10:11], y[11:]])
    assert pd.concat(pieces).equals(whole)
    parts = parts_of(X, y, cuts=(7, 31))
    other = WeightOfEvidenceEncoder(cv=cv)
    tables = encoded(other, parts, 3, "side by side") if isinstance(cv, Ordered) else encoded_in_parts(other, parts)
    assert pd.concat(tables).equals(whole)


def test_sums_add_up():
    X, y = frame_of()
    whole = WeightOfEvidenceEncoder().fit(X, y)
    grown = WeightOfEvidenceEncoder().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    joined = WeightOfEvidenceEncoder().fit(X[20:], y[20:]).merge(WeightOfEvidenceEncoder().fit(X[:20], y[:20]))
    for other in (grown, joined):
        assert other.transform(X).equals(whole.transform(X))
        assert other.information_value_.tobytes() == whole.information_value_.tobytes()


@pytest.mark.host
def test_saved_and_pickled(tmp_path):
    X, y = frame_of()
    encoder = WeightOfEvidenceEncoder(regularization=0.5, indicators=True).fit(X, y)
    encoder.save(tmp_path / "encoder")
    for again in (load(tmp_path / "encoder"), pickle.loads(pickle.dumps(encoder))):
        assert again.transform(X).equals(encoder.transform(X))
        assert again.information_value_.tolist() == encoder.information_value_.tolist()
        assert again.classes_.tolist() == ["no", "yes"]


def test_whole_weights_repeat_rows():
    X, y = frame_of()
    weight = np.arange(len(y)) % 3
    weighted = WeightOfEvidenceEncoder().fit(X, y, sample_weight=weight)
    repeated = WeightOfEvidenceEncoder().fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight))
    for mine, theirs in zip(weighted.encodings_, repeated.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


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
    encoding.assert_same_bits(codes[0], [code])
    encoding.assert_same_bits(encoder.transform([["c"]]), [[code]])


def test_refusals():
    X = [["a"], ["b"], ["b"]]
    with pytest.raises(ValueError, match="needs a binary or multiclass target, but y is continuous"):
        WeightOfEvidenceEncoder().fit(X, [0.5, 1.0, 2.0])
    with pytest.raises(ValueError, match="'regularization' parameter of WeightOfEvidenceEncoder must be a finite"):
        WeightOfEvidenceEncoder(regularization=-1).fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match="must be one of 'zero', 'nan', 'error', a number"):
        WeightOfEvidenceEncoder(handle_unknown="prior").fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match="Found unknown categories"):
        WeightOfEvidenceEncoder(handle_unknown="error").fit(X, [0, 1, 1]).transform([["c"]])
    with pytest.raises(ValueError, match='Fill them, or choose handle_missing="category", or another one than "error"'):
        WeightOfEvidenceEncoder(handle_missing="error").fit([["a"], [None]], [0, 1])


# Codes of training rows are not those of new rows, on purpose, and logarithms are too far apart for the tolerance.
OUT_OF_FOLD = dict.fromkeys(
    ("check_transformer_general", "check_transformer_data_not_an_array"), "training codes are out of fold"
)


@pytest.mark.host
@parametrize_with_checks([WeightOfEvidenceEncoder()], expected_failed_checks=lambda _: OUT_OF_FOLD)
def test_estimator_checks(estimator, check) -> None:
    """The default encoder passes scikit-learn's checks."""
    check(estimator)
