"""The definitions of the operations, in plain loops over Python's integers and fractions, and rows for tests."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cpu_fallback.types import Layout, Rows, Window

Exact = Fraction
N_CATEGORIES = 4
DIGIT = 1 << 32
SMALLEST, LARGEST = 5e-324, 1e308
REALS = (0.0, -0.0, 1.0, -1.0, 0.1, -1 / 3, SMALLEST, -SMALLEST, 2.5e-310, LARGEST, -LARGEST, 2.0**53 + 2, 1e-17)
WHOLES = (0, 1, -1, 7, 2**31, -(2**32), 2**53 + 1, 2**63 - 1, -(2**63))

# Categories that are numbers: in small ranges, without a range, and at the ends of their types.
NUMBERS = {
    "from zero": np.arange(N_CATEGORIES),
    "a run": np.arange(5, 12),
    "with holes": np.array([-7, -6, 0, 3, 90]),
    "the lowest": -(2**63) + np.array([0, 1, 5]),
    "the highest": 2**63 - 1 - np.array([5, 1, 0]),
    "unsigned": np.array([0, 7], np.uint64) + np.uint64(2**64 - 9),
    "bytes": np.array([-128, 3, 127], np.int8),
    "far apart": np.array([-(2**62), 0, 2**62]),
    "the ends": np.array([-(2**63), -(2**63) + 1, 2**63 - 1]),
    "reals": np.array([-0.5, 0.0, 1e300]),
}


def read_only(array: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any] | None:
    if array is not None:
        array.flags.writeable = False
    return array


def digits(value: Exact, window: Window) -> list[int]:
    """Return the signed digits of a number; the window must be wide enough for it."""
    if window.whole:
        assert value.denominator == 1
        return [int(value)]
    scaled = abs(value) / Fraction(DIGIT) ** window.low
    assert scaled.denominator == 1
    assert scaled < DIGIT**window.width
    return [(-1 if value < 0 else 1) * (scaled.numerator // DIGIT**k % DIGIT) for k in range(window.width)]


def row_digits(rows: Rows, row: int, layout: Layout) -> list[int]:
    return [digit for window, power, _ in layout.measures() for digit in digits(term(rows, row, power), window)]


def frozen(rows: Rows) -> Rows:
    for part in (rows.codes, rows.classes, rows.target, rows.weight):
        read_only(part)
    return replace(rows)


def line(code: int, n_categories: int = N_CATEGORIES) -> int:
    return code if code >= 0 else n_categories + 2 + code


def label(rows: Rows, row: int) -> int:
    return 0 if rows.classes is None else int(rows.classes[row])


def bit_range(values: list[Exact]) -> tuple[int, int]:
    """Return the range [low, high) of the bits that the numbers use."""
    touched = []
    for value in values:
        if value:
            odd, low = abs(value.numerator), 1 - value.denominator.bit_length()
            while odd % 2 == 0:
                odd, low = odd // 2, low + 1
            touched.append((low, low + odd.bit_length()))
    return (min(low for low, _ in touched), max(high for _, high in touched)) if touched else (0, 0)


@dataclass(frozen=True)
class Drawn:
    """Rows, a layout wide enough for them, and the number of their classes."""

    rows: Rows
    layout: Layout
    n_classes: int


def sum_rows(drawn: Drawn, folds: Any, n_folds: int = 1) -> np.ndarray[Any, Any]:
    """Add up the digits of all rows in each cell."""
    rows, layout = drawn.rows, drawn.layout
    sums = np.zeros((N_CATEGORIES + 2, n_folds, drawn.n_classes, layout.width), np.int64)
    for row in range(len(rows)):
        cell = line(int(rows.codes[row])), 0 if folds is None else int(folds[row]), label(rows, row)
        sums[cell] += row_digits(rows, row, layout)
    return sums


def carried(sums: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """Return the sums with carried digits: all digits of a window but the highest are in [0, 2**32)."""
    sums = sums.copy()
    for window, _, columns in layout.measures():
        for column in range(columns.start, columns.start + window.width - 1):
            above = sums[..., column] // DIGIT
            sums[..., column] -= above * DIGIT
            sums[..., column + 1] += above
    return sums


def reals() -> st.SearchStrategy[float]:
    return st.sampled_from(REALS) | st.floats(-1e6, 1e6) | st.floats(-LARGEST, LARGEST)


def column(size: int, entries: st.SearchStrategy[Any], dtype: Any) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    return st.lists(entries, min_size=size, max_size=size).map(lambda values: np.array(values, dtype))


@st.composite
def targets(draw: st.DrawFn, size: int) -> np.ndarray[Any, Any]:
    kind = draw(st.sampled_from(["real", "whole", "small"]))
    if kind == "real":
        return draw(column(size, reals(), np.float64))
    entries = st.sampled_from(WHOLES) | st.integers(-(2**63), 2**63 - 1) if kind == "whole" else st.integers(-9, 9)
    return draw(column(size, entries, np.int64))


@st.composite
def weights(draw: st.DrawFn, size: int) -> np.ndarray[Any, Any] | None:
    kind = draw(st.sampled_from(["none", "real", "whole", "whole reals"]))
    if kind == "none":
        return None
    if kind == "real":
        return draw(column(size, reals().map(abs), np.float64))
    return draw(column(size, st.integers(0, 5), np.int64 if kind == "whole" else np.float64))


def factors(rows: Rows, row: int, power: int) -> list[Exact]:
    """Return the numbers whose product is the term of a row."""
    weight = [] if rows.weight is None else [Fraction(rows.weight[row].item())]
    return weight + ([Fraction(rows.target[row].item())] * power if power else [])


def term(rows: Rows, row: int, power: int) -> Exact:
    """Return weight * target**power of a row, exactly."""
    return prod(factors(rows, row, power), start=Fraction(1))


def terms(rows: Rows, power: int) -> list[Exact]:
    return [term(rows, row, power) for row in range(len(rows))]


def may_be_whole(rows: Rows, power: int) -> bool:
    """Whether one int64 may hold the sums of a power: factors must be whole numbers, not only their product."""
    values = terms(rows, power)
    whole = all(one.denominator == 1 for row, value in enumerate(values) if value for one in factors(rows, row, power))
    return whole and sum(map(abs, values)) < 2**63


def digit_window(rows: Rows, power: int, below: int = 0, above: int = 0) -> Window:
    """Return a window for the term of every row, with some digits to spare."""
    low, high = bit_range(terms(rows, power))
    low = low // 32 - below
    return Window(low, max((high - 1) // 32 - low + 1, 1) + above, whole=False)


def narrowest(rows: Rows, highest: int) -> Drawn:
    """Return rows of one class, with sums in one int64 wherever that is allowed."""
    windows = [Window() if may_be_whole(rows, power) else digit_window(rows, power) for power in range(highest + 1)]
    return Drawn(frozen(rows), Layout(*windows), 1)


# Fractions whose products are whole numbers.
WHOLE_PRODUCTS = [
    narrowest(Rows(np.zeros(1, np.int32), None, np.array([target]), np.array([weight])), 1)
    for weight, target in ((2.0, 1.5), (0.5, 2.0))
]


@st.composite
def windows(draw: st.DrawFn, rows: Rows, power: int) -> Window:
    """Draw a window for the term of every row: one int64 if it can hold their sum."""
    whole = may_be_whole(rows, power)
    if whole and (draw(st.booleans()) or (power == 0 and rows.weight is None)):
        return Window()
    return digit_window(rows, power, draw(st.integers(0, 2)), draw(st.integers(0, 2)))


@st.composite
def drawn(draw: st.DrawFn, largest: int = 12) -> Drawn:
    size = draw(st.integers(0, largest))
    codes = draw(column(size, st.integers(-2, N_CATEGORIES - 1), np.int32))
    weight = draw(weights(size))
    if draw(st.booleans()):
        n_classes = draw(st.integers(1, 3))
        rows = Rows(codes, draw(column(size, st.integers(0, n_classes - 1), np.int32)), None, weight)
        layout = Layout(draw(windows(rows, 0)))
    else:
        n_classes, rows = 1, Rows(codes, None, draw(targets(size)), weight)
        layout = Layout(*(draw(windows(rows, power)) for power in range(draw(st.integers(2, 3)))))
    return Drawn(frozen(rows), layout, n_classes)


def many(size: int, seed: int, kind: str) -> Drawn:
    """Return enough rows for several blocks of a kernel, with a layout wide enough for them."""
    random = np.random.default_rng(seed)
    codes = random.integers(-2, N_CATEGORIES, size).astype(np.int32)
    if kind == "classes":
        return Drawn(frozen(Rows(codes, random.integers(0, 3, size).astype(np.int32))), Layout(), 3)
    if kind == "whole":
        rows = frozen(Rows(codes, None, random.integers(-1000, 1000, size), random.integers(0, 9, size)))
        return Drawn(rows, Layout(Window(), Window(), Window()), 1)
    target = random.standard_normal(size) * 10.0 ** random.integers(-3, 4, size)
    rows = frozen(Rows(codes, None, target, random.random(size) if kind == "weighted" else None))
    count = digit_window(rows, 0, above=1) if kind == "weighted" else Window()
    return Drawn(rows, Layout(count, digit_window(rows, 1, above=1), digit_window(rows, 2, above=1)), 1)


KINDS = ("classes", "whole", "real", "weighted")
