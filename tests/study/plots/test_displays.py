"""Pictures show the values of encoders, in the given axes."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from gpu_encode import CountEncoder, LeaveOneOut, Prefixes, StatisticEncoder, TargetEncoder, leak_report, tune
from gpu_encode.study.plots import (
    CalibrationDisplay,
    HierarchyDisplay,
    JointKeyDisplay,
    ShrinkageDisplay,
    TrainingDisplay,
    TuningDisplay,
)

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"city": random.choice(list("abcde"), 300), "day": random.choice(["mo", None], 300)})
    X["zip"] = X["city"] + random.choice(list("xy"), 300)
    return X, random.integers(2, size=300)


@pytest.fixture(scope="module")
def encoder(rows):
    keys = ["city", "zip", ("city", "day")]
    return TargetEncoder(columns=keys, smooth=5.0, hierarchy={"zip": Prefixes(1)}).fit(*rows)


@pytest.fixture(scope="module")
def displays(rows, encoder):
    X, y = rows
    return {
        "shrinkage": ShrinkageDisplay.from_estimator(encoder, column="city"),
        "training": TrainingDisplay.from_estimator(TargetEncoder(columns=["city"]), X, y, output="city"),
        "calibration": CalibrationDisplay.from_estimator(encoder, X, y, column="zip", n_bins=4),
        "joint": JointKeyDisplay.from_estimator(encoder, column=("city", "day")),
        "tuning": TuningDisplay.from_tuned(tune(encoder, X, y, smoothings=[1.0, 10.0])),
        "hierarchy": HierarchyDisplay.from_estimator(encoder, column="zip"),
        "leaks": leak_report(TargetEncoder(columns=["city"]), X[["city"]], y, n_shuffles=3, n_flips=0).plot(),
    }


KINDS = ["shrinkage", "training", "calibration", "joint", "tuning", "hierarchy", "leaks"]


@pytest.mark.parametrize("kind", KINDS)
def test_axes_in_axes_out_with_labels(displays, kind):
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    display = displays[kind]
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.get_xlabel()
    assert display._repr_png_()[:4] == b"\x89PNG"
    assert display.plot().figure_ is not figure
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_shrinkage_is_counts_means_and_encodings(rows, displays, encoder):
    X, y = rows
    display, groups = displays["shrinkage"], pd.Series(y).groupby(X["city"])
    assert display.weights.tolist() == groups.size().tolist()
    assert display.means.tolist() == groups.mean().tolist()
    assert display.encodings.tolist() == encoder.encodings_[0].tolist()
    assert display.prior == encoder.target_mean_


def test_training_encodings_stand_beside_new_ones(rows):
    X, y = rows
    encoder = TargetEncoder(columns=["city"], cv=LeaveOneOut())
    display = TrainingDisplay.from_estimator(encoder, X[["city"]], y)
    assert display.training.tolist() == encoder.fit_transform(X[["city"]], y)["city"].tolist()
    assert display.new.tolist() == encoder.transform(X[["city"]])["city"].tolist()


def test_calibration_is_means_of_bins(rows, displays, encoder):
    X, y = rows
    encodings = encoder.transform(X)["zip"].to_numpy()
    order = np.argsort(encodings, kind="stable")
    # An encoding belongs to the bin of the row in the middle of its rows, by rank.
    of_rank = np.repeat(range(4), [len(part) for part in np.array_split(order, 4)])
    ranks = {value: np.flatnonzero(encodings[order] == value) for value in encodings}
    of_row = np.array([of_rank[ranks[value][(len(ranks[value]) - 1) // 2]] for value in encodings[order]])
    bins = [order[of_row == number] for number in np.unique(of_row)]
    assert displays["calibration"].means.tolist() == [y[rows].mean() for rows in bins]
    np.testing.assert_allclose(displays["calibration"].encodings, [encodings[rows].mean() for rows in bins], rtol=1e-15)


@pytest.mark.parametrize("sizes", [[1000, 50], [1], [5, 5, 5], [1] * 40, [1, 97, 1, 1], [30, 1, 30, 1, 30]], ids=str)
@pytest.mark.parametrize("n_bins", [2, 3, 10])
def test_rows_of_one_encoding_are_in_one_bin(sizes, n_bins):
    shops = np.repeat(np.arange(len(sizes)), sizes)[:, None]
    y = np.random.default_rng(0).normal(size=len(shops)) + shops[:, 0]
    encoder = TargetEncoder(smooth=None).fit(shops, y)
    orders = [np.arange(len(y)), np.argsort(y), np.argsort(-y)]
    first, *others = [
        CalibrationDisplay.from_estimator(encoder, shops[order], y[order], n_bins=n_bins) for order in orders
    ]
    assert len(first.means) <= min(n_bins, len(sizes))
    assert (np.diff(first.encodings) > 0).all()
    # The fitted rows themselves lie on the line, wherever they stand in the file.
    for display in (first, *others):
        np.testing.assert_allclose(display.means, display.encodings, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(display.errors, first.errors, rtol=1e-9)
    if sizes == [1] * 40:
        expected = [y[rows].mean() for rows in np.array_split(np.argsort(y), n_bins)]
        np.testing.assert_allclose(first.means, expected, rtol=1e-12)


def test_calibration_leaves_rows_without_an_encoding_out(rows):
    X, y = rows
    encoder = TargetEncoder(columns=["city"], handle_unknown="nan").fit(X, y)
    strangers = X[:20].assign(city="new")
    display = CalibrationDisplay.from_estimator(encoder, pd.concat([X, strangers]), np.append(y, y[:20]))
    alone = CalibrationDisplay.from_estimator(encoder, X, y)
    for name in ("encodings", "means", "errors"):
        assert getattr(display, name).tolist() == getattr(alone, name).tolist()
    with pytest.raises(ValueError, match="All 20 rows have NaN as their encoding of 'city'"):
        CalibrationDisplay.from_estimator(encoder, strangers, y[:20])


def test_a_joint_key_has_a_cell_for_each_category(rows, displays, encoder):
    display = displays["joint"]
    assert display.values == ([*"abcde"], ["mo", None])
    frame = pd.DataFrame({"city": ["b"] * 2, "day": ["mo", None], "zip": "bx"})
    assert display.encodings[1].tolist() == encoder.transform(frame)["city_x_day"].tolist()


def test_a_path_leads_through_the_level_above(rows, displays, encoder):
    display = displays["hierarchy"]
    level = encoder.transform(pd.DataFrame({"city": ["a"], "day": ["mo"], "zip": ["a?"]}))["zip"].iloc[0]
    for category, path in zip(display.categories, display.paths, strict=True):
        assert path[0] == encoder.target_mean_
        assert bool(path[1] == level) is (category[0] == "a")


def test_the_likeliest_smoothing_is_on_top(displays):
    scores = displays["tuning"].scores
    assert scores[0].log_likelihood >= scores[1].log_likelihood


def test_refusals(rows, encoder, monkeypatch):
    X, y = rows
    with pytest.raises(TypeError, match="shrunk means, such as those of TargetEncoder"):
        ShrinkageDisplay.from_estimator(CountEncoder().fit(X[["city"]]))
    with pytest.raises(ValueError, match="column names 'shop'"):
        ShrinkageDisplay.from_estimator(encoder, column="shop")
    with pytest.raises(ValueError, match="'city' has no hierarchy"):
        HierarchyDisplay.from_estimator(encoder, column="city")
    with pytest.raises(ValueError, match="joint key of two columns"):
        JointKeyDisplay.from_estimator(encoder, column="city")
    with pytest.raises(ValueError, match="no output 'shop'"):
        TrainingDisplay.from_estimator(TargetEncoder(columns=["city"]), X[["city"]], y, output="shop")
    text = StatisticEncoder(statistics=["mode"], values=["zip"], columns=["city"])
    with pytest.raises(ValueError, match="needs numbers, but 'city_zip_mode' has others: name"):
        TrainingDisplay.from_estimator(text, X, y)
    with pytest.raises(ValueError, match="two classes"):
        CalibrationDisplay.from_estimator(TargetEncoder().fit(X[["city"]], np.arange(300) % 3), X[["city"]], y)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install '.\[plot\]'"):
        ShrinkageDisplay.from_estimator(encoder).plot()


def test_names_are_no_mathematics():
    X = pd.DataFrame({"cost_$_to_$": ["$\\x$", "b", None] * 4, "zip": list("abcd") * 3})
    encoder = TargetEncoder(columns=["cost_$_to_$", ("cost_$_to_$", "zip")]).fit(X, np.arange(12) % 2)
    for kind, column in ((ShrinkageDisplay, 0), (JointKeyDisplay, 1)):
        picture = kind.from_estimator(encoder, column=encoder.columns[column])
        assert picture._repr_png_()[:4] == b"\x89PNG"


def test_calibration_compares_the_labels_of_fit(rows, encoder):
    X, y = rows
    with pytest.raises(ValueError, match=r"labels that fit has not seen, such as '(yes|no)'; fit has seen \[0, 1\]"):
        CalibrationDisplay.from_estimator(encoder, X, np.where(y == 1, "yes", "no"))
    numbers = np.arange(300) + 0.5
    for encoded, target in ((encoder, y), (TargetEncoder(columns=["zip"]).fit(X, numbers), numbers)):
        missing = np.where(np.arange(300) == 7, np.nan, target)
        with pytest.raises(ValueError, match=r"y has 1 missing value, in row 7\. Drop"):
            CalibrationDisplay.from_estimator(encoded, X, missing)
    with pytest.raises(ValueError, match="n_bins"):
        CalibrationDisplay.from_estimator(encoder, X, y, n_bins=1)
    with pytest.raises(NotFittedError):
        CalibrationDisplay.from_estimator(TargetEncoder(), X, y)
