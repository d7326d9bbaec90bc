"""The library under test, called as users call it; only this file knows the library's names."""

import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume
from hypothesis import strategies as st

import gpu_encode
from gpu_encode.seam import ops
from tests import naive
from tests.bits import assert_same_bits
from tests.cases import SMOOTHINGS, schemes, some
from tests.strategies import Drawn, drawn_rows

BACKENDS = tuple(os.environ.get("LAW_BACKENDS", "numpy,compiled").split(","))
SIZES = (4, 7, 16, 23)

# The definition of each smoothing.
DEFINITIONS = {
    "none": naive.unsmoothed,
    "auto": naive.empirical_bayes_total,
    "number": naive.m_estimate(2.5),
    "m-estimate": naive.m_estimate(0.3),
    "sigmoid": naive.sigmoid(3.0, 1.5),
    "between": naive.empirical_bayes_between,
    "anova": naive.empirical_bayes_anova,
    "anova-pooled": naive.empirical_bayes_pooled,
    "total-pooled": naive.empirical_bayes_total_pooled,
    "james-stein": naive.james_stein_pooled,
    "james-stein-independent": naive.james_stein_independent,
    "partial-pooling": naive.partial_pooling,
}
SCHEMES = some(
    schemes(groups="group", time="time"),
    *("greedy", "number", "k-fold", "contiguous", "interleaved", "groups", "time-folds", "holdout", "leave-one-out"),
    *("ordered", "ordered-time"),
) | {"time-folds-no-gap": gpu_encode.TimeFolds(3, time="time")}


def key_frame(keys: Sequence[Any]) -> pd.DataFrame:
    """Return a frame of keys, with a group and a time that depend only on the row number."""
    row = np.arange(len(keys))
    return pd.DataFrame({"key": np.asarray(keys, dtype=object), "group": row * 5 % 4, "time": row * 7 % 6})


def sized_rows(kind: str, **choices: Any) -> st.SearchStrategy[Drawn]:
    """Draw rows of one of a few sizes, since who sees whom is computed once per size."""
    return st.sampled_from(SIZES).flatmap(lambda size: drawn_rows(kind, size, **choices))


def encoder(scheme: Any, smooth: Any, kind: str, **choices: Any) -> Any:
    return gpu_encode.TargetEncoder(cv=scheme, smooth=smooth, target_type=kind, **choices)


def fit_transform(
    frame: Any, target: Any, weight: Any, scheme: Any, smooth: Any, kind: str, backend: str = "numpy", **choices: Any
) -> np.ndarray[Any, Any]:
    """Return the training encodings as a matrix."""
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        encodings = encoder(scheme, smooth, kind, **choices).fit_transform(frame, target, sample_weight=weight)
    return np.asarray(encodings, dtype=np.float64)


def training_encodings(drawn: Drawn, scheme: Any, smooth: Any, backend: str = "numpy", **choices: Any) -> Any:
    """Return the training encodings of only the key column, one matrix column per class."""
    choices = {"columns": ["key"]} | choices
    frame = key_frame(drawn.keys)
    encodings = fit_transform(frame, drawn.target, drawn.weight, scheme, smooth, drawn.kind, backend, **choices)
    # The group and time columns are passed through, after the encoded ones.
    return encodings[:, : encodings.shape[1] - 2]


def new_row_encodings(
    drawn: Drawn, keys: Sequence[Any], scheme: Any, smooth: Any, backend: str = "numpy", **choices: Any
) -> Any:
    """Fit and return the encodings that new rows with these keys get."""
    choices = {"columns": ["key"]} | choices
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = encoder(scheme, smooth, drawn.kind, **choices)
        fitted.fit(key_frame(drawn.keys), drawn.target, sample_weight=drawn.weight)
        encodings = np.asarray(fitted.transform(key_frame(keys)), dtype=np.float64)
    return encodings[:, : encodings.shape[1] - 2]


