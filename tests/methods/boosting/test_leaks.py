"""No gradient depends on its own row's target, and gradients have no shift; on small data this improves scores."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from gpu_encode import OrderedBoostingRegressor
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.methods.boosting import models as boosted
from gpu_encode.methods.boosting.features import Features
from gpu_encode.methods.boosting.models import Models
from gpu_encode.methods.boosting.training import draw_rows
from gpu_encode.methods.boosting.trees import Split, grow
from gpu_encode.schemes import Ordered
from gpu_encode.seam.ops import host


def rows_of(n, seed):
    random = np.random.default_rng(seed)
    X = np.empty((n, 2), object)
    X[:, 0], X[:, 1] = random.choice([*"abc"], n), random.normal(size=n)
    return X, random.normal(size=n)


def test_a_row_of_exact_boosting_never_sees_its_own_target():
    X, y = rows_of(14, 3)
    # The borders of encodings lie between these values, whatever the other values become.
    y[:2] = -9.0, 9.0
    model = OrderedBoostingRegressor("exact", iterations=3, depth=2, learning_rate=0.7, subsample=0.8)
    before = model.fit(X, y).training_predictions_
    others = 0
    for row in range(2, 14):
        changed = y.copy()
        changed[row] += 3.0
        after = model.fit(X, changed).training_predictions_
        assert after[row] == before[row]
        others += int((after != before).sum())
    assert others > 14


def advance(X, y, order_number, trees):
    """Give each row's ordered prediction for these targets, after trees with given splits."""
    inputs, scheme = Inputs(X, y), Ordered(random_state=1)
    features = Features.fit(inputs, y, [0], 0.0, 1).draw(inputs, y, order_number)
    models = Models.ordered(host(0).rows_at(scheme.order(order_number, len(y)), 0, len(y)))
    for splits in trees:
        models.advance(models.gradients(y, boosted.squared_error), features, splits, 0.5, 1.0)
    return models.predict_rows(len(y))


@pytest.mark.parametrize("number", [1, 2])
def test_a_row_of_ordered_boosting_never_sees_its_own_target_in_trees_of_the_same_splits(number):
    X, y = rows_of(23, 5)
    trees = [[Split(0, -0.1), Split(1, 0.2)], [Split(1, -0.4), Split(0, 0.3)], [Split(0, 0.1)]] * 2
    before = advance(X, y, number, trees)
    changes = np.zeros(23, int)
    for row in range(23):
        other = y.copy()
        other[row] += 5.0
        after = advance(X, other, number, trees)
        assert after[row] == before[row]
        changes += after != before
    # Rows that come late see many.
    assert changes.max() > 8


def test_a_row_of_plain_boosting_sees_its_own_target():
    X, y = rows_of(23, 5)
    model = OrderedBoostingRegressor("plain", iterations=2, depth=1, categorical=[0])
    before = model.fit(X, y).training_predictions_
    y[4] += 5.0
    assert model.fit(X, y).training_predictions_[4] != before[4]


def residual_slope(make, n):
    """Give the mean error of the residuals' slope in x2 after a stump on x1, over all samples of n rows."""
    c1, c2, total = 3.0, 2.0, Fraction()
    for coins in itertools.product((0.0, 1.0), repeat=2 * n):
        features = np.array(coins).reshape(n, 2)
        y = features @ [c1, c2]
        models = make(np.arange(n))
        models.advance(models.gradients(y, boosted.squared_error), features, [Split(0, 0.5)], 1.0, 0.0)
        gradients = models.gradients(y, boosted.squared_error)
        signs = np.where(features[:, 1] > 0.5, 1.0, -1.0)
        # Row 0 is predicted by 0, before and after.
        residuals = y.copy()
        residuals[gradients.rows[gradients.counted]] = gradients.values[gradients.counted]
        total += sum(map(Fraction, residuals * signs), Fraction()) * 2 / n - Fraction(c2)
    return float(total / 4**n)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_ordered_residuals_have_no_shift_and_plain_ones_have(n):
    assert residual_slope(Models.ordered, n) == pytest.approx(0.0, abs=1e-14)
    assert residual_slope(Models.plain, n) == pytest.approx(-2.0 * 2 * (1 - 0.5**n) / n, abs=1e-14)


def test_rows_are_drawn_without_regard_to_their_targets():
    chosen = [draw_rows(10, share, np.random.default_rng(0)).sum() for share in (0.01, 0.25, 0.5, 1.0)]
    assert chosen == [1, 2, 5, 10]


def test_no_splits_where_no_column_varies():
    gradients = Models.plain(np.arange(3)).gradients(np.arange(3.0), boosted.squared_error)
    assert grow(np.ones((3, 1)), [np.array([])], gradients, 2, 0.0) == []
    model = OrderedBoostingRegressor(iterations=1, learning_rate=1.0, l2=0.0).fit(np.ones((3, 1)), [1.0, 2.0, 6.0])
    assert model.predict(np.ones((1, 1))).tolist() == [3.0]


def make_sales(n, random):
    """Make rows with uninformative categories of three rows each, and informative categories of many rows."""
    X = np.empty((n, 4), object)
    X[:, 0], group = random.integers(0, 20, n).astype(str), random.integers(0, 4, n)
    X[:, 1] = group.astype(str)
    X[:, 2:] = random.normal(size=(n, 2))
    return X, 0.7 * (group - 1.5) + X[:, 2].astype(float) + random.normal(size=n)


@pytest.mark.slow
def test_ordered_boosting_is_better_than_plain_on_few_rows():
    """Boosting overfits here: deep trees, long steps, no shrinkage.  With short steps and l2 both are equally good."""
    gains = []
    for seed in range(100, 124):
        random = np.random.default_rng(seed)
        (X, y), (new, expected) = make_sales(60, random), make_sales(1000, random)
        given = {"iterations": 15, "depth": 5, "learning_rate": 0.5, "l2": 0.0, "permutations": 1, "borders": 8}
        errors = [
            np.mean((OrderedBoostingRegressor(mode, random_state=seed, **given).fit(X, y).predict(new) - expected) ** 2)
            for mode in ("plain", "ordered")
        ]
        gains.append(errors[0] - errors[1])
    # Two standard errors of the paired differences.
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(np.array(gains) > 0) > 2 / 3
