"""Sums by pattern of agreement, compared with plain loops over all pairs."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends import ON_CUDA
from tests.cpu_fallback.definitions import read_only
from tests.strategies import examples

N_CODES = 3


def compare_all(queries, rows, measures):
    """Compare every query with every row; sums in Python's integers."""
    n_features, n_queries = queries.shape
    sums = [[[0] * measures.shape[1] for _ in range(1 << n_features)] for _ in range(n_queries)]
    for query, asked in enumerate(queries.T.tolist()):
        for row, held in zip(rows.T.tolist(), measures.tolist(), strict=True):
            pattern = sum(1 << i for i, (a, b) in enumerate(zip(asked, row, strict=True)) if a == b >= 0)
            for number, value in enumerate(held):
                sums[query][pattern][number] += value
    return sums


def check(ops, queries, rows, measures):
    found = ops.sum_agreements(read_only(queries), read_only(rows), read_only(measures))
    assert found.dtype == np.int64
    assert found.shape == (queries.shape[1], 1 << len(queries), measures.shape[1])
    assert found.tolist() == compare_all(queries, rows, measures)


def draw_codes(data, n_features, size):
    numbers = st.lists(st.integers(-2, N_CODES - 1), min_size=n_features * size, max_size=n_features * size)
    return np.array(data.draw(numbers), np.int32).reshape(n_features, size)


@examples(30)
@given(data=st.data())
def test_every_pair_is_added_once(ops, data):
    n_features, n_measures = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    n_queries, n_rows = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 14))
    values = st.lists(st.integers(-(2**60), 2**59), min_size=n_rows * n_measures, max_size=n_rows * n_measures)
    measures = np.array(data.draw(values), np.int64).reshape(n_rows, n_measures)
    # Sums stay inside of 64 bits.
    measures //= 16
    check(ops, draw_codes(data, n_features, n_queries), draw_codes(data, n_features, n_rows), measures)


@pytest.mark.parametrize("n_measures", [1, 2, 3])
@pytest.mark.parametrize("n_features", [3, 7])
def test_many_rows(ops, n_features, n_measures):
    """Several blocks of rows, and of a GPU tables that do not fit shared memory."""
    random, n_rows = np.random.default_rng(n_features), 60 if ON_CUDA else 5000
    queries = random.integers(-1, N_CODES, (n_features, 7)).astype(np.int32)
    rows = random.integers(-1, N_CODES, (n_features, n_rows)).astype(np.int32)
    check(ops, queries, rows, random.integers(0, 3, (n_rows, n_measures)))


def test_rows_in_any_memory_layout(ops):
    random = np.random.default_rng(0)
    rows = np.asfortranarray(random.integers(0, N_CODES, (3, 40)).astype(np.int32))
    check(ops, rows[:, ::3], rows, np.asfortranarray(random.integers(0, 5, (40, 2))))


@pytest.mark.host
@pytest.mark.parametrize("pairs", [1, 7, 50])
def test_blocks_of_the_definition(monkeypatch, pairs):
    monkeypatch.setattr(import_module("cpu_fallback.agreements"), "PAIRS", pairs)
    random = np.random.default_rng(pairs)
    codes = random.integers(-1, N_CODES, (3, 20)).astype(np.int32)
    check(import_module("cpu_fallback"), codes[:, :9], codes, random.integers(-9, 9, (20, 2)))


@pytest.mark.host
def test_threads_share_the_queries(n_threads, monkeypatch):
    module = import_module("cpu_fallback.compiled.agreements")
    monkeypatch.setattr(module, "PAIRS", 1)
    random = np.random.default_rng(n_threads)
    codes = random.integers(-1, N_CODES, (3, 20)).astype(np.int32)
    check(module, codes, codes, random.integers(-9, 9, (20, 2)))
