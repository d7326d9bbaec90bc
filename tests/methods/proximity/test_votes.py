"""Scores of new rows and of training rows, compared bit for bit with votes in plain loops."""

import warnings

import numpy as np
import pytest

from gpu_encode import KFold, LeakWarning, LeaveOneOut, ProximityEncoder
from tests.backends import ON_CUDA
from tests.bits import assert_same_bits
from tests.methods.proximity import definition

N = 14 if ON_CUDA else 40
NAMES = ["a", "b", "c"]
WEIGHTS = {(): 0.5, (0,): 1.0, (2,): 0.25, (0, 1): 2.0, (0, 1, 2): 4.0}


def draw(seed, n_rows=N, n_codes=3):
    random = np.random.default_rng(seed)
    table = random.choice(np.array([*"xyz"[:n_codes], None], object), (n_rows, 3), p=[0.9 / n_codes] * n_codes + [0.1])
    return table, random


def as_rows(table):
    return [tuple(row) for row in table.tolist()]


def new_rows(table):
    """Rows of training, and others with values that are new."""
    other = table[::3].copy()
    other[::2, 1] = "never seen"
    other[0] = "never seen"
    return np.concatenate([table[:5], other])


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("weights", [WEIGHTS, {(0, 1): 1.0, 2: 3.0}, {}], ids=["all", "some", "none"])
def test_shares_of_two_classes(backend, way, degree, weights):
    table, random = draw(0)
    y = random.integers(0, 2, N)
    encoder = ProximityEncoder(order=3, degree=degree, weights=weights).fit(table, y)
    plain = {key if isinstance(key, tuple) else (key,): value for key, value in weights.items()}
    found = encoder.transform(new_rows(table))
    expected = [definition.ratio(row, as_rows(table), y.tolist(), plain, degree, 1) for row in as_rows(new_rows(table))]
    assert_same_bits(found[:, 0], expected)


@pytest.mark.parametrize("form", ["ratio", "difference"])
def test_several_classes_have_one_vote_each(backend, way, form):
    table, random = draw(1)
    y = random.choice(["p", "q", "r"], N)
    encoder = ProximityEncoder(order=3, form=form, weights=WEIGHTS).fit(table, y)
    found = encoder.transform(new_rows(table))
    assert encoder.get_feature_names_out().tolist() == ["proximity_p", "proximity_q", "proximity_r"]
    for column, label in enumerate("pqr"):
        for row, value in zip(as_rows(new_rows(table)), found[:, column].tolist(), strict=True):
            if form == "ratio":
                assert value == definition.ratio(row, as_rows(table), y.tolist(), WEIGHTS, 1, label)
            else:
                # Quotients are rounded before they are subtracted.
                expected = definition.difference(row, as_rows(table), y.tolist(), WEIGHTS, label)
                assert value == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_means_of_a_quantity(backend, way):
    table, random = draw(2)
    y = random.integers(-40, 40, N) / 8
    encoder = ProximityEncoder(order=3, degree=2, weights=WEIGHTS, target_type="continuous").fit(table, y)
    expected = [definition.ratio(row, as_rows(table), y.tolist(), WEIGHTS, 2) for row in as_rows(new_rows(table))]
    assert_same_bits(encoder.transform(new_rows(table))[:, 0], expected)


def test_fractions_that_no_sum_holds_are_near(backend):
    table, random = draw(3)
    y, weight = random.normal(size=N) * 1e-200, random.random(N)
    encoder = ProximityEncoder(weights=WEIGHTS, order=3).fit(table, y, sample_weight=weight)
    for row, value in zip(as_rows(table), encoder.transform(table)[:, 0].tolist(), strict=True):
        exact = definition.ratio(row, as_rows(table), y.tolist(), WEIGHTS, 1, None, weight.tolist())
        assert value == pytest.approx(exact, rel=1e-9, abs=0)


