"""Gradient descent on the squared error of factors: row by row, or for all rows at once."""

from collections.abc import Sequence

import numpy as np

from cpu_fallback.row_numbers import Permutation
from cpu_fallback.types import Array, Rows
from gpu_encode.methods.factors.cells import Cells, Mode
from gpu_encode.seam.ops import Ops


def descend_rows(
    cells: Cells,
    factors: Sequence[Array],
    penalties: Sequence[float],
    learning_rate: float,
    order: Permutation,
    backend: Ops,
) -> list[Array]:
    """Take a step for every row, in a given order; the rows are on the host.

    A step changes all factors of the row: u(r) by ``-learning_rate * w * (e * h(r) + penalty * u(r))``.  Here e is the
    prediction minus the value, h(r) the product of the other columns' factors, and w the row's weight.
    """
    rows = backend.rows_at(order, 0, cells.n_rows)
    ends = np.cumsum([len(table) for table in factors])
    lines = np.concatenate(factors)
    # Without compiled kernels, Python loops give the same bits.
    descend = getattr(backend.fused, "descend_rows", descend_by_loops)
    weight = np.ones(cells.n_rows) if cells.weight is None else cells.weight
    given = Rows(np.stack(cells.codes, axis=1), None, cells.values, weight)
    first = np.concatenate([[0], ends[:-1]])
    descend(given, rows, first, np.asarray(penalties, np.float64), learning_rate, lines)
    return np.split(lines, ends[:-1])


def descend_by_loops(
    rows: Rows,
    order: Array,
    first: Array,
    penalties: Array,
    learning_rate: float,
    factors: Array,
) -> None:
    """Do the same as `FusedOps.descend_rows`, with the same bits, in Python floats."""
    assert rows.target is not None
    assert rows.weight is not None
    lines, targets, weights = factors.tolist(), rows.target.tolist(), rows.weight.tolist()
    numbers, steps, columns = (rows.codes + first).tolist(), penalties.tolist(), range(len(first))
    for row in order.tolist():
        held = [lines[number] for number in numbers[row]]
        predicted = 0.0
        for component in range(factors.shape[1]):
            product = 1.0
            for d in columns:
                product *= held[d][component]
            predicted += product
        error, weight_of_row = predicted - targets[row], weights[row]
        for component in range(factors.shape[1]):
            old = [line[component] for line in held]
            for d in columns:
                others = 1.0
                for other in columns:
                    if other != d:
                        others *= old[other]
                gradient = weight_of_row * (error * others + steps[d] * old[d])
                held[d][component] = old[d] - learning_rate * gradient
    factors[...] = lines


def descend_together(
    modes: Sequence[Mode], factors: Sequence[Array], penalties: Sequence[float], learning_rate: float
) -> list[Array]:
    """Take one step that is the sum of the steps of `descend_rows` for all rows, each from the present factors."""
    changed = []
    for mode, table, penalty in zip(modes, factors, penalties, strict=True):
        cells, others = mode.cells, mode.multiply_others(factors)
        codes = cells.codes[mode.number]
        predicted = others[0] * table[:, 0][codes]
        for component, product in enumerate(others[1:], 1):
            predicted = predicted + product * table[:, component][codes]
        error = cells.weigh(predicted - cells.values)
        sums = np.stack([mode.sum_rows(error * product) for product in others], axis=1)
        gradient = sums + penalty * mode.sum_weights()[:, None] * table
        changed.append(table - learning_rate * gradient)
    return changed
