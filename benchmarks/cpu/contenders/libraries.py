"""scikit-learn, category_encoders, feature-engine: ready-made encoders as their users call them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.base import Contender, Prepared, expected_of, splitter, splitting
from benchmarks.cpu.grid import SMOOTH
from benchmarks.cpu.judge import LABELS, m_estimate, sigmoid
from benchmarks.cpu.rows import Array, Rows

MEANS = ("mean", "mean-real")
FOLDS = ("folds", "folds-real", "classes")
# category_encoders maps integers by way of float64, and gives wrong codes of those above 2^53: they are not asked for.
SAFE_KEYS = ("int", "text", "category")
KINDS = {"binary": "binary", "real": "continuous", "classes": "multiclass"}


def sklearn(rows: Rows) -> Prepared:
    """scikit-learn's TargetEncoder, whose folds are its own."""
    from sklearn.preprocessing import TargetEncoder

    X, y, kind = rows.matrix, rows.target, KINDS[rows.target_name]

    def made() -> Any:
        return TargetEncoder(smooth=SMOOTH, target_type=kind, **splitting(kind))

    if rows.work in MEANS:
        return Prepared(lambda: made().fit(X, y).transform(X), expected_of(rows))
    folds = np.empty(rows.n_rows, dtype=np.int32)
    for number, (_, own) in enumerate(splitter(kind).split(np.empty((rows.n_rows, 1)), y)):
        folds[own] = number
    return Prepared(lambda: made().fit_transform(X, y), expected_of(rows, folds=folds, visible_prior=True))


def ordinal(rows: Rows) -> Prepared:
    """scikit-learn's OrdinalEncoder."""
    from sklearn.preprocessing import OrdinalEncoder

    X = rows.matrix
    return Prepared(lambda: OrdinalEncoder(dtype=np.int32).fit_transform(X), expected_of(rows))


def series_of(rows: Rows) -> Any:
    """Target as pandas has it."""
    import pandas as pd

    return pd.Series(rows.target, name="y", copy=False)


def fitted(made: Callable[[], Any], rows: Rows, transforms_with_y: bool = False) -> Callable[[], Array]:
    """Give the call of an encoder of frames."""
    X, y = rows.frame, series_of(rows)
    if transforms_with_y:
        return lambda: made().fit_transform(X, y).to_numpy()
    return lambda: made().fit(X, y).transform(X).to_numpy()


def category_encoders(rows: Rows, name: str) -> Prepared:
    """One encoder of category_encoders."""
    import category_encoders as module

    columns = {"cols": ["key"]}
    if name == "ce-m-estimate":
        return Prepared(fitted(lambda: module.MEstimateEncoder(m=SMOOTH, **columns), rows), expected_of(rows))
    if name == "ce-target":
        # Its weight is logistic, with its own defaults: judged by that.
        made = partial(module.TargetEncoder, min_samples_leaf=20, smoothing=10, **columns)
        return Prepared(fitted(made, rows), expected_of(rows, blend=sigmoid))
    if name == "ce-leave-one-out":
        call = fitted(lambda: module.LeaveOneOutEncoder(sigma=None, **columns), rows, transforms_with_y=True)
        return Prepared(call, expected_of(rows, blend=partial(m_estimate, smooth=0.0)))
    if name == "ce-catboost":
        call = fitted(lambda: module.CatBoostEncoder(a=SMOOTH, **columns), rows, transforms_with_y=True)
        return Prepared(call, expected_of(rows))
    if name == "ce-count":
        return Prepared(fitted(lambda: module.CountEncoder(**columns), rows), expected_of(rows))
    return Prepared(fitted(lambda: module.OrdinalEncoder(**columns), rows), expected_of(rows))


def nested(rows: Rows) -> Prepared:
    """MEstimateEncoder of category_encoders on folds; of ten classes one encoder for each but the first."""
    from category_encoders import MEstimateEncoder
    from category_encoders.wrapper import NestedCVWrapper, PolynomialWrapper
    from sklearn.model_selection import PredefinedSplit

    X, y, folds = rows.frame, series_of(rows), rows.folds
    changes: dict[str, Any] = {"visible_prior": True}
    if rows.work == "classes":
        folds = beginning_alike(rows)
        changes["classes"] = [label for label in LABELS if label != rows.target[0]]

    def made() -> Any:
        one = MEstimateEncoder(m=SMOOTH, cols=["key"])
        return NestedCVWrapper(PolynomialWrapper(one) if rows.work == "classes" else one, cv=PredefinedSplit(folds))

    def call() -> Array:
        found = made().fit_transform(X, y)
        if rows.work == "classes":
            # Its columns come in the order in which the classes do.
            found = found[sorted(found.columns, key=lambda name: float(str(name).rsplit("_", 1)[1]))]
        return found.to_numpy()

    return Prepared(call, expected_of(rows, folds=folds, **changes))


def beginning_alike(rows: Rows) -> Array:
    """Folds of which all training rows begin with the same class: PolynomialWrapper leaves out the first it sees."""
    folds, again = rows.folds.copy(), 1 + int(np.argmax(rows.target[1:] == rows.target[0]))
    folds[:again], folds[again] = 0, 1
    return folds


def feature_engine(rows: Rows, name: str) -> Prepared:
    """One encoder of feature-engine."""
    from feature_engine import encoding

    columns = {"variables": ["key"], "ignore_format": True}
    if name == "fe-mean":
        made = partial(encoding.MeanEncoder, smoothing=SMOOTH, **columns)
    elif name == "fe-count":
        made = partial(encoding.CountFrequencyEncoder, encoding_method="count", **columns)
    else:
        made = partial(encoding.OrdinalEncoder, encoding_method="arbitrary", **columns)
    return Prepared(fitted(made, rows), expected_of(rows))


OF_CATEGORY_ENCODERS = {
    "ce-m-estimate": MEANS,
    "ce-target": MEANS,
    "ce-leave-one-out": ("leave-one-out",),
    "ce-catboost": ("ordered",),
    "ce-count": ("count",),
    "ce-ordinal": ("codes",),
}
OF_FEATURE_ENGINE = {"fe-mean": MEANS, "fe-count": ("count",), "fe-ordinal": ("codes",)}

CONTENDERS = [
    Contender("sklearn", "scikit-learn", sklearn, (*MEANS, *FOLDS), needs=("sklearn",)),
    Contender("sklearn-ordinal", "scikit-learn", ordinal, ("codes",), needs=("sklearn",)),
    *(
        Contender(name, "library", partial(category_encoders, name=name), works, SAFE_KEYS, ("category_encoders",))
        for name, works in OF_CATEGORY_ENCODERS.items()
    ),
    Contender("ce-nested", "library", nested, FOLDS, SAFE_KEYS, ("category_encoders",)),
    *(
        Contender(name, "library", partial(feature_engine, name=name), works, needs=("feature_engine",))
        for name, works in OF_FEATURE_ENGINE.items()
    ),
]
