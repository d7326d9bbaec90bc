"""Three different models of the same categorical columns, blended with equal weights of their ranks.

The first is a linear model on logits of cross-fitted m-estimates of columns and pairs.  The second is a forest on
category numbers in several random orders.  The third is a forest on counts of columns and pairs, which include rows
without a target.  The mean of their ranks is better than each of them if each finds something that the others do not.
Here the first finds the effect of each shop, the second the joint effect of colour, size and city, and the third which
shops are in fashion.

python examples/methods/blend_of_three.py
python examples/methods/blend_of_three.py --rows 2000
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpu_encode import CountEncoder, KFold, OrdinalEncoder, TargetEncoder, UnseenWarning, interactions

COLUMNS = ["shop", "city", "colour", "size"]
PAIRS = interactions(COLUMNS, order=2)
DRAWS = 10


def rows(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make orders: shops differ, and shops in fashion sell more; city, colour and size matter only together."""
    random = np.random.default_rng(3)
    n_shops = 300
    popularity = random.lognormal(sigma=1.0, size=n_shops)
    shop = random.choice(n_shops, size=n, p=popularity / popularity.sum())
    city, colour, size = random.integers(4, size=n), random.integers(6, size=n), random.integers(5, size=n)
    odds = (
        random.normal(scale=0.3, size=n_shops)[shop]
        + np.where(np.abs(np.log(popularity) - 0.8) < 0.5, 2.0, 0.0)[shop]
        + random.normal(scale=0.8, size=(4, 6, 5))[city, colour, size]
    )
    y = (odds + random.logistic(size=n) > 0).astype(np.int64)
    codes = zip(COLUMNS, (shop, city, colour, size), strict=True)
    return pd.DataFrame({name: [f"{name}-{code}" for code in values] for name, values in codes}), y


def logits_of_pairs(X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame) -> np.ndarray:
    """A linear model on the logits of cross-fitted m-estimates, since a linear model adds up log-odds."""
    encoder = TargetEncoder(columns=PAIRS, smooth=2.0, scale="logit", cv=KFold(5))
    model = make_pipeline(encoder, StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    return np.asarray(model.fit(X, y).predict_proba(X_new)[:, 1])


def random_codes(X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame) -> np.ndarray:
    """Forests on category numbers in random orders: each draw lets trees split off other groups of categories."""
    scores = []
    for draw in range(DRAWS):
        codes = OrdinalEncoder(order="random", random_state=draw, handle_unknown="use_encoded_value", unknown_value=-1)
        forest = RandomForestClassifier(20, min_samples_leaf=3, random_state=draw)
        scores.append(make_pipeline(codes, forest).fit(X, y).predict_proba(X_new)[:, 1])
    return np.asarray(np.mean(scores, axis=0))


def counts_of_pairs(X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame) -> np.ndarray:
    """A forest on counts, in which rows without a target count, too: counts read no target, so nothing leaks."""
    encoder = CountEncoder("log", columns=PAIRS).fit(pd.concat([X, X_new]))
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
    return np.asarray(forest.fit(encoder.transform(X), y).predict_proba(encoder.transform(X_new))[:, 1])


READERS = {
    "logits of pairs": logits_of_pairs,
    "random codes": random_codes,
    "counts of pairs": counts_of_pairs,
}


def main() -> None:
    """Score each model and the blend on new rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8_000, help="rows to train on; as many are made to test on")
    n = parser.parse_args().rows
    table, y = rows(2 * n)
    X, X_new = table.iloc[:n].reset_index(drop=True), table.iloc[n:].reset_index(drop=True)
    ranks = []
    for name, read in READERS.items():
        with warnings.catch_warnings():
            # Many pairs in new rows were not in any training row.
            warnings.simplefilter("ignore", UnseenWarning)
            scores = read(X, y[:n], X_new)
        ranks.append(rankdata(scores))
        print(f"{name}: test AUC {roc_auc_score(y[n:], scores):.4f}")
    print(f"equal ranks: test AUC {roc_auc_score(y[n:], np.mean(ranks, axis=0)):.4f}")


if __name__ == "__main__":
    main()
