"""Permutations against a row-by-row Feistel network in Python integers, and numbers that must never change."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.row_numbers import Permutation, places_of, rows_at
from tests.rows.test_fold_patterns import WORD, mixed
from tests.strategies import examples


def place_of(row, n_rows, seed):
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


@examples(60)
@given(n_rows=st.integers(1, 3000) | st.integers(1, 2**40), seed=st.integers(0, WORD), data=st.data())
def test_places_are_those_of_the_network(n_rows, seed, data):
    start = data.draw(st.integers(0, n_rows - 1))
    stop = min(start + 15, n_rows)
    order = Permutation(n_rows, seed)
    places = places_of(order, start, stop)
    assert places.tolist() == [place_of(row, n_rows, seed) for row in range(start, stop)]
    for row, place in zip(range(start, stop), places.tolist(), strict=True):
        assert rows_at(order, place, place + 1).tolist() == [row]


@examples(60)
@given(n_rows=st.integers(1, 4100) | st.sampled_from([255, 256, 257, 1023, 1024, 1025]), seed=st.integers(0, WORD))
def test_every_row_has_one_place(n_rows, seed):
    order = Permutation(n_rows, seed)
    places, rows = places_of(order, 0, n_rows), rows_at(order, 0, n_rows)
    assert sorted(places.tolist()) == list(range(n_rows))
    assert rows[places].tolist() == list(range(n_rows))


N_SEEDS = 3000


@pytest.fixture(scope="module")
def networks():
    """The network of each seed over 256 numbers, which every shorter permutation walks."""
    return [places_of(Permutation(256, seed), 0, 256).tolist() for seed in range(N_SEEDS)]


def walked(network, n_rows):
    places = []
    for row in range(n_rows):
        place = network[row]
        while place >= n_rows:
            place = network[place]
        places.append(place)
    return tuple(places)


@pytest.mark.parametrize("n_rows", range(2, 10))
def test_short_permutations_walk_the_network_of_256(networks, n_rows):
    for seed in range(5):
        assert places_of(Permutation(n_rows, seed), 0, n_rows).tolist() == list(walked(networks[seed], n_rows))


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


def test_permutations_never_change():
    for (n_rows, seed), expected in PINNED.items():
        assert places_of(Permutation(n_rows, seed), 0, len(expected)).tolist() == expected


PINNED = {
    (10, 0): [6, 1, 8, 5, 2, 3, 0, 4, 7, 9],
    (10, 7): [5, 4, 9, 6, 8, 2, 0, 7, 1, 3],
    (1000, 1): [249, 1, 382, 648, 545, 53],
    (1099511627776, 18446744073709551615): [958358442345, 403149525981, 742261324172, 177815507945],
}
