"""Details that other libraries get wrong, and edge cases from reviews, one test each."""

import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from gpu_encode import JamesStein, KFold, LeaveOneOut, Ordered, Prefixes, TargetEncoder, load
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_bits

ROWS = 12
Y = np.array([4.0, 1.0, -2.0, 8.0, 16.0, 3.0, 0.5, 9.0, 2.0, 7.0, 1.5, 6.0])


def quantity(**parameters):
    return TargetEncoder(target_type="continuous", **parameters)


def mean(values):
    """Give the correctly rounded mean."""
    return float(sum(map(Fraction, values)) / len(values))


def test_transform_does_not_know_the_training_frame():
    X = pd.DataFrame({"key": list("aabbccaabbcd")})
    encoder = quantity().fit(X, Y)
    trained = quantity().fit_transform(X, Y)
    assert not encoder.transform(X).equals(trained)
    pd.testing.assert_frame_equal(encoder.transform(X), encoder.transform(X.copy()), check_exact=True)
    alone = [encoder.transform(X[row : row + 1]).iloc[0, 0] for row in range(ROWS)]
    assert encoder.transform(X)["key"].tolist() == alone


def test_joint_keys_are_exact():
    X = pd.DataFrame({"a": list("xyxy"), "b": list("yxxy"), "c": list("xyxy")})
    y = np.array([1.0, 2.0, 4.0, 8.0])
    # (x, y) is not (y, x), and equal columns do not cancel.
    encoder = quantity(columns=[("a", "b"), ("a", "c")], smooth=None).fit(X, y)
    assert encoder.transform(X).to_numpy().T.tolist() == [[1.0, 2.0, 4.0, 8.0], [2.5, 5.0, 2.5, 5.0]]


@pytest.mark.parametrize("columns", [2, 4], ids=["above 2**31", "above 2**63"])
@pytest.mark.long
def test_joint_keys_of_many_values_are_exact(columns):
    size = 70_000
    random = np.random.default_rng(0)
    X = np.column_stack([random.permutation(size) for _ in range(columns)])
    y = random.normal(size=size)
    encoder = quantity(columns=[tuple(range(columns))], smooth=None, prior=0.0).fit(X, y)
    assert encoder.transform(X)[:, 0].tobytes() == y.tobytes()
    # Each part is known, and their combination is not.
    unknown = X.copy()
    unknown[:, -1] = np.roll(X[:, -1], 1)
    assert not encoder.transform(unknown).any()


@pytest.mark.long
def test_more_rows_than_a_float32_can_count():
    # Beyond 2**24 a float32 sum of ones stands still.
    size = 2**24 + 3
    y = np.ones(size, np.float32)
    y[0] = 0.5
    encoder = quantity(smooth=None).fit(np.zeros((size, 1), np.int8), y)
    assert encoder.target_mean_ == mean_of(2 * size - 1, 2 * size)
    assert encoder.encodings_[0][0] == encoder.target_mean_


def mean_of(total, count):
    """Give the correctly rounded quotient."""
    return float(Fraction(total, count))


@pytest.mark.long
def test_more_rows_than_an_int32_can_count():
    X = np.array([["a"], ["a"], ["b"]])
    encoder = quantity(smooth=None).fit(X, np.array([0.1, 0.2, 0.7]))
    for _ in range(40):
        encoder.merge(copy.deepcopy(encoder))
    # 3 * 2**40 rows: sums of doubles are exact all the way.
    once = quantity(smooth=None).fit(X, np.array([0.1, 0.2, 0.7]))
    assert encoder.encodings_[0].tolist() == once.encodings_[0].tolist()
    assert encoder.target_mean_ == mean_of(sum(map(Fraction, [0.1, 0.2, 0.7])), 3)
    labels = TargetEncoder().fit(X, [1, 0, 1], sample_weight=[2**40, 1, 2**41])
    assert labels.target_mean_ == mean_of(2**40 + 2**41, 2**40 + 2**41 + 1)


def test_one_class_gives_zero():
    X = pd.DataFrame({"key": list("aabbccaabbcd")})
    for label in (1, "yes", True):
        encoder = TargetEncoder(cv=KFold(2))
        assert (encoder.fit_transform(X, [label] * ROWS) == 0.0).all(axis=None)
        assert (encoder.transform(X) == 0.0).all(axis=None)
        assert encoder.target_type_ == "binary"


