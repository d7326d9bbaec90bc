"""Stochastic gradient descent on factors of categories, row by row, on one thread, since rows depend on one another."""

from typing import TYPE_CHECKING

import numpy as np

from cpu_fallback.compiled.border import Array, codes_of, freeze, kernel

if TYPE_CHECKING:
    from cpu_fallback.types import Rows


@kernel
def descend_in_order(
    codes: Array,
    order: Array,
    values: Array,
    weight: Array,
    first: Array,
    penalties: Array,
    learning_rate: float,
    n_components: int,
    factors: Array,
) -> None:
    """Change the factors of each row's categories, row after row; `gpu_encode.methods.factors.descent` defines it."""
    n_columns = len(first)
    at, old = np.empty(n_columns, np.uint64), np.empty(n_columns, np.float64)
    for rank in range(len(order)):
        row = np.uint64(order[rank])
        for d in range(n_columns):
            code = np.int64(codes[row * np.uint64(n_columns) + np.uint64(d)])
            at[d] = np.uint64((first[d] + code) * n_components)
        predicted = 0.0
        for s in range(n_components):
            product = 1.0
            for d in range(n_columns):
                product *= factors[at[d] + np.uint64(s)]
            predicted += product
        error, weight_of_row = predicted - values[row], weight[row]
        for s in range(n_components):
            for d in range(n_columns):
                old[d] = factors[at[d] + np.uint64(s)]
            for d in range(n_columns):
                others = 1.0
                for other in range(n_columns):
                    if other != d:
                        others *= old[other]
                gradient = weight_of_row * (error * others + penalties[d] * old[d])
                factors[at[d] + np.uint64(s)] = old[d] - learning_rate * gradient


def descend_rows(
    rows: "Rows",
    order: Array,
    first: Array,
    penalties: Array,
    learning_rate: float,
    factors: Array,
    /,
) -> None:
    """Change factors by the rows, in order; see `gpu_encode.seam.ops.FusedOps`."""
    numbers = (freeze(array, np.float64) for array in (rows.target, rows.weight))  # type: ignore[arg-type]
    descend_in_order(
        codes_of(rows.codes).reshape(-1),
        freeze(order, np.int64),
        *numbers,
        freeze(first, np.int64),
        freeze(penalties, np.float64),
        float(learning_rate),
        factors.shape[1],
        factors.reshape(-1),
    )
