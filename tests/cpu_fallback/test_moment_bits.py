"""Moments of every backend have the bits of the definition: difficult digits, ties, and the limits of floats."""

from importlib import import_module
from itertools import product

import numpy as np
import pytest
from numba import config

import cpu_fallback
from cpu_fallback.types import Layout, Window

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

MASK = 2**32 - 1
HARD_DIGITS = np.array([0, 0, 0, 1, -1, MASK, -MASK, 2**31, 2**32, -(2**32), 2**53, 2**62, 2**63 - 1, -(2**63)])
SMALL_WHOLES = (0, 1, -1, 2, 3, 2**31 - 1, 2**31, -(2**31), 2**32 + 1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 3)
LARGE_WHOLES = (2**62 + 1, 2**63 - 1, 2**63 - 513, 2**63 - 512, -(2**63), -(2**63) + 511, -(2**63) + 513)
OVERFLOWING = pytest.mark.skipif(config.DISABLE_JIT, reason="Python's own ldexp refuses to overflow")


def bits(array):
    return np.ascontiguousarray(array).view(np.int64)


def normalize(moments):
    """Return mantissa and exponent of fraction * 2**exponent; the power may be in either factor."""
    mantissa, exponent = np.frexp(moments.fraction)
    return mantissa, np.where(mantissa == 0, 0, exponent + moments.exponent)


def check(ops, accumulators, layout, first=0, deviations=True):
    accumulators = np.ascontiguousarray(accumulators, np.int64)
    given = accumulators.copy()
    moments = ops.moments(accumulators, layout, first, deviations)
    assert (accumulators == given).all()
    expected = cpu_fallback.moments(accumulators, layout, first, deviations)
    for name in ("n", "mean", "less_one"):
        column, defined = getattr(moments, name), getattr(expected, name)
        assert (column.shape, column.dtype) == (defined.shape, defined.dtype), name
        assert np.array_equal(bits(column), bits(defined)), name
    for part, defined in zip(normalize(moments), normalize(expected), strict=True):
        assert np.array_equal(part, defined)
    return moments


def draw_window(random, widest):
    if random.random() < 0.3:
        return Window()
    return Window(int(random.integers(-20, 12)), int(random.integers(1, widest + 1)), False)


def draw(random, widest):
    """Draw cells, their layout, and an output to begin with."""
    n_classes = int(random.integers(1, 4))
    if random.random() < 0.4:
        layout = Layout(draw_window(random, widest))
        first = int(random.integers(0, 2)) if n_classes > 1 else 0
    else:
        n_classes, first = 1, 0
        layout = Layout(*(draw_window(random, widest) for _ in range(3)))
    shape = (int(random.integers(1, 6)), n_classes, layout.width)
    plain = random.integers(-(2 ** int(random.integers(1, 63))), 2**40, shape)
    accumulators = np.where(random.random(shape) < 0.5, random.choice(HARD_DIGITS, shape), plain)
    return accumulators * (random.random(shape) < random.choice([0.2, 0.6, 1.0])), layout, first


# A GPU thread keeps up to eight digits in registers, and the CPU in a few words.
@pytest.mark.parametrize(("widest", "seed"), [*product([8], range(12)), *product([20], range(2))])
def test_windows_of_any_width(ops, widest, seed):
    random = np.random.default_rng([widest, seed])
    for _ in range(25):
        check(ops, *draw(random, widest))


@OVERFLOWING
def test_the_widest_sums(ops):
    """Draw weights and targets of every magnitude of float64."""
    layout = Layout(Window(-34, 67, False), Window(-68, 133, False), Window(-101, 199, False))
    random = np.random.default_rng(0)
    accumulators = random.integers(-(2**40), 2**40, (2, 1, layout.width))
    accumulators[:, :, 0] = 0
    check(ops, accumulators, layout)


