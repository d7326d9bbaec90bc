"""leave_one_out and ordered against loops over integers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu_fallback.types import Carry
from tests.cpu_fallback import definitions
from tests.strategies import examples


def before_each_row(found, ties):
    """What each row's category held before the row, or before the row's tie."""
    rows, layout = found.rows, found.layout
    out, running = np.zeros((len(rows), found.n_classes, layout.width), np.int64), {}
    for row, code in enumerate(rows.codes.tolist()):
        tie = row if ties is None else ties[row]
        sums, at_tie, last = running.get(code, (np.zeros_like(out[0]), None, -1))
        out[row] = at_tie if tie == last else sums
        after = sums.copy()
        after[definitions.label(rows, row)] += definitions.row_digits(rows, row, layout)
        running[code] = after, out[row], tie
    return out


def all_but_each_row(found, accumulators):
    out = np.array([accumulators[definitions.line(code)] for code in found.rows.codes.tolist()]).reshape(
        -1, *accumulators.shape[1:]
    )
    for row in range(len(found.rows)):
        out[row, definitions.label(found.rows, row)] -= definitions.row_digits(found.rows, row, found.layout)
    return out


def chained(ops, found, ties, cuts):
    """Ordered sums of chunks that pass their carry on, and the carry at the end."""
    edges = [0, *sorted(cuts), len(found.rows)]
    carry = Carry.empty(definitions.N_CATEGORIES, found.n_classes, found.layout.width, ties is not None)
    parts = []
    for start, stop in pairwise(edges):
        parts.append(
            ops.ordered(found.rows.block(start, stop), None if ties is None else ties[start:stop], found.layout, carry)
        )
    return np.concatenate(parts), carry


def totals(found):
    accumulators = np.zeros((definitions.N_CATEGORIES + 2, found.n_classes, found.layout.width), np.int64)
    for row in range(len(found.rows)):
        accumulators[definitions.line(int(found.rows.codes[row])), definitions.label(found.rows, row)] += (
            definitions.row_digits(found.rows, row, found.layout)
        )
    return accumulators


@examples(60)
@given(data=st.data())
def test_ordered_sees_the_rows_before_it_whatever_the_chunks(ops, data):
    found = data.draw(definitions.drawn())
    size = len(found.rows)
    ties = data.draw(st.none() | definitions.column(size, st.integers(0, 4), np.int64).map(np.sort))
    cuts = data.draw(st.lists(st.integers(0, size), max_size=4))
    seen, carry = chained(ops, found, ties, cuts)
    assert seen.dtype == np.int64
    assert np.array_equal(seen, before_each_row(found, ties))
    assert np.array_equal(carry.sums, totals(found))


@pytest.mark.parametrize("kind", definitions.KINDS)
@pytest.mark.parametrize("tied", [False, True])
def test_ordered_over_several_blocks(ops, kind, tied):
    found = definitions.many(1500, 5, kind)
    ties = np.arange(1500) // 7 if tied else None
    seen, carry = chained(ops, found, ties, [1, 10, 1200, 1201])
    assert np.array_equal(seen, before_each_row(found, ties))
    assert np.array_equal(carry.sums, totals(found))


@examples(60)
@given(found=definitions.drawn())
@example(definitions.WHOLE_PRODUCTS[0])
@example(definitions.WHOLE_PRODUCTS[1])
def test_leave_one_out_is_the_category_less_the_row(ops, found):
    accumulators = totals(found)
    accumulators.flags.writeable = False
    assert np.array_equal(
        ops.leave_one_out(accumulators, found.rows, found.layout), all_but_each_row(found, accumulators)
    )


@pytest.mark.parametrize("kind", definitions.KINDS)
def test_leave_one_out_over_several_blocks(ops, kind):
    found = definitions.many(2500, 6, kind)
    accumulators = totals(found)
    assert np.array_equal(
        ops.leave_one_out(accumulators, found.rows, found.layout), all_but_each_row(found, accumulators)
    )
