"""scikit-learn and category_encoders: ready-made encoders as their users call them."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, MEANS, SMOOTH
from benchmarks.cpu.judge import expected_of, m_estimate
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_FOLDS, Array, Rows


def splitter(kind: str) -> Any:
    """Give the splitter of scikit-learn's encoder; before 1.9 the encoder takes only a number."""
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if kind == "continuous" else StratifiedKFold)(N_FOLDS, shuffle=True, random_state=0)


def sklearn_encoder(kind: str) -> Any:
    """Make scikit-learn's TargetEncoder, with its own folds."""
    import sklearn
    from sklearn.preprocessing import TargetEncoder

    release = tuple(int(number) for number in sklearn.__version__.split(".")[:2])
    folds = {"cv": splitter(kind)} if release >= (1, 9) else {"cv": N_FOLDS, "random_state": 0}
    return TargetEncoder(smooth=SMOOTH, target_type=kind, **folds)


def sklearn_folds(rows: Rows) -> Array:
    """Give the fold numbers that scikit-learn's TargetEncoder draws."""
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


def series_of(rows: Rows) -> Any:
    """Give the target as a pandas series."""
    import pandas as pd

    return pd.Series(rows.target, name="y", copy=False)


def category_encoder(name: str, **options: Any) -> Callable[[], Any]:
    """Give the function that makes an encoder of category_encoders."""
    return lambda: getattr(import_module("category_encoders"), name)(cols=["key"], **options)


def of_frames(rows: Rows, make: Callable[[], Any], in_one_call: bool = False, **rule: Any) -> Prepared:
    """Prepare an encoder of pandas frames; `rule` holds the differences from the default of `expected_of`."""
    X, y, expected = rows.frame, series_of(rows), expected_of(rows, **rule)
    if in_one_call:
        return Prepared(lambda: make().fit_transform(X, y).to_numpy(), expected)
    return Prepared(lambda: make().fit(X, y).transform(X).to_numpy(), expected)


def library(name: str, works: tuple[str, ...], make: Callable[[], Any], **options: Any) -> Contender:
    """Make the contender for an encoder of category_encoders."""
    prepare = partial(of_frames, make=make, **options)
    return Contender(name, "library", prepare, {"work": works}, ("category_encoders",))


COUNT = library("ce-count", ("count",), category_encoder("CountEncoder"))
CONTENDERS = (
    Contender("sklearn", "scikit-learn", sklearn, {"work": (*MEANS, *FOLD_WORKS)}, ("sklearn",)),
    library("ce-m-estimate", MEANS, category_encoder("MEstimateEncoder", m=SMOOTH)),
    library(
        "ce-leave-one-out",
        ("leave-one-out",),
        category_encoder("LeaveOneOutEncoder", sigma=None),
        in_one_call=True,
        blend=partial(m_estimate, smooth=0.0),
    ),
    library("ce-catboost", ("ordered",), category_encoder("CatBoostEncoder", a=SMOOTH), in_one_call=True),
    COUNT,
)
