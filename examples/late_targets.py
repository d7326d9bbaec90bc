"""Orders whose target is not known yet are encoded together with all others, by fold numbers in a column.

    python examples/late_targets.py
    python examples/late_targets.py --rows 2000

Whether an order is returned is known only a month later, so the newest rows have no target.  With
`missing_target="keep"` these rows are encoded from the rows that they see; their categories are known, but no encoding
depends on them.  A splitter of scikit-learn makes the folds, and looks at all rows at once.  If the fold numbers are
written into a column, they work for a table in memory, for files in chunks and for Dask.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold

from gpu_encode import TargetEncoder, encode_dataset

N_FOLDS = 5


def made(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make orders of shops, some of which open late, and the final answer whether each order was returned."""
    random = np.random.default_rng(7)
    n_shops = max(n_rows // 20, 10)
    newest = np.arange(n_rows) / n_rows * n_shops
    shop = (random.random(n_rows) ** 2 * np.maximum(newest, 5)).astype(np.int64)
    orders = pd.DataFrame(
        {
            "shop": [f"shop {number}" for number in shop],
            "customer": random.integers(n_rows // 4, size=n_rows),
            "price": random.normal(size=n_rows).round(2),
        }
    )
    odds = random.normal(0, 1.5, n_shops)[shop] + orders["price"].to_numpy() / 2
    return orders, (random.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(float)


def with_folds(orders: pd.DataFrame, known: np.ndarray) -> pd.DataFrame:
    """Write the folds of a splitter into a column; rows without a target form one more fold, which sees all others.

    No customer is in two folds, and all folds have about the same share of returns.
    """
    fold = np.full(len(orders), N_FOLDS)
    rows = orders["returned"].notna().to_numpy().nonzero()[0]
    splitter = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=0)
    for number, (_, held_out) in enumerate(splitter.split(rows, orders["returned"][known], orders["customer"][known])):
        fold[rows[held_out]] = number
    return orders.assign(fold=fold)


def in_files(orders: pd.DataFrame, encoder: TargetEncoder) -> pd.DataFrame:
    """Encode the same rows from one file into another."""
    with tempfile.TemporaryDirectory() as folder:
        source, destination = Path(folder, "orders.parquet"), Path(folder, "encoded.parquet")
        orders.to_parquet(source)
        encode_dataset(source, destination, encoder, target="returned")
        return pd.read_parquet(destination)


def main() -> None:
    """Compare the encodings with those of known orders alone, and score a model on the orders without a target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000, help="orders; the target of the last tenth is not known")
    n_rows = parser.parse_args().rows
    orders, in_the_end = made(n_rows)
    known = np.arange(n_rows) < 0.9 * n_rows
    orders = with_folds(orders.assign(returned=np.where(known, in_the_end, np.nan)), known)
    encoder = TargetEncoder(columns=["shop"], cv="fold", missing_target="keep")
    X, y = orders.drop(columns="returned"), orders["returned"]
    encoded = encoder.fit_transform(X, y)

    teaching = TargetEncoder(columns=["shop"], cv="fold")
    same = encoded["shop"][known].equals(teaching.fit_transform(X[known], y[known])["shop"])
    late = len(encoder.categories_[0]) - len(teaching.categories_[0])
    print(
        f"{(~known).sum()} orders are not known yet, {late} shops have no others; the rest have the same bits: {same}"
    )
    same = in_files(orders, TargetEncoder(columns=["shop"], cv="fold", missing_target="keep"))["shop"]
    print(f"files have the bits of memory: {same.equals(encoded['shop'])}")
    columns = ["shop", "price"]
    model = HistGradientBoostingClassifier(random_state=0).fit(encoded[columns][known], y[known])
    predicted = model.predict_proba(encoded[columns][~known])[:, 1]
    print(f"orders that are not known yet: test AUC {roc_auc_score(in_the_end[~known], predicted):.3f}")


if __name__ == "__main__":
    main()
