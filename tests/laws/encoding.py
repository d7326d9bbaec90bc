"""The library under test, called as users call it: one place that knows its names."""

import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings

import gpu_encode
from gpu_encode import ops
from tests import naive
from tests.strategies import Drawn

BACKENDS = tuple(os.environ.get("LAW_BACKENDS", "numpy,compiled").split(","))
SIZES = (4, 7, 16, 23)

SMOOTHINGS = {
    "none": (lambda: None, naive.unsmoothed),
    "auto": (lambda: "auto", naive.empirical_bayes_total),
    "number": (lambda: 2.5, naive.m_estimate(2.5)),
    "m-estimate": (lambda: gpu_encode.MEstimate(0.3), naive.m_estimate(0.3)),
    "sigmoid": (lambda: gpu_encode.Sigmoid(k=3.0, f=1.5), naive.sigmoid(3.0, 1.5)),
    "between": (lambda: gpu_encode.EmpiricalBayes(tau="between"), naive.empirical_bayes_between),
    "james-stein": (gpu_encode.JamesStein, naive.james_stein_pooled),
    "james-stein-independent": (lambda: gpu_encode.JamesStein(model="independent"), naive.james_stein_independent),
    "partial-pooling": (gpu_encode.PartialPooling, naive.partial_pooling),
}

SCHEMES = {
    "greedy": gpu_encode.Greedy,
    "int": lambda: 2,
    "k-fold": lambda: gpu_encode.KFold(3, random_state=4),
    "contiguous": lambda: gpu_encode.KFold(4, order="contiguous"),
    "interleaved": lambda: gpu_encode.KFold(2, order="interleaved"),
    "groups": lambda: gpu_encode.GroupKFold(2, groups="group"),
    "time-folds": lambda: gpu_encode.TimeFolds(3, time="time"),
    "time-folds-gap": lambda: gpu_encode.TimeFolds(4, time="time", gap=1),
    "holdout": lambda: gpu_encode.Holdout(0.4, random_state=2),
    "leave-one-out": gpu_encode.LeaveOneOut,
    "ordered": lambda: gpu_encode.Ordered(random_state=6),
    "ordered-time": lambda: gpu_encode.Ordered(time="time"),
}


