"""How many folds K and how much smoothing m are good: a test of 3 <= K <= 6 and 5 <= m <= 10, which tutorials advise.

    python examples/folds_and_smoothing.py
    python examples/folds_and_smoothing.py --data adult.parquet --target income --positive ">50K" \
        --columns native_country occupation native_country+occupation+education+age

Training encodings are made by K folds or leave-one-out, and smoothed with a prior that counts as m rows.  A linear
model and boosted trees are trained on them and scored on new rows.  Each seed draws other rows, the same for all K and
m.  So the difference between two cells is less noisy than the spread of each cell suggests.
"""

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from gpu_encode import KFold, LeaveOneOut, TargetEncoder, UnseenWarning

FOLDS = (2, 3, 4, 5, 6, 8, 10, 20, "leave-one-out")
WEIGHTS = (0, 1, 2, 5, 10, 20, 50)
LEARNERS = {
    "linear model": lambda: LogisticRegression(max_iter=1000),
    "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0),
}
Rows = tuple[pd.DataFrame, np.ndarray]


def generated(n_rows: int) -> tuple[Rows, list[Any]]:
    """Make orders: shops (eight orders on average, a few have many) differ in returns, customers (two each) do not."""
    random = np.random.default_rng(11)
    n_shops, n_customers = max(n_rows // 8, 1), max(n_rows // 2, 1)
    shop = (random.random(n_rows) ** 2 * n_shops).astype(np.int64)
    customer, price = random.integers(n_customers, size=n_rows), random.normal(size=n_rows)
    odds = random.normal(0, 1.2, n_shops)[shop] + price / 2
    y = (random.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    return (pd.DataFrame({"shop": shop, "customer": customer, "price": price}), y), ["shop", "customer"]


def read(options: argparse.Namespace) -> tuple[Rows, list[Any]]:
    """Read a table of categorical columns; columns joined by + are a joint key."""
    table = pd.read_parquet(options.data) if options.data.endswith("parquet") else pd.read_csv(options.data)
    table = table[table[options.target].notna()].replace("?", None)
    positive = options.positive or str(table[options.target].max())
    keys = [tuple(column.split("+")) if "+" in column else column for column in options.columns]
    names = dict.fromkeys(name for key in keys for name in (key if isinstance(key, tuple) else (key,)))
    return (table[list(names)], (table[options.target].astype(str) == positive).to_numpy(np.int64)), keys


def encode(parts: tuple[Any, ...], keys: list[Any], k: Any, m: float, seed: int) -> tuple[Any, Any]:
    """Encode training rows by K folds or leave-one-out, and new rows; give encodings and numeric columns only."""
    X, y, X_new, _ = parts
    scheme = LeaveOneOut() if k == "leave-one-out" else KFold(k, random_state=seed)
    encoder = TargetEncoder(columns=keys, smooth=float(m), cv=scheme)
    tables = encoder.fit_transform(X, y), encoder.transform(X_new)
    return tuple(table.select_dtypes("number").to_numpy(np.float64) for table in tables)


def is_claimed(k: Any, m: float) -> bool:
    """Whether tutorials advise this number of folds and this smoothing."""
    return k in (3, 4, 5, 6) and 5 <= m <= 10


def compare(data: Rows, keys: list[Any], options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Give for each learner the AUC on new rows (seeds, cells); there is a cell for each K and m."""
    X, y = data
    cells = list(product(options.folds, options.weights))
    scores = {name: np.empty((options.repeats, len(cells))) for name in LEARNERS}
    for seed in range(options.repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        train, new = order[: options.rows], order[options.rows : 2 * options.rows]
        parts = X.iloc[train], y[train], X.iloc[new], y[new]
        for cell, (k, m) in enumerate(cells):
            codes, new_codes = encode(parts, keys, k, m, seed)
            for name, learner in LEARNERS.items():
                chances = learner().fit(codes, y[train]).predict_proba(new_codes)[:, 1]
                scores[name][seed, cell] = roc_auc_score(y[new], chances)
    return scores


def show(name: str, scores: np.ndarray, folds: list[Any], weights: list[float]) -> None:
    """Print the mean of each cell, its 5th and 95th percentile, and the loss of the advised cells beside the best."""
    mean, low, high = scores.mean(axis=0), *np.percentile(scores, [5, 95], axis=0)
    cells = list(product(folds, weights))
    text = [f"{100 * a:.1f} ({100 * b:.1f} to {100 * c:.1f})" for a, b, c in zip(mean, low, high, strict=True)]
    print(f"\n{name}, 100 AUC on new rows, mean and 5th to 95th percentile over {len(scores)} seeds\n")
    print("| K | " + " | ".join(f"m = {m:g}" for m in weights) + " |\n|" + "---|" * (len(weights) + 1))
    for row, k in enumerate(folds):
        print(f"| {k} | " + " | ".join(text[row * len(weights) : (row + 1) * len(weights)]) + " |")
    inside = np.array([is_claimed(*cell) for cell in cells])
    best = int(mean.argmax())
    print("\nbest: K = {}, m = {:g}".format(*cells[best]))
    lost = 100 * (scores[:, [best]] - scores)
    spread = lost.std(axis=0, ddof=min(1, len(scores) - 1)) / np.sqrt(len(scores))
    alike = lost.mean(axis=0) <= 2 * spread
    for words, cells_of in {"3 <= K <= 6 and 5 <= m <= 10": inside, "others": ~inside}.items():
        if not cells_of.any():
            continue
        of_cells = lost.mean(axis=0)[cells_of]
        print(
            f"{words}, beside the best: {of_cells.mean():.2f} lost on average, {of_cells.max():.2f} at most; "
            f"{alike[cells_of].sum()} of {len(of_cells)} cells within two standard errors of it"
        )


def main() -> None:
    """Print a table for each learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="table to read, Parquet or CSV; by default, rows are made")
    parser.add_argument("--target", help="its column of labels")
    parser.add_argument("--positive", help="the label that is predicted; by default the last one")
    parser.add_argument("--columns", nargs="+", help="its columns to encode; a+b is a joint key")
    parser.add_argument("--rows", type=int, default=2000, help="rows to train on; as many new rows are scored")
    parser.add_argument("--repeats", type=int, default=20, help="seeds")
    parser.add_argument("--folds", nargs="+", default=FOLDS, help="numbers of folds, or leave-one-out")
    parser.add_argument("--weights", nargs="+", type=float, default=WEIGHTS, help="weights m of the prior")
    options = parser.parse_args()
    options.folds = [k if k == "leave-one-out" else int(k) for k in options.folds]
    warnings.filterwarnings("ignore", category=UnseenWarning)
    # The warning is expected: one result is that trees read the target from leave-one-out encodings.
    warnings.filterwarnings("ignore", "LeaveOneOut training encodings do not contain")
    data, keys = read(options) if options.data else generated(2 * options.rows)
    for name, scores in compare(data, keys, options).items():
        show(name, scores, options.folds, options.weights)


if __name__ == "__main__":
    main()
