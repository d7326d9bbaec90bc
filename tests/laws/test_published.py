"""Encodings that scikit-learn, category_encoders and vtreat publish."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold as ScikitKFold
from sklearn.preprocessing import TargetEncoder as ScikitTargetEncoder

import gpu_encode
from tests.laws import encoding, published
from tests.versions import as_scikit_learn_1_9


def codes(keys, target, asked, smooth, kind="continuous", **choices):
    encoder = gpu_encode.TargetEncoder(smooth=smooth, target_type=kind, **choices)
    encoder.fit(pd.DataFrame({"key": keys}), target)
    return np.asarray(encoder.transform(pd.DataFrame({"key": asked})))[:, 0]


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize(("smooth", "expected"), published.SCIKIT_LEARN_CODES)
def test_scikit_learn(smooth, expected, backend):
    keys, target = published.scikit_learn_rows()
    with gpu_encode.seam.ops.use_backend(backend):
        encodings = codes(keys, target, ["cat", "dog", "snake"], smooth)
    np.testing.assert_allclose(encodings, expected, rtol=1e-9)


@as_scikit_learn_1_9
@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
@pytest.mark.parametrize("smooth", ["auto", 0.0, 12.5])
def test_scikit_learn_training_encodings_of_the_same_folds(smooth, kind):
    generator = np.random.default_rng(8)
    keys = generator.integers(0, 12, (400, 2))
    target = keys.sum(axis=1) + generator.normal(size=400) * 3
    if kind != "continuous":
        target = (target > np.quantile(target, 0.4)).astype(int) + (kind == "multiclass") * (target > 15)
    splitter = ScikitKFold(4, shuffle=True, random_state=2)
    choices = {"smooth": smooth, "target_type": kind, "cv": splitter}
    ours = gpu_encode.TargetEncoder(**choices).fit_transform(keys, target)
    theirs = ScikitTargetEncoder(**choices).fit_transform(keys, target)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_category_encoders_target_encoder():
    asked = list(published.TREND_CODES)
    encodings = codes(published.TREND, published.TREND_TARGET, asked, gpu_encode.Sigmoid(k=2, f=10), "binary")
    np.testing.assert_allclose(encodings, [published.TREND_CODES[key] for key in asked], atol=1e-4)


def test_category_encoders_hierarchy():
    frame = pd.DataFrame({"key": published.COMPASS})
    frame["parent"] = frame["key"].map(published.COMPASS_PARENTS)
    choices = {"smooth": gpu_encode.Sigmoid(k=2, f=2), "target_type": "binary"}
    encoder = gpu_encode.TargetEncoder(columns=["key"], hierarchy={"key": ["parent"]}, **choices)
    encodings = np.asarray(encoder.fit(frame, published.COMPASS_TARGET).transform(frame))[:, 0]
    expected = [published.COMPASS_CODES[key] for key in published.COMPASS]
    np.testing.assert_allclose(encodings.astype(float), expected, atol=1e-4)


def test_category_encoders_leave_one_out():
    frame = pd.DataFrame({"key": list("aaabbb")})
    encoder = gpu_encode.TargetEncoder(smooth=None, cv=gpu_encode.LeaveOneOut(), target_type="binary")
    encodings = np.asarray(encoder.fit_transform(frame, [1, 0, 0, 1, 0, 1]))[:, 0]
    np.testing.assert_allclose(encodings, [0, 0.5, 0.5, 0.5, 1, 0.5])


def test_category_encoders_ordered():
    # The peer's prior is the mean of all rows.
    frame = pd.DataFrame({"key": list("ABBCA"), "time": range(5)})
    scheme = gpu_encode.Ordered(time="time")
    encoder = gpu_encode.TargetEncoder(smooth=1.0, cv=scheme, target_type="binary", prior=0.6)
    encodings = np.asarray(encoder.fit_transform(frame, [1, 0, 1, 0, 1]))[:, 0]
    np.testing.assert_allclose(encodings, [0.6, 0.6, 0.3, 0.6, 0.8])
    new = np.asarray(encoder.transform(pd.DataFrame({"key": ["A", "B"]})))[:, 0]
    np.testing.assert_allclose(new, [2.6 / 3, 1.6 / 3])


@pytest.fixture
def random_rows():
    generator = np.random.default_rng(3)
    keys = generator.integers(0, 9, 300).astype(str)
    return keys, keys.astype(float) * 0.2 + generator.normal(size=300)


@pytest.mark.filterwarnings("ignore")  # what the peer does to pandas is its own affair
@pytest.mark.parametrize(
    ("name", "options", "smooth"),
    [
        ("MEstimateEncoder", {"m": 2.5}, 2.5),
        ("TargetEncoder", {"min_samples_leaf": 12, "smoothing": 7}, gpu_encode.Sigmoid(k=12, f=7)),
        ("JamesSteinEncoder", {"model": "pooled"}, gpu_encode.JamesStein()),
        ("JamesSteinEncoder", {"model": "independent"}, gpu_encode.JamesStein(model="independent")),
    ],
)
def test_category_encoders_formulas(random_rows, name, options, smooth):
    category_encoders = pytest.importorskip("category_encoders")
    keys, target = random_rows
    frame = pd.DataFrame({"key": keys})
    peer = getattr(category_encoders, name)(cols=["key"], **options).fit(frame, pd.Series(target))
    encodings = codes(keys, target, keys, smooth)
    np.testing.assert_allclose(encodings, peer.transform(frame)["key"].to_numpy(), rtol=1e-9)


def test_what_vtreat_publishes():
    encodings = codes(list("aaabbc"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], list("abc"), gpu_encode.PartialPooling())
    np.testing.assert_allclose(encodings, list(published.VTREAT_CODES.values()), atol=1e-6)


def test_vtreat_pooled_estimate(random_rows):
    keys, target = random_rows
    expected = published.vtreat_codes(keys, target)
    encodings = codes(keys, target, list(expected), gpu_encode.PartialPooling())
    np.testing.assert_allclose(encodings, list(expected.values()), rtol=1e-9)
