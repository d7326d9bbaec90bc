"""Rows that the examples of this folder encode, and the same encodings by one table of all rows."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpu_encode import KFold, MEstimate, TargetEncoder

KEYS, TARGET = ["shop", "customer"], "returned"


def orders(n_rows: int, seed: int) -> Any:
    """Make rows."""
    random = np.random.default_rng(seed)
    shops = random.integers(0, max(n_rows // 10, 1), n_rows)
    columns = {
        "shop": pa.array(np.char.add("shop-", shops.astype(str)), mask=random.random(n_rows) < 0.01),
        "customer": random.integers(0, max(n_rows // 2, 1), n_rows),
        "price": random.random(n_rows).round(2),
        TARGET: random.integers(0, 2, n_rows).astype(np.int32),
    }
    return pa.table(columns)


def encoder() -> TargetEncoder:
    """Make an encoder."""
    return TargetEncoder(columns=[*KEYS, ("shop", "customer")], cv=KFold(5), smooth=MEstimate(10), device="cpu")


def compare(encodings: Any, rows: Any, new_encodings: Any, new: Any) -> None:
    """Print whether the encodings are those of one table with the same rows."""
    alone = encoder()
    same = encodings.equals(alone.fit_transform(rows.drop_columns([TARGET]), rows[TARGET]).cast(encodings.schema))
    same_new = new_encodings.equals(alone.transform(new).cast(new_encodings.schema))
    print(f"the same bits as one table of all rows: training {same}, new rows {same_new}")