def test_whole_weights_are_repeated_rows(backend, way):
    table, random = draw(4)
    y, times = random.integers(0, 2, N), random.integers(0, 4, N)
    repeated = ProximityEncoder(order=2).fit(np.repeat(table, times, axis=0), np.repeat(y, times))
    given = ProximityEncoder(order=2, weights=repeated.weights_, degree=repeated.degree_)
    found = given.fit(table, y, sample_weight=times).transform(new_rows(table))
    assert_same_bits(found, repeated.transform(new_rows(table)))


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, form) for kind in ("binary", "multiclass", "continuous") for form in ("ratio", "difference")][:-1],
)
def test_leave_one_out_is_a_fit_without_the_row(backend, way, kind, form):
    n_rows = 8 if ON_CUDA else 25
    table, random = draw(5, n_rows)
    y = random.integers(0, 3 if kind == "multiclass" else 2, n_rows) if kind != "continuous" else np.arange(n_rows) / 4
    # Labels that every rest has.
    y[:6] = y[:6] if kind == "continuous" else [0, 1, y.max()] * 2
    degree = 1 if form == "difference" else 1.5
    encoder = ProximityEncoder(order=3, degree=degree, form=form, weights=WEIGHTS, cv=LeaveOneOut(), target_type=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        found = encoder.fit_transform(table, y)
    for row in range(n_rows):
        rest = np.arange(n_rows) != row
        assert_same_bits(found[row], encoder.fit(table[rest], y[rest]).transform(table[row : row + 1])[0])


def test_weights_count_in_tuning(backend):
    table, random = draw(4)
    y, kept = random.integers(0, 2, N), random.integers(0, 2, N)
    weighted = ProximityEncoder().fit(table, y, sample_weight=kept)
    without = ProximityEncoder().fit(table[kept == 1], y[kept == 1])
    assert without.path_ == weighted.path_ != []
    halves = ProximityEncoder().fit(table, y, sample_weight=kept / 2)
    assert [step[:2] for step in halves.path_] == [step[:2] for step in weighted.path_]


def test_folds_are_fits_without_the_fold(backend):
    table, random = draw(6)
    y, folds = random.integers(0, 2, N), np.arange(N) % 3
    encoder = ProximityEncoder(cv=KFold(3, order="interleaved"))
    found = encoder.fit_transform(table, y)
    for fold in range(3):
        others = folds != fold
        assert_same_bits(found[~others], ProximityEncoder().fit(table[others], y[others]).transform(table[~others]))


@pytest.mark.parametrize("given", [False, True], ids=["folds, tuned", "leave-one-out, given"])
def test_no_row_sees_its_own_target(backend, given):
    table, random = draw(7)
    y = random.integers(0, 2, N)
    scheme = {"weights": WEIGHTS, "cv": LeaveOneOut(), "order": 3} if given else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        before = ProximityEncoder(**scheme).fit_transform(table, y)
        for row in range(0, N, 5):
            changed = y.copy()
            changed[row] = 1 - y[row]
            after = ProximityEncoder(**scheme).fit_transform(table, changed)
            assert_same_bits(after[row], before[row])
            assert (after != before).any()


def test_missing_values_agree_or_do_not(backend, way):
    table = np.array([[None, "a"], [None, "b"], ["c", "a"]], object)
    y, weights = [1, 1, 0], {0: 1.0}
    asked = np.array([[None, "a"], ["c", "a"], ["new", "a"]], object)
    as_category = ProximityEncoder(weights=weights).fit(table, y)
    assert as_category.transform(asked)[:, 0].tolist() == [1.0, 0.0, 2 / 3]
    never = ProximityEncoder(weights=weights, handle_missing="never").fit(table, y)
    assert never.transform(asked)[:, 0].tolist() == [2 / 3, 0.0, 2 / 3]
    with pytest.raises(ValueError, match="missing value"):
        ProximityEncoder(weights=weights, handle_missing="error").fit(table, y).transform(asked)


def test_missing_values_of_new_rows_alone_are_unseen(backend):
    encoder = ProximityEncoder(weights={0: 1.0}).fit([["a"], ["b"]], [0, 1])
    assert encoder.transform(np.array([[None]], object)).tolist() == [[0.5]]


def test_many_features_are_listed(backend):
    """More features than a dense table of patterns holds."""
    random = np.random.default_rng(8)
    table, y = random.integers(0, 2, (N, 16)), random.integers(0, 2, N)
    weights = {(): 1.0, **dict.fromkeys(range(16), 0.5), (0, 15): 2.0}
    plain = {key if isinstance(key, tuple) else (key,): value for key, value in weights.items()}
    encoder = ProximityEncoder(weights=weights, degree=2).fit(table, y)
    expected = [definition.ratio(row, as_rows(table), y.tolist(), plain, 2, 1) for row in as_rows(table)]
    assert_same_bits(encoder.transform(table)[:, 0], expected)


def test_new_rows_are_scored_in_blocks(backend, way, monkeypatch):
    table, random = draw(9)
    encoder = ProximityEncoder(weights=WEIGHTS, order=3).fit(table, random.integers(0, 2, N))
    expected = encoder.transform(table)
    monkeypatch.setattr("gpu_encode.methods.proximity.histogram.MOST_CELLS", 40)
    assert_same_bits(encoder.transform(table), expected)
