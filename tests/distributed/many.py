"""Many text categories in partitions that workers make, for a trial of memory."""

import hashlib

import dask.dataframe as dd
import numpy as np
import pandas as pd

META = pd.DataFrame(
    {
        "visit_id": np.zeros(0, np.int64),
        "visitor": pd.array([], dtype="string[pyarrow]"),
        "bought": np.zeros(0, np.int64),
    }
)


def visits(number, n_rows, n_categories):
    """Make the rows of a partition: a visitor of forty characters in each."""
    random = np.random.default_rng(number)
    who = random.integers(0, n_categories, n_rows)
    names = pd.array([hashlib.sha1(b"%d" % one).hexdigest() for one in who], dtype="string[pyarrow]")
    return pd.DataFrame(
        {"visit_id": np.arange(number * n_rows, (number + 1) * n_rows), "visitor": names, "bought": who * 7 % 11 % 2}
    )


def lazy_visits(n_partitions, n_rows, n_categories):
    """Give a Dask frame of visits."""
    return dd.from_map(visits, range(n_partitions), meta=META, n_rows=n_rows, n_categories=n_categories)
