"""Moments on the GPU have the bits of the compiled backend, and are the numbers of NumPy's."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback import compiled
from cpu_fallback.types import Layout, Window

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

MASK = 2**32 - 1
HARD_DIGITS = np.array([0, 0, 0, 1, -1, MASK, -MASK, 2**31, 2**32, -(2**32), 2**53, 2**62, 2**63 - 1, -(2**63)])
SMALL_WHOLES = (0, 1, -1, 2, 3, 2**31 - 1, 2**31, -(2**31), 2**32 + 1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 3)
LARGE_WHOLES = (2**62 + 1, 2**63 - 1, 2**63 - 513, 2**63 - 512, -(2**63), -(2**63) + 511, -(2**63) + 513)


@pytest.fixture
def cuda():
    return import_module("gpu_encode.cuda.moments")


def bits(array):
    return np.ascontiguousarray(array).view(np.int64)


def normal(found):
    """Mantissa and exponent of fraction * 2**exponent, however the power was shared out between them."""
    mantissa, exponent = np.frexp(found.fraction)
    return mantissa, np.where(mantissa == 0, 0, exponent + found.exponent)


def check(ops, accumulators, layout, first=0, deviations=True):
    accumulators = np.ascontiguousarray(accumulators, np.int64)
    given = accumulators.copy()
    found = ops.moments(accumulators, layout, first, deviations)
    assert (accumulators == given).all()
    expected = compiled.moments(accumulators, layout, first, deviations)
    for name, one, other in zip(found._fields, found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        wrong = np.argwhere(bits(one) != bits(other))
        assert not len(wrong), (name, wrong[0], one[tuple(wrong[0])], other[tuple(wrong[0])])
    defined = cpu_fallback.moments(accumulators, layout, first, deviations)
    for name in ("n", "mean", "less_one"):
        assert (bits(getattr(found, name)) == bits(getattr(defined, name))).all(), name
    for one, other in zip(normal(found), normal(defined), strict=True):
        assert (one == other).all()
    return found


def window(random, widest, lows=(-20, 12)):
    if random.random() < 0.3:
        return Window()
    return Window(int(random.integers(*lows)), int(random.integers(1, widest + 1)), False)


def drawn(random, widest):
    """Draw a layout, an output to begin with, and cells."""
    n_classes = int(random.integers(1, 4))
    if random.random() < 0.4:
        layout = Layout(window(random, widest))
        first = int(random.integers(0, 2)) if n_classes > 1 else 0
    else:
        n_classes, first = 1, 0
        layout = Layout(*(window(random, widest) for _ in range(3)))
    shape = (int(random.integers(1, 6)), n_classes, layout.width)
    plain = random.integers(-(2 ** int(random.integers(1, 63))), 2**40, shape)
    accumulators = np.where(random.random(shape) < 0.5, random.choice(HARD_DIGITS, shape), plain)
    return layout, first, accumulators * (random.random(shape) < random.choice([0.2, 0.6, 1.0]))


@pytest.mark.parametrize("seed", range(12))
def test_windows_that_stay_with_the_thread(ops, seed):
    random = np.random.default_rng(seed)
    for _ in range(25):
        layout, first, accumulators = drawn(random, 8)
        check(ops, accumulators, layout, first)


@pytest.mark.parametrize("seed", range(4))
def test_windows_in_scratch_space(ops, seed):
    random = np.random.default_rng(100 + seed)
    for _ in range(8):
        layout, first, accumulators = drawn(random, 20)
        check(ops, accumulators, layout, first)


def test_the_widest_sums(ops):
    """Weights and targets of every magnitude that float64 has."""
    layout = Layout(Window(-34, 67, False), Window(-68, 133, False), Window(-101, 199, False))
    random = np.random.default_rng(0)
    accumulators = random.integers(-(2**40), 2**40, (2, 1, layout.width))
    accumulators[:, :, 0] = 0
    check(ops, accumulators, layout)


# Far below and above what float64 holds, and every step across its edges.
@pytest.mark.parametrize("low", [-200, -100, -37, -36, -35, -34, -33, -32, -31, 29, 30, 31, 32, 33, 100, 200])
def test_means_that_vanish_overflow_or_lose_bits(ops, low):
    random = np.random.default_rng(abs(low))
    layout = Layout(Window(), Window(low, 3, False), Window(2 * low, 4, False))
    accumulators = random.integers(-(2**40), 2**40, (8, 1, layout.width))
    # Digits like these lie half-way between neighbours once divided by a power of two.
    accumulators[2:, :, 0] = [[1], [2], [3], [-4], [8], [0]]
    accumulators[4:, :, 1:4] = [[MASK, 1, 0]], [[1 << 31, 0, 0]], [[3 << 30, 1, 0]], [[1, 1 << 31, 0]]
    check(ops, accumulators, layout)
    # As far as a quotient of digits can be from one.
    accumulators[:, :, 0] = 2**62 + 1
    check(ops, accumulators, layout)


def test_means_below_the_normal_numbers_are_rounded_once(ops):
    """2**-1075 and a little: half-way to the smallest number once the little is lost."""
    layout = Layout(Window(), Window(-34, 3, False))
    accumulators = [[[2**52, little, 0, 2]] for little in (0, 2**15, -(2**15))]
    assert check(ops, accumulators, layout, 0, False).mean.tolist() == [[0.0], [5e-324], [0.0]]


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
    """Mantissas of 53 bits and one more, at every distance from the ends of digits, and less or more far below."""
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
    # One window is not whole: its kernel takes the others' sums all the same.
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
        found = check(ops, np.zeros((3, 1, layout.width)), layout)
        assert (bits(found.mean) == 0x7FF8000000000000).all()
        assert found.less_one.tolist() == [[-1.0]] * 3


@pytest.mark.parametrize("width", [1, 8, 9])
@pytest.mark.parametrize("deviations", [False, True])
def test_more_cells_than_threads(ops, width, deviations):
    random = np.random.default_rng(width)
    layout = Layout(Window(), Window(-1, width, False), Window(-2, width, False))
    accumulators = random.integers(-(2**34), 2**34, (5, 7, 1, layout.width))
    check(ops, accumulators, layout, 0, deviations)


def test_little_scratch_space_is_shared_by_many_cells(ops, cuda, monkeypatch):
    random = np.random.default_rng(9)
    layout = Layout(Window(-2, 3, False))
    accumulators = random.integers(-(2**34), 2**34, (30, 3, 3))
    narrow = check(ops, accumulators, layout)
    monkeypatch.setattr(cuda, "NARROW", 2)
    for scratch in (0, 1 << 20):
        monkeypatch.setattr(cuda, "SCRATCH_BYTES", scratch)
        wide = check(ops, accumulators, layout)
        assert (bits(wide.fraction) == bits(narrow.fraction)).all()


def test_no_cells_and_no_outputs(ops):
    found = check(ops, np.zeros((0, 2, 1, 3)), Layout(Window(), Window(), Window()))
    assert found.mean.shape == (0, 2, 1)
    assert check(ops, np.ones((3, 2, 1)), Layout(), 2).mean.shape == (3, 0)
