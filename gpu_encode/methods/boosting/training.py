"""Boosting, step by step, in the three modes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from gpu_encode.methods.boosting import leaf_values
from gpu_encode.methods.boosting.models import Loss, Models
from gpu_encode.methods.boosting.trees import Gradients, Tree, find_leaves, grow


@dataclass(frozen=True)
class Settings:
    """Parameters of boosting, as in `OrderedBoostingRegressor`."""

    mode: str
    iterations: int
    depth: int
    learning_rate: float
    l2: float
    subsample: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Training rows in several orders.

    Parameters
    ----------
    y : float64 array (rows,)
    loss : Loss
    orders : list of int64 array (rows,)
        The row of each rank; the first order is for leaf values.
    features : list of float64 array (rows, columns)
        For each order, with categories encoded from the rows before.
    borders : list of float64 array
    """

    y: Floats
    loss: Loss
    orders: list[NDArray[np.int64]]
    features: list[Floats]
    borders: list[Floats]


def train(problem: Problem, settings: Settings, random: np.random.Generator) -> tuple[list[Tree], Floats]:
    """Boost; give the trees, and for each training row the prediction from which its gradients are computed."""
    return (train_exactly if settings.mode == "exact" else train_together)(problem, settings, random)


def train_together(problem: Problem, settings: Settings, random: np.random.Generator) -> tuple[list[Tree], Floats]:
    """Boost the models of all orders with the same splits, which one order, drawn for each tree, chooses."""
    make = Models.plain if settings.mode == "plain" else Models.ordered
    # The first order's only model predicts new rows.
    models = [Models.plain(problem.orders[0]), *map(make, problem.orders[1:])]
    trees = []
    for _ in range(settings.iterations):
        number = int(random.integers(1, len(models)))
        gradients = [each.gradients(problem.y, problem.loss) for each in models]
        chosen = gradients[number].of_rows(draw_rows(len(problem.y), settings.subsample, random))
        splits = grow(problem.features[number], problem.borders, chosen, settings.depth, settings.l2)
        added = [
            each.advance(of_models, features, splits, settings.learning_rate, settings.l2)
            for each, of_models, features in zip(models, gradients, problem.features, strict=True)
        ]
        trees.append(Tree(splits, added[0][0]))
    return trees, models[1].predict_rows(len(problem.y))


def train_exactly(problem: Problem, settings: Settings, random: np.random.Generator) -> tuple[list[Tree], Floats]:
    """Boost one model for each number of first rows, each with trees of its own; the rows before a row predict it.

    All trees are fitted to the same gradients: that of a row comes from the model of the rows before it.
    """
    order = problem.orders[0]
    y, features, n = problem.y[order], problem.features[0][order], len(order)
    predictions, trees = np.zeros(n), []
    for _ in range(settings.iterations):
        gradients = problem.loss(y, predictions)
        chosen = draw_rows(n, settings.subsample, random)[order]
        grown = [
            fit_tree(features[:size], gradients[:size], chosen[:size], problem.borders, settings)
            for size in range(1, n + 1)
        ]
        for rank in range(1, n):
            predictions[rank] += grown[rank - 1].predict(features[rank : rank + 1])[0]
        trees.append(grown[-1])
    of_rows = np.zeros(n)
    of_rows[order] = predictions
    return trees, of_rows


def fit_tree(
    features: Floats, gradients: Floats, chosen: NDArray[np.bool_], borders: list[Floats], settings: Settings
) -> Tree:
    """Fit a tree to gradients: its splits to the chosen rows, its values to all rows."""
    n = len(gradients)
    every = Gradients(np.arange(n), gradients, np.zeros(n, np.int32), np.ones(n, bool), False)
    splits = grow(features, borders, every.of_rows(chosen), settings.depth, settings.l2)
    values = leaf_values.of_all(find_leaves(features, splits), gradients, 2 ** len(splits), settings.l2)
    return Tree(splits, settings.learning_rate * values)


def draw_rows(n_rows: int, share: float, random: np.random.Generator) -> NDArray[np.bool_]:
    """Choose a share of the rows at random, at least one row."""
    chosen = np.zeros(n_rows, bool)
    chosen[random.permutation(n_rows)[: max(1, round(share * n_rows))]] = True
    return chosen
