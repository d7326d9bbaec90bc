"""Every kind of target, one or several, with weights."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import Greedy, KFold, LeaveOneOut, Ordered, TargetEncoder, ops
from gpu_encode.sums import targets

FOLDS = KFold(3, order="interleaved")


def codes_of(frame, y, weight=None, **parameters):
    """Give training codes and codes of new rows, side by side."""
    encoder = TargetEncoder(**{"columns": ["city", ("city", "shop")], "cv": FOLDS, **parameters})
    trained = encoder.fit_transform(frame, y, sample_weight=weight)
    return encoder, np.hstack(
        [part.drop(columns=["zip", "day"]).to_numpy() for part in (trained, encoder.transform(frame))]
    )


LABELS = {
    "integers": [7, -3],
    "text": ["yes", "no"],
    "bool": [True, False],
    "floats": [0.5, 0.25],
    "large integers": [2**62 + 1, 2**62],
    "unsigned": list(np.array([2**63 + 1, 1], np.uint64)),
    "bytes": [b"x", b"w"],
}


def polars_series(values):
    return pl.Series(values if isinstance(values[0], bytes) else np.array(values))


@pytest.mark.parametrize("pair", LABELS.values(), ids=LABELS.keys())
@pytest.mark.parametrize(
    "make",
    [np.array, *(pytest.param(each, marks=pytest.mark.host) for each in (list, pd.Series, polars_series))],
    ids=["array", "list", "pandas", "polars"],
)
def test_any_two_labels(frame, labels, pair, make):
    _, expected = codes_of(frame, labels)
    # The label that sorts last is the 1.
    y = make([max(pair) if label else min(pair) for label in labels])
    # Fractions are a quantity, and bytes are nothing to scikit-learn, unless said otherwise.
    for kind in ["binary"] if isinstance(pair[0], (float, bytes)) else ["binary", "auto"]:
        encoder, found = codes_of(frame, y, target_type=kind)
        np.testing.assert_array_equal(found, expected)
        assert encoder.target_type_ == "binary"
        assert encoder.classes_.tolist() == sorted(pair)


def test_what_auto_infers(frame, y, labels):
    def kind(values):
        return TargetEncoder().fit(frame, values).target_type_

    assert kind(y) == "continuous"
    assert kind(labels) == "binary"
    assert kind(labels.astype(float)) == "binary"
    assert kind(np.arange(12) % 3) == "multiclass"
    assert kind(np.arange(12.0) % 3) == "multiclass"
    assert kind(list("abc") * 4) == "multiclass"
    assert kind(np.ones(12)) == "binary"
    assert kind(np.full(12, 1e300)) == "continuous"
    assert kind(y.astype(np.float32)) == "continuous"


def test_many_whole_numbers_are_warned_of():
    X, y = np.zeros((300, 1)), np.arange(300.0) % 101
    says = r'^y holds whole numbers and was inferred to be multiclass with 101 classes\. Pass target_type="continuous"'
    for kind in (np.float64, np.float32, np.int64, np.uint8):
        with pytest.warns(UserWarning, match=says) as found:
            encoder = TargetEncoder().fit(X, y.astype(kind))
        assert len(found) == 1
        assert encoder.target_type_ == "multiclass"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TargetEncoder().fit(X, y % 100)
        TargetEncoder().fit(X, y.astype(int) % 100)
        for kind in ("continuous", "multiclass"):
            TargetEncoder(target_type=kind).fit(X, y.astype(int))


@pytest.mark.host
def test_many_whole_numbers_of_many_rows_are_warned_of():
    y = np.arange(targets.MANY_ROWS) % 101
    with pytest.warns(UserWarning, match="multiclass with 101 classes"):
        assert targets.infer_kind(targets.Labels(ops.host(len(y)), y)) == "multiclass"


def test_rare_classes_are_warned_of_with_an_integer_cv_only(frame, labels):
    with pytest.warns(UserWarning, match="only 6 members, which is less than n_splits=7"):
        TargetEncoder(cv=7).fit_transform(frame, labels)
    TargetEncoder(cv=KFold(7)).fit_transform(frame, labels)
    TargetEncoder(cv=7).fit(frame, labels)


def test_greedy_is_warned_of(frame, y):
    with pytest.warns(UserWarning, match="contain each row's own target"):
        codes = TargetEncoder(cv=Greedy()).fit_transform(frame, y)
    pd.testing.assert_frame_equal(codes, TargetEncoder().fit(frame, y).transform(frame), check_exact=True)


@pytest.mark.parametrize("weight", [None, np.arange(12) / 8], ids=["", "weighted"])
def test_a_dropped_class_changes_no_other(frame, weight):
    y = np.array(list("zxyzxyxxyzzz"))
    encoder, whole = codes_of(frame, y, weight)
    fewer, less = codes_of(frame, y, weight, drop="first")
    np.testing.assert_array_equal(less, whole[:, [1, 2, 4, 5, 7, 8, 10, 11]])
    assert encoder.classes_.tolist() == fewer.classes_.tolist() == ["x", "y", "z"]
    assert encoder.target_mean_.tolist()[1:] == fewer.target_mean_.tolist()
    # Binary and continuous targets have one column anyway.
    np.testing.assert_array_equal(codes_of(frame, y == "x", drop="first")[1], codes_of(frame, y == "x")[1])


SEVERAL = {
    "frame": lambda parts: pd.DataFrame({"money": parts[0], "kind": parts[1], "sold": parts[2]}),
    "polars": lambda parts: pl.DataFrame({"money": parts[0], "kind": parts[1], "sold": parts[2]}),
    "rows": lambda parts: [list(row) for row in zip(*parts, strict=True)],
    "objects": lambda parts: np.array(list(zip(*parts, strict=True)), dtype=object),
}


@pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=name, marks=() if name == "frame" else pytest.mark.host) for name, make in SEVERAL.items()],
)
@pytest.mark.parametrize("weight", [None, np.arange(1, 13) / 8], ids=["", "weighted"])
@pytest.mark.parametrize("cv", [FOLDS, LeaveOneOut(), Ordered(2, average=False)], ids=["folds", "rows", "ordered"])
def test_several_targets_are_encoded_as_each_alone(frame, y, labels, make, weight, cv):
    kinds = ["continuous", "multiclass", "binary"]
    parts = [y.tolist(), ["x", "y", "z"] * 4, [bool(label) for label in labels]]
    encoder = TargetEncoder(columns=["city"], cv=cv, target_type=kinds)
    found = encoder.fit_transform(frame, make(parts), sample_weight=weight)
    new, start = encoder.transform(frame), 0
    for number, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
        alone = TargetEncoder(columns=["city"], cv=cv, target_type=kind)
        expected = alone.fit_transform(frame, part, sample_weight=weight)
        width = expected.shape[1] - 3
        for mine, theirs in ((found, expected), (new, alone.transform(frame))):
            np.testing.assert_array_equal(mine.iloc[:, start : start + width], theirs.iloc[:, :width])
        start += width
        assert encoder.target_type_[number] == kind
        np.testing.assert_array_equal(encoder.target_mean_[number], alone.target_mean_)
        np.testing.assert_array_equal(encoder.classes_[number], alone.classes_)
    assert len(encoder.encodings_) == 5


def test_one_target_in_a_table_is_one_target(frame, y):
    flat = TargetEncoder().fit_transform(frame, y)
    for table in (y.reshape(-1, 1), pd.DataFrame({"amount": y}), [[value] for value in y]):
        pd.testing.assert_frame_equal(TargetEncoder().fit_transform(frame, table), flat, check_exact=True)


def test_integers_beyond_the_digits_of_a_float():
    # As floats, all of these are one number.
    y = np.array([2**53 + 1, 2**53 + 1, 2**53, 2**53], dtype=np.int64)
    encoder = TargetEncoder(target_type="continuous", smooth=None).fit(
        np.array([["a"], ["a"], ["b"], ["b"]]), y - 2**53
    )
    assert encoder.encodings_[0].tolist() == [1.0, 0.0]
    thirds = TargetEncoder(target_type="continuous", smooth=None).fit(np.zeros((3, 1)), y[1:])
    # The sum is exact, and its third is rounded once.
    assert thirds.encodings_[0].tolist() == [(3 * 2**53 + 1) / 3]
    big = np.array([2**62 + 1, -(2**62), 2**62, -(2**62)], dtype=np.int64)
    exact = TargetEncoder(target_type="continuous", smooth=None).fit(np.zeros((4, 1)), big)
    assert exact.encodings_[0].tolist() == [0.25]
    assert exact.target_mean_ == 0.25


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, bool])
def test_a_quantity_of_any_numeric_type(frame, dtype):
    y = np.array([1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0]).astype(dtype)
    _, found = codes_of(frame, y, target_type="continuous")
    np.testing.assert_array_equal(found, codes_of(frame, y.astype(float), target_type="continuous")[1])


@pytest.mark.parametrize("scale", [1, 0.5, 2.0**-60])
def test_equal_weights_change_nothing(frame, y, scale):
    even = TargetEncoder(smooth=None).fit(frame, y, sample_weight=np.full(12, scale))
    pd.testing.assert_frame_equal(
        even.transform(frame), TargetEncoder(smooth=None).fit(frame, y).transform(frame), check_exact=True
    )


def test_rows_of_no_weight_count_for_nothing(frame, y):
    weight = np.array([1.0] * 9 + [0.0] * 3)
    encoder = TargetEncoder(columns=["city"]).fit(frame, y, sample_weight=weight)
    fewer = TargetEncoder(columns=["city"]).fit(frame[:9], y[:9])
    new = frame.assign(city=list("abcaabbccaab"))
    pd.testing.assert_frame_equal(encoder.transform(new), fewer.transform(new), check_exact=True)
    # A category of rows without weight is one that nobody has seen.
    assert encoder.encodings_[0][encoder.categories_[0] == "d"].tolist() == [encoder.target_mean_]
