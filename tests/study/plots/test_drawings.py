"""What stands in a picture, read from its axes, is what plain loops over the rows say."""

import io
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gpu_encode import (
    LeaveOneOut,
    Prefixes,
    ProximityRegressor,
    SpectralEncoder,
    TargetEncoder,
    VoteClassifier,
    VoteRegressor,
    leak_report,
    roc_auc_score,
    tune,
)
from gpu_encode.study.plots import (
    AscentDisplay,
    CalibrationDisplay,
    HierarchyDisplay,
    JointKeyDisplay,
    ScatterDisplay,
    SearchDisplay,
    ShrinkageDisplay,
    TrainingDisplay,
    TuningDisplay,
)

pytestmark = pytest.mark.host
# Few rows, in no order, of categories with one to four rows.
X = pd.DataFrame({"city": [*"acbacadbca"], "day": [1, 2, 1, 2, 1, 1, 2, 1, 2, 1]})
Y = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1]
PRIOR = sum(Y) / len(Y)
SMOOTH = 2


def axes_of(display):
    """Draw in axes of its own."""
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    display.plot(ax)
    return ax


def shrunk(targets, prior=PRIOR):
    """Give the m-estimate of some targets."""
    return (sum(targets) + SMOOTH * prior) / (len(targets) + SMOOTH)


def groups(*columns):
    """Give the targets of each category, by its first row."""
    found = {}
    for number, y in enumerate(Y):
        key = tuple(X[name][number] for name in columns)
        found.setdefault(key if len(key) > 1 else key[0], []).append(y)
    return found


def points(ax, number):
    """Give the points of one scatter."""
    return sorted(map(tuple, ax.collections[number].get_offsets().tolist()))


def test_shrinkage():
    encoder = TargetEncoder(columns=["city"], smooth=SMOOTH).fit(X, Y)
    ax = axes_of(ShrinkageDisplay.from_estimator(encoder))
    by_city = groups("city").values()
    np.testing.assert_allclose(points(ax, 1), sorted((len(ys), sum(ys) / len(ys)) for ys in by_city))
    np.testing.assert_allclose(points(ax, 2), sorted((len(ys), shrunk(ys)) for ys in by_city))
    lines = sorted(tuple(line.ravel().tolist()) for line in ax.collections[0].get_segments())
    expected = sorted((len(ys), sum(ys) / len(ys), len(ys), shrunk(ys)) for ys in by_city)
    np.testing.assert_allclose(lines, expected)
    (prior,) = ax.lines
    assert list(prior.get_ydata()) == [PRIOR, PRIOR]
    assert prior.get_label() == f"prior, {PRIOR:.3g}"


def test_a_joint_key():
    encoder = TargetEncoder(columns=[("city", "day")], smooth=SMOOTH).fit(X, Y)
    ax = axes_of(JointKeyDisplay.from_estimator(encoder, column=("city", "day")))
    expected = {(str(city), str(day)): shrunk(ys) for (city, day), ys in groups("city", "day").items()}
    rows, columns = ([one.get_text() for one in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis))
    cells = np.asarray(ax.images[0].get_array().filled(np.nan))
    found = {
        (row, column): cells[one, other]
        for one, row in enumerate(rows)
        for other, column in enumerate(columns)
        if not np.isnan(cells[one, other])
    }
    assert found == pytest.approx(expected)
    written = {(rows[round(one.get_position()[1])], columns[round(one.get_position()[0])]): one for one in ax.texts}
    assert {key: text.get_text() for key, text in written.items()} == {
        key: f"{value:#.2g}" for key, value in expected.items()
    }


def test_training_beside_new():
    encoder = TargetEncoder(columns=["city"], smooth=SMOOTH, cv=LeaveOneOut())
    ax = axes_of(TrainingDisplay.from_estimator(encoder, X, Y, output="city"))
    expected = []
    for number, city in enumerate(X["city"]):
        others = [y for other, y in enumerate(Y) if X["city"][other] == city and other != number]
        prior = (sum(Y) - Y[number]) / (len(Y) - 1)
        expected.append((shrunk(groups("city")[city]), shrunk(others, prior)))
    np.testing.assert_allclose(points(ax, 0), sorted(expected), rtol=1e-12)


