"""Parts with different types of a column, target or weight: the result is that of one column with all rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gpu_encode import GroupKFold, KFold, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.scale.parts import Part, encode
from tests.encoders.pieces import saved
from tests.scale.parts.in_parts import encoded_in_parts, fitted_in_parts
from tests.scale.parts.test_orders import encoded

N = 12
X = pd.DataFrame({"city": list("abc") * 4, "zip": [1, 2] * 6})
BIG = 2**53 + 1


def cut(frames, y, weight=None):
    """Parts of three rows each; `frames`, `y` and `weight` hold one piece for each."""
    weight = weight or [None] * len(frames)
    return [Part(*rows, first_row=3 * number) for number, rows in enumerate(zip(frames, y, weight, strict=True))]


FRAMES = [X[start : start + 3] for start in range(0, N, 3)]
LABELS = [np.array([0, 1, 1]), np.array([1, 0, 1]), np.array([0, 0, 1]), np.array([1, 1, 0])]
INTEGERS = [BIG + np.array([0, 2, 4]), np.array([BIG, 1, 2])]
FLOATS = [np.array([0.5, 1.25, 3.0]), np.array([1.0, 2.0, 0.1])]


def assert_alike(make, frames, y, weight, folder):
    one, other = make(), make()
    expected = one.fit_transform(frames, y, sample_weight=weight)
    for mine, theirs in zip(encoded_in_parts(other, cut(frames, y, weight)), expected, strict=True):
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)
    assert saved(one, folder) == saved(other, folder)
    return other


def test_labels_signed_and_unsigned(tmp_path):
    y = [labels.astype(kind) for labels, kind in zip(LABELS, [np.int64, np.uint64, np.int8, np.uint8], strict=True)]
    other = assert_alike(lambda: TargetEncoder(cv=KFold(2)), FRAMES, y, None, tmp_path)
    assert other.classes_.dtype == np.int64


@pytest.mark.parametrize("scheme", [KFold(2), LeaveOneOut()], ids=str)
def test_integers_become_floats_beside_floats(scheme, tmp_path):
    mixed = [INTEGERS[0], FLOATS[0], INTEGERS[1], FLOATS[1]]
    assert_alike(lambda: TargetEncoder(cv=scheme, target_type="continuous"), FRAMES, mixed, None, tmp_path)
    assert_alike(lambda: TargetEncoder(cv=scheme), FRAMES, LABELS, mixed, tmp_path)


def test_a_part_of_nothing_but_nan_has_a_say(tmp_path):
    frames = [X[:3], X[3:6], X[6:9].assign(zip=np.nan), X[9:]]
    other = assert_alike(lambda: TargetEncoder(cv=KFold(2), columns=[("zip", "city")]), frames, LABELS, None, tmp_path)
    assert type(other.categories_[0][0][0]) is float


def test_one_class_is_not_a_rare_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded_in_parts(TargetEncoder(cv=2), cut(FRAMES, [np.zeros(3, int)] * 4))


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_many_whole_numbers_are_warned_of_once(kind):
    parts = [Part(X, np.arange(start, start + N).astype(kind), first_row=start) for start in range(0, 9 * N, N)]
    says = "^y holds whole numbers and was inferred to be multiclass with 108 classes"
    with pytest.warns(UserWarning, match=says) as caught:
        fitted_in_parts(TargetEncoder(cv=KFold(2), smooth=None), parts)
    assert len(caught) == 1


def test_a_part_without_rows_warns_of_nothing():
    # Encodings of new rows exceed float32; a part without rows has none of them.
    y = [np.array([1e39, -1e39, 0.0]), np.array([0.0, 0.0, 0.0])]
    encoder = TargetEncoder(cv=KFold(2), target_type="continuous", dtype="float32", smooth=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = fitted_in_parts(encoder, cut(FRAMES[:2], y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encode(tables, Part(X[:0], first_row=6)).shape == (0, 2)


def test_what_a_pass_needs_and_did_not_get():
    groups = np.arange(3)
    tables = fitted_in_parts(TargetEncoder(cv=GroupKFold(2)), [Part(FRAMES[0], LABELS[0], groups=groups)])
    with pytest.raises(ValueError, match="GroupKFold needs groups"):
        encode(tables, Part(FRAMES[0]))
    tables = fitted_in_parts(TargetEncoder(cv=KFold(2, stratify=True)), [Part(FRAMES[0], LABELS[0])])
    with pytest.raises(ValueError, match="requires y to be passed"):
        encode(tables, Part(FRAMES[0]))


@pytest.mark.filterwarnings("ignore:1 rows see no rows")
@pytest.mark.parametrize("way", ["one after another", "side by side"])
@pytest.mark.parametrize("exponent", [54, 55, 56])
def test_stretches_near_the_limit_of_whole_numbers(exponent, way):
    # All rows of a category cancel to a small number; the stretches between checkpoints do not.
    rows = np.arange(66)
    frame, y = pd.DataFrame({"city": ["k"] * 66}), np.where(rows % 2, -1, 1) * (1 << exponent) + rows % 3
    one, other = (TargetEncoder(cv=Ordered(shuffle=False), target_type="continuous") for _ in range(2))
    parts = [Part(frame[start : start + 22], y[start : start + 22], first_row=start) for start in (0, 22, 44)]
    expected = one.fit_transform(frame, y)
    pd.testing.assert_frame_equal(pd.concat(encoded(other, parts, 1, way)), expected, check_exact=True)
