"""What a fitted encoder refuses, in `transform`, `partial_fit` and `merge`, it refuses without a change to itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from gpu_encode import (
    KFold,
    MEstimate,
    TargetEncoder,
    devices,
)
from tests.encoders.unchanged import Unchanged

pytestmark = pytest.mark.host

NEW_ROWS = [
    ("a column missing", lambda frame: frame[["city", "day", "shop"]], ValueError, "now missing:\n- zip"),
    ("a column renamed", lambda frame: frame.rename(columns={"zip": "ZIP"}), ValueError, "unseen at fit time:\n- ZIP"),
    ("another order", lambda frame: frame[frame.columns[::-1]], ValueError, "must be in the same order"),
    ("text for numbers", lambda frame: frame.assign(zip="1"), ValueError, "'zip' was fitted on number .* holds text"),
    ("numbers for text", lambda frame: frame.assign(city=1), ValueError, "'city' was fitted on text .* Convert it"),
    ("text for dates", lambda frame: frame.assign(day="x"), ValueError, "'day' was fitted on datetime values"),
    ("twice the same name", lambda frame: pd.concat([frame, frame], axis=1), ValueError, "duplicate column names"),
    ("infinity", lambda frame: frame.assign(zip=np.inf), ValueError, "infinity: column 'zip', the first in row 0"),
    ("one dimension", lambda frame: frame["zip"], ValueError, "Expected 2D array, got 1D array"),
]


@pytest.mark.parametrize(
    ("make", "error", "match"), [case[1:] for case in NEW_ROWS], ids=[case[0] for case in NEW_ROWS]
)
def test_transform(fitted, frame, make, error, match):
    with Unchanged(fitted, frame), pytest.raises(error, match=match):
        fitted.transform(make(frame))


def test_transform_of_an_array_of_another_width(y):
    encoder = TargetEncoder(columns=[0]).fit(np.ones((12, 2)), y)
    with pytest.raises(ValueError, match="X has 3 features, but TargetEncoder is expecting 2 features"):
        encoder.transform(np.ones((12, 3)))


def test_listed_columns_missing_from_new_rows(frame, y):
    encoder = TargetEncoder(columns=["city", ("city", "zip")]).fit(frame, y)
    with pytest.raises(ValueError, match=r"The fitted column 'zip' is not a column of X. Did you mean 'zipp'"):
        encoder.transform(frame.rename(columns={"zip": "zipp"}))
    with pytest.raises(ValueError, match="The fitted column 'day' is not a column of X"):
        encoder.transform(frame.drop(columns="day"))


def test_refused_values_of_new_rows(frame, y):
    encoder = TargetEncoder(columns=["city"], handle_unknown="error", handle_missing="error").fit(frame, y)
    with Unchanged(encoder, frame):
        with pytest.raises(ValueError, match=r"unknown categories in column 'city': 12 rows, .* row 0 \('z'\). Choose"):
            encoder.transform(frame.assign(city="z"))
        with pytest.raises(
            ValueError,
            match=r"'city' holds 12 missing values, the first in row 0. Fill them, or choose handle_missing=.cat",
        ):
            encoder.transform(frame.assign(city=None))
    with pytest.raises(ValueError, match="'city' holds 12 missing values, the first in row 0"):
        encoder.fit(frame.assign(city=None), y)


@pytest.mark.parametrize(
    "call",
    [
        lambda encoder, frame: encoder.transform(frame),
        lambda encoder, frame: encoder.get_feature_names_out(),
        lambda encoder, frame: encoder.merge(encoder),
        lambda encoder, frame: encoder.save("never-written"),
    ],
    ids=["transform", "get_feature_names_out", "merge", "save"],
)
def test_before_fit(frame, call):
    with pytest.raises(NotFittedError, match=r"This TargetEncoder instance is not fitted yet. Call 'fit'"):
        call(TargetEncoder(), frame)


@pytest.mark.parametrize("name", ["categories_", "encodings_", "target_mean_"])
def test_fitted_attributes_before_fit(name):
    with pytest.raises(AttributeError, match="not fitted yet: call fit or fit_transform first"):
        getattr(TargetEncoder(), name)


def test_a_device_that_is_not_there(fitted, frame, y, monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: False)
    with (
        Unchanged(fitted, frame),
        pytest.raises(RuntimeError, match=r"device='cuda' was asked for, but .*choose device='cpu' or 'auto'"),
    ):
        fitted.set_params(device="cuda").fit(frame, y)


def test_names_that_clash(fitted, frame, y):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=r"would be called 'city_unseen'. Rename the input"):
        fitted.set_params(columns=["city"], indicators=True).fit(frame.assign(city_unseen=1), y)


PIECES = [
    ("other columns", lambda frame, y: (frame.rename(columns={"zip": "z"}), y), "with other columns .* Give the same"),
    ("more columns", lambda frame, y: (frame.assign(more=1), y), "X has 5 features, but .* expecting 4"),
    ("another kind", lambda frame, y: (frame.assign(city=1), y), "'city' was fitted on text values and now holds"),
    ("more targets", lambda frame, y: (frame, np.column_stack([y, y])), "had 1 targets, this one has 2. Give the same"),
]


@pytest.mark.parametrize(("make", "match"), [case[1:] for case in PIECES], ids=[case[0] for case in PIECES])
def test_partial_fit_of_other_rows(fitted, frame, y, make, match):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=match):
        fitted.partial_fit(*make(frame, y))


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"target_type": "binary"}, "had target_type 'continuous', this one asks for 'binary'. Call fit to start anew"),
        ({"columns": ["city"]}, "with other columns than before"),
        (
            {"smooth": 3.0},
            "than before: smooth is now MEstimate[(]m=3.0[)] and was EmpiricalBayes[(][)]. Set it back, or call fit",
        ),
        ({"handle_missing": "prior"}, "than before: handle_missing is now 'prior' and was 'category'"),
        ({"indicators": True}, "than before: indicators is now "),
        ({"dtype": "float32"}, "than before: dtype is now 'float32' and was 'float64'"),
        ({"handle_unknown": "error"}, "than before: handle_unknown is now 'error' and was 'prior'"),
        ({"handle_unknown": 0.5}, "than before: handle_unknown is now 0.5 and was 'prior'"),
        ({"prior": {"zip": 0.5}}, "than before: prior is now 0.5 and was 'mean'"),
        ({"min_count": 2}, "than before: min_count is now 2.0 and was 0.0"),
        ({"max_categories": 2}, "than before: max_categories is now 2 and was None"),
        ({"cv": KFold(2, blow_up=True)}, "partial_fit has no folds, which blow-up columns need. Call fit"),
    ],
)
def test_partial_fit_with_other_parameters(fitted, frame, y, parameters, match):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=match):
        fitted.set_params(**parameters).partial_fit(frame, y)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ([0.5, 1.5] * 6, "had target_type 'binary', but y now holds fractions. Fit with target_type='continuous'"),
        ([1, 2] * 6, 'needs at most 2 distinct labels in y. Got 3: 0, 1, 2. Pass target_type="multiclass"'),
        (list("ab") * 6, "y held the labels 0, 1 and now holds 'a', 'b'. Convert them to one type"),
    ],
)
def test_partial_fit_with_other_labels(frame, labels, more, match):
    encoder = TargetEncoder().fit(frame, labels)
    with Unchanged(encoder, frame), pytest.raises(ValueError, match=match):
        encoder.partial_fit(frame, more)


MERGES = [
    ("smooth", lambda frame, y: TargetEncoder(target_type="continuous", smooth=3.0).fit(frame, y), "smooth is 'auto'"),
    ("columns", lambda frame, y: TargetEncoder(target_type="continuous").fit(frame[["city"]], y), "of different colum"),
    (
        "kind",
        lambda frame, y: TargetEncoder(target_type="continuous").fit(frame.assign(city=1), y),
        "'city' was fitted",
    ),
    ("targets", lambda frame, y: TargetEncoder(target_type="continuous").fit(frame, np.c_[y, y]), "different targets"),
]


@pytest.mark.parametrize(("make", "match"), [case[1:] for case in MERGES], ids=[case[0] for case in MERGES])
def test_merge(fitted, frame, y, make, match):
    good = TargetEncoder(target_type="continuous").fit(frame, y)
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=match):
        fitted.merge(good, make(frame, y))


def test_merge_of_what_is_no_fitted_encoder(fitted, frame):
    with Unchanged(fitted, frame):
        with pytest.raises(TypeError, match=r"Cannot merge int into TargetEncoder. Give fitted encoders"):
            fitted.merge(3)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            fitted.merge(TargetEncoder(target_type="continuous"))


def test_merge_of_other_targets(frame, y, labels):
    encoder = TargetEncoder().fit(frame, labels)
    with Unchanged(encoder, frame):
        with pytest.raises(ValueError, match="Targets of different kinds: 'binary' and 'continuous'"):
            encoder.merge(TargetEncoder().fit(frame, y))
        with pytest.raises(ValueError, match=r'binary target now has 3 labels: .* Fit with target_type="multiclass"'):
            encoder.merge(TargetEncoder().fit(frame, labels + 1))
        with pytest.raises(ValueError, match="y held the labels 0, 1 and now holds 'a', 'b'"):
            encoder.merge(TargetEncoder().fit(frame, np.where(labels, "a", "b")))


def test_merge_of_parameter_objects(frame, y):
    one, other = (TargetEncoder(smooth=MEstimate(m)).fit(frame, y) for m in (1.0, 2.0))
    with Unchanged(one, frame), pytest.raises(ValueError, match=r"smooth is MEstimate\(m=1.0\) and MEstimate\(m=2.0\)"):
        one.merge(other)


def test_merge_of_blow_up_columns(frame, y):
    one, other = (TargetEncoder(cv=KFold(2, blow_up=True)).fit(frame, y) for _ in range(2))
    with Unchanged(one, frame), pytest.raises(ValueError, match="Blow-up encoders cannot be merged"):
        one.merge(other)