def test_calibration():
    encoder = TargetEncoder(columns=["city"], smooth=SMOOTH).fit(X, Y)
    display = CalibrationDisplay.from_estimator(encoder, X, Y, column="city", n_bins=10)
    # As many bins as categories: each is a point of its own.
    expected = sorted((shrunk(ys), sum(ys) / len(ys)) for ys in groups("city").values())
    np.testing.assert_allclose(sorted(zip(display.encodings, display.means, strict=True)), expected, rtol=1e-12)
    ax = axes_of(display)
    drawn = [tuple(map(float, one)) for line in ax.lines for one in zip(*line.get_data(), strict=True)]
    for point in expected:
        assert any(np.allclose(point, one) for one in drawn)


def test_a_hierarchy():
    rows = pd.DataFrame({"zip": ["ax", "ay", "ax", "bx", "ay", "bx", "by", "ax"]})
    y = [1, 0, 1, 0, 1, 0, 1, 0]
    encoder = TargetEncoder(columns=["zip"], smooth=SMOOTH, hierarchy={"zip": Prefixes(1)}).fit(rows, y)
    display = HierarchyDisplay.from_estimator(encoder)
    top = sum(y) / len(y)
    expected = {}
    for zip_ in {*rows["zip"]}:
        level = shrunk([one for other, one in zip(rows["zip"], y, strict=True) if other[0] == zip_[0]], top)
        expected[zip_] = [
            top,
            level,
            shrunk([one for other, one in zip(rows["zip"], y, strict=True) if other == zip_], level),
        ]
    ax = axes_of(display)
    lines = [list(map(float, line.get_ydata())) for line in ax.lines]
    np.testing.assert_allclose(lines, [expected[zip_] for zip_ in display.categories], rtol=1e-12)
    # A name stands at the end of its line.
    for text in ax.texts:
        assert text.xy[1] == pytest.approx(expected[text.get_text()][-1])


def test_tuning():
    """The held-out likelihood of a label is that of the encoding of its row by the other fold."""
    folds = np.array([0, 1] * 5)
    table = X.assign(fold=folds)
    tuned = tune(TargetEncoder(columns=["city"], cv="fold"), table, Y, smoothings=[1.0, 4.0])
    display = TuningDisplay.from_tuned(tuned)
    ax = axes_of(display)
    found = {label.get_text(): at for label, at in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}
    assert len(found) == 2
    assert sorted(found.values()) == [0, 1]
    heights = {round(float(bar.lines[0].get_ydata()[0])): float(bar.lines[0].get_xdata()[0]) for bar in ax.containers}
    for m in (1.0, 4.0):
        likelihoods = []
        for number, (city, y) in enumerate(zip(X["city"], Y, strict=True)):
            seen = [other for other in range(len(Y)) if folds[other] != folds[number]]
            prior = sum(Y[other] for other in seen) / len(seen)
            own = [Y[other] for other in seen if X["city"][other] == city]
            p = (sum(own) + m * prior) / (len(own) + m)
            likelihoods.append(np.log(p if y else 1 - p))
        (height,) = [at for text, at in found.items() if f"{m:g}" in text]
        assert heights[height] == pytest.approx(np.mean(likelihoods))


def test_leaks():
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"city": random.choice([*"abcdefgh"], 200)})
    report = leak_report(TargetEncoder(), rows, random.integers(2, size=200), n_shuffles=3, n_flips=0)
    ax = axes_of(report.plot())
    (column,) = report.columns
    for kind, line, dots in (("training", 0, 1), ("new", 2, 3)):
        one = getattr(column, kind)
        ((start, end),) = ax.collections[line].get_segments()
        assert (start[0], end[0]) == (one.low, one.high)
        assert points(ax, dots)[0][0] == one.mean
        assert one.low <= one.mean <= one.high


RANGES = [[55, 65], [1, 2], [1, 3, 9], [7], [1, 50], [100, 999], [3, 30_000], [1, 2_000_000], [0.5, 0.75]]


