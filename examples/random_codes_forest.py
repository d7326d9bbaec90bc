"""A forest on random codes: categories are numbered at random several times, and probabilities are averaged.

    python examples/random_codes_forest.py
    python examples/random_codes_forest.py --rows 2000 --draws 10 --trees 10

A tree splits numbers at a threshold, so the order of the codes decides which sets of categories the tree can separate.
If codes follow the values, or one random order, this order is the same for all trees.  With
`OrdinalEncoder(order="random", n_draws=B)` each column has B orders; T trees are grown on each order, and their votes
are averaged.  No target is read, so nothing can leak.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from gpu_encode import OrdinalEncoder


class RandomCodesForest:
    """Forests on random codes of the categories of all columns.

    Parameters
    ----------
    draws : int
        Orders of the categories of each column.
    trees : int
        Trees on each order.
    random_state : int
    """

    def __init__(self, draws: int, trees: int, random_state: int = 0) -> None:
        self.draws, self.trees, self.random_state = draws, trees, random_state

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "RandomCodesForest":
        """Draw the codes, and grow a forest for each draw."""
        # A category that is new to a column has no code: it stands before all others.
        self.encoder = OrdinalEncoder(
            order="random",
            n_draws=self.draws,
            random_state=self.random_state,
            handle_unknown="use_encoded_value",
            unknown_value=-1,
        )
        codes = np.asarray(self.encoder.fit_transform(X))
        self.forests = [
            RandomForestClassifier(self.trees, random_state=self.random_state + draw).fit(
                codes[:, draw :: self.draws], y
            )
            for draw in range(self.draws)
        ]
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Average the probabilities of all draws."""
        codes = np.asarray(self.encoder.transform(X))
        chances = [forest.predict_proba(codes[:, draw :: self.draws]) for draw, forest in enumerate(self.forests)]
        return np.mean(chances, axis=0)


def made(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make rows with five columns of categories; each category has a random effect."""
    random = np.random.default_rng(17)
    odds, columns = np.zeros(n_rows), {}
    for number, size in enumerate((6, 12, 25, 50, 100)):
        codes = random.integers(size, size=n_rows)
        odds += random.normal(0, 0.8, size)[codes]
        columns[f"c{number}"] = [f"{code:03d}" for code in codes]
    return pd.DataFrame(columns), (random.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(np.int64)


def main() -> None:
    """Print the scores of a forest on one draw, for each draw, and on all draws together, with equally many trees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4000, help="rows to train on; as many are made to test on")
    parser.add_argument("--draws", type=int, default=20, help="B, orders of the categories")
    parser.add_argument("--trees", type=int, default=10, help="T, trees on each")
    options = parser.parse_args()
    X, y = made(2 * options.rows)
    train, test = slice(options.rows), slice(options.rows, None)

    def score(draws: int, trees: int, seed: int) -> float:
        forest = RandomCodesForest(draws, trees, seed).fit(X[train], y[train])
        return roc_auc_score(y[test], forest.predict_proba(X[test])[:, 1])

    every = options.draws * options.trees
    alone = [score(1, every, 1000 * seed) for seed in range(5)]
    print(f"one draw, {every} trees: test AUC {np.mean(alone):.3f} ({min(alone):.3f} to {max(alone):.3f} in 5 draws)")
    together = score(options.draws, options.trees, 0)
    print(f"{options.draws} draws, {options.trees} trees each: test AUC {together:.3f}")


if __name__ == "__main__":
    main()