def examples(count: int) -> settings:
    """Settings of a law: few examples in every run, many where LAW_EXAMPLES multiplies them."""
    return settings(
        max_examples=count * int(os.environ.get("LAW_EXAMPLES", "1")),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def framed(keys: Sequence[Any]) -> pd.DataFrame:
    """Put keys beside a group and a time that depend on the row number alone."""
    row = np.arange(len(keys))
    return pd.DataFrame({"key": np.asarray(keys, dtype=object), "group": row * 5 % 4, "time": row * 7 % 6})


def encoder(scheme: Any, smooth: Any, kind: str, **choices: Any) -> Any:
    return gpu_encode.TargetEncoder(cv=scheme, smooth=smooth, target_type=kind, **choices)


def fit_transform(
    frame: Any, target: Any, weight: Any, scheme: Any, smooth: Any, kind: str, backend: str = "numpy", **choices: Any
) -> np.ndarray[Any, Any]:
    """Return the training codes as a matrix."""
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        codes = encoder(scheme, smooth, kind, **choices).fit_transform(frame, target, sample_weight=weight)
    return np.asarray(codes, dtype=np.float64)


def training_codes(drawn: Drawn, scheme: Any, smooth: Any, backend: str = "numpy", **choices: Any) -> Any:
    """Return the training codes of the key column alone, one matrix column per class."""
    choices = {"columns": ["key"]} | choices
    frame = framed(drawn.keys)
    codes = fit_transform(frame, drawn.target, drawn.weight, scheme, smooth, drawn.kind, backend, **choices)
    # The group and time columns are passed through, after the encoded ones.
    return codes[:, : codes.shape[1] - 2]


def transformed_codes(
    drawn: Drawn, keys: Sequence[Any], scheme: Any, smooth: Any, backend: str = "numpy", **choices: Any
) -> Any:
    """Fit and return the codes that new rows with these keys get."""
    choices = {"columns": ["key"]} | choices
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = encoder(scheme, smooth, drawn.kind, **choices)
        fitted.fit(framed(drawn.keys), drawn.target, sample_weight=drawn.weight)
        codes = np.asarray(fitted.transform(framed(keys)), dtype=np.float64)
    return codes[:, : codes.shape[1] - 2]


def problems(drawn: Drawn, **choices: Any) -> list[naive.Problem]:
    """State the drawn rows exactly: one problem per column of codes."""
    paths = choices.pop("paths", [(key,) for key in drawn.keys])
    weights = [1] * drawn.size if drawn.weight is None else [naive.exact(value) for value in drawn.weight]
    if drawn.kind == "continuous":
        columns = [[naive.exact(value) for value in drawn.target]]
    else:
        classes = [1] if drawn.kind == "binary" else [0, 1, 2]
        columns = [[int(label == one) for label in drawn.target] for one in classes]
    return [naive.Problem(paths, column, weights, **choices) for column in columns]


def assert_same_bits(found: Any, expected: Any) -> None:
    """Demand equal bits, except that one NaN is as good as another."""
    found, expected = (np.array(values, dtype=np.float64) for values in (found, expected))
    assert found.shape == expected.shape
    different = (found.view(np.int64) != expected.view(np.int64)) & ~(np.isnan(found) & np.isnan(expected))
    where = np.argwhere(different).tolist()
    assert not where, f"{where}: {found[different].tolist()} is not {expected[different].tolist()}"


def _flipped_rows(size: int, codes_of: Any) -> list[Any]:
    """Raise one target after the other from 0 to 1 and return what codes become."""
    return [codes_of(np.eye(size)[row]) for row in range(size)]


@cache
def visibility(scheme: str, size: int) -> tuple[tuple[int, ...], ...]:
    """Find which rows each row looks at: those whose target changes its code."""
    keys = np.array(["a"] * size, dtype=object)

    def codes(target: np.ndarray[Any, Any]) -> Any:
        return training_codes(Drawn(keys, target, None, "continuous"), SCHEMES[scheme](), None)[:, 0]

    changed = np.array(_flipped_rows(size, codes)) > 0
    return tuple(tuple(np.flatnonzero(changed[:, row]).tolist()) for row in range(size))


@cache
def transform_visibility(scheme: str, size: int) -> tuple[int, ...]:
    """Find which training rows new rows look at."""
    keys = np.array(["a"] * size, dtype=object)

    def code(target: np.ndarray[Any, Any]) -> Any:
        return transformed_codes(Drawn(keys, target, None, "continuous"), ["a"], SCHEMES[scheme](), None)[0, 0]

    return tuple(np.flatnonzero(np.array(_flipped_rows(size, code)) > 0).tolist())


def order_of(sees: np.ndarray[Any, Any]) -> list[int]:
    """Find an order from which row sees which: place p sees p rows, but the first sees all others.

    The first row is the one that sees all and is seen by all.
    """
    size = len(sees)
    looks, looked_at = sees.sum(axis=1), sees.sum(axis=0)
    first = int(np.flatnonzero((looks == size - 1) & (looked_at == size - 1))[0])
    return [first, *sorted((row for row in range(size) if row != first), key=lambda row: looks[row])]


def random_order(scheme: str, size: int) -> list[int]:
    """Find the order behind an ordered scheme."""
    sees = np.zeros((size, size), dtype=bool)
    for row, seen in enumerate(visibility(scheme, size)):
        sees[row, list(seen)] = True
    return order_of(sees)


def expected_codes(scheme: str, drawn: Drawn, **choices: Any) -> np.ndarray[Any, Any]:
    """Return the training codes by definition."""
    stated = problems(drawn, **choices)
    if scheme == "ordered":
        columns = [naive.permuted_codes(problem, random_order(scheme, drawn.size)) for problem in stated]
    elif scheme == "ordered-time":
        times = framed(drawn.keys)["time"].tolist()
        columns = [naive.timed_codes(problem, times) for problem in stated]
    else:
        columns = [problem.codes(visibility(scheme, drawn.size)) for problem in stated]
    return np.array(columns).T