@pytest.mark.parametrize("weights", RANGES, ids=str)
def test_numbers_on_the_axis_of_rows_do_not_overlap(weights):
    from matplotlib.figure import Figure

    means = np.linspace(0.2, 0.8, len(weights))
    figure = Figure(figsize=(6.4, 4.8))
    ax = figure.add_subplot()
    ShrinkageDisplay("city", np.array(weights, float), means, (means + 0.5) / 2, 0.5).plot(ax)
    figure.savefig(io.BytesIO())
    low, high = ax.get_xlim()
    shown = [
        label
        for label, at in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)
        if low <= at <= high and label.get_text()
    ]
    assert [one.get_text() for one in ax.get_xticklabels(minor=True) if one.get_text()] == []
    boxes = sorted((box.x0, box.x1) for box in (label.get_window_extent() for label in shown))
    assert len(boxes) >= 1
    assert all(left[1] < right[0] for left, right in pairwise(boxes))
    for label, at in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True):
        assert float(label.get_text().replace(",", "") or at) == pytest.approx(at)


@pytest.mark.parametrize("classes", ["two", "three"])
def test_a_path_is_the_areas_of_the_weights_after_each_rise(classes):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(5, size=80) for name in "abc"})
    y = (table["a"] + table["b"] + rng.integers(4, size=80)) % 7 // (4 if classes == "two" else 3)
    encoder = TargetEncoder(columns=[*table])
    voter = VoteClassifier(encoder, "weighted_mean").fit(table, y)
    display = AscentDisplay.from_estimator(voter)
    lines = axes_of(display).get_lines()
    paths = [voter.path_] if classes == "two" else voter.path_
    assert len(lines) == len(paths) == (1 if classes == "two" else 3)
    votes = encoder.fit_transform(table, y).to_numpy().reshape(80, 3, -1)
    for number, (line, path) in enumerate(zip(lines, paths, strict=True)):
        weights, areas = np.zeros(3), []
        for key, step, _ in path:
            weights[int(key)] += step
            areas.append(roc_auc_score(y == number + (classes == "two"), votes[:, :, number] @ weights))
        np.testing.assert_allclose(line.get_ydata(), areas, rtol=1e-12)
        assert line.get_xdata().tolist() == [*range(1, len(path) + 1)]


def test_a_path_of_a_quantity_is_minus_the_squared_error():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(5, size=80) for name in "abc"})
    y = (table["a"] + 2 * table["b"] + rng.normal(size=80)) * 100
    encoder = TargetEncoder(columns=[*table])
    voter = VoteRegressor(encoder).fit(table, y)
    votes, weights, errors = encoder.fit_transform(table, y).to_numpy(), np.zeros(3), []
    for key, step, _ in voter.path_:
        weights[int(key)] += step
        errors.append(-((y - votes @ weights / weights.sum()) ** 2).mean())
    assert len(errors) > 1
    np.testing.assert_allclose(AscentDisplay.from_estimator(voter).scores, [errors], rtol=1e-12)


def test_a_class_that_no_weight_tells_has_an_empty_path():
    voter = VoteClassifier(TargetEncoder(cv=2), "weighted_mean").fit(X, Y)
    voter.path_, voter.classes_ = [[], [[0.0, 1.0, 0.75]]], np.array(["a", "b"])
    assert AscentDisplay.from_estimator(voter).scores == [[], [0.75]]
    assert len(axes_of(AscentDisplay.from_estimator(voter)).get_lines()) == 2
    voter.path_ = [[], []]
    with pytest.raises(ValueError, match="or none improved the score"):
        AscentDisplay.from_estimator(voter)


def test_a_path_of_proximity_is_drawn():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(3, size=80) for name in "abc"})
    regressor = ProximityRegressor(weights="tune").fit(table, table["a"] * 1.5 + rng.normal(size=80))
    (line,) = axes_of(AscentDisplay.from_estimator(regressor)).get_lines()
    assert line.get_ydata().tolist() == [rise[-1] for rise in regressor.encoder_.path_]
    with pytest.raises(ValueError, match="VoteClassifier has tuned no weights"):
        AscentDisplay.from_estimator(VoteClassifier().fit(X, Y))


