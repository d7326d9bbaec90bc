"""Alternating least squares: with all other factors fixed, the factors of one column solve ridge systems."""

from collections.abc import Sequence

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.methods.factors.cells import Cells, Mode


def solve_in_turn(modes: Sequence[Mode], factors: Sequence[Array], penalties: Sequence[float]) -> list[Array]:
    """Solve for the factors of one column after another."""
    solved = list(factors)
    for mode in modes:
        solved[mode.number] = solve(mode, solved, penalties[mode.number])
    return solved


def solve(mode: Mode, factors: Sequence[Array], penalty: float) -> Array:
    """Give the factors of one column that minimise squared error plus penalty * |u|^2, with all others fixed.

    For a category, u solves (sum w h h' + penalty) u = sum w h z over its rows; h is the product of the other columns'
    factors.  A category without rows has u = 0.
    """
    others = mode.multiply_others(factors)
    weighted = [mode.cells.weigh(product) for product in others]
    rows, n_components = mode.cells.sizes[mode.number], len(others)
    right = np.stack([mode.sum_rows(product * mode.cells.values) for product in weighted], axis=1)
    left: list[list[Array]] = [[] for _ in others]
    for i in range(n_components):
        for j in range(n_components):
            left[i].append(left[j][i] if j < i else mode.sum_rows(weighted[i] * others[j]))
        left[i][i] = left[i][i] + penalty
    matrices = np.stack([entry for line in left for entry in line], axis=1).reshape(rows, n_components, n_components)
    solutions: Array = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    return solutions


def measure(cells: Cells, factors: Sequence[Array], penalties: Sequence[float]) -> float:
    """Give the objective: mean squared error, plus the penalties divided by the number of rows."""
    squares = sum(
        penalty * float((table * table).sum()) for table, penalty in zip(factors, penalties, strict=True) if penalty
    )
    total = float(cells.n_rows) if cells.weight is None else float(cells.weight.sum())
    return cells.mean_of_squares(factors) + squares / total