# Exponents far below and above the range of float64, and every step across its ends.
@OVERFLOWING
@pytest.mark.parametrize("low", [-200, -100, -37, -36, -35, -34, -33, -32, -31, 29, 30, 31, 32, 33, 100, 200])
def test_means_that_vanish_overflow_or_lose_bits(ops, low):
    random = np.random.default_rng(abs(low))
    layout = Layout(Window(), Window(low, 3, False), Window(2 * low, 4, False))
    accumulators = random.integers(-(2**40), 2**40, (8, 1, layout.width))
    # Digits like these lie half-way between neighbours once divided by a power of two.
    accumulators[2:, :, 0] = [[1], [2], [3], [-4], [8], [0]]
    accumulators[4:, :, 1:4] = [[MASK, 1, 0]], [[1 << 31, 0, 0]], [[3 << 30, 1, 0]], [[1, 1 << 31, 0]]
    check(ops, accumulators, layout)
    # The quotients of digits that are farthest from one.
    accumulators[:, :, 0] = 2**62 + 1
    check(ops, accumulators, layout)


def test_means_below_the_normal_numbers_are_rounded_once(ops):
    """Return 2**-1075 and a little more: without the little it is half-way to the smallest float."""
    layout = Layout(Window(), Window(-34, 3, False))
    accumulators = [[[2**52, little, 0, 2]] for little in (0, 2**15, -(2**15))]
    assert check(ops, accumulators, layout, 0, False).mean.tolist() == [[0.0], [5e-324], [0.0]]


@OVERFLOWING
@pytest.mark.parametrize("low", [-33, -32, -2, 0, 1, 29, 31, 32, 40])
def test_counts_that_vanish_or_overflow(ops, low):
    random = np.random.default_rng(low + 50)
    layout = Layout(Window(low, 2, False), Window(-2, 3, False), Window(-4, 3, False))
    check(ops, random.integers(-5, 2**33, (6, 1, layout.width)), layout)
    check(ops, random.integers(-5, 2**33, (6, 3, 2)), Layout(Window(low, 2, False)), 1)


def digits_of(number, width):
    """Digits in two's complement, the last one signed."""
    digits = [number >> (32 * i) & MASK for i in range(width)]
    return [*digits[:-1], digits[-1] - (1 << 32 if number < 0 else 0)]


@pytest.mark.parametrize("size", range(54, 100, 5))
def test_ties_round_to_even_unless_anything_lies_below(ops, size):
    """Draw mantissas of 54 bits at every distance from the ends of digits, with or without a remainder far below."""
    numbers = [
        sign * ((mantissa << (shift + size)) + less)
        for shift in (0, 33, 64, 97, 150)
        for mantissa in (1 << 53 | 1, 1 << 53 | 3, (1 << 54) - 1)
        for sign in (1, -1)
        for less in (-1, 0, 1)
    ]
    wide = Window(-2, 11, False)
    check(ops, np.array([[digits_of(number, 11)] for number in numbers]), Layout(wide))
    rows = [[1, 0, *digits_of(number, 11)] for number in numbers]
    check(ops, np.array(rows)[:, None], Layout(Window(), Window(), wide))
    rows = [[1, *digits_of(number, 11), *digits_of(number, 11)] for number in numbers]
    check(ops, np.array(rows)[:, None], Layout(Window(), wide, wide))


@pytest.mark.parametrize("square", [1, -1])
@pytest.mark.parametrize("last", [0, 1])
def test_the_lowest_word_of_a_deviation_decides_a_tie(ops, square, last):
    number = square * ((1 << 53) + 2 * last + 1) << 132
    layout = Layout(Window(), Window(0, 4, False), Window(0, 6, False))
    check(ops, [[[2**31, total, 0, 0, 0, *digits_of(number, 6)]] for total in (0, 1, -1)], layout)


@pytest.mark.parametrize("more", [0, 1, -1])
def test_one_row_has_no_deviation_but_for_what_its_square_has_more(ops, more):
    # Number and square are a float and a pair of floats; the addition to the square lies below the last bits of both.
    number = (1 << 84) + (1 << 32)
    layout = Layout(Window(), Window(-3, 4, False), Window(-6, 8, False))
    cells = [[[1, *digits_of(number, 4), *digits_of(number * number + more, 8)]]]
    moments = check(ops, cells, layout)
    assert moments.fraction.item() == 0.0 if more == 0 else np.sign(moments.fraction.item()) == more