def problems(drawn: Drawn, **choices: Any) -> list[naive.Problem]:
    """Return the drawn rows as exact problems, one per column of encodings."""
    paths = choices.pop("paths", [(key,) for key in drawn.keys])
    weights = [1] * drawn.size if drawn.weight is None else [naive.exact(value) for value in drawn.weight]
    if drawn.kind == "continuous":
        columns = [[naive.exact(value) for value in drawn.target]]
    else:
        classes = [1] if drawn.kind == "binary" else [0, 1, 2]
        columns = [[int(label == one) for label in drawn.target] for one in classes]
    return [naive.Problem(paths, column, weights, **choices) for column in columns]


@cache
def sees(scheme: str, size: int) -> Any:
    """Return a matrix: row i sees row j if its encoding rises when only row j's target is raised to 1."""
    frame = key_frame(["a"] * size)
    encodings = fit_transform(frame, np.eye(size), None, SCHEMES[scheme], None, "continuous", columns=["key"])
    return encodings[:, :size] > 0


@cache
def new_row_sees(scheme: str, size: int) -> Any:
    """Return the training rows that new rows see."""
    drawn = Drawn(np.array(["a"] * size, dtype=object), np.eye(size), None, "continuous")
    return new_row_encodings(drawn, ["a"], SCHEMES[scheme], None)[0] > 0


@cache
def visibility(scheme: str, size: int) -> tuple[tuple[int, ...], ...]:
    """List the rows that each row sees."""
    return tuple(tuple(np.flatnonzero(row).tolist()) for row in sees(scheme, size))


def order_of(seen: np.ndarray[Any, Any]) -> list[int]:
    """Return an order from the rows that each row sees: position p sees p rows, but the first row sees all others.

    The first row is the row that sees all others, and that all others see.
    """
    size = len(seen)
    looks, looked_at = seen.sum(axis=1), seen.sum(axis=0)
    first = int(np.flatnonzero((looks == size - 1) & (looked_at == size - 1))[0])
    return [first, *sorted((row for row in range(size) if row != first), key=lambda row: looks[row])]


def random_order(scheme: str, size: int) -> list[int]:
    """Find the order behind an ordered scheme."""
    return order_of(sees(scheme, size))


def expected_encodings(scheme: str, drawn: Drawn, **choices: Any) -> np.ndarray[Any, Any]:
    """Return the training encodings from the definition."""
    stated = problems(drawn, **choices)
    if scheme == "ordered":
        columns = [naive.permuted_codes(problem, random_order(scheme, drawn.size)) for problem in stated]
    elif scheme == "ordered-time":
        times = key_frame(drawn.keys)["time"].tolist()
        columns = [naive.timed_codes(problem, times) for problem in stated]
    else:
        columns = [problem.codes(visibility(scheme, drawn.size)) for problem in stated]
    return np.array(columns).T


def check_encodings(
    expected: Any, frame: pd.DataFrame, drawn: Drawn, scheme: Any, smoothing: str, **choices: Any
) -> None:
    """Demand the expected encodings in the first columns, from every backend and bit by bit."""
    expected = np.asarray(expected).reshape(drawn.size, -1)
    smooth = SMOOTHINGS[smoothing]
    for backend in BACKENDS:
        found = fit_transform(frame, drawn.target, drawn.weight, scheme, smooth, drawn.kind, backend, **choices)
        assert_same_bits(found[:, : expected.shape[1]], expected)


def check_training_encodings(drawn: Drawn, scheme: str, smoothing: str, definition: Any = None, **choices: Any) -> None:
    """Demand the encodings of the definition for the key column; `definition` holds the oracle's parameters."""
    if drawn.weight is not None and (drawn.weight % 1).any():
        # Sample variances of one row or less are refused.
        assume(drawn.weight[new_row_sees(scheme, drawn.size)].sum() > 1.01)
    definition = choices if definition is None else definition
    expected = expected_encodings(scheme, drawn, smoothing=DEFINITIONS[smoothing], **definition)
    choices = {"columns": ["key"]} | choices
    check_encodings(expected, key_frame(drawn.keys), drawn, SCHEMES[scheme], smoothing, **choices)
