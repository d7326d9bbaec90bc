"""leave_one_out and ordered, compared with loops over integers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu_fallback.types import Carry, Layout, Rows
from tests.cpu_fallback import definitions
from tests.strategies import examples


def before_each_row(drawn, ties):
    """Return the sums of each row's category before the row, or before the rows of the same time."""
    rows, layout = drawn.rows, drawn.layout
    out, running = np.zeros((len(rows), drawn.n_classes, layout.width), np.int64), {}
    for row, code in enumerate(rows.codes.tolist()):
        tie = row if ties is None else ties[row]
        sums, at_tie, last = running.get(code, (np.zeros_like(out[0]), None, -1))
        out[row] = at_tie if tie == last else sums
        after = sums.copy()
        after[definitions.label(rows, row)] += definitions.row_digits(rows, row, layout)
        running[code] = after, out[row], tie
    return out


def all_but_each_row(drawn, accumulators):
    out = np.array([accumulators[definitions.line(code)] for code in drawn.rows.codes.tolist()]).reshape(
        -1, *accumulators.shape[1:]
    )
    for row in range(len(drawn.rows)):
        out[row, definitions.label(drawn.rows, row)] -= definitions.row_digits(drawn.rows, row, drawn.layout)
    return out


def chain_chunks(ops, drawn, ties, cuts):
    """Return the ordered sums of chunks that pass their carry on, and the carry at the end."""
    edges = [0, *sorted(cuts), len(drawn.rows)]
    carry = Carry.empty(definitions.N_CATEGORIES, drawn.n_classes, drawn.layout.width, ties is not None)
    parts = [
        ops.ordered(drawn.rows.block(start, stop), None if ties is None else ties[start:stop], drawn.layout, carry)
        for start, stop in pairwise(edges)
    ]
    return np.concatenate(parts), carry


@examples(60)
@given(data=st.data())
def test_ordered_sees_the_rows_before_it_whatever_the_chunks(ops, data):
    drawn = data.draw(definitions.drawn())
    size = len(drawn.rows)
    ties = data.draw(st.none() | definitions.column(size, st.integers(0, 4), np.int64).map(np.sort))
    cuts = data.draw(st.lists(st.integers(0, size), max_size=4))
    seen, carry = chain_chunks(ops, drawn, ties, cuts)
    assert seen.dtype == np.int64
    assert np.array_equal(seen, before_each_row(drawn, ties))
    assert np.array_equal(carry.sums, definitions.sum_rows(drawn, None)[:, 0])


@pytest.mark.parametrize("kind", definitions.KINDS)
@pytest.mark.parametrize("tied", [False, True])
def test_ordered_over_several_blocks(ops, kind, tied):
    drawn = definitions.many(1500, 5, kind)
    ties = np.arange(1500) // 7 if tied else None
    seen, carry = chain_chunks(ops, drawn, ties, [1, 10, 1200, 1201])
    assert np.array_equal(seen, before_each_row(drawn, ties))
    assert np.array_equal(carry.sums, definitions.sum_rows(drawn, None)[:, 0])


@examples(60)
@given(drawn=definitions.drawn(largest=26))
@example(definitions.WHOLE_PRODUCTS[0])
@example(definitions.WHOLE_PRODUCTS[1])
def test_leave_one_out_is_the_category_less_the_row(ops, drawn):
    accumulators = definitions.sum_rows(drawn, None)[:, 0]
    accumulators.flags.writeable = False
    assert np.array_equal(
        ops.leave_one_out(accumulators, drawn.rows, drawn.layout), all_but_each_row(drawn, accumulators)
    )


@pytest.mark.parametrize("kind", definitions.KINDS)
def test_leave_one_out_over_several_blocks(ops, kind):
    drawn = definitions.many(2500, 6, kind)
    accumulators = definitions.sum_rows(drawn, None)[:, 0]
    assert np.array_equal(
        ops.leave_one_out(accumulators, drawn.rows, drawn.layout), all_but_each_row(drawn, accumulators)
    )


def test_rows_without_classes_leave_the_first(ops):
    rows, accumulators = Rows(np.array([0, -1, 1, -2], np.int32)), np.arange(12).reshape(4, 3, 1)
    visible = ops.leave_one_out(accumulators, rows, Layout())
    assert visible[..., 0].tolist() == [[-1, 1, 2], [8, 10, 11], [2, 4, 5], [5, 7, 8]]
