"""leave_one_out and ordered against loops over integers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_fallback.types import Carry
from tests.cpu_fallback.definitions import KINDS, N_CATEGORIES, column, drawn, label, line, many, row_digits


def before_each_row(found, ties):
    """What each row's category held before the row, or before the row's tie."""
    rows, width = found.rows, found.layout.width
    out = np.zeros((len(rows), found.n_classes, width), np.int64)
    for row in range(len(rows)):
        for earlier in range(row):
            if rows.codes[earlier] == rows.codes[row] and (ties is None or ties[earlier] < ties[row]):
                out[row, label(rows, earlier)] += row_digits(rows, earlier, found.layout)
    return out


def chained(ops, found, ties, cuts):
    """Ordered sums of chunks that pass their carry on, and the carry at the end."""
    edges = [0, *sorted(cuts), len(found.rows)]
    carry = Carry.empty(N_CATEGORIES, found.n_classes, found.layout.width, ties is not None)
    parts = []
    for start, stop in pairwise(edges):
        parts.append(
            ops.ordered(found.rows.block(start, stop), None if ties is None else ties[start:stop], found.layout, carry)
        )
    return np.concatenate(parts), carry


def totals(found):
    accumulators = np.zeros((N_CATEGORIES + 2, found.n_classes, found.layout.width), np.int64)
    for row in range(len(found.rows)):
        accumulators[line(int(found.rows.codes[row])), label(found.rows, row)] += row_digits(
            found.rows, row, found.layout
        )
    return accumulators


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_ordered_sees_the_rows_before_it_whatever_the_chunks(ops, data):
    found = data.draw(drawn())
    size = len(found.rows)
    ties = data.draw(st.none() | column(size, st.integers(0, 4), np.int64).map(np.sort))
    cuts = data.draw(st.lists(st.integers(0, size), max_size=4))
    seen, carry = chained(ops, found, ties, cuts)
    assert seen.dtype == np.int64
    assert np.array_equal(seen, before_each_row(found, ties))
    assert np.array_equal(carry.sums, totals(found))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [False, True])
def test_ordered_over_several_blocks(ops, kind, tied):
    found = many(1500, 5, kind)
    ties = np.arange(1500) // 7 if tied else None
    seen, carry = chained(ops, found, ties, [1, 10, 1200, 1201])
    running = {}
    for row in range(1500):
        key = int(found.rows.codes[row])
        sums, at_tie, tie = running.get(key, (np.zeros(seen.shape[1:], np.int64), None, -1))
        visible = at_tie if tied and ties[row] == tie else sums
        assert np.array_equal(seen[row], visible)
        after = sums.copy()
        after[label(found.rows, row)] += row_digits(found.rows, row, found.layout)
        running[key] = after, visible, ties[row] if tied else -1
    assert np.array_equal(carry.sums, totals(found))


@settings(max_examples=60, deadline=None)
@given(found=drawn())
def test_leave_one_out_is_the_category_less_the_row(ops, found):
    accumulators = totals(found)
    accumulators.flags.writeable = False
    seen = ops.leave_one_out(accumulators, found.rows, found.layout)
    expected = np.zeros_like(seen)
    for row in range(len(found.rows)):
        expected[row] = accumulators[line(int(found.rows.codes[row]))]
        expected[row, label(found.rows, row)] -= row_digits(found.rows, row, found.layout)
    assert np.array_equal(seen, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_over_several_blocks(ops, kind):
    found = many(2500, 6, kind)
    accumulators = totals(found)
    seen = ops.leave_one_out(accumulators, found.rows, found.layout)
    for row in range(2500):
        own = accumulators[line(int(found.rows.codes[row]))].copy()
        own[label(found.rows, row)] -= row_digits(found.rows, row, found.layout)
        assert np.array_equal(seen[row], own)