@pytest.mark.parametrize("count", [0, 1, 2**31, 2**32 - 1, 2**32, -1])
def test_digits_at_the_edges_of_words(ops, count):
    layout = Layout(Window(), Window(-3, 4, False), Window(-5, 6, False))
    for top in HARD_DIGITS.tolist():
        totals = [0, 0, 0, top], [2**32 - 1, 0, top, ~top], [0, 0, -(2**62), 2**31], [-1, -1, -1, -(2**31)]
        squares = [0, 0, 0, 0, top, 0], [0, 0, 0, 0, 0, top], [-1, 0, 0, -(2**40), top, 2**26], [0, top, 0, 0, 0, 0]
        check(ops, [[[count, *total, *square]] for total, square in product(totals, squares)], layout)


def test_powers_of_the_base_and_their_negatives(ops):
    layout = Layout(Window(), Window(-3, 8, False), Window(-6, 8, False))
    rows = [
        [3, *digits_of(sign * ((1 << 32 * i) + less), 8), *digits_of(1 << 32 * i, 8)]
        for i in range(7)
        for sign in (1, -1)
        for less in (-1, 0, 1)
    ]
    check(ops, np.array(rows)[:, None], layout)


def test_whole_sums_at_their_edges(ops):
    layout = Layout(Window(), Window(), Window())
    edges = np.array([*SMALL_WHOLES, *LARGE_WHOLES])
    grid = np.array(np.meshgrid(edges, edges, [0, 5, 2**31, -(2**31), 2**63 - 1, 1 - 2**63])).reshape(3, -1)
    check(ops, grid.T[:, None], layout)
    # One window is not whole: its kernel also handles the sums of the others.
    check(ops, grid.T[:, None], Layout(Window(), Window(1, 1, False), Window()))
    check(ops, grid.T[:, None], Layout(Window(), Window(), Window(-1, 1, False)))
    check(ops, grid.T[:, :, None], Layout(), 1)


@pytest.mark.parametrize("total", [Window(), Window(0, 1, False), Window(1, 1, False), Window(-1, 2, False)])
def test_means_without_squares(ops, total):
    random = np.random.default_rng(6)
    layout = Layout(Window(), total)
    check(ops, random.integers(-(2**60), 2**60, (9, 2, 1, layout.width)), layout, 0, False)


def test_counts_of_classes(ops):
    random = np.random.default_rng(5)
    for first in (0, 1, 4):
        check(ops, random.integers(0, 1000, (7, 3, 4, 1)) * (random.random((7, 3, 4, 1)) < 0.5), Layout(), first)


def test_cells_without_rows_have_the_one_nan(ops):
    for layout in (Layout(Window(), Window(), Window()), Layout(Window(-3, 4, False), Window(-3, 9, False), Window())):
        moments = check(ops, np.zeros((3, 1, layout.width)), layout)
        assert (bits(moments.mean) == 0x7FF8000000000000).all()
        assert moments.less_one.tolist() == [[-1.0]] * 3


@pytest.mark.cuda
def test_little_scratch_space_is_shared_by_many_cells(ops, monkeypatch):
    cuda, random = import_module("gpu_encode.cuda.moments"), np.random.default_rng(9)
    accumulators = random.integers(-(2**34), 2**34, (30, 3, 3))
    monkeypatch.setattr(cuda, "NARROW", 2)
    for scratch in (0, 1 << 20):
        monkeypatch.setattr(cuda, "SCRATCH_BYTES", scratch)
        check(ops, accumulators, Layout(Window(-2, 3, False)))


def test_no_cells_and_no_outputs(ops):
    moments = check(ops, np.zeros((0, 2, 1, 3)), Layout(Window(), Window(), Window()))
    assert moments.mean.shape == moments.fraction.shape == (0, 2, 1)
    assert check(ops, np.ones((3, 2, 1)), Layout(), 2).mean.shape == (3, 0)
