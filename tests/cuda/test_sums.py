"""All ways to sum rows on the GPU (by table, by hot categories, by cell) give the digits of the definition."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback import types
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Layout, Rows, SumShape, Window
from tests.backends import memory
from tests.cpu_fallback.definitions import N_CATEGORIES, Drawn, carried, digit_window

pytestmark = pytest.mark.cuda

N_FOLDS = 3
LARGEST = 48 * 1024
HOT = {"SAMPLED_ROWS": 0, "SAMPLE": 10**6}
# Memory for two lines of cells, and for four.
STRATEGIES = {
    "tables": ({}, None, "add_in_tables"),
    "one copy": ({"MOST_COPIES": 1}, None, "add_in_tables"),
    "hot": (HOT, 2, "add_hot_in_tables"),
    "all hot": ({**HOT, "HOT_SHARE": 0}, 4, "add_hot_in_tables"),
    "cells": ({}, None, "add_in_cells"),
    "none hot": ({**HOT, "HOT_SHARE": 1}, 2, "add_in_cells"),
    "too few to look for hot ones": ({}, 2, "add_in_cells"),
}


@pytest.fixture(scope="module")
def sums():
    return import_module("gpu_encode.cuda.sums")


@pytest.fixture
def limits(sums):
    """Return the limits of the kernels, blocks and bytes of shared memory, as a dict that a test changes."""
    kernels = sums.engine()
    return {"blocks": kernels.blocks, "table_bytes": kernels.table_bytes}


@pytest.fixture
def launched(sums, limits, monkeypatch):
    """Return a list that collects the launched kernels: name, number of blocks, bytes of shared memory."""
    names, kernels = [], sums.engine()

    def record(name, blocks, threads, *arguments, **others):
        names.append((name, blocks, others.get("shared", 0)))
        kernels.run(name, blocks, threads, *arguments, **others)

    monkeypatch.setattr(sums, "engine", lambda: replace(kernels, run=record, **limits))
    return names


def choose(sums, limits, monkeypatch, strategy, drawn):
    """Force a strategy; return the name of its kernel."""
    constants, n_lines, kernel = STRATEGIES[strategy]
    limits["table_bytes"] = (LARGEST if n_lines is None else n_lines * bytes_of_line(drawn)) * (strategy != "cells")
    for name, value in constants.items():
        monkeypatch.setattr(sums, name, value)
    in_windows = kernel == "add_in_tables" and drawn.rows.target is not None and drawn.rows.weight is None
    return "add_in_windows" if in_windows else kernel


def bytes_of_line(drawn):
    """Return the bytes of shared memory for all cells of a category."""
    words = 0
    for window, power, _ in drawn.layout.measures():
        counts = window.whole and power == 0 and drawn.rows.weight is None
        words += 1 if counts else 4 if window.whole else 2 * max(window.width - 1, 1)
    return 4 * words * N_FOLDS * drawn.n_classes


def skewed(size, random):
    """Return codes; nine in ten are the same."""
    codes = random.integers(-2, N_CATEGORIES, size)
    codes[random.random(size) < 0.9] = 2
    return codes.astype(np.int32)


def reals(size, random):
    return random.standard_normal(size) * 10.0 ** random.integers(-3, 4, size)


def shares(size, random):
    return random.random(size)


def integers(size, random):
    return random.integers(-(2**63), 2**63 - 1, size)


def far_apart(size, random):
    return reals(size, random) * 10.0 ** random.choice([-320, -290, 0, 290], size)


def single_bits(size, random):
    """Return weights of 53 bits or one bit that begin at every position within a digit."""
    return random.choice([2.0**53 - 1, 1.0], size) * 2.0 ** random.integers(-40, 0, size)


# Functions that make the target (None: classes) and the weight; the powers that are summed in digits; and the number
# of spare digits.
KINDS = {
    "real": (reals, None, (1, 2), 1),
    "weighted": (reals, shares, (0, 1, 2), 1),
    "weighted classes": (None, shares, (0,), 1),
    "classes with whole weights": (None, lambda size, random: random.integers(0, 2**40, size), (), 1),
    "whole numbers as reals": (
        lambda size, random: random.integers(-(2**20), 2**20, size).astype(float),
        lambda size, random: random.integers(-4, 5, size).astype(float),
        (),
        1,
    ),
    "large integers": (integers, None, (1,), 1),
    "large integers without room to spare": (integers, None, (1, 2), 0),
    "large integers with large weights": (integers, integers, (0, 1, 2), 1),
    "single digits": (lambda size, random: random.integers(-(2**32) + 1, 2**32, size), None, (1,), 0),
    "far apart": (far_apart, lambda size, random: random.standard_normal(size) * 1e-300, (0, 1, 2), 1),
    # The longest possible products: 53 bits and twice 63 bits.
    "seven digits": (
        lambda size, random: np.where(random.random(size) < 0.5, -(2**63), 2**63 - 1),
        single_bits,
        (0, 1, 2),
        1,
    ),
}


def rows_of(kind, size, seed=0):
    """Return rows, mostly of one category, and a layout for them."""
    target, weight, powers, spare = KINDS[kind]
    random = np.random.default_rng(seed)
    classes = None if target else random.integers(0, 2, size).astype(np.int32)
    numbers = (part and part(size, random) for part in (target, weight))
    rows = Rows(skewed(size, random), classes, *numbers)
    highest = max(powers, default=2) if target else 0
    windows = [digit_window(rows, power, above=spare) if power in powers else Window() for power in range(highest + 1)]
    return Drawn(rows, Layout(*windows), 1 if target else 2)


def check(ops, drawn, folds):
    arguments = (drawn.rows, SumShape(N_CATEGORIES, N_FOLDS, drawn.n_classes, drawn.layout), folds)
    accumulators = ops.accumulate(*arguments)
    expected = cpu_fallback.accumulate(*arguments)
    assert expected.any()
    assert accumulators.dtype == np.int64
    assert np.array_equal(carried(accumulators, drawn.layout), carried(expected, drawn.layout))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_gives_the_digits_of_the_definition(ops, sums, limits, launched, monkeypatch, strategy, kind):
    drawn = rows_of(kind, 61)
    kernel = choose(sums, limits, monkeypatch, strategy, drawn)
    check(ops, drawn, FoldPattern("random", N_FOLDS, seed=1, first_row=7))
    assert {name for name, _, _ in launched} == {kernel}
    assert max(shared for _, _, shared in launched) <= LARGEST


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 11, 12, 13, 25])
def test_numbers_of_rows_around_the_edges_of_blocks(ops, sums, limits, launched, monkeypatch, strategy, size):
    drawn = rows_of("weighted", size, 1)
    choose(sums, limits, monkeypatch, strategy, drawn)
    check(ops, drawn, np.random.default_rng(0).integers(0, N_FOLDS, size).astype(np.int32))


@pytest.mark.parametrize("strategy", ["tables", "hot", "cells"])
@pytest.mark.parametrize("offsets", [(1, 0, 0), (3, 1, 0), (0, 1, 1), (2, 0, 1), (1, 1, 1)])
def test_views_that_begin_between_vectors(ops, sums, limits, launched, monkeypatch, strategy, offsets):
    # A vector read from a misaligned address would stop the program here, as it does a GPU.
    drawn = rows_of("weighted", 61, 3)
    choose(sums, limits, monkeypatch, strategy, drawn)
    columns = drawn.rows.codes, drawn.rows.target, drawn.rows.weight
    codes, target, weight = (
        memory.to_device(np.concatenate([column[:offset], column]))[offset:]
        for column, offset in zip(columns, offsets, strict=True)
    )
    folds = FoldPattern("random", N_FOLDS, seed=2, first_row=2**32 - 5)
    expected = cpu_fallback.accumulate(drawn.rows, SumShape(N_CATEGORIES, N_FOLDS, 1, drawn.layout), folds)
    accumulators = sums.accumulate(
        Rows(codes, None, target, weight), SumShape(N_CATEGORIES, N_FOLDS, 1, drawn.layout), folds
    )
    assert np.array_equal(memory.to_host(accumulators), expected)


@pytest.mark.parametrize("strategy", ["tables", "hot", "cells"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_targets_of_32_bits_are_read_as_they_are(ops, sums, limits, launched, monkeypatch, strategy, weighted, offset):
    drawn = rows_of("weighted" if weighted else "real", 61, 4)
    narrow = np.float32([1.5, -0.0, 1e-45, -1e-38, 3e38, -1.1754944e-38])[np.arange(61) % 6]
    powers = (0, 1, 2) if weighted else (1, 2)
    windows = map(types.digit_window, cpu_fallback.extents(narrow.astype(np.float64), drawn.rows.weight, powers))
    layout = Layout(*([] if weighted else [Window()]), *windows)
    drawn = replace(drawn, rows=replace(drawn.rows, target=narrow.astype(np.float64)), layout=layout)
    choose(sums, limits, monkeypatch, strategy, drawn)
    expected = cpu_fallback.accumulate(drawn.rows, SumShape(N_CATEGORIES, layout=layout))
    target = memory.to_device(np.concatenate([narrow[:offset], narrow]))[offset:]
    weight = None if drawn.rows.weight is None else memory.to_device(drawn.rows.weight)
    given = Rows(memory.to_device(drawn.rows.codes), None, target, weight)
    found = memory.to_host(sums.accumulate(given, SumShape(N_CATEGORIES, layout=layout)))
    assert np.array_equal(carried(found, layout), carried(expected, layout))


@pytest.mark.parametrize("strategy", ["tables", "hot"])
@pytest.mark.parametrize("most_added", [1, 3, 4, 7, 20])
def test_tables_are_flushed_and_used_again(ops, sums, limits, launched, monkeypatch, strategy, most_added):
    drawn = rows_of("weighted", 61, 2)
    choose(sums, limits, monkeypatch, strategy, drawn)
    monkeypatch.setattr(sums, "MOST_ADDED", most_added)
    limits["blocks"] = 2
    check(ops, drawn, None)
    assert {blocks for _, blocks, _ in launched} == {2}


@pytest.mark.slow
def test_words_of_a_table_hold_as_many_rows_as_a_block_adds(ops, sums, limits, launched, monkeypatch):
    limits["blocks"] = 1
    monkeypatch.setattr(sums, "MOST_COPIES", 1)
    # Halves of 2**16 - 1 each, the largest possible.
    target = np.full(sums.MOST_ADDED + 5, -(2**32) + 1)
    layout = Layout(Window(), Window(0, 2, whole=False))
    rows = Rows(np.zeros(len(target), np.int32), None, target, np.ones(len(target), np.int64))
    accumulators = ops.accumulate(rows, SumShape(1, layout=layout))
    assert accumulators[0, 0, 0].tolist() == [len(target), int(target.sum()), 0]
    assert [name for name, _, _ in launched] == ["add_in_tables"]


@pytest.mark.parametrize("words", [1, 40, 12_000])
@pytest.mark.parametrize("n_rows", [1, 7, 10**4, 10**6, 10**8, 2**31, 10**11])
def test_no_block_adds_more_rows_than_its_words_hold(sums, n_rows, words):
    assert sums.MOST_ADDED * (2**16 - 1) < 2**31
    launches = []
    engine = sums.Engine(lambda *given, shared: launches.append((given, shared)), 256, 2112, LARGEST)
    sums.launch_tables(engine, "", sums.Addition((), [], n_rows, 1, 1, words, None, None), 1)
    ((_, blocks, _, plan, _), shared) = launches[0]
    _, copies, size, chunk = map(int, plan)
    assert 1 <= chunk <= sums.MOST_ADDED
    assert 1 <= blocks <= 2112
    assert blocks * chunk >= min(n_rows, 2112 * sums.MOST_ADDED)
    assert shared == 4 * copies * size <= LARGEST


def test_a_table_may_fill_shared_memory_to_the_last_word(ops, sums, limits, launched, monkeypatch):
    drawn = rows_of("weighted", 30)
    words = (N_CATEGORIES + 2) * bytes_of_line(drawn)
    limits["table_bytes"] = words
    check(ops, drawn, None)
    assert [shared for _, _, shared in launched] == [words]


@pytest.mark.parametrize(("room", "copies"), [(1, 1), (2, 2), (3, 2), (4, 4), (7, 4), (100, 8)])
def test_small_tables_have_copies(ops, sums, limits, launched, monkeypatch, room, copies):
    drawn = rows_of("large integers with large weights", 40)
    size = (N_CATEGORIES + 2) * bytes_of_line(drawn) // 4
    distance = size + (copies > 1 and size % 2 == 0)
    limits["table_bytes"] = sums.COPIED_SHARE * 4 * room * (size + 1)
    check(ops, drawn, None)
    assert [shared for _, _, shared in launched] == [4 * copies * distance]


def test_a_count_that_nothing_is_added_to(ops, launched):
    # The layout has a window of digits for the count, but without weights rows are counted in one integer: no digits.
    drawn = rows_of("real", 20)
    layout = replace(drawn.layout, count=Window(-1, 2, whole=False))
    check(ops, replace(drawn, layout=layout), None)


def test_counts_are_counted_elsewhere(ops, sums, monkeypatch):
    seen = []
    monkeypatch.setattr(sums, "count", lambda *arguments: seen.append(arguments))
    drawn = rows_of("real", 20)
    ops.accumulate(drawn.rows, SumShape(N_CATEGORIES, N_FOLDS))
    assert len(seen) == 1
    assert len(seen[0][-1]) == (N_CATEGORIES + 2) * N_FOLDS


def hot_lines_of(sums, codes, most):
    """Return the hot lines of codes."""
    job = sums.Addition((), [], len(codes), N_CATEGORIES + 2, 1, 1, None, memory.to_device(np.array(codes, np.int32)))
    return memory.to_host(sums.hot_lines(job, most)).tolist()


def test_hot_lines_are_those_of_a_large_share_and_the_most_frequent_first(sums, monkeypatch):
    monkeypatch.setattr(sums, "HOT_SHARE", 0.2)
    codes = [-1] * 50 + [2] * 21 + [0] * 20 + [-2] * 9
    assert hot_lines_of(sums, codes, 4) == [5, 2]
    assert hot_lines_of(sums, codes, 1) == [5]
    assert hot_lines_of(sums, codes, 0) == []
    monkeypatch.setattr(sums, "HOT_SHARE", 0.19)
    assert hot_lines_of(sums, codes, 4) == [5, 2, 0]


def test_a_sample_reaches_over_all_rows(sums, monkeypatch):
    monkeypatch.setattr(sums, "SAMPLE", 10)
    assert hot_lines_of(sums, [1] * 90 + [3] * 15, 4) == [1, 3]


def test_more_hot_lines_than_ranks(ops, sums, limits, launched, monkeypatch):
    drawn = rows_of("real", 61)
    choose(sums, limits, monkeypatch, "all hot", drawn)
    monkeypatch.setattr(sums, "MOST_RANKS", 1)
    check(ops, drawn, None)
    assert [name for name, _, _ in launched] == ["add_hot_in_tables"]
