"""Fold patterns, compared with a definition for single rows in Python integers, and numbers that must never change."""

from itertools import pairwise
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.row_numbers import FoldPattern, fold_numbers, key_of
from tests.strategies import examples

WORD = (1 << 64) - 1
SEEDS = st.integers(0, WORD)


def mixed(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def random_fold(row, n_splits, seed):
    """Find the block by walking from the first, then its hashed map."""
    block = start = 0
    while row >= start + n_splits * (1 << min(block, 10)):
        start += n_splits * (1 << min(block, 10))
        block += 1
    turn, stride = divmod(row - start, 1 << min(block, 10))
    key = mixed((mixed((seed + block * 0x9E3779B97F4A7C15) & WORD) + stride * 0xD1B54A32D192ED03) & WORD)
    units = [a for a in range(1, n_splits + 1) if gcd(a, n_splits) == 1]
    return (units[(key >> 32) % len(units)] * turn + (key & 0xFFFFFFFF) % n_splits) % n_splits


@examples(100)
@given(n_splits=st.integers(1, 70), seed=SEEDS, start=st.integers(0, 30_000))
def test_random_folds_are_the_hashed_maps(n_splits, seed, start):
    found = fold_numbers(FoldPattern("random", n_splits, seed), start, start + 20)
    assert found.tolist() == [random_fold(row, n_splits, seed) for row in range(start, start + 20)]


@pytest.mark.parametrize("n_splits", range(2, 65))
def test_every_block_deals_each_strided_hand_to_all_folds(n_splits):
    folds, start = fold_numbers(FoldPattern("random", n_splits, seed=n_splits), 0, n_splits * (1023 + 2 * 1024)), 0
    for stride in [1 << min(block, 10) for block in range(12)]:
        hands = folds[start : start + n_splits * stride].reshape(n_splits, stride)
        assert (np.sort(hands, axis=0) == np.arange(n_splits)[:, None]).all()
        start += n_splits * stride
    assert start == len(folds)


def test_far_rows_need_no_near_ones():
    folds = fold_numbers(FoldPattern("random", 5, 1), 10**12, 10**12 + 20_000)
    assert abs(np.bincount(folds, minlength=5) - 4000).max() <= 1024


def test_runs_of_an_entity_share_folds_now_and_then():
    folds = fold_numbers(FoldPattern("random", 5, 3), 0, 100_000).reshape(-1, 5)
    distinct = np.array([len(set(run)) for run in folds.tolist()])
    # Five independent draws of five are all different in 5! / 5**5 = 3.84 % of runs.
    assert 0.03 < (distinct == 5).mean() < 0.05


@examples(100)
@given(n_splits=st.integers(1, 64), n_rows=st.integers(1, 500))
def test_contiguous_folds_are_those_of_array_split(n_splits, n_rows):
    folds = fold_numbers(FoldPattern("contiguous", n_splits, n_rows=n_rows), 0, n_rows)
    parts = np.array_split(np.arange(n_rows), n_splits)
    assert folds.tolist() == [fold for fold, part in enumerate(parts) for _ in part]


@examples(100)
@given(
    order=st.sampled_from(["random", "contiguous", "interleaved"]),
    n_splits=st.integers(1, 64),
    seed=SEEDS,
    first=st.integers(0, 10**15),
    cuts=st.lists(st.integers(0, 100), max_size=4),
)
def test_any_chunks_give_the_same_folds(order, n_splits, seed, first, cuts):
    pattern = FoldPattern(order, n_splits, seed, n_rows=10**15 + 100)
    edges = [0, *sorted(cuts), 100]
    parts = [fold_numbers(pattern.at(first + start), 0, stop - start) for start, stop in pairwise(edges)]
    assert np.array_equal(np.concatenate(parts), fold_numbers(pattern, first, first + 100))


@pytest.mark.parametrize("n_splits", [2, 3, 4, 5, 7, 10, 16])
def test_neighbours_share_a_fold_as_often_as_chance_has_it(n_splits):
    folds = fold_numbers(FoldPattern("random", n_splits, seed=11), 0, 400_000)
    for distance in (1, 2, n_splits, 64):
        share = np.mean(folds[:-distance] == folds[distance:])
        # Five standard deviations of the mean.
        assert abs(share - 1 / n_splits) < 5 * np.sqrt((1 / n_splits) * (1 - 1 / n_splits) / len(folds))


def test_seeds_are_independent():
    first = fold_numbers(FoldPattern("random", 5, seed=1), 0, 100_000)
    for seed in (2, 3, WORD):
        assert abs(np.mean(first == fold_numbers(FoldPattern("random", 5, seed=seed), 0, 100_000)) - 0.2) < 0.01


def test_purposes_and_seeds_have_keys_of_their_own():
    keys = {key_of(seed, purpose) for seed in range(30) for purpose in range(30)}
    assert len(keys) == 900
    assert key_of(0, 1) == PINNED_KEYS[0, 1]
    assert key_of(-1, 2) == PINNED_KEYS[-1, 2]


def test_folds_never_change():
    for (n_splits, seed, start), expected in PINNED.items():
        found = fold_numbers(FoldPattern("random", n_splits, seed), start, start + len(expected))
        assert "".join(map(str, found)) == expected


PINNED_KEYS = {(0, 1): 16294208416658607535, (-1, 2): 8325766680316962815}
PINNED = {
    (5, 0, 0): "012343413422100041123344202112030433400403011411143433232012",
    (2, 1, 0): "1001100011110001010110101010010011010101",
    (7, 18446744073709551615, 1000): "3133016354465065350626060240235263016451",
    (5, 7, 1000000000000): "1111424403221341122441210404240204201331",
}
