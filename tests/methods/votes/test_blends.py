"""Blends of predictions, compared with all breakpoints in fractions, with grids, and with SciPy's correlations."""

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from gpu_encode import ConvexBlend, SquaredErrorBlend, blend_matrix, roc_auc_score
from gpu_encode.methods.votes import blends, breakpoints
from tests.bits import assert_same_bits
from tests.methods.votes.test_votes import climb


def twice_in_order(positive, negative, share, weights):
    """Return twice the number of ordered pairs at a share, exactly: rows are ((first, second), weight)."""
    result = 0
    for (high, heavy), (low, light) in ((one, other) for one in positive for other in negative):
        a, b = (share * Fraction(p) + (1 - share) * Fraction(q) for p, q in (high, low))
        result += heavy * light * (1 + (a > b) - (a < b))
    return result


def best_blend(predictions, y, weights=None):
    """The definition: every interval between two breakpoints of any pair, and both ends, in fractions."""
    weights = [1] * len(y) if weights is None else weights
    rows = [(tuple(map(Fraction, row)), weight) for row, weight in zip(predictions, weights, strict=True)]
    positive = [row for row, label in zip(rows, y, strict=True) if label]
    negative = [row for row, label in zip(rows, y, strict=True) if not label]
    turns = {Fraction(0), Fraction(1)}
    for (p, q), _ in positive:
        for (s, t), _ in negative:
            if (p > s and q < t) or (p < s and q > t):
                turns.add((q - t) / ((q - t) - (p - s)))
    runs = []
    for low, high in pairwise(sorted(turns)):
        value = twice_in_order(positive, negative, (low + high) / 2, weights)
        if runs and runs[-1][2] == value:
            runs[-1] = (runs[-1][0], high, value)
        else:
            runs.append((low, high, value))
    best = max(value for _, _, value in runs)
    # The widest, and of these the first.
    low, high, _ = max((run for run in runs if run[2] == best), key=lambda run: run[1] - run[0])
    alone = {share: twice_in_order(positive, negative, Fraction(share), weights) for share in (1, 0)}
    better = max(alone, key=alone.__getitem__)
    pairs = sum(weight for _, weight in positive) * sum(weight for _, weight in negative)
    if alone[better] > best:
        return float(better), (better, better), float(Fraction(alone[better], 2 * pairs))
    return (low + high) / 2, (low, high), float(Fraction(best, 2 * pairs))


@st.composite
def predictions(draw, most=9):
    n_rows = draw(st.integers(2, most))
    y = [0, 1, *draw(st.lists(st.integers(0, 1), min_size=n_rows - 2, max_size=n_rows - 2))]
    # Values are sixteenths, so that floats distinguish blends at the middles of intervals.
    rows = st.lists(st.integers(-8, 8).map(lambda n: n / 16), min_size=n_rows, max_size=n_rows)
    weights = draw(st.lists(st.integers(1, 3), min_size=n_rows, max_size=n_rows))
    return np.array([draw(rows), draw(rows)]).T, np.array(y), np.array(weights)


