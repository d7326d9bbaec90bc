"""Permutations, compared with networks for single rows in Python integers, and numbers that must never change."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.row_numbers import Permutation, ranks_of, rows_at
from tests.rows.test_fold_patterns import WORD, mixed
from tests.strategies import examples


def rank_of(row, n_rows, seed):
    half = 4
    while 4**half < n_rows:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = row >> half, row & mask
        for turn in range(1, 9):
            key = mixed((seed + turn * 0x9E3779B97F4A7C15) & WORD)
            left, right = right, left ^ (mixed((right + key) & WORD) & mask)
        row = left << half | right
        if row < n_rows:
            return row


def row_inside(rank, size, bits, key):
    """Return the row of a rank in a block of `size` rows."""
    while True:
        for turn in range(1, 7):
            step = mixed((key + turn * 0x9E3779B97F4A7C15) & WORD)
            rank = (rank * (step >> 32 | 1) + step) % 2**bits
            rank ^= rank >> -(-bits // 2)
        if rank < size:
            return rank


def rank_in_blocks(row, n_rows, seed, block):
    """Return the rows of the blocks before the row's block, and the row's rank in its block."""
    if block == 1:
        return rank_of(row, n_rows, seed)
    n_blocks = -(-n_rows // block)
    sizes = {n_blocks - 1: n_rows - (n_blocks - 1) * block}
    before = rank_of(row // block, n_blocks, seed)
    lacking = (block - sizes[n_blocks - 1]) * (rank_of(n_blocks - 1, n_blocks, seed) < before)
    key = (mixed(seed ^ 0x8CB92BA72F3D8DD7) + row // block * 0xD1B54A32D192ED03) & WORD
    size, bits = sizes.get(row // block, block), (block - 1).bit_length()
    inside = next(rank for rank in range(size) if row_inside(rank, size, bits, key) == row % block)
    return before * block - lacking + inside


@examples(60)
@given(
    n_rows=st.integers(1, 3000) | st.integers(1, 2**40),
    seed=st.integers(0, WORD),
    block=st.just(1) | st.integers(2, 9) | st.sampled_from([64, 100, 256]),
    data=st.data(),
)
def test_ranks_are_those_of_the_networks(n_rows, seed, block, data):
    start = data.draw(st.integers(0, n_rows - 1))
    stop = min(start + 15, n_rows)
    order = Permutation(n_rows, seed, block)
    ranks = ranks_of(order, start, stop)
    assert ranks.tolist() == [rank_in_blocks(row, n_rows, seed, block) for row in range(start, stop)]
    for row, rank in zip(range(start, stop), ranks.tolist(), strict=True):
        assert rows_at(order, rank, rank + 1).tolist() == [row]


@examples(60)
@given(
    n_rows=st.integers(1, 4100) | st.sampled_from([255, 256, 257, 1023, 1024, 1025]),
    seed=st.integers(0, WORD),
    block=st.integers(1, 9) | st.sampled_from([255, 256, 257, 5000]),
)
def test_every_row_has_one_rank(n_rows, seed, block):
    order = Permutation(n_rows, seed, block)
    ranks, rows = ranks_of(order, 0, n_rows), rows_at(order, 0, n_rows)
    assert sorted(ranks.tolist()) == list(range(n_rows))
    assert rows[ranks].tolist() == list(range(n_rows))


N_SEEDS = 3000


@pytest.fixture(scope="module")
def networks():
    """The network of each seed over 256 numbers, which every shorter permutation walks."""
    return [ranks_of(Permutation(256, seed), 0, 256).tolist() for seed in range(N_SEEDS)]


def walked(network, n_rows):
    ranks = []
    for row in range(n_rows):
        rank = network[row]
        while rank >= n_rows:
            rank = network[rank]
        ranks.append(rank)
    return tuple(ranks)


@pytest.mark.parametrize("n_rows", range(2, 10))
def test_short_permutations_walk_the_network_of_256(networks, n_rows):
    for seed in range(5):
        assert ranks_of(Permutation(n_rows, seed), 0, n_rows).tolist() == list(walked(networks[seed], n_rows))


@pytest.mark.parametrize("n_rows", range(2, 10))
def test_over_seeds_every_row_is_everywhere_alike(networks, n_rows):
    found = np.array([walked(network, n_rows) for network in networks])
    for row in range(n_rows):
        counts = np.bincount(found[:, row], minlength=n_rows)
        assert np.abs(counts / N_SEEDS - 1 / n_rows).max() < 5 * np.sqrt((1 / n_rows) * (1 - 1 / n_rows) / N_SEEDS)


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_over_seeds_every_order_occurs_alike(networks, n_rows):
    orders = [walked(network, n_rows) for network in networks]
    share = 1 / factorial(n_rows)
    for order in permutations(range(n_rows)):
        assert abs(orders.count(order) / N_SEEDS - share) < 5 * np.sqrt(share / N_SEEDS)


@pytest.mark.parametrize("block", [2, 3, 4, 7, 8, 64])
def test_over_blocks_every_row_is_everywhere_alike(block):
    """Each row of a block has every rank equally often, and comes equally often before and after each other row."""
    ranks = (ranks_of(Permutation(N_SEEDS * block, 5, block), 0, N_SEEDS * block) % block).reshape(N_SEEDS, block)
    for row in range(block):
        counts = np.bincount(ranks[:, row], minlength=block)
        assert np.abs(counts / N_SEEDS - 1 / block).max() < 5 * np.sqrt((1 / block) * (1 - 1 / block) / N_SEEDS)
        before = (ranks[:, row, None] < ranks).mean(axis=0)
        assert np.abs(np.delete(before, row) - 0.5).max() < 5 * np.sqrt(0.25 / N_SEEDS)


@pytest.mark.parametrize("block", [3, 4])
def test_over_blocks_every_order_occurs_alike(block):
    ranks = (ranks_of(Permutation(N_SEEDS * block, 5, block), 0, N_SEEDS * block) % block).reshape(N_SEEDS, block)
    orders, share = [*map(tuple, ranks.tolist())], 1 / factorial(block)
    for order in permutations(range(block)):
        assert abs(orders.count(order) / N_SEEDS - share) < 5 * np.sqrt(share / N_SEEDS)


def test_permutations_never_change():
    for given_, expected in PINNED.items():
        assert ranks_of(Permutation(*given_), 0, len(expected)).tolist() == expected


PINNED = {
    (10, 0): [6, 1, 8, 5, 2, 3, 0, 4, 7, 9],
    (10, 7): [5, 4, 9, 6, 8, 2, 0, 7, 1, 3],
    (1000, 1): [249, 1, 382, 648, 545, 53],
    (1099511627776, 18446744073709551615): [958358442345, 403149525981, 742261324172, 177815507945],
    (10, 7, 4): [8, 9, 7, 6, 5, 4, 3, 2, 1, 0],
    (1000, 1, 2): [499, 498, 3, 2, 764, 765],
    (1000, 1, 100): [876, 860, 867, 814, 830, 879],
    (1099511627776, 18446744073709551615, 256): [1062206198187, 1062206198178, 1062206198091, 1062206198134],
}
