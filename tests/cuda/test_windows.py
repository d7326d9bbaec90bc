"""Sums in windows of 63 bits are exact for all numbers, samples, numbers of blocks and orders of additions."""

from dataclasses import replace
from importlib import import_module
from itertools import product

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import FoldPattern, fold_array
from cpu_fallback.types import Layout, Rows, SumShape, Window
from cpu_fallback.types import digit_window as window_of
from tests.backends import memory
from tests.cpu_fallback.definitions import N_CATEGORIES, Drawn, carried, sum_rows

pytestmark = pytest.mark.cuda

N_FOLDS, N_LINES = 3, N_CATEGORIES + 2
# Enough rows to fill the words of a cell in one block several times.
MANY = 82_418


@pytest.fixture(scope="module")
def sums():
    return import_module("gpu_encode.cuda.sums")


@pytest.fixture(scope="module")
def windows():
    return import_module("gpu_encode.cuda.windows")


@pytest.fixture
def add(sums, windows, monkeypatch):
    """Return `add(drawn, folds, n_folds, groups)`: it adds rows in `groups` groups of blocks, and demands windows."""
    launched, kernels = [], sums.engine()

    def record(name, blocks, threads, *arguments, **others):
        launched.append((name, blocks))
        kernels.run(name, blocks, threads, *arguments, **others)

    def add_rows(drawn, folds=None, n_folds=1, groups=1, blocks=2, threads=kernels.threads, copies=1):
        value = {"i": "Long", "f": "float" if drawn.rows.target.itemsize == 4 else "double"}[
            drawn.rows.target.dtype.kind
        ]
        slots, slot = -(-N_LINES // groups) * n_folds, windows.SLOT_BYTES[value][drawn.layout.square is not None]
        slots += slots % 2
        queues = windows.QUEUED * windows.ROW_BYTES[value] * threads // windows.LANES if groups > 1 else 0
        shape = windows.Shape(groups, slots, copies, slots * slot // 4 | int(copies > 1), queues)
        monkeypatch.setattr(windows, "shape_of", lambda *given: shape)
        monkeypatch.setattr(
            sums, "engine", lambda: replace(kernels, run=record, threads=threads, blocks=2 * blocks * groups)
        )
        codes, target = (memory.to_device(part) for part in (drawn.rows.codes, drawn.rows.target))
        found = sums.accumulate(Rows(codes, None, target), SumShape(N_CATEGORIES, n_folds, 1, drawn.layout), folds)
        assert [name for name, _ in launched] == ["add_in_windows"]
        assert launched.pop()[1] % groups == 0
        return memory.to_host(found)

    return add_rows


def widened(target):
    return target.astype(np.float64) if target.dtype == np.float32 else target


def drawn_of(target, codes, squares):
    """Rows, and the layout that the library gives them."""
    extents = cpu_fallback.extents(widened(target), None, (1, 2))
    return Drawn(Rows(codes, None, target), Layout(Window(), *map(window_of, extents[: 1 + squares])), 1)


def assert_exact(found, drawn, folds=None, n_folds=1):
    """Compare the sums with sums of fractions, and with the definition on arrays."""
    rows = replace(drawn.rows, target=widened(drawn.rows.target))
    numbers = None if folds is None else fold_array(folds, 0, len(rows))
    expected = carried(
        cpu_fallback.accumulate(rows, SumShape(N_CATEGORIES, n_folds, 1, drawn.layout), folds), drawn.layout
    )
    assert np.array_equal(carried(found, drawn.layout), expected)
    if len(rows) < 1000:
        exact = sum_rows(replace(drawn, rows=rows), numbers, n_folds)
        assert np.array_equal(expected, carried(exact, drawn.layout))


def far_apart(size, random):
    return random.standard_normal(size) * 10.0 ** random.choice([-320, -290, 0, 290], size)


def integers(size, random):
    """Return integers: half lie outside of any window; products of the others fill four words and their carries."""
    return random.choice([2**62 - 1, -(2**62) + 1, 2**62, -(2**62), -(2**63), 2**63 - 1, 2**32 - 1, -1, 0], size)


def bits(size, random):
    """Return numbers that carry from word to word, up and down, and cancel."""
    return random.choice([1.0, -1.0, 2.0**32 - 1, 1 - 2.0**32, 2.0**33 - 2, -(2.0**52), 2.0**-9, -(2.0**-9)], size)


NUMBERS = {
    "normal": lambda size, random: random.standard_normal(size),
    "float32": lambda size, random: random.standard_normal(size).astype(np.float32),
    "alternating signs": lambda size, _: np.where(np.arange(size) % 2, 1 / 3, -1 / 3),
    "zeros of both signs": lambda size, _: np.where(np.arange(size) % 2, 0.0, -0.0),
    "one number": lambda size, _: np.full(size, -1.7),
    "bits": bits,
    "far apart": far_apart,
    "the largest": lambda size, random: random.choice([2.0**1023, -(2.0**1023), 1.7976931348623157e308, 1.0], size),
    "the smallest": lambda size, random: random.choice([5e-324, -1e-310, 2.2250738585072014e-308, 3e-308], size),
    "the smallest of float32": lambda size, random: random.choice(
        np.float32([1e-45, -1e-39, 1.1754944e-38, -0.0]), size
    ),
    "float32 far apart": lambda size, random: random.choice(np.float32([1.5, -0.0, 1e-45, -1e-38, 3e38]), size),
    "integers": integers,
    "small integers": lambda size, random: random.integers(-9, 10, size),
}
CODES = {
    "uniform": lambda size, random: random.integers(-2, N_CATEGORIES, size),
    "skewed": lambda size, random: np.minimum(random.zipf(1.5, size) - 3, N_CATEGORIES - 1),
    "one category": lambda size, _: np.full(size, 1),
}


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_sums_are_exact(add, name, groups, squares):
    random = np.random.default_rng(groups)
    # Fewer rows than a tile, and more than two.
    for size, codes in product((701, 9001), CODES.values()):
        drawn = drawn_of(NUMBERS[name](size, random), codes(size, random).astype(np.int32), squares)
        assert_exact(add(drawn, groups=groups), drawn)


@pytest.mark.parametrize("folds", ["given", "random", "interleaved", "contiguous"])
@pytest.mark.parametrize("first", [0, 7, 1023 * N_FOLDS + 2, 2**40 + 1])
@pytest.mark.parametrize("size", [1, 3, 5, 127, 129, 1000, 3 * 1024 * N_FOLDS + 5])
def test_folds(add, size, first, folds):
    random = np.random.default_rng(size)
    given = random.integers(0, N_FOLDS, size).astype(np.int32)
    pattern = FoldPattern(folds, N_FOLDS, seed=3, n_rows=size + first, first_row=first) if folds != "given" else given
    drawn = drawn_of(random.standard_normal(size), CODES["uniform"](size, random).astype(np.int32), True)
    assert_exact(add(drawn, pattern, N_FOLDS, 1 + size % 3), drawn, pattern, N_FOLDS)


@pytest.mark.parametrize("copies", [2, 4, 8])
def test_copies_of_small_tables_are_added_up(add, copies):
    random = np.random.default_rng(copies)
    drawn = drawn_of(random.standard_normal(900), CODES["skewed"](900, random).astype(np.int32), True)
    assert_exact(add(drawn, copies=copies), drawn)


@pytest.mark.parametrize("threads", [64, 640])
@pytest.mark.parametrize("numbers", [[2**62 - 1], [-(2**62)], [2**62 - 1, 1 - 2**62, -1, 1], [1, -1]], ids=str)
def test_words_of_a_cell_hold_all_rows_of_a_block(add, numbers, threads):
    # Each thread adds four rows before it looks.
    target = np.resize(np.array(numbers), MANY)
    drawn = Drawn(
        Rows(np.zeros(MANY, np.int32), None, target),
        Layout(Window(), Window(0, 3, whole=False), Window(0, 5, whole=False)),
        1,
    )
    found = carried(add(drawn, blocks=1, threads=threads), drawn.layout)[0, 0, 0]
    exact = [sum(int(number) ** power for number in target) for power in (0, 1, 2)]
    places = [0, 0, 32, 64, 0, 32, 64, 96, 128]
    held = [int(digit) << place for digit, place in zip(found, places, strict=True)]
    assert [held[0], sum(held[1:4]), sum(held[4:])] == exact


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_halves_of_words_hold_all_floats_of_a_block(add, sign, squares):
    # The largest number and one fill the window from its first bit to its last; two neighbouring cells share a word.
    largest = (2**24 - 1) * 2.0 ** (18 if squares else 28)
    target = np.where(np.arange(MANY) % 64 == 63, 1, sign * largest).astype(np.float32)
    drawn = drawn_of(target, (np.arange(MANY) // 64 % 2).astype(np.int32), squares)
    assert_exact(add(drawn, blocks=1), drawn)
    one_cell = drawn_of(target, np.zeros(MANY, np.int32), squares)
    assert_exact(add(one_cell, blocks=1), one_cell)


@pytest.mark.parametrize("squares", [False, True])
def test_a_sample_that_misleads_costs_no_bit(add, squares):
    # All sampled numbers are tiny; no other number lies in their window.
    size = 1024
    target = np.random.default_rng(1).standard_normal(size) * 1e200
    target[:: size // 64] = 1e-200
    drawn = drawn_of(target, np.arange(size, dtype=np.int32) % N_CATEGORIES, squares)
    assert_exact(add(drawn, blocks=1), drawn)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("rare", [1e-200, 1e-15, 1.0, 3e20, 1e40, -1e300])
def test_a_sample_of_zeros_costs_no_bit(add, rare, squares):
    # One cell has more rows than its words can add up, so that they are emptied on the way.
    target = np.zeros(40_000)
    target[::4_003] = rare * np.random.default_rng(4).standard_normal(10)
    drawn = drawn_of(target, np.full(40_000, -1, np.int32), squares)
    assert_exact(add(drawn, blocks=1), drawn)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_rows_outside_of_the_window_are_kept_and_added(add, share):
    random = np.random.default_rng(2)
    target = np.where(random.random(2000) < share, 1e-30, 1.0) * random.standard_normal(2000)
    drawn = drawn_of(target, CODES["uniform"](2000, random).astype(np.int32), True)
    assert_exact(add(drawn), drawn)


def test_integers_of_more_bits_than_a_window(add):
    for dtype in (np.float64, np.int64):
        target = np.array([-(2**63), 3 * 2**61, -3 * 2**61, 2**62, -(2**62), 2**62 - 2**10], dtype)
        drawn = Drawn(Rows(np.arange(-2, 4, dtype=np.int32), None, target), Layout(Window(), Window()), 1)
        assert_exact(add(drawn), drawn)


def test_whole_sums(add):
    random = np.random.default_rng(3)
    numbers = random.integers(-99, 99, 500)
    floats = np.append(numbers * 2.0 ** random.choice([0, 20], 500), [0, -0.0, 2**24 - 1]).astype(np.float32)
    for target in (numbers, numbers * 1.0, numbers.astype(np.float32), floats):
        rows = Rows(random.integers(-2, N_CATEGORIES, len(target)).astype(np.int32), None, target)
        drawn = Drawn(rows, Layout(Window(), Window(), Window()), 1)
        assert_exact(add(drawn), drawn)
    # 2.0**60 is too large for a window of floats that also holds 1.0; in the second list all numbers are 2.0**60.
    for far in ([2.0**60, -(2.0**60), 3.0, 1.0, -7.0], [2.0**60] * 5):
        rows = Rows(np.array([0, 1, 0, 2, 1], np.int32), None, np.array(far, np.float32))
        drawn = Drawn(rows, Layout(Window(), Window()), 1)
        assert_exact(add(drawn), drawn)


@pytest.mark.parametrize("size", [3, 10, 4097])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_no_categories(sums, dtype, size):
    target, codes = np.arange(size).astype(dtype), (np.arange(size) % 2 - 2).astype(np.int32)
    layout = Layout(Window(), Window(0, 2, whole=False), Window(0, 3, whole=False))
    rows = Rows(memory.to_device(codes), None, memory.to_device(target))
    found = memory.to_host(sums.accumulate(rows, SumShape(0, layout=layout)))
    expected = cpu_fallback.accumulate(Rows(codes, None, widened(target)), SumShape(0, layout=layout))
    assert np.array_equal(carried(found, layout), carried(expected, layout))


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_columns_that_begin_between_vectors(sums, first, dtype):
    random = np.random.default_rng(first)
    target, codes = random.integers(-9, 9, 300).astype(dtype), random.integers(-2, N_CATEGORIES, 300).astype(np.int32)
    layout = Layout(Window(), Window(0, 2, whole=False))
    given = Rows(memory.to_device(codes)[first:], None, memory.to_device(target)[first:])
    drawn = Drawn(Rows(codes[first:], None, target[first:]), layout, 1)
    assert_exact(memory.to_host(sums.accumulate(given, SumShape(N_CATEGORIES, layout=layout))), drawn)


@pytest.mark.parametrize(
    ("n_lines", "in_line", "value", "squares", "shape"),
    [
        (4_098, 1, "double", "0", (1, 4_098, 2)),
        (4_098, 5, "float", "0", (1, 20_490, 1)),
        (4_098, 5, "double", "0", (2, 10_246, 1)),
        (4_098, 5, "float", "1", (3, 6_830, 1)),
        (4_098, 5, "double", "1", (3, 6_830, 1)),
        (99, 1, "double", "1", (1, 100, 8)),
        (7_168, 1, "double", "1", (1, 7_168, 1)),
        (30_000, 1, "double", "1", None),
    ],
)
def test_the_fewest_groups_that_fit(windows, n_lines, in_line, value, squares, shape):
    # Shared memory of a block of an H100 or H200, without the part that its warps keep.
    warps, variant = windows.THREADS // 32, {"VALUE": value, "SQUARES": squares}
    room = 227 * 1024 - windows.BLOCK_BYTES - warps * windows.WARP_BYTES
    found = windows.shape_of(room, n_lines, in_line, warps, variant)
    assert (found and found[:3]) == shape
    if found:
        groups, slots, copies, words, queues = found
        assert 4 * words * copies + queues <= room
        assert 4 * words >= slots * windows.slot_bytes(variant)
        assert words % 2 == 1 or copies == 1
        # Numbers of 64 bits wait behind the words of a group.
        assert words % 2 == 0 or groups == 1 or value == "float"
        assert groups * slots >= n_lines * in_line
        fewer = -(-n_lines // max(groups - 1, 1)) * in_line * windows.slot_bytes(variant)
        assert groups == 1 or fewer + (queues if groups > 2 else 0) > room


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_lines_are_dealt_out_by_products(groups):
    inverse, line = -(-(2**32) // groups), np.r_[0:50_000, 2**22 - 5 : 2**22].astype(np.uint64)
    assert np.array_equal(line * np.uint64(inverse) >> np.uint64(32), line // np.uint64(groups))


def test_rows_with_weights_or_classes_are_added_otherwise(sums, windows):
    codes, target = np.zeros(4, np.int32), np.ones(4)
    digits = Layout(Window(), Window(0, 2, whole=False))
    for rows, layout in [
        (Rows(codes, None, target, target), digits),
        (Rows(codes, codes, None, target), Layout(Window())),
        (Rows(codes, None, target), replace(digits, count=Window(0, 2, whole=False))),
    ]:
        job = sums.job_of(rows, None, SumShape(1, layout=layout), memory.zeros(3 * layout.width, np.int64))
        assert job.variant is None
        assert not windows.add(sums.engine(), job)


def test_every_variant_is_one_that_is_compiled(windows):
    raw = import_module("gpu_encode.cuda.raw")
    layouts = Layout(Window(), Window()), Layout(Window(), Window(), Window())
    for target in (np.zeros(1, np.float32), np.zeros(1), np.zeros(1, np.int64)):
        for folds in (None, np.zeros(1, np.int32), FoldPattern("random", 5), FoldPattern("interleaved", 5)):
            for layout in layouts:
                words, kind = import_module("gpu_encode.cuda.digits").number_words(memory.to_device(target))
                rows = Rows(np.zeros(1, np.int32), None, target)
                assert windows.variant_of(rows, folds, layout, words, kind) in raw.VARIANTS["windows.cu"]
