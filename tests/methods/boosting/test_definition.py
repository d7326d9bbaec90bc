"""The three modes equal those of the papers in plain loops, bit for bit if no exponential is computed."""

from itertools import pairwise

import numpy as np
import pytest

from cpu_fallback.row_numbers import Permutation, rows_at
from gpu_encode import CatBoostEncoder, Ordered, OrderedBoostingClassifier, OrderedBoostingRegressor
from gpu_encode.methods.boosting.models import Models
from gpu_encode.methods.boosting.trees import find_leaves
from gpu_encode.schemes.plans import seed_of
from tests.bits import assert_same_bits
from tests.methods.boosting import definition

SEED = 4


def table(n, seed):
    random = np.random.default_rng(seed)
    X = np.empty((n, 3), object)
    X[:, 0] = random.choice([*"abcd"], n)
    X[:, 1:] = random.normal(size=(n, 2)).round(2)
    X[3, 2] = None
    return X, (X[:, 0] == "a") + X[:, 1].astype(float) + random.normal(size=n)


def expected_features(X, y, prior, numbers, target_type):
    """Give the features under several orders, encodings by a scheme of as many columns."""
    encoder = CatBoostEncoder(
        priors=[prior], target_type=target_type, cv=Ordered(max(numbers) + 1, average=False, random_state=SEED)
    )
    encodings = encoder.fit_transform(X[:, :1], y)
    return [np.column_stack([encodings[:, number], X[:, 1:].astype(float)]) for number in numbers]


def orders_of(n, numbers):
    return [rows_at(Permutation(n, seed_of(SEED, "Ordered", number)), 0, n).tolist() for number in numbers]


def borders_of(y, features, prior, most):
    low, high = min(y.min(), prior), max(y.max(), prior)
    even = [low + (high - low) * k / (most + 1) for k in range(1, most + 1)]
    found = [np.array(even)]
    for column in features.T[1:]:
        distinct = sorted(set(column[~np.isnan(column)]))
        if len(distinct) <= most + 1:
            found.append(np.array([a + (b - a) / 2 for a, b in pairwise(distinct)]))
            continue
        ranked = sorted(column[~np.isnan(column)])
        cuts = {ranked[int(np.floor((len(ranked) - 1) * (k / (most + 1))))] for k in range(1, most + 1)}
        found.append(np.array(sorted(cut for cut in cuts if cut < ranked[-1])))
    return found


def assert_same_trees(found, expected, bits):
    assert len(found) == len(expected)
    for tree, (splits, values) in zip(found, expected, strict=True):
        assert [tuple(split) for split in tree.splits] == splits
        for leaf, value in values.items():
            leaf_number = sum(bit << (len(splits) - 1 - level) for level, bit in enumerate(leaf))
            assert (
                tree.values[leaf_number] == value
                if bits
                else tree.values[leaf_number] == pytest.approx(value, rel=1e-9)
            )


@pytest.mark.parametrize("mode", ["plain", "ordered"])
@pytest.mark.parametrize("n", [2, 9, 17])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_plain_and_ordered(mode, n, share):
    X, y = table(max(n, 4), n)
    X, y = X[:n], y[:n]
    given = {"iterations": 4, "depth": 2, "learning_rate": 0.5, "l2": 0.5, "permutations": 2, "subsample": share}
    model = OrderedBoostingRegressor(mode, borders=4, random_state=SEED, categorical=[0], **given).fit(X, y)
    features = expected_features(X, y, 0.0, range(3), "continuous")
    borders = borders_of(y, features[0], 0.0, 4)
    trees, predictions = definition.boost(
        mode, y, definition.SQUARED, orders_of(n, range(3)), features, borders, 4, 2, 0.5, 0.5, share,
        np.random.default_rng(SEED),
    )  # fmt: skip
    assert_same_trees(model.trees_, trees, bits=True)
    assert_same_bits(model.training_predictions_, predictions)


@pytest.mark.parametrize("n", [2, 11])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_exact(n, share):
    X, y = table(max(n, 4), n)
    X, y = X[:n], y[:n]
    given = {"iterations": 3, "depth": 2, "learning_rate": 0.5, "l2": 0.25, "subsample": share}
    model = OrderedBoostingRegressor("exact", borders=3, random_state=SEED, categorical=[0], **given).fit(X, y)
    (features,) = expected_features(X, y, 0.0, [0], "continuous")
    trees, predictions = definition.boost_exactly(
        y, definition.SQUARED, *orders_of(n, [0]), features, borders_of(y, features, 0.0, 3), 3, 2, 0.5, 0.25, share,
        np.random.default_rng(SEED),
    )  # fmt: skip
    assert_same_trees(model.trees_, trees, bits=True)
    assert_same_bits(model.training_predictions_, predictions)


@pytest.mark.parametrize("mode", ["plain", "ordered"])
def test_labels(mode):
    X, y = table(14, 2)
    labels = (y > np.median(y)).astype(np.int64)
    given = {"iterations": 4, "depth": 2, "learning_rate": 0.5, "l2": 0.5, "permutations": 1}
    model = OrderedBoostingClassifier(mode, borders=4, random_state=SEED, categorical=[0], **given).fit(X, labels)
    features = expected_features(X, labels, 0.5, range(2), "binary")
    trees, predictions = definition.boost(
        mode, labels, definition.LOGISTIC, orders_of(14, range(2)), features, borders_of(labels, features[0], 0.5, 4),
        4, 2, 0.5, 0.5, 1.0, np.random.default_rng(SEED),
    )  # fmt: skip
    assert_same_trees(model.trees_, trees, bits=False)
    np.testing.assert_allclose(model.training_predictions_, predictions, rtol=1e-9)


@pytest.mark.parametrize("mode", ["plain", "ordered", "exact"])
def test_new_rows_get_the_sum_of_their_leaves(mode):
    X, y = table(20, 1)
    model = OrderedBoostingRegressor(mode, iterations=3, depth=3, categorical=[0], borders=5).fit(X, y)
    new, _ = table(9, 8)
    new[0, 0] = "unseen"
    sums = {key: (y[X[:, 0] == key].sum(), (X[:, 0] == key).sum()) for key in "abcd"}
    encodings = [sums[key][0] / (sums[key][1] + 1) if key in sums else 0.0 for key in new[:, 0]]
    features = np.column_stack([encodings, new[:, 1:].astype(float)])
    expected = np.zeros(9)
    for tree in model.trees_:
        for row in range(9):
            leaf = sum(bool(features[row, c] > b) << (len(tree.splits) - 1 - i) for i, (c, b) in enumerate(tree.splits))
            expected[row] += tree.values[leaf]
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 33])
def test_every_row_but_the_first_asks_one_model_that_knows_the_rows_before(n):
    order = np.random.default_rng(n).permutation(n)
    models = Models.ordered(order)
    rank = np.argsort(order)
    asked = models.rows[models.counted]
    assert sorted(asked) == sorted(order[1:])
    assert models.numbers[-1] + 1 == int(np.ceil(np.log2(n)))
    for row, number in zip(asked, models.numbers[models.counted], strict=True):
        known = models.rows[(models.numbers == number) & models.fitted]
        assert len(known) == 2 ** int(np.floor(np.log2(rank[row])))
        assert (rank[known] < rank[row]).all()


def test_leaves_are_numbered_by_the_splits():
    features = np.array([[0.0, 1.0], [2.0, 1.0], [2.0, 3.0], [np.nan, 3.0]])
    assert find_leaves(features, [(0, 1.0), (1, 2.0)]).tolist() == [0, 2, 3, 1]
