"""The meanings that other libraries get wrong, one test each."""

import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, LeaveOneOut, TargetEncoder

ROWS = 12
Y = np.array([4.0, 1.0, -2.0, 8.0, 16.0, 3.0, 0.5, 9.0, 2.0, 7.0, 1.5, 6.0])


def quantity(**parameters):
    return TargetEncoder(target_type="continuous", **parameters)


def mean(values):
    """Give the correctly rounded mean."""
    return float(sum(map(Fraction, values)) / len(values))


def test_rows_outside_of_given_categories_are_unknown_in_training_too():
    X = np.array([list("aabbzzaabbzz")], dtype=object).T
    fold = np.arange(ROWS) % 2
    codes = quantity(categories=[["a", "b"]], cv=fold, smooth=None).fit_transform(X, Y)[:, 0]
    for row in range(ROWS):
        seen = fold != fold[row]
        expected = mean(Y[seen])
        if X[row, 0] != "z":
            expected = expected + (mean(Y[seen & (X[:, 0] == X[row, 0])]) - expected)
        assert codes[row] == expected
    nan = quantity(categories=[["a", "b"]], cv=fold, smooth=None, handle_unknown="nan").fit_transform(X, Y)[:, 0]
    np.testing.assert_array_equal(np.isnan(nan), X[:, 0] == "z")


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


def test_one_number_is_one_category_and_text_is_another():
    encoder = quantity(smooth=None)
    for ones in ([1, 1.0, True], [1.0, True, 1], [True, 1, 1.0]):
        X = np.array([[value] for value in [*ones, 0, False, 2]], dtype=object)
        assert encoder.fit(X, Y[:6]).categories_[0].tolist() == [0, 1, 2]
        codes = encoder.transform(np.array([[1], [1.0], [True], [np.float32(1)], [np.int8(1)]], dtype=object))
        assert len(set(codes[:, 0])) == 1
        assert encoder.transform(np.array([[1.0]]))[0, 0] == codes[0, 0]
    text = encoder.fit(np.array([["1"], ["1.0"], ["None"], [None], ["nan"], [np.nan]], dtype=object), Y[:6])
    assert text.categories_[0].tolist() == ["1", "1.0", "None", "nan", None]
    with pytest.raises(ValueError, match="was fitted on text values and now holds number values"):
        text.transform(np.array([[1]]))


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
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        quantity().fit(nothing[:0], Y[:0])
