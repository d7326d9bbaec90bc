"""accumulate and extents, compared with sums of fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu_fallback.row_numbers import FoldPattern, fold_numbers
from cpu_fallback.types import Layout, Rows, SumShape, Window
from tests.cpu_fallback import definitions
from tests.strategies import examples

N_FOLDS = 3


def check(ops, drawn, folds, expected_folds):
    arguments = drawn.rows, SumShape(definitions.N_CATEGORIES, N_FOLDS, drawn.n_classes, drawn.layout), folds
    accumulators = ops.accumulate(*arguments)
    assert accumulators.dtype == np.int64
    expected = definitions.sum_rows(drawn, expected_folds, N_FOLDS)
    assert np.array_equal(*(definitions.carried(sums, drawn.layout) for sums in (accumulators, expected)))
    # Rows are added to sums that are given, in their memory.
    earlier = np.random.default_rng(0).integers(0, 1 << 32, expected.shape)
    given = earlier.copy()
    assert np.shares_memory(ops.accumulate(*arguments, given), given)
    assert np.array_equal(*(definitions.carried(sums, drawn.layout) for sums in (given, expected + earlier)))


@examples(60)
@given(
    drawn=definitions.drawn(largest=12), folds=st.none() | definitions.column(12, st.integers(0, N_FOLDS - 1), np.int32)
)
@example(definitions.WHOLE_PRODUCTS[0], None)
@example(definitions.WHOLE_PRODUCTS[1], None)
def test_accumulate_adds_the_digits_of_every_row(ops, drawn, folds):
    folds = None if folds is None else folds[: len(drawn.rows)]
    check(ops, drawn, folds, folds)


@examples(20)
@given(data=st.data())
def test_accumulate_computes_folds_from_row_numbers(ops, data):
    drawn = data.draw(definitions.drawn())
    order, first = data.draw(st.sampled_from(["random", "interleaved", "contiguous"])), data.draw(st.integers(0, 20))
    pattern = FoldPattern(order, N_FOLDS, seed=9, n_rows=first + len(drawn.rows), first_row=first)
    check(ops, drawn, pattern, fold_numbers(pattern, 0, len(drawn.rows)))


@pytest.mark.parametrize("kind", definitions.KINDS)
def test_accumulate_over_several_blocks(ops, kind):
    drawn = definitions.many(2500, 1, kind)
    pattern = FoldPattern("random", N_FOLDS, seed=4, first_row=1000)
    check(ops, drawn, pattern, fold_numbers(pattern, 0, 2500))


@pytest.mark.parametrize("n_tables", [1, 2, 5])
def test_any_number_of_tables_gives_the_same(ops, n_tables, monkeypatch):
    from cpu_fallback.compiled import sums

    monkeypatch.setattr(sums, "tables", lambda _size, _n_rows: n_tables)
    check(ops, definitions.many(300, 2, "real"), None, None)


@pytest.mark.parametrize("kind", definitions.KINDS)
@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_threads_that_share_a_table_give_the_same(ops, kind, n_threads, is_sorted, monkeypatch):
    from cpu_fallback.compiled import sums

    monkeypatch.setattr(sums, "tables", lambda _size, _n_rows: 1)
    monkeypatch.setattr(sums, "threads", lambda: n_threads)
    monkeypatch.setattr(sums, "LEAST_SHARED", 1)
    pattern = FoldPattern("random", N_FOLDS, seed=4, first_row=1000)
    drawn = definitions.many(2500, 1, kind)
    if is_sorted:
        # Some blocks have no row of a thread's lines.
        drawn = replace(drawn, rows=definitions.frozen(replace(drawn.rows, codes=np.sort(drawn.rows.codes))))
    check(ops, drawn, pattern, fold_numbers(pattern, 0, 2500))


@pytest.mark.parametrize("kind", definitions.KINDS)
@pytest.mark.parametrize("name", definitions.NUMBERS)
def test_numbers_are_summed_as_their_codes_are(ops, name, kind, monkeypatch):
    from cpu_fallback.compiled import sums

    monkeypatch.setattr(sums, "NUMBERS_PER_ROW", 100.0)
    drawn, choice = definitions.many(600, 5, kind), np.random.default_rng(5).choice
    numbers = choice(definitions.NUMBERS[name], 600)
    # A number that is rare, and not in a sampled row.
    numbers[np.flatnonzero(numbers == definitions.NUMBERS[name][1])[1:]] = definitions.NUMBERS[name][0]
    found = ops.accumulate_numbers(drawn.rows.with_codes(numbers), drawn.n_classes, drawn.layout)
    accumulators, distinct, codes = found
    assert codes is None or distinct[codes].tolist() == numbers.tolist()
    assert distinct.dtype == numbers.dtype
    assert distinct.tolist() == sorted(set(numbers.tolist()))
    expected = np.zeros((len(distinct) + 2, 1, drawn.n_classes, drawn.layout.width), np.int64)
    for row, number in enumerate(numbers.tolist()):
        place = distinct.tolist().index(number), 0, definitions.label(drawn.rows, row)
        expected[place] += definitions.row_digits(drawn.rows, row, drawn.layout)
    assert np.array_equal(*(definitions.carried(sums, drawn.layout) for sums in (accumulators, expected)))


def test_no_number_has_no_sums(ops):
    accumulators, distinct, _ = ops.accumulate_numbers(Rows(np.zeros(0, np.int64)), 1, Layout())
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
    accumulators = ops.accumulate(rows, SumShape(1, layout=Layout(Window(), Window(0, 2, whole=False))))
    assert accumulators[0, 0, 0].tolist() == [2, 2**32 - 1, -(2**31) + 2**31 - 1]


def test_views_with_strides_are_read_as_they_are(ops):
    codes, target = np.arange(12, dtype=np.int32) % 3, np.linspace(0, 1, 24)
    layout = Layout(Window(), Window(-3, 4, whole=False))
    strided = ops.accumulate(Rows(codes[::2], None, target[::-4]), SumShape(3, layout=layout))
    copied = ops.accumulate(Rows(codes[::2].copy(), None, target[::-4].copy()), SumShape(3, layout=layout))
    assert strided.any()
    assert np.array_equal(strided, copied)


def summed_ranges(factors):
    """Return the bits that a product may use: the sums of its factors' bits."""
    ranges = [definitions.bit_range([factor]) for factor in factors]
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


