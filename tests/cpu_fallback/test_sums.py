"""accumulate and extents against sums of fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu_fallback.row_numbers import FoldPattern, fold_numbers
from cpu_fallback.types import Layout, Rows, Window
from tests.cpu_fallback import definitions
from tests.strategies import examples

N_FOLDS = 3


def summed(found, folds):
    """Digits of all rows, added up cell by cell."""
    rows, layout = found.rows, found.layout
    accumulators = {}
    for row in range(len(rows)):
        cell = (
            definitions.line(int(rows.codes[row])),
            0 if folds is None else int(folds[row]),
            definitions.label(rows, row),
        )
        accumulators[cell] = [
            a + b
            for a, b in zip(
                accumulators.get(cell, [0] * layout.width), definitions.row_digits(rows, row, layout), strict=True
            )
        ]
    out = np.zeros((definitions.N_CATEGORIES + 2, N_FOLDS, found.n_classes, layout.width), np.int64)
    for cell, digits in accumulators.items():
        out[cell] = digits
    return out


def check(ops, found, folds, expected_folds):
    accumulators = ops.accumulate(found.rows, definitions.N_CATEGORIES, folds, N_FOLDS, found.n_classes, found.layout)
    assert accumulators.dtype == np.int64
    assert np.array_equal(accumulators, summed(found, expected_folds))


@examples(60)
@given(
    found=definitions.drawn(largest=12), folds=st.none() | definitions.column(12, st.integers(0, N_FOLDS - 1), np.int32)
)
@example(definitions.WHOLE_PRODUCTS[0], None)
@example(definitions.WHOLE_PRODUCTS[1], None)
def test_accumulate_adds_the_digits_of_every_row(ops, found, folds):
    folds = None if folds is None else folds[: len(found.rows)]
    check(ops, found, folds, folds)


@examples(20)
@given(data=st.data())
def test_accumulate_computes_folds_from_row_numbers(ops, data):
    found = data.draw(definitions.drawn())
    order, first = data.draw(st.sampled_from(["random", "interleaved", "contiguous"])), data.draw(st.integers(0, 20))
    pattern = FoldPattern(order, N_FOLDS, seed=9, n_rows=first + len(found.rows), first_row=first)
    check(ops, found, pattern, fold_numbers(pattern, 0, len(found.rows)))


@pytest.mark.parametrize("kind", definitions.KINDS)
def test_accumulate_over_several_blocks(ops, kind):
    found = definitions.many(2500, 1, kind)
    pattern = FoldPattern("random", N_FOLDS, seed=4, first_row=1000)
    check(ops, found, pattern, fold_numbers(pattern, 0, 2500))


@pytest.mark.parametrize("n_tables", [1, 2, 5])
def test_any_number_of_tables_gives_the_same(ops, n_tables, monkeypatch):
    from cpu_fallback.compiled import sums

    monkeypatch.setattr(sums, "tables", lambda _size, _n_rows: n_tables)
    check(ops, definitions.many(300, 2, "real"), None, None)


@pytest.mark.parametrize("kind", definitions.KINDS)
def test_chunks_add_up_to_the_whole(ops, kind):
    found = definitions.many(700, 3, kind)
    pattern = FoldPattern("random", N_FOLDS, seed=4)
    parts = [
        ops.accumulate(
            found.rows.block(start, stop),
            definitions.N_CATEGORIES,
            pattern.at(start),
            N_FOLDS,
            found.n_classes,
            found.layout,
        )
        for start, stop in [(0, 1), (1, 300), (300, 300), (300, 700)]
    ]
    whole = ops.accumulate(found.rows, definitions.N_CATEGORIES, pattern, N_FOLDS, found.n_classes, found.layout)
    assert np.array_equal(sum(parts), whole)


NUMBERS = {
    "from zero": np.arange(definitions.N_CATEGORIES),
    "with holes": np.array([-7, -6, 0, 3, 90]),
    "the lowest": -(2**63) + np.array([0, 1, 5]),
    "the highest": 2**63 - 1 - np.array([0, 1, 5]),
    "unsigned": np.array([0, 7], np.uint64) + np.uint64(2**64 - 9),
    "bytes": np.array([-128, 3, 127], np.int8),
    "far apart": np.array([-(2**63), 0, 2**63 - 1]),
    "reals": np.array([-0.5, 0.0, 1e300]),
}


@pytest.mark.parametrize("kind", definitions.KINDS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_summed_as_their_codes_are(ops, name, kind, monkeypatch):
    from cpu_fallback.compiled import sums

    monkeypatch.setattr(sums, "PLACES_PER_ROW", 100.0)
    found, choice = definitions.many(600, 5, kind), np.random.default_rng(5).choice
    numbers = choice(NUMBERS[name], 600)
    # One that is seldom, and not where a sample looks.
    numbers[np.flatnonzero(numbers == NUMBERS[name][1])[1:]] = NUMBERS[name][0]
    accumulators, distinct = ops.accumulate_numbers(found.rows.with_codes(numbers), found.n_classes, found.layout)
    assert distinct.dtype == numbers.dtype
    assert distinct.tolist() == sorted(set(numbers.tolist()))
    expected = np.zeros((len(distinct) + 2, 1, found.n_classes, found.layout.width), np.int64)
    for row, number in enumerate(numbers.tolist()):
        place = distinct.tolist().index(number), 0, definitions.label(found.rows, row)
        expected[place] += definitions.row_digits(found.rows, row, found.layout)
    assert np.array_equal(accumulators, expected)


def test_no_number_has_no_sums(ops):
    accumulators, distinct = ops.accumulate_numbers(Rows(np.zeros(0, np.int64)), 1, Layout())
    assert accumulators.shape == (2, 1, 1, 1)
    assert len(distinct) == 0


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        (np.arange(1000) % 7, False),
        (np.where(np.arange(1024) == 777, 9999, 0), True),  # in a row that no sample looks at
        (np.arange(1000) % 7 * 1000, True),
        (np.arange(1000) % 7 / 2, True),
    ],
)
def test_numbers_of_a_small_range_are_summed_without_codes(numbers, codes, monkeypatch):
    from cpu_fallback import compiled
    from cpu_fallback.compiled import sums

    numbered = []
    monkeypatch.setattr(sums, "factorize", lambda given: numbered.append(given) or compiled.factorize(given))
    sums.accumulate_numbers(Rows(numbers), 1, Layout())
    assert bool(numbered) == codes


def test_the_smallest_integer_and_a_window_without_room_to_spare(ops):
    rows = Rows(np.zeros(2, np.int32), None, np.array([-(2**63), 2**63 - 1]), None)
    accumulators = ops.accumulate(rows, 1, None, 1, 1, Layout(Window(), Window(0, 2, whole=False)))
    assert accumulators[0, 0, 0].tolist() == [2, 2**32 - 1, -(2**31) + 2**31 - 1]


def test_views_with_strides_are_read_as_they_are(ops):
    codes, target = np.arange(12, dtype=np.int32) % 3, np.linspace(0, 1, 24)
    layout = Layout(Window(), Window(-3, 4, whole=False))
    strided = ops.accumulate(Rows(codes[::2], None, target[::-4]), 3, None, 1, 1, layout)
    copied = ops.accumulate(Rows(codes[::2].copy(), None, target[::-4].copy()), 3, None, 1, 1, layout)
    assert strided.any()
    assert np.array_equal(strided, copied)


def summed_ranges(factors):
    """Places that a product may touch: those of its factors, added up."""
    ranges = [definitions.bit_range([factor]) for factor in factors]
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


@examples(60)
@given(data=st.data())
def test_extents_are_the_binary_places_in_use(ops, data):
    size = data.draw(st.integers(1, 8))
    rows = Rows(
        np.zeros(size, np.int32), None, data.draw(definitions.targets(size)), data.draw(definitions.weights(size))
    )
    powers = (1, 2) if rows.weight is None else (0, 1, 2)
    found = ops.extents(rows.target, rows.weight, powers)
    for power, (low, high) in zip(powers, found, strict=True):
        products = [row for row in range(size) if definitions.term(rows, row, power)]
        weight = [] if rows.weight is None else [[Fraction(one.item())] for one in rows.weight]
        ranges = [
            summed_ranges([*(weight[row] if weight else []), *[Fraction(rows.target[row].item())] * power])
            for row in products
        ]
        assert (low, high) == ((min(a for a, _ in ranges), max(b for _, b in ranges)) if ranges else (0, 0))
        inside = definitions.bit_range([definitions.term(rows, row, power) for row in products])
        assert low <= inside[0] <= inside[1] <= high