@pytest.mark.parametrize("at_once", [1 << 14, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_of_all_shares_is_chosen(at_once, weighted, monkeypatch):
    monkeypatch.setattr(breakpoints, "PAIRS_AT_ONCE", at_once)

    @given(predictions())
    def check(drawn):
        P, y, weights = drawn
        given_weights = weights if weighted else None
        _, interval, area = best_blend(P.tolist(), y.tolist(), weights.tolist() if weighted else None)
        blend = ConvexBlend().fit(P, y, sample_weight=given_weights)
        assert blend.auc_ == area
        # Among equally wide intervals rounding may choose any.
        low, high = blend.interval_
        assert high - low == pytest.approx(float(interval[1] - interval[0]), abs=1e-12)
        assert blend.weights_.sum() == 1
        assert blend.weights_[0] == (low + high) / 2
        assert roc_auc_score(y, blend.predict(P), sample_weight=given_weights) == area
        weights = weights if weighted else np.ones(len(y), np.int64)
        sides = [breakpoints.Side(*P[y == label].T, weights[y == label]) for label in (1, 0)]
        pairs = int(weights[y == 1].sum() * weights[y == 0].sum())
        assert breakpoints.best_interval(*sides).twice <= round(2 * pairs * area)
        assert low == high or breakpoints.best_interval(*sides).twice == round(2 * pairs * area)

    check()


@pytest.mark.parametrize("seed", range(6))
def test_pairs_that_turn_together_are_not_rounded_apart(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    # Whole numbers turn at shares that are rounded once; tenths of them at others in their last bits.
    whole = rng.integers(-8, 8, (60, 2)) + 3 * y[:, None]
    exact, tenths = ConvexBlend().fit(whole, y), ConvexBlend().fit(whole / 10, y)
    assert tenths.auc_ == exact.auc_
    np.testing.assert_allclose(tenths.interval_, exact.interval_, atol=1e-12)


def test_of_equally_good_intervals_the_widest_is_taken_and_of_these_the_lowest():
    y = [0, 1]
    assert ConvexBlend().fit([[0.0, 0.0], [1.0, 1.0]], y).interval_ == (0.0, 1.0)
    assert ConvexBlend().fit([[0.0, 3.0], [1.0, 0.0]], y).interval_ == (0.75, 1.0)
    # One pair is right below 1/4, the other above 3/4, a third is always wrong.
    positive = breakpoints.Side(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.ones(2, np.int64))
    negative = breakpoints.Side(np.array([3.0]), np.array([0.0]), np.ones(1, np.int64))
    assert breakpoints.best_interval(positive, negative) == (0.0, 0.25, 4)


def test_a_vector_alone_may_be_better_than_all_blends():
    y = np.array([0, 0, 1, 1])
    blend = ConvexBlend().fit(np.column_stack([-y, np.zeros(4)]), y)
    assert (blend.weights_.tolist(), blend.interval_, blend.auc_) == ([0.0, 1.0], (0.0, 0.0), 0.5)
    blend = ConvexBlend().fit(np.column_stack([np.zeros(4), -y]), y)
    assert (blend.weights_.tolist(), blend.auc_) == ([1.0, 0.0], 0.5)


def by_grid(P, y, shares, weight=None):
    areas = [roc_auc_score(y, a * P[:, 0] + (1 - a) * P[:, 1], sample_weight=weight) for a in shares]
    runs, best = [], max(areas)
    for number, area in enumerate(areas):
        if area == best and number and areas[number - 1] == best:
            runs[-1].append(number)
        elif area == best:
            runs.append([number])
    longest = max(runs, key=len)
    return shares[longest[(len(longest) - 1) // 2]], best


@pytest.mark.parametrize("weight", ["none", "fractions"])
def test_grids(weight, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    P = rng.normal(size=(80, 2)) + y[:, None] * [1.0, 0.7]
    weights = {"none": None, "fractions": rng.random(80)}[weight]
    for grid in (2, 7, 101):
        blend = ConvexBlend(grid=grid).fit(P, y, sample_weight=weights)
        share, area = by_grid(P, y, [number / (grid - 1) for number in range(grid)], weights)
        assert (blend.weights_[0], blend.auc_, blend.interval_) == (share, area, None)
    fine = ConvexBlend().fit(P, y, sample_weight=weights)
    # All shares are looked at where weights are whole, and there are not too many pairs.
    assert (fine.interval_ is None) == (weight == "fractions")
    assert fine.auc_ >= blend.auc_
    monkeypatch.setattr(blends, "MOST_PAIRS", 1000)
    assert ConvexBlend().fit(P, y, sample_weight=weights).weights_[0] == blend.weights_[0]


def test_ranks_know_no_scale():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    P = rng.integers(-20, 20, (60, 2)) + 10 * y[:, None]
    ranked = ConvexBlend(ranks=True).fit(P, y)
    stretched = ConvexBlend(ranks=True).fit(np.column_stack([np.exp(P[:, 0] / 10), P[:, 1] * 1000]), y)
    assert_same_bits(stretched.weights_, ranked.weights_)
    ranks = np.column_stack([(stats.rankdata(column) - 0.5) / 60 for column in P.T])
    np.testing.assert_allclose(ConvexBlend().fit(ranks, y).weights_, ranked.weights_, rtol=1e-12)
    np.testing.assert_allclose(ranked.predict(P), ranks @ ranked.weights_, rtol=1e-14)
    # Among the validation rows: below all of them, above all of them.
    assert ranked.predict([[-99, -99], [99, 99]]).tolist() == [0.0, 1.0]
    assert ConvexBlend(ranks=True).fit([[np.inf, 1], [-np.inf, 2], [0, 3]], [1, 0, 1]).auc_ == 1


def test_more_than_two_climb():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 50)
    P = rng.normal(size=(50, 3)) + y[:, None] * [0.9, 0.6, 0.3]
    weights, best = climb(3, lambda w: roc_auc_score(y, w[0] * P[:, 0] + w[1] * P[:, 1] + w[2] * P[:, 2]))
    blend = ConvexBlend().fit(P, y)
    np.testing.assert_allclose(blend.weights_, np.array(weights) / sum(weights), rtol=1e-15)
    assert blend.auc_ == pytest.approx(best, abs=1e-3)
    assert blend.auc_ >= max(roc_auc_score(y, P))
    useless = ConvexBlend().fit(np.zeros((4, 3)), [0, 1, 0, 1])
    assert_same_bits(useless.weights_, np.full(3, 1 / 3))


@pytest.mark.parametrize("ranks", [False, True])
def test_every_backend_chooses_the_same(each_backend, ranks):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 70)
    P = rng.normal(size=(70, 3)).round(2) + y[:, None] * [1.0, 0.7, 0.2]
    weight = rng.integers(1, 4, 70)
    pair = ConvexBlend(ranks=ranks).fit(P[:, :2], y, sample_weight=weight)
    three = ConvexBlend(ranks=ranks).fit(P, y, sample_weight=weight)
    found = [pair.weights_[0], pair.auc_, *pair.interval_, *three.weights_, three.auc_]
    known = KNOWN.setdefault(ranks, found)
    assert_same_bits(found, known)


KNOWN: dict[bool, list[float]] = {}


@pytest.mark.cuda
def test_arrays_of_a_device(xp):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 40)
    P = rng.normal(size=(40, 2)) + y[:, None]
    there = ConvexBlend(ranks=True).fit(xp.asarray(P), xp.asarray(y))
    assert_same_bits(there.weights_, ConvexBlend(ranks=True).fit(P, y).weights_)
    assert_same_bits(there.predict(xp.asarray(P)), there.predict(P))
    assert_same_bits(blend_matrix(xp.asarray(P), xp.asarray(y)).auc, blend_matrix(P, y).auc)


@pytest.mark.parametrize("ranks", [False, True])
def test_a_matrix_has_all_pairs(ranks):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 60)
    P = rng.normal(size=(60, 3)) + y[:, None] * [1.0, 0.7, 0.2]
    found = blend_matrix(pd.DataFrame(P, columns=["forest", "linear", "votes"]), y, ranks=ranks)
    assert found.names == ["forest", "linear", "votes"]
    for i in range(3):
        assert found.auc[i, i] == roc_auc_score(y, P[:, i])
        for j in range(3):
            expected = [stats.pearsonr(P[:, i], P[:, j])[0], stats.spearmanr(P[:, i], P[:, j])[0]]
            cosine = P[:, i] @ P[:, j] / np.linalg.norm(P[:, i]) / np.linalg.norm(P[:, j])
            alike = [found.pearson[i, j], found.spearman[i, j], found.cosine[i, j]]
            np.testing.assert_allclose(alike, [*expected, cosine], atol=1e-12)
            if i < j:
                blend = ConvexBlend(ranks=ranks).fit(P[:, [i, j]], y)
                assert (found.weights[i, j], found.auc[i, j]) == (blend.weights_[0], blend.auc_)
                assert (found.weights[j, i], found.auc[j, i]) == (blend.weights_[1], blend.auc_)
    rows = found.as_dicts()
    assert [row["auc"] for row in rows] == sorted((row["auc"] for row in rows), reverse=True)
    assert all(row["gain"] >= 0 for row in rows)
    assert len(pd.DataFrame(rows)) == 3


@pytest.mark.host
@pytest.mark.parametrize("n_classes", [None, 3])
def test_a_matrix_of_squared_errors_has_all_pairs(n_classes):
    rng = np.random.default_rng(6)
    weight = rng.integers(1, 4, 50)
    if n_classes is None:
        y = rng.normal(size=50)
        P = y[:, None] + rng.normal(size=(50, 3)) * [0.5, 0.7, 2.0]
        wanted = y
    else:
        codes = rng.permutation(np.arange(50) % 3)
        y, wanted = np.array(["bus", "car", "train"])[codes], np.eye(3)[codes]
        P = rng.dirichlet([1.0, 1.0, 1.0], (50, 3)) + wanted[:, None] * np.array([1.0, 0.7, 0.2])[:, None]
    found = blend_matrix(P, y, score="squared_error", sample_weight=weight, names=["forest", "linear", "votes"])
    assert found.auc is None
    for i in range(3):
        square = ((P[:, i] - wanted) ** 2).reshape(50, -1).sum(axis=1)
        assert found.squared_error[i, i] == pytest.approx(np.average(square, weights=weight), rel=1e-12)
        for j in range(3):
            one, other = P[:, i].ravel(), P[:, j].ravel()
            expected = [stats.pearsonr(one, other)[0], stats.spearmanr(one, other)[0]]
            np.testing.assert_allclose([found.pearson[i, j], found.spearman[i, j]], expected, atol=1e-12)
            if i < j:
                blend = SquaredErrorBlend().fit(P[:, [i, j]], y, sample_weight=weight)
                assert [found.weights[i, j], found.weights[j, i]] == blend.weights_.tolist()
                assert found.squared_error[i, j] == found.squared_error[j, i] == blend.squared_error_
    rows = found.as_dicts()
    assert [row["squared_error"] for row in rows] == sorted(row["squared_error"] for row in rows)
    assert all(row["gain"] >= -1e-15 for row in rows)
    assert blend_matrix(P, y, score="squared_error").names == ["0", "1", "2"]


def test_vectors_that_do_not_vary_are_like_nothing():
    found = blend_matrix(np.array([[1.0, 2.0, 0.0], [2.0, 2.0, 0.0], [3.0, 2.0, 0.0]]), [0, 1, 1], names=list("abc"))
    assert np.isnan(found.pearson[0, 1])
    assert np.isnan(found.cosine[0, 2])
    assert found.cosine[0, 1] == pytest.approx(12 / np.sqrt(14 * 12))
    assert found.names == ["a", "b", "c"]


@pytest.mark.host
def test_blends_are_cloned_and_pickled():
    blend = ConvexBlend(ranks=True).fit([[0.1, 0.3], [0.2, 0.1], [0.3, 0.2]], [0, 1, 1])
    again = pickle.loads(pickle.dumps(blend))
    assert_same_bits(again.predict([[0.2, 0.2]]), blend.predict([[0.2, 0.2]]))
    assert clone(blend).get_params() == {"ranks": True, "grid": None, "tol": 1e-3, "max_rounds": 200}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ranks": 1}, "'ranks' parameter of ConvexBlend"),
        ({"grid": 1}, "'grid' parameter of ConvexBlend"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"max_rounds": 0}, "'max_rounds' parameter"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        ConvexBlend(**parameters).fit([[0, 1], [1, 0]], [0, 1])


def test_what_cannot_be_blended_is_refused():
    with pytest.raises(ValueError, match="two predictions or more"):
        ConvexBlend().fit([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match=r"y has 2, and P 1\."):
        ConvexBlend().fit([[0, 1]], [0, 1])
    with pytest.raises(ValueError, match="Column 1 of P holds NaN"):
        ConvexBlend().fit([[0, np.nan], [1, 0]], [0, 1])
    with pytest.raises(ValueError, match="Column 1 of predictions holds others"):
        blend_matrix(pd.DataFrame({"a": [0, 1], "b": ["x", "y"]}), [0, 1])
    with pytest.raises(ValueError, match="not infinite ones"):
        ConvexBlend().fit([[0, np.inf], [1, 0]], [0, 1])
    with pytest.raises(ValueError, match="X has 3 features, but ConvexBlend is expecting 2 features"):
        ConvexBlend().fit([[0, 1], [1, 0]], [0, 1]).predict([[1, 2, 3]])
    with pytest.raises(ValueError, match="names 1 predictions, and there are 2"):
        blend_matrix([[0, 1], [1, 0]], [0, 1], names=["a"])
    with pytest.raises(ValueError, match="'grid' parameter of blend_matrix"):
        blend_matrix([[0, 1], [1, 0]], [0, 1], grid=0)
    with pytest.raises(ValueError, match="'score' parameter of blend_matrix"):
        blend_matrix([[0, 1], [1, 0]], [0, 1], score="loss")
    with pytest.raises(ValueError, match='ranks and grid of blend_matrix are for score="auc"'):
        blend_matrix([[0, 1], [1, 0]], [0, 1], score="squared_error", ranks=True)
    with pytest.raises(ValueError, match="for classes, predictions has three axes"):
        blend_matrix([[0, 1], [1, 0]], ["a", "b"], score="squared_error")
    with pytest.raises(ValueError, match='several classes need score="squared_error"'):
        blend_matrix(np.zeros((2, 2, 3)), [0, 1])
    for score in ("auc", "squared_error"):
        with pytest.raises(ValueError, match="blend_matrix requires y to be passed"):
            blend_matrix([[0, 1], [1, 0]], None, score=score)
