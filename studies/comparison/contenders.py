"""Schemes, smoothings and encoders of other libraries: each turns training rows and new rows into numbers."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.preprocessing import TargetEncoder as TheirEncoder

import gpu_encode as ge
from benchmarks.cpu.contenders.libraries import splitter
from studies.comparison.datasets import Dataset

Rows = tuple[pd.DataFrame, np.ndarray, pd.DataFrame]
# Dense arrays or sparse ones.
Encoded = tuple[Any, Any]
# A further smoothing needs only a line here.
SMOOTHINGS: dict[str, Any] = {
    "none": None,
    "m=10": ge.MEstimate(10),
    "m=20": ge.MEstimate(20),
    "sigmoid": ge.Sigmoid(),
    "auto": ge.EmpiricalBayes(),
    "between": ge.EmpiricalBayes(tau="between"),
    "james-stein": ge.JamesStein(),
    "partial-pooling": ge.PartialPooling(),
    "glmm": ge.GLMM(),
    # Smoothings that are chosen by the training rows.
    "tuned": "auto",
    "tuned-by-column": "auto",
}
TUNED = {"tuned": {}, "tuned-by-column": {"per_column": True}}
SCHEMES: dict[str, Callable[[Dataset], Any]] = {
    "greedy": lambda _: ge.Greedy(),
    "kfold-5": lambda _: ge.KFold(5),
    "kfold-10": lambda _: ge.KFold(10),
    "kfold-5-blow-up": lambda _: ge.KFold(5, blow_up=True),
    "holdout": lambda _: ge.Holdout(),
    "leave-one-out": lambda _: ge.LeaveOneOut(),
    "ordered": lambda _: ge.Ordered(),
    **{f"ordered-block-{rows}": lambda _, rows=rows: ge.Ordered(block=rows) for rows in (1, 16, 64, 256, 1024)},
    "group-kfold-5": lambda data: ge.GroupKFold(5, groups=data.groups) if data.groups else None,
    "time-folds-5": lambda data: ge.TimeFolds(5, time=data.time) if data.time else None,
    "ordered-by-time": lambda data: ge.Ordered(time=data.time) if data.time else None,
}
# Most distinct values of a column that HistGradientBoosting takes as categories.
MOST_NATIVE = 254


def schemes_of(data: Dataset) -> list[str]:
    """List the schemes that the columns of a data set allow."""
    return [name for name, scheme in SCHEMES.items() if scheme(data) is not None]


def ours(data: Dataset, rows: Rows, scheme: str, smoothing: str) -> Encoded:
    """Encode with `TargetEncoder`; for three classes give two columns, since shares add up to one."""
    X, y, X_new = rows
    policy = SCHEMES[scheme](data)
    extra = [name for name in (getattr(policy, "groups", None), getattr(policy, "time", None)) if name]
    drop = "first" if data.kind == "multiclass" else None
    encoder = ge.TargetEncoder(
        columns=data.keys, cv=policy, smooth=SMOOTHINGS[smoothing], target_type=data.kind, drop=drop
    )
    with warnings.catch_warnings():
        # These warnings are expected: greedy encodings leak, and the first rows of an order see no other row.
        warnings.filterwarnings("ignore", "Greedy training")
        warnings.filterwarnings("ignore", ".*see no rows")
        if smoothing in TUNED:
            encoder = ge.tune(encoder, X[[*data.keys, *extra]], y, **TUNED[smoothing]).encoder
        train = encoder.fit_transform(X[[*data.keys, *extra]], y)
        # New rows need neither group nor time, so the columns of the scheme are not required.
        test = encoder.transform(X_new[data.keys])
    return together(data, X, train.drop(columns=extra, errors="ignore")), together(data, X_new, test)


def numbers_of(data: Dataset, X: pd.DataFrame) -> np.ndarray:
    """Give the numeric columns."""
    return X[data.numbers].to_numpy(np.float64, na_value=np.nan)


def together(data: Dataset, X: pd.DataFrame, encodings: Any) -> np.ndarray:
    """Join encodings and numeric columns."""
    return np.hstack([np.asarray(encodings), numbers_of(data, X)])


def texts(data: Dataset, X: pd.DataFrame) -> pd.DataFrame:
    """Give keys as text, with missing values as text, too: scikit-learn's encoders refuse some mixtures."""
    return X[data.keys].astype(object).where(X[data.keys].notna(), "missing").astype(str)


def numbers_alone(data: Dataset, rows: Rows) -> Encoded:
    """Give the numeric columns alone."""
    return numbers_of(data, rows[0]), numbers_of(data, rows[2])


def scikit_learn(data: Dataset, rows: Rows) -> Encoded:
    """Encode with scikit-learn's encoder with default parameters and a seed for its folds."""
    X, y, X_new = rows
    encoder = TheirEncoder(target_type=data.kind, cv=splitter(data.kind))
    train = encoder.fit_transform(texts(data, X), y)
    return together(data, X, train), together(data, X_new, encoder.transform(texts(data, X_new)))


def one_hot(data: Dataset, rows: Rows) -> Encoded:
    """Make a column for every value with at least five rows, not scaled, since scaling would favour rare values."""
    X, _, X_new = rows
    encoder = OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist")
    scale = make_pipeline(SimpleImputer(), StandardScaler())
    pairs = (
        (encoder.fit_transform(texts(data, X)), scale.fit_transform(numbers_of(data, X))),
        (encoder.transform(texts(data, X_new)), scale.transform(numbers_of(data, X_new))),
    )
    train, test = (sparse.hstack(pair, format="csr") for pair in pairs)
    return train, test


def native(data: Dataset, rows: Rows) -> Encoded:
    """Give category numbers, for trees that split categories; if there are too many, rare values share one number."""
    X, _, X_new = rows
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=MOST_NATIVE)
    codes = encoder.fit_transform(texts(data, X))
    return together(data, X, codes), together(data, X_new, encoder.transform(texts(data, X_new)))


# The functions of other encoders, and the models for which each is used.
BASELINES: dict[str, tuple[Callable[[Dataset, Rows], Encoded], tuple[str, ...]]] = {
    "numbers alone": (numbers_alone, ("linear", "tree")),
    "scikit-learn TargetEncoder": (scikit_learn, ("linear", "tree")),
    "OneHotEncoder": (one_hot, ("linear",)),
    "native categories": (native, ("tree",)),
}
