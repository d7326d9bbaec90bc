"""Rows for the examples of this folder, and a comparison of their encodings with those of one table of all rows."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpu_encode import KFold, MEstimate, TargetEncoder

KEYS, TARGET = ["shop", "customer"], "returned"
# The column that identifies a row in any engine.
ORDER = "order_id"


def orders(n_rows: int, seed: int) -> Any:
    """Make rows."""
    random = np.random.default_rng(seed)
    shops = random.integers(0, max(n_rows // 10, 1), n_rows)
    columns = {
        ORDER: random.permutation(n_rows),
        "shop": pa.array(np.char.add("shop-", shops.astype(str)), mask=random.random(n_rows) < 0.01),
        "customer": random.integers(0, max(n_rows // 2, 1), n_rows),
        "price": random.random(n_rows).round(2),
        TARGET: random.integers(0, 2, n_rows).astype(np.int32),
    }
    return pa.table(columns)


def encoder() -> TargetEncoder:
    """Make an encoder whose folds follow from the order number of a row, so that engines may move rows."""
    # With Spark's own seed, its `xxhash64` gives the same folds.
    folds = KFold(5, by=ORDER, random_state=42)
    return TargetEncoder(columns=[*KEYS, ("shop", "customer")], cv=folds, smooth=MEstimate(10), device="cpu")


def compare(encodings: Any, rows: Any, new_encodings: Any, new: Any) -> None:
    """Print whether the encodings, in any order, equal those of one table with the same rows in another order."""
    alone = encoder()
    same = is_same(encodings, alone.fit_transform(rows.drop_columns([TARGET]), rows[TARGET]))
    same_new = is_same(new_encodings, alone.transform(new))
    print(f"the same bits as one table of all rows: training {same}, new rows {same_new}")


def is_same(encodings: Any, others: Any) -> bool:
    """Whether two tables hold the same rows."""
    found, expected = (table.sort_by(ORDER).combine_chunks() for table in (encodings, others))
    return bool(found.equals(expected.cast(found.schema)))
