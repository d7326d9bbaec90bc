"""Blends of the least squared error: the conditions of the best shares, by hand, and what is refused."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from gpu_encode import SquaredErrorBlend
from tests.bits import assert_same_bits

pytestmark = pytest.mark.host


def predictions(seed, n_models, n_classes=None, n_rows=60):
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.2, 2.0, n_models)
    if n_classes is None:
        y = rng.normal(size=n_rows)
        return y[:, None] + rng.normal(size=(n_rows, n_models)) * skill, y
    y = rng.integers(0, n_classes, n_rows)
    y[:n_classes] = range(n_classes)
    odds = np.eye(n_classes)[y][:, None] + rng.normal(size=(n_rows, n_models, n_classes)) * skill[:, None]
    P = np.exp(odds)
    return P / P.sum(axis=2, keepdims=True), np.array(["bus", "car", "train", "walk"])[y]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("n_models", [2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_no_share_lowers_the_error(seed, n_models, n_classes, weighted):
    """The conditions of Karush, Kuhn and Tucker, which only the best shares of a convex error meet."""
    P, y = predictions(seed, n_models, n_classes)
    weight = np.random.default_rng(seed).integers(0, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    blend = SquaredErrorBlend().fit(P, y, sample_weight=weight if weighted else None)
    shares = blend.weights_
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1, abs=1e-15)
    wanted = y if n_classes is None else (y[:, None] == blend.classes_).astype(float)
    errors = (P - wanted[:, None]).reshape(len(y), n_models, -1)
    slopes = 2 * np.einsum("i,ijc,ikc,k->j", weight, errors, errors, shares)
    assert np.all(slopes >= slopes.min() - 1e-7 * abs(slopes).max())
    np.testing.assert_allclose(slopes[shares > 0], slopes.min(), rtol=1e-7)
    mixed = np.einsum("j,ij...->i...", shares, P)
    np.testing.assert_allclose(blend.predict(P), mixed, rtol=1e-13)
    total = (weight.reshape(-1, *[1] * (mixed.ndim - 1)) * (mixed - wanted) ** 2).sum() / weight.sum()
    assert blend.squared_error_ == pytest.approx(total, rel=1e-9)


def test_two_predictions_by_the_formula():
    P, y = predictions(0, 2)
    one, other = P.T
    share = np.clip(((y - other) @ (one - other)) / ((one - other) @ (one - other)), 0, 1)
    assert 0.01 < share < 0.99
    assert SquaredErrorBlend().fit(P, y).weights_[0] == pytest.approx(share, abs=1e-8)


def test_two_classes_have_twice_the_brier_score():
    P, y = predictions(1, 3, 2)
    blend = SquaredErrorBlend().fit(P, y)
    score = brier_score_loss(y == blend.classes_[1], blend.predict(P)[:, 1])
    assert blend.squared_error_ == pytest.approx(2 * score, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_units_do_not_matter(scale):
    P, y = predictions(2, 3)
    np.testing.assert_allclose(
        SquaredErrorBlend().fit(P * scale, y * scale).weights_, SquaredErrorBlend().fit(P, y).weights_, atol=1e-7
    )


def test_the_order_of_rows_changes_no_bit():
    P, y = predictions(3, 4)
    order = np.random.default_rng(0).permutation(len(y))
    assert_same_bits(SquaredErrorBlend().fit(P[order], y[order]).weights_, SquaredErrorBlend().fit(P, y).weights_)


def test_a_perfect_model_gets_all():
    P, y = predictions(4, 3)
    P[:, 1] = y
    blend = SquaredErrorBlend().fit(P, y)
    np.testing.assert_allclose(blend.weights_, [0, 1, 0], atol=1e-7)
    equal = SquaredErrorBlend().fit(np.column_stack([y, y]), y)
    assert (equal.weights_.sum(), equal.squared_error_) == (1.0, 0.0)


def test_what_cannot_be_blended_is_refused():
    P, y = predictions(5, 2, 3)
    with pytest.raises(ValueError, match="two predictions or more"):
        SquaredErrorBlend().fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="Column 1 of P holds NaN"):
        SquaredErrorBlend().fit([[1.0, np.nan], [2.0, 1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="needs a label for each of 3 classes"):
        SquaredErrorBlend().fit(P, ["a", "b"] * 30)
    with pytest.raises(ValueError, match="for classes, P has three axes"):
        SquaredErrorBlend().fit([[1.0, 2.0], [2.0, 1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SquaredErrorBlend().fit(P, y[:-1])
    with pytest.raises(ValueError, match="P holds NaN"):
        SquaredErrorBlend().fit(np.where(P.max() == P, np.nan, P), y)
    with pytest.raises(ValueError, match="X has 3 features, but SquaredErrorBlend is expecting 2"):
        SquaredErrorBlend().fit(P, y).predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="needs a target for every row: y has 59, and P 60"):
        SquaredErrorBlend().fit(P, y[:-1])
    with pytest.raises(ValueError, match=r"not infinite ones. Drop these rows, or clip"):
        SquaredErrorBlend().fit([[1.0, np.inf], [2.0, 1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"needs numbers as probabilities. P holds object"):
        SquaredErrorBlend().fit(P.astype(str).astype(object), y)
    for stacked in (list(P.transpose(1, 0, 2)), P.tolist(), P[None]):
        with pytest.raises(ValueError, match=r"Join those of several models by P = np.stack\("):
            SquaredErrorBlend().fit(stacked, y)


def test_new_predictions_are_of_the_kind_of_fit():
    P, y = predictions(5, 2, 3)
    numbers, quantity = predictions(5, 2)
    blend = SquaredErrorBlend().fit(P, y)
    with pytest.raises(ValueError, match=r"fitted to probabilities of 3 classes. P holds predictions of a quantity"):
        blend.predict(numbers)
    with pytest.raises(ValueError, match=r"fitted to probabilities of 3 classes. P holds probabilities of 2 classes"):
        blend.predict(P[:, :, :2])
    again = blend.fit(numbers, quantity)
    assert not hasattr(again, "classes_")
    assert_same_bits(again.predict(numbers), SquaredErrorBlend().fit(numbers, quantity).predict(numbers))
    with pytest.raises(ValueError, match=r"fitted to predictions of a quantity. P holds probabilities of 3 classes"):
        again.predict(P)