@examples(60)
@given(data=st.data())
def test_extents_are_the_binary_places_in_use(ops, data):
    size = data.draw(st.integers(0, 26))
    rows = Rows(
        np.zeros(size, np.int32), None, data.draw(definitions.targets(size)), data.draw(definitions.weights(size))
    )
    powers = (1, 2) if rows.weight is None else (0, 1, 2)
    drawn = ops.extents(rows.target, rows.weight, powers)
    for power, (low, high) in zip(powers, drawn, strict=True):
        products = [row for row in range(size) if definitions.term(rows, row, power)]
        weight = [] if rows.weight is None else [[Fraction(one.item())] for one in rows.weight]
        ranges = [
            summed_ranges([*(weight[row] if weight else []), *[Fraction(rows.target[row].item())] * power])
            for row in products
        ]
        assert (low, high) == ((min(a for a, _ in ranges), max(b for _, b in ranges)) if ranges else (0, 0))
        inside = definitions.bit_range([definitions.term(rows, row, power) for row in products])
        assert low <= inside[0] <= inside[1] <= high


@pytest.mark.parametrize("place", [5, 1500, 17_999])
def test_the_last_bit_of_one_number_among_many_is_found(ops, place):
    """Wherever the number lies: a pass over many numbers looks closely only at those that may have a smaller bit."""
    target = np.random.default_rng(0).integers(1, 1 << 53, 18_000) * 2.0**-50
    target[::7] = 0.0
    target[place - 1 : place + 1] = 2.0**40, 0.0
    low, high = definitions.bit_range([Fraction(number) for number in target.tolist()])
    for last in (2.0**-51, 3 * 2.0**-90, 1.0 + 2.0**-52, 5e-324):
        target[place] = last
        assert ops.extents(target, None, (1,)) == [(min(low, definitions.bit_range([Fraction(last)])[0]), high)]
