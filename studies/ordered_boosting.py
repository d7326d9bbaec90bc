"""Ordered boosting of CatBoost in plain loops, on some sixty rows: whose predictions change with a row's own target?

    python -m studies.ordered_boosting [--rows 60] [--iterations 5]

Boosting fits each tree to gradients.  In "plain" mode the gradient of a row comes from a model that was fitted to this
row as well.  In "ordered" mode it comes from a model of the rows before it, and encodings see these rows in both
modes.  Rows are random, so their order is a random one.  The study changes the target of one row at a time, and counts
the rows whose own training prediction moves.

The sources are Prokhorenkova et al., "CatBoost: unbiased boosting with categorical features", 2018, section 4, and
algorithm 2 of its appendix: model j knows the first 2 ** j rows, and trees have one split for each level.
Splits are chosen from all rows, so that the study keeps those of the unchanged target: the paper's claim is about
gradients.  Loops take seconds where CatBoost takes milliseconds; use CatBoost for real work.
"""

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np

from gpu_encode import Ordered, TargetEncoder

DEPTH, RATE, REGULARIZATION = 2, 0.5, 1.0
BORDERS = 4
# A column and the border above which a row goes.
Split = tuple[int, float]
Trees = list[list[Split]]


def leaf_of(features: np.ndarray, row: int, splits: Sequence[Split]) -> tuple[bool, ...]:
    """Say for each split whether a row lies above it."""
    return tuple(bool(features[row, column] > border) for column, border in splits)


def step_of(gradients: Sequence[float]) -> float:
    """Give the shrunk mean of gradients; 0 if there are none."""
    return math.fsum(gradients) / (len(gradients) + REGULARIZATION)


def choose_splits(features: np.ndarray, gradients: np.ndarray, rows: Sequence[int]) -> list[Split]:
    """Add, level by level, the first split whose steps have the best cosine with the gradients."""
    borders = np.quantile(features[rows], np.linspace(0, 1, BORDERS + 2)[1:-1], axis=0)
    candidates = [(column, float(border)) for column in range(features.shape[1]) for border in borders[:, column]]

    def score(splits: Sequence[Split]) -> float:
        leaves = {row: leaf_of(features, row, splits) for row in rows}
        inside = {leaf: [gradients[row] for row in rows if leaves[row] == leaf] for leaf in set(leaves.values())}
        steps = np.array([step_of(inside[leaves[row]]) for row in rows])
        length = float(np.linalg.norm(steps))
        return float(steps @ gradients[rows]) / length if length else 0.0

    splits: list[Split] = []
    for _ in range(DEPTH):
        splits.append(max(candidates, key=lambda candidate: score([*splits, candidate])))
    return splits


def add_tree(
    predictions: np.ndarray, known: Sequence[int], features: np.ndarray, splits: Sequence[Split], y: np.ndarray
) -> None:
    """Add a tree with values from the gradients of the known rows to a model's predictions of all rows."""
    gradients, steps = y - predictions, np.empty(len(y))
    for row in range(len(y)):
        leaf = leaf_of(features, row, splits)
        steps[row] = step_of([gradients[other] for other in known if leaf_of(features, other, splits) == leaf])
    predictions += RATE * steps


def boost(
    mode: str, features: np.ndarray, y: np.ndarray, iterations: int, trees: Trees | None = None
) -> tuple[np.ndarray, Trees]:
    """Boost a squared loss; give the training prediction of each row, and the splits.

    Parameters
    ----------
    mode : {"plain", "ordered"}
    features : float64 array (rows, columns)
    y : float64 array (rows,)
    iterations : int
    trees : list of list of Split, optional
        Splits of each tree; None: they are chosen.
    """
    rows = range(len(y))
    known = [rows] if mode == "plain" else [rows[: 2**j] for j in range(math.ceil(math.log2(len(y))))]
    models = [np.zeros(len(y)) for _ in known]
    # The largest model that does not know the row; no model is without the first row.
    model_of = [0 if mode == "plain" or row == 0 else math.floor(math.log2(row)) for row in rows]
    made: Trees = []
    for number in range(iterations):
        predicted = np.array([models[model_of[row]][row] for row in rows])
        splits = choose_splits(features, y - predicted, rows[1:]) if trees is None else trees[number]
        made.append(splits)
        for model, of_model in zip(models, known, strict=True):
            add_tree(model, of_model, features, splits, y)
    return np.array([models[model_of[row]][row] for row in rows]), made


def moved_by_own_target(mode: str, n_rows: int, iterations: int) -> int:
    """Count rows whose training prediction changes if nothing but their own target does, all but the first row."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 8, n_rows), random.integers(0, 3, n_rows)])
    y = random.normal(size=n_rows) + X[:, 1]
    # A prior from all targets would let each row see its own.
    encoder = TargetEncoder(columns=[0], smooth=1.0, prior=0.0, cv=Ordered(shuffle=False), target_type="continuous")
    before, trees = boost(mode, encoder.fit_transform(X, y), y, iterations)
    moved = 0
    for row in range(1, n_rows):
        changed = y.copy()
        changed[row] += 3.0
        after, _ = boost(mode, encoder.fit_transform(X, changed), changed, iterations, trees)
        moved += bool(after[row] != before[row])
    return moved


def main(arguments: list[str] | None = None) -> int:
    """Print the counts of both modes."""
    parser = argparse.ArgumentParser(prog="python -m studies.ordered_boosting", description=__doc__)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--iterations", type=int, default=5)
    given = parser.parse_args(arguments)
    for mode in ("plain", "ordered"):
        moved = moved_by_own_target(mode, given.rows, given.iterations)
        print(f"{mode}: the own target moves the training prediction of {moved} of {given.rows - 1} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