@pytest.mark.parametrize("target", ["classes", "quantity", None])
def test_two_columns_are_drawn_row_by_row(target):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(6, size=90) for name in "abc"})
    y = {"classes": np.array(["no", "yes"])[table["a"] % 2], "quantity": rng.normal(size=90), None: None}[target]
    encoder = SpectralEncoder(4).fit(table)
    display = ScatterDisplay.from_estimator(encoder, table, y)
    wanted = encoder.transform(table).to_numpy()[:, :2]
    axes = axes_of(display)
    drawn = [np.asarray(points.get_offsets()) for points in axes.collections]
    if target == "classes":
        for points, label in zip(drawn, ("no", "yes"), strict=True):
            assert sorted(points.tolist()) == sorted(wanted[y == label].tolist())
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["target no", "target yes"]
    else:
        (points,) = drawn
        assert sorted(points.tolist()) == sorted(wanted.tolist())
    if target == "quantity":
        colours = dict(zip(map(tuple, points.tolist()), axes.collections[0].get_array().tolist(), strict=True))
        assert set(colours.values()) <= set(y.tolist())
        assert sorted(axes.collections[0].get_array().tolist()) == sorted(y.tolist())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("spectral_0", "spectral_1")
    swapped = ScatterDisplay.from_estimator(encoder, table, outputs=("spectral_3", "spectral_0"))
    assert swapped.second.tolist() == wanted[:, 0].tolist()


def test_two_columns_that_cannot_be_drawn():
    assert ScatterDisplay.from_predictions([1, 2], [3, 4], names=("a", "b")).names == ("a", "b")
    with pytest.raises(ValueError, match=r"a point for each row, and got \[2, 2, 3\] rows"):
        ScatterDisplay.from_predictions([1, 2], [3, 4], [0, 1, 0])
    with pytest.raises(ValueError, match="needs numbers as predictions"):
        ScatterDisplay.from_predictions(["a", "b"], [3, 4])
    with pytest.raises(ValueError, match=r"8 labels, or for a quantity. y has 9 labels"):
        ScatterDisplay.from_predictions([*range(9)], [*range(9)], list("abcdefghi"))
    with pytest.raises(ValueError, match=r"names of ScatterDisplay are two names. Got \('a',\)"):
        ScatterDisplay.from_predictions([1, 2], [3, 4], names=("a",))
    with pytest.raises(ValueError, match=r"outputs of ScatterDisplay are two names of columns. Got 'x0'"):
        ScatterDisplay.from_estimator(TargetEncoder().fit([["a"], ["b"]], [0, 1]), [["a"]], outputs="x0")
    with pytest.raises(ValueError, match="needs two columns, and TargetEncoder gives one"):
        ScatterDisplay.from_estimator(TargetEncoder().fit([["a"], ["b"]], [0, 1]), [["a"]])
    with pytest.raises(ValueError, match="no output 'x9'"):
        ScatterDisplay.from_estimator(TargetEncoder().fit([["a", "b"]] * 2, [0, 1]), [["a", "b"]], outputs=("x0", "x9"))


def test_a_search_is_drawn_by_two_parameters():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(6, size=90).astype(str) for name in "abc"})
    y = rng.integers(2, size=90)
    pipeline = make_pipeline(SpectralEncoder(), LogisticRegression())
    names = "spectralencoder__n_components", "logisticregression__C"
    grid = dict(zip((*names, "spectralencoder__weighting"), ([4, 1], [0.01, 1.0], [None, "eta"]), strict=True))
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=3).fit(table, y)
    display = SearchDisplay.from_search(search, names[0], lines=names[1])
    tried = pd.DataFrame(search.cv_results_)
    axes = axes_of(display)
    lines = [container.lines[0] for container in axes.containers]
    for line, C in zip(lines, (0.01, 1.0), strict=True):
        assert line.get_xdata().tolist() == [1, 4]
        for k, mean in zip((1, 4), line.get_ydata(), strict=True):
            of_pair = tried[(tried[f"param_{names[0]}"] == k) & (tried[f"param_{names[1]}"] == C)]
            assert mean == of_pair["mean_test_score"].max()
            assert display.deviations[[0.01, 1.0].index(C), [1, 4].index(k)] in of_pair["std_test_score"].tolist()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["C 0.01", "C 1.0"]
    assert (axes.get_xlabel(), axes.get_xscale()) == ("n_components", "linear")
    assert axes_of(SearchDisplay.from_search(search, names[1])).get_xscale() == "log"
    words = axes_of(SearchDisplay.from_search(search, "spectralencoder__weighting"))
    assert [text.get_text() for text in words.get_xticklabels()] == ["None", "eta"]
    with pytest.raises(ValueError, match="has not varied 'k', but"):
        SearchDisplay.from_search(search, "k")
    with pytest.raises(ValueError, match="lines names the parameter of the axis"):
        SearchDisplay.from_search(search, names[0], lines=names[0])