def test_small_and_empty_columns():
    nothing = pd.DataFrame({"key": [None] * ROWS})
    for missing in ("category", "prior"):
        encoder = quantity(handle_missing=missing, smooth=None)
        encoder.fit_transform(nothing, Y)
        assert set(encoder.transform(nothing)["key"]) == {mean(Y)}
    assert quantity(handle_missing="nan").fit(nothing, Y).transform(nothing).isna().all(axis=None)
    one_row = quantity().fit([["a"]], [0.1])
    assert one_row.transform([["a"], ["b"]]).tolist() == [[0.1], [0.1]]
    with pytest.warns(UserWarning, match="1 rows see no rows at all"):
        assert np.isnan(quantity(cv=LeaveOneOut()).fit_transform([["a"]], [0.1])).all()
    one_category = quantity(cv=LeaveOneOut(), smooth=None).fit_transform(np.zeros((3, 1)), [1.0, 2.0, 6.0])
    assert one_category[:, 0].tolist() == [4.0, 3.5, 1.5]
    assert quantity().fit(nothing, Y).transform(nothing[:0]).shape == (0, 1)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_hierarchy_without_any_ancestor(backend):
    frame, y = pd.DataFrame({"a": list("abcd") * 5}), [0, 1, 1, 0, 1] * 4
    with use_backend(backend):
        with_rule = TargetEncoder(hierarchy={"a": Prefixes(3)}).fit_transform(frame, y)
        assert with_rule.equals(TargetEncoder().fit_transform(frame, y))


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("cv", [KFold(2), LeaveOneOut()], ids=str)
def test_a_hierarchy_of_levels_below_which_all_values_are_missing(cv, backend):
    frame = pd.DataFrame({"b": ["u", "u"], "c": ["x", "y"], "d": [None, None]}, dtype=object)
    options = {"columns": ["d"], "cv": cv, "handle_missing": "prior", "smooth": 3.0}
    with use_backend(backend):
        expected = quantity(**options).fit_transform(frame, [0.0, 1.0])
        encoder = quantity(hierarchy={"d": ["c", "b"]}, **options)
        assert encoder.fit_transform(frame, [0.0, 1.0])["d"].tolist() == expected["d"].tolist()
        assert encoder.transform(frame)["d"].tolist() == [0.5, 0.5]


def test_one_class_of_a_multiclass_target(tmp_path):
    encoder = TargetEncoder(target_type="multiclass").fit([["a"], ["b"]], [1, 1])
    encoder.save(tmp_path / "model")
    assert load(tmp_path / "model").transform([["a"], ["z"]]).tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match=r"drop=.first. leaves no column"):
        TargetEncoder(target_type="multiclass", drop="first").fit([["a"], ["b"]], [1, 1])
    with pytest.raises(ValueError, match=r"drop=1 leaves no column"):
        TargetEncoder(target_type="multiclass", drop=1).fit([["a"], ["b"]], [1, 1])
    with pytest.raises(ValueError, match=r"drop='2' of TargetEncoder is no class: y holds 1, 2, 3"):
        TargetEncoder(drop="2").fit([["a"], ["b"], ["b"]], [1, 2, 3])


def test_encodings_beyond_float32_warn():
    y = np.array([1e300, -1e300, 2e300, 0.5])
    encoder = TargetEncoder(smooth=None, dtype="float32").fit([["a"], ["b"], ["a"], ["b"]], y)
    with pytest.warns(UserWarning, match="beyond the range of float32"):
        encoder.transform([["a"]])


def test_a_prior_that_a_number_gives_for_one_column_leaves_the_warning_for_the_other():
    frame = pd.DataFrame({"a": list("ababab"), "b": list("xxyyxy"), "t": [1, 1, 2, 2, 3, 3]})
    encoder = TargetEncoder(columns=["a", "b"], cv=Ordered(time="t"), prior={"a": 0.5}, target_type="continuous")
    with pytest.warns(UserWarning, match="2 rows see no rows at all"):
        encodings = encoder.fit_transform(frame, np.arange(6.0))
    assert encodings["a"].notna().all()
    assert encodings["b"].isna().sum() == 2


def test_many_new_values_under_a_hierarchy_have_the_encoding_of_their_parent():
    zips = pd.DataFrame({"zip": ["10a", "10b", "20a", "20b"] * 10})
    encoder = TargetEncoder(columns=["zip"], hierarchy={"zip": Prefixes(2)}, smooth=1.0)
    encoder.fit(zips, [0, 1, 1, 1] * 10)
    parents = encoder.transform(pd.DataFrame({"zip": ["10z", "20z"]})).to_numpy()
    # As many as are looked up by Arrow, at once.
    new = pd.DataFrame({"zip": [f"{parent}x{number}" for parent in (10, 20) for number in range(200)]})
    assert_same_bits(encoder.transform(new).to_numpy(), np.repeat(parents, 200, axis=0))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("cv", [None, LeaveOneOut(), Ordered(shuffle=False)], ids=["all", "leave-one-out", "ordered"])
def test_james_stein_takes_the_rows_of_categories_that_count(cv):
    keys = [*"aaaabbbbccccddddeeee", *(f"single {number}" for number in range(30))]
    y = np.array([(7 * row) % 11 + row // 4 for row in range(50)], float)
    encoder = quantity(cv=cv, smooth=JamesStein(), min_count=2)
    if cv is None:
        found = encoder.fit(np.array([keys]).T, y).encodings_[0][0]
    else:
        # The last row sees all others.
        found = encoder.fit_transform(np.array([[*keys, "a"]]).T, np.append(y, 100.0))[-1, 0]
    means = y[:20].reshape(5, 4).mean(axis=1)
    pulled = 2 * (y.var(ddof=1) / 4) / ((means - y.mean()) ** 2).sum()
    assert 0 < pulled < 1
    assert found == pytest.approx(means[0] + pulled * (y.mean() - means[0]), rel=1e-12)
