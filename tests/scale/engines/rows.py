"""Rows for engines, and the encodings of one table with the same rows."""

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import (
    CountEncoder,
    GroupKFold,
    Holdout,
    KFold,
    LeaveOneOut,
    MEstimate,
    Ordered,
    TargetEncoder,
    TimeFolds,
)

N_ROWS = 203
# In each scheme a row's own values decide which rows it sees.
SCHEMES = {
    "by value": KFold(3, by="id"),
    "by two values, blown up": KFold(3, by=["shop", "day"], blow_up=True),
    "a column of groups": GroupKFold(3, groups="shop"),
    "fold numbers": "fold",
    "times": TimeFolds(3, time="day"),
    "a mask": Holdout(mask="held"),
    "all others": LeaveOneOut(),
}
UNORDERED = [
    KFold(3),
    KFold(3, stratify=True),
    Holdout(),
    [0, 1] * (N_ROWS // 2) + [0],
    Ordered(),
    Ordered(shuffle=False),
]


def marked(names, *daily):
    """Give names as parameters; the tests that every change must pass take some of them."""
    return [pytest.param(name, marks=pytest.mark.daily if name in daily else ()) for name in names]


def rows(n_rows=N_ROWS, seed=3):
    """Make rows; some are all in one shop, and some have no customer."""
    random = np.random.default_rng(seed)
    columns = {
        "id": random.permutation(n_rows),
        "shop": np.char.add("shop-", random.integers(0, 9, n_rows).astype(str)),
        "day": random.integers(0, 20, n_rows),
        "fold": random.integers(0, 4, n_rows),
        "held": random.random(n_rows) < 0.4,
        "customer": pa.array(random.integers(0, 40, n_rows), mask=random.random(n_rows) < 0.1),
        "color": np.array(["red", "green", "blue"])[random.integers(0, 3, n_rows)],
        "weight": random.integers(0, 3, n_rows),
        "price": random.normal(size=n_rows),
        "sold": random.integers(0, 2, n_rows),
    }
    return pa.table(columns)


def encoder(cv, **parameters):
    """Make an encoder."""
    columns = ["customer", "color", ("customer", "color")]
    return TargetEncoder(columns=columns, cv=cv, smooth=MEstimate(2.0), device="cpu", **parameters)


def in_time(**ages):
    """Make an encoder with an order by days."""
    return encoder(Ordered(time="day", burn_in=5, **ages), indicators=["unseen"])


# The last encoder reads the means of all categories at once.
ORDERS = {
    "in time": in_time,
    "by age": lambda: in_time(half_life=3),
    # Rows of the last 64 half-lives are seen.
    "by an age of few times": lambda: in_time(half_life=0.1),
    "in a window": lambda: in_time(window=2),
    "by the means of categories": lambda: in_time().set_params(prior="category_mean"),
}


# Names that engines could take for the syntax of a path or an expression.
NAMES = {
    "id": "the.id",
    "shop": "shop ",
    "customer": "a.b`c",
    "color": "col or",
    "weight": "we`ight",
    "sold": "sold?.(y)",
}


def oddly_named(scheme):
    """Give rows whose columns have such names, and a function that makes an encoder for them."""
    table = rows().rename_columns([NAMES.get(name, name) for name in rows().column_names])

    def make():
        columns = ["a.b`c", "col or", ("a.b`c", "col or")]
        return TargetEncoder(columns=columns, cv=scheme, smooth=MEstimate(2.0), device="cpu")

    return table, make


def counter():
    """Make an encoder that reads no target."""
    return CountEncoder(columns=["color"])


def without(table, *names, by="id"):
    """Give a table without some columns, in order of its rows' numbers; floats as their bits."""
    ordered = table.drop_columns([name for name in names if name in table.column_names]).sort_by(by)
    return {
        name: column.to_numpy().view(np.int64).tolist() if pa.types.is_float64(column.type) else column.to_pylist()
        for name, column in zip(ordered.column_names, ordered.columns, strict=True)
    }


def same(found, expected, *aside, by="id"):
    """Whether an engine's table has the bits of another table, without the columns named in `aside`."""
    found, expected = without(found, *aside, by=by), without(expected, *aside, by=by)
    return found == expected and [*found] == [*expected]
