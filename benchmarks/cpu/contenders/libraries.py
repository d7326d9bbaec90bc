"""scikit-learn and category_encoders: ready-made encoders as their users call them."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, MEANS, SMOOTH
from benchmarks.cpu.judge import expected_of, m_estimate
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_CLASSES, N_FOLDS, Array, Rows

# category_encoders maps integers by way of float64, and gives wrong codes of those above 2^53: they are not asked for.
SAFE_KEYS = ("int", "text", "category")


def splitter(kind: str) -> Any:
    """What scikit-learn splits rows with; before 1.9 its encoder takes a number only."""
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if kind == "continuous" else StratifiedKFold)(N_FOLDS, shuffle=True, random_state=0)


def sklearn_encoder(kind: str) -> Any:
    """scikit-learn's TargetEncoder, whose folds are its own."""
    import sklearn
    from sklearn.preprocessing import TargetEncoder

    release = tuple(int(number) for number in sklearn.__version__.split(".")[:2])
    folds = {"cv": splitter(kind)} if release >= (1, 9) else {"cv": N_FOLDS, "random_state": 0}
    return TargetEncoder(smooth=SMOOTH, target_type=kind, **folds)


def sklearn_folds(rows: Rows) -> Array:
    """Fold numbers that scikit-learn's TargetEncoder draws."""
    folds = np.empty(rows.n_rows, dtype=np.int32)
    for number, (_, own) in enumerate(splitter(rows.kind).split(np.empty((rows.n_rows, 1)), rows.target)):
        folds[own] = number
    return folds


def sklearn(rows: Rows) -> Prepared:
    """scikit-learn's TargetEncoder."""
    X, y, make = rows.matrix, rows.target, partial(sklearn_encoder, rows.kind)
    if rows.work in MEANS:
        return Prepared(lambda: make().fit(X, y).transform(X), expected_of(rows))
    expected = expected_of(rows, folds=sklearn_folds(rows), visible_prior=True)
    return Prepared(lambda: make().fit_transform(X, y), expected)


def ordinal(rows: Rows) -> Prepared:
    """scikit-learn's OrdinalEncoder."""
    from sklearn.preprocessing import OrdinalEncoder

    X = rows.matrix
    return Prepared(lambda: OrdinalEncoder(dtype=np.int32).fit_transform(X), expected_of(rows))


def series_of(rows: Rows) -> Any:
    """Target as pandas has it."""
    import pandas as pd

    return pd.Series(rows.target, name="y", copy=False)


def category_encoder(name: str, **options: Any) -> Callable[[], Any]:
    """Give what makes an encoder of category_encoders."""
    return lambda: getattr(import_module("category_encoders"), name)(cols=["key"], **options)


def of_frames(rows: Rows, make: Callable[[], Any], in_one_call: bool = False, **rule: Any) -> Prepared:
    """An encoder of pandas frames; `rule` is what is not as in `expected_of`."""
    X, y, expected = rows.frame, series_of(rows), expected_of(rows, **rule)
    if in_one_call:
        return Prepared(lambda: make().fit_transform(X, y).to_numpy(), expected)
    return Prepared(lambda: make().fit(X, y).transform(X).to_numpy(), expected)


def nested(rows: Rows) -> Prepared:
    """MEstimateEncoder of category_encoders on folds; of ten classes one encoder for each but the first."""
    from category_encoders import MEstimateEncoder
    from category_encoders.wrapper import NestedCVWrapper, PolynomialWrapper
    from sklearn.model_selection import PredefinedSplit

    X, y, folds = rows.frame, series_of(rows), rows.folds
    changes: dict[str, Any] = {"visible_prior": True}
    if rows.work == "classes":
        folds = beginning_alike(rows)
        changes["classes"] = [label for label in range(N_CLASSES) if label != rows.target[0]]

    def make() -> Any:
        one = MEstimateEncoder(m=SMOOTH, cols=["key"])
        return NestedCVWrapper(PolynomialWrapper(one) if rows.work == "classes" else one, cv=PredefinedSplit(folds))

    def call() -> Array:
        encodings = make().fit_transform(X, y)
        if rows.work == "classes":
            # Its columns come in the order in which the classes do.
            encodings = encodings[sorted(encodings.columns, key=lambda name: float(str(name).rsplit("_", 1)[1]))]
        return encodings.to_numpy()

    return Prepared(call, expected_of(rows, folds=folds, **changes))


def beginning_alike(rows: Rows) -> Array:
    """Folds of which all training rows begin with the same class: PolynomialWrapper leaves out the first it sees."""
    folds, again = rows.folds.copy(), 1 + int(np.argmax(rows.target[1:] == rows.target[0]))
    folds[:again], folds[again] = 0, 1
    return folds


def library(name: str, works: tuple[str, ...], make: Callable[[], Any], **options: Any) -> Contender:
    """Give an encoder of category_encoders."""
    prepare = partial(of_frames, make=make, **options)
    return Contender(name, "library", prepare, {"work": works, "keys": SAFE_KEYS}, ("category_encoders",))


COUNT = library("ce-count", ("count",), category_encoder("CountEncoder"))
CONTENDERS = (
    Contender("sklearn", "scikit-learn", sklearn, {"work": (*MEANS, *FOLD_WORKS)}, ("sklearn",)),
    Contender("sklearn-ordinal", "scikit-learn", ordinal, {"work": ("codes",)}, ("sklearn",)),
    library("ce-m-estimate", MEANS, category_encoder("MEstimateEncoder", m=SMOOTH)),
    library(
        "ce-leave-one-out",
        ("leave-one-out",),
        category_encoder("LeaveOneOutEncoder", sigma=None),
        in_one_call=True,
        blend=partial(m_estimate, smooth=0.0),
    ),
    library("ce-catboost", ("ordered",), category_encoder("CatBoostEncoder", a=SMOOTH), in_one_call=True),
    library("ce-ordinal", ("codes",), category_encoder("OrdinalEncoder")),
    Contender("ce-nested", "library", nested, {"work": FOLD_WORKS, "keys": SAFE_KEYS}, ("category_encoders",)),
    COUNT,
)
