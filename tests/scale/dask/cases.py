"""Rows of all kinds in partitions of Dask, and encoders of all kinds."""

from itertools import pairwise

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed

from gpu_encode import (
    EmpiricalBayes,
    Greedy,
    GroupKFold,
    Holdout,
    KFold,
    LeaveOneOut,
    MEstimate,
    Prefixes,
    Sigmoid,
    TimeFolds,
)
from tests.cases import ordered_schemes

N_ROWS = 211


def rows(n_rows=N_ROWS, seed=0):
    """Give a frame of text, numbers, moments, categories, nulls among them, and everything that a call takes."""
    rng = np.random.default_rng(seed)
    shops = np.array([f"{zone}{number}" for zone in "xyz" for number in range(6)], dtype=object)
    frame = pd.DataFrame(
        {
            "shop": shops[rng.integers(0, 18, n_rows)],
            "city": rng.integers(0, 9, n_rows),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 5, n_rows), "D"),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n_rows)),
            "share": rng.integers(0, 4, n_rows) / 4,
            "price": rng.normal(size=n_rows),
            "buyer": rng.integers(0, 40, n_rows),
            "fold": rng.integers(0, 3, n_rows),
            "when": rng.integers(0, 30, n_rows),
            "sold": rng.integers(0, 2, n_rows),
            "grade": rng.choice(["good", "fair", "poor"], n_rows),
            "amount": rng.normal(size=n_rows) * 10.0 ** rng.integers(-9, 9, n_rows),
            "weight": rng.integers(0, 5, n_rows) / 2,
        },
        index=pd.Index(np.arange(n_rows) * 10, name="order"),
    )
    for name in ("shop", "day", "size", "share"):
        frame.loc[rng.random(n_rows) < 0.05, name] = None
    # First seen in the last row.
    frame.loc[frame.index[-1], ["shop", "city"]] = ["zz", 99]
    return frame


KEYS = ["shop", "city", "day", "size", "share"]
ENCODERS = {
    "folds": {"cv": 5},
    "three folds, contiguous": {"cv": 3, "shuffle": False, "smooth": MEstimate(3.0)},
    "interleaved": {"cv": KFold(4, order="interleaved"), "smooth": None},
    "stratified": {"cv": KFold(3, stratify=True), "smooth": Sigmoid(5.0, 2.0)},
    "blow-up": {"cv": KFold(3, blow_up=True), "dtype": "float32"},
    "greedy": {"cv": Greedy()},
    "groups": {"cv": GroupKFold(4, groups="buyer"), "columns": ["shop", "city"]},
    "by value": {"cv": KFold(4, by=["buyer", "when"]), "columns": ["shop", "city"]},
    "folds of a column": {"cv": "fold", "columns": ["shop"]},
    "time": {"cv": TimeFolds(4, time="when"), "columns": ["shop", "city"]},
    "time, by column": {
        "cv": {"shop": TimeFolds(4, time="when"), "city": TimeFolds(3, time="when")},
        "columns": ["shop", "city"],
    },
    "holdout": {"cv": Holdout(0.4)},
    "leave one out": {"cv": LeaveOneOut(), "smooth": EmpiricalBayes(tau="between")},
    "joint": {"columns": [("shop", "city"), "size"], "indicators": True, "cv": 4},
    "hierarchy": {"columns": ["shop"], "hierarchy": {"shop": Prefixes(1)}, "cv": LeaveOneOut()},
    "policies": {"handle_missing": "nan", "min_count": 3, "prior": "category_mean", "indicators": True},
}
ORDERS = ordered_schemes(time="when")
ENCODERS |= {name: {"cv": cv, "columns": ["shop", ("city", "size")]} for name, cv in ORDERS.items()}
NEEDS_MORE = ["buyer", "fold", "when", "price"]
TARGETS = {"binary": ["sold"], "labels": ["grade"], "quantity": ["amount"], "two quantities": ["amount", "price"]}


def cuts(n_rows, number, seed=1):
    """Give the positions at which rows are cut into partitions, some of them empty."""
    rng = np.random.default_rng(seed)
    return [0, *sorted(rng.integers(0, n_rows + 1, number - 1).tolist()), n_rows]


def pieces(frame, number, seed=1):
    """Cut a frame into pieces; each category column knows only the categories of its piece."""
    places = cuts(len(frame), number, seed)
    parts = [frame.iloc[start:stop].copy() for start, stop in pairwise(places)]
    for part in parts:
        if "size" in part:
            part["size"] = part["size"].cat.remove_unused_categories()
    return parts


def partitioned(frame, number, seed=1):
    """Give a Dask frame of unknown divisions and uneven partitions."""
    parts = [delayed(part) for part in pieces(frame, number, seed)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


def columns_of(parameters):
    """Return the columns for an encoder with these parameters."""
    return [*KEYS, *(NEEDS_MORE if "columns" in parameters else [])]


def one_or_more(frame, names):
    """Give a series of one name, a frame of several."""
    return frame[names[0]] if len(names) == 1 else frame[names]


def assert_same(table, wanted):
    """Demand tables with equal rows, columns, types and bits."""
    pd.testing.assert_frame_equal(table, wanted, check_exact=True, check_freq=False, check_categorical=False)
    for name in wanted.columns[wanted.dtypes.map(lambda dtype: dtype.kind == "f")]:
        assert table[name].to_numpy().tobytes() == wanted[name].to_numpy().tobytes()
