"""The stateless pattern of folds: balanced blocks, independent neighbours, no memory of rows or chunks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
from cpu_fallback.row_numbers import FoldPattern, Permutation, fold_numbers, places_of, rows_at
from tests.laws import encoding

SPLITS = [2, 3, 4, 5, 7, 10, 16]


def blocks(splits, largest=1024):
    """Yield where blocks begin, and their stride: 1, 2, 4 ... up to the largest, which then stays."""
    start, stride = 0, 1
    while True:
        yield start, stride
        start, stride = start + splits * stride, min(2 * stride, largest)


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5])
def test_every_block_deals_each_strided_hand_to_all_folds(splits, seed):
    last = splits * (2 * 1024 + 3 * 1024)
    folds = fold_numbers(FoldPattern("random", splits, seed), 0, last)
    for start, stride in blocks(splits):
        if start + splits * stride > last:
            break
        hands = folds[start : start + splits * stride].reshape(splits, stride)
        assert (np.sort(hands, axis=0) == np.arange(splits)[:, None]).all()


@pytest.mark.parametrize("splits", SPLITS)
def test_neighbours_fall_independently(splits):
    count = 400_000
    folds = fold_numbers(FoldPattern("random", splits, 11), 0, count)
    for distance in (1, 2, splits, 64):
        together = (folds[distance:] == folds[:-distance]).mean()
        # Five standard deviations of a mean of `count` trials.
        assert abs(together - 1 / splits) < 5 * np.sqrt((splits - 1) / splits**2 / count)


def test_runs_of_an_entity_share_folds_now_and_then():
    folds = fold_numbers(FoldPattern("random", 5, 3), 0, 100_000).reshape(-1, 5)
    distinct = np.array([len(set(run)) for run in folds.tolist()])
    # Five independent draws of five are all different in 5! / 5**5 = 3.84 % of runs.
    assert 0.03 < (distinct == 5).mean() < 0.05


@encoding.examples(60)
@given(
    splits=st.integers(2, 20),
    seed=st.integers(0, 2**64 - 1),
    start=st.integers(0, 30_000),
    cuts=st.lists(st.integers(0, 300), max_size=4),
    order=st.sampled_from(["random", "interleaved"]),
)
def test_chunks_do_not_matter(splits, seed, start, cuts, order):
    pattern = FoldPattern(order, splits, seed)
    whole = fold_numbers(pattern, start, start + 300)
    edges = [0, *sorted(cuts), 300]
    pieces = [fold_numbers(pattern, start + a, start + b) for a, b in pairwise(edges)]
    assert np.concatenate(pieces).tolist() == whole.tolist()
    assert fold_numbers(pattern.at(start), 0, 300).tolist() == whole.tolist()


def test_far_rows_need_no_near_ones():
    folds = fold_numbers(FoldPattern("random", 5, 1), 10**12, 10**12 + 20_000)
    counts = np.bincount(folds, minlength=5)
    assert abs(counts - 4000).max() <= 1024


def test_seeds_give_other_folds():
    patterns = {fold_numbers(FoldPattern("random", 5, seed), 0, 40).tobytes() for seed in range(50)}
    assert len(patterns) == 50


@pytest.mark.parametrize("size", [2, 7, 16, 23])
def test_interleaved_and_contiguous_folds(size):
    for row, visible in enumerate(encoding.visibility("interleaved", size)):
        assert visible == tuple(other for other in range(size) if other % 2 != row % 2)
    if size < 4:
        return
    hidden = [sorted(set(range(size)) - set(visible)) for visible in encoding.visibility("contiguous", size)]
    assert all(own == list(range(own[0], own[-1] + 1)) for own in hidden)
    sizes = {tuple(own): len(own) for own in hidden}.values()
    assert len(sizes) == 4
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("scheme", ["int", "k-fold", "interleaved", "contiguous", "groups"])
def test_training_rows_see_all_folds_but_their_own(scheme):
    seen = encoding.visibility(scheme, 23)
    hidden = [frozenset(range(23)) - set(visible) for visible in seen]
    assert all(hidden[other] == own for row, own in enumerate(hidden) for other in own)
    assert all(row in own for row, own in enumerate(hidden))


def test_holdout_shows_each_side_the_other_and_new_rows_the_calibration_side():
    calibration = set(encoding.transform_visibility("holdout", 23))
    assert 5 <= len(calibration) <= 13
    for row, visible in enumerate(encoding.visibility("holdout", 23)):
        assert set(visible) == (set(range(23)) - calibration if row in calibration else calibration)


@pytest.mark.parametrize("scheme", ["greedy", "k-fold", "leave-one-out", "ordered", "groups", "time-folds"])
def test_new_rows_see_all_training_rows(scheme):
    # Grouping and time matter in training only.
    assert encoding.transform_visibility(scheme, 16) == tuple(range(16))


def test_time_folds_are_of_equal_size_where_times_allow():
    frame_times = np.repeat(np.arange(6), 4)
    seen = np.zeros((24, 24), dtype=bool)
    frame = encoding.framed(["a"] * 24)[["key"]].assign(time=frame_times)
    for row in range(24):
        scheme = gpu_encode.TimeFolds(3, time="time", gap=1)
        codes = encoding.fit_transform(frame, np.eye(24)[row], None, scheme, None, "continuous")
        seen[:, row] = codes[:, 0] > 0
    folds = frame_times // 2
    assert (seen == (folds[None, :] + 1 < folds[:, None])).all()


@encoding.examples(40)
@given(size=st.integers(1, 3000), seed=st.integers(0, 2**64 - 1))
def test_a_permutation_has_each_row_once_and_an_inverse(size, seed):
    order = Permutation(size, seed)
    places = places_of(order, 0, size)
    assert sorted(places.tolist()) == list(range(size))
    assert rows_at(order, 0, size)[places].tolist() == list(range(size))
