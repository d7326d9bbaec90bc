"""category_encoders and scikit-learn: ready-made encoders as their users call them."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.contenders import CONTENDERS as OF_TARGETS
from benchmarks.cpu.contenders.base import Prepared
from benchmarks.cpu.contenders.libraries import series_of
from benchmarks.cpu.rows import Rows
from benchmarks.family import judge, mixed, words
from benchmarks.family.contenders.base import MOST_DENSE, Bounded, expected_of, values_of
from benchmarks.family.grid import N_COMPONENTS
from benchmarks.family.judge import Indicators, defined

# statsmodels stops before the last digits.
TOLERANCE_OF_GLMM = 1e-3


def category_encoders(rows: Rows, name: str) -> Prepared:
    """One encoder of category_encoders that reads no target."""
    import category_encoders as module

    X, cols = rows.frame, ["key"]
    if name == "ce-ordinal":
        expected = defined(partial(judge.by_appearance, first=1))
        return Prepared(lambda: module.OrdinalEncoder(cols=cols).fit_transform(X).to_numpy(), expected)
    if name == "ce-one-hot":
        expected = defined(judge.by_appearance)
        return Prepared(lambda: Indicators(module.OneHotEncoder(cols=cols).fit_transform(X)), expected)
    expected = defined(partial(words.components, component=words.of_md5))
    return Prepared(
        lambda: Indicators(module.HashingEncoder(n_components=N_COMPONENTS, cols=cols).fit_transform(X)), expected
    )


def evidence(rows: Rows) -> Prepared:
    """WOEEncoder, which gives 0 to categories of one row; on folds by its wrapper."""
    from category_encoders import WOEEncoder
    from category_encoders.wrapper import NestedCVWrapper
    from sklearn.model_selection import PredefinedSplit

    X, y = rows.frame, series_of(rows)
    if rows.work == "evidence":
        expected = defined(partial(judge.evidence, least=2))
        return Prepared(lambda: WOEEncoder(cols=["key"]).fit(X, y).transform(X).to_numpy(), expected)
    split = PredefinedSplit(rows.folds)
    expected = defined(partial(judge.evidence, folds=rows.folds, least=2))
    return Prepared(
        lambda: NestedCVWrapper(WOEEncoder(cols=["key"]), cv=split).fit_transform(X, y).to_numpy(), expected
    )


def mixed_model(rows: Rows) -> Prepared:
    """GLMMEncoder of a real target, whose codes are effects without the common value."""
    import pandas as pd
    from category_encoders import GLMMEncoder

    X, y = rows.frame, pd.Series(values_of(rows), name="y")
    made = partial(GLMMEncoder, cols=["key"], binomial_target=False)
    return Prepared(
        lambda: made().fit(X, y).transform(X).to_numpy(), defined(mixed.effects_of, tolerance=TOLERANCE_OF_GLMM)
    )


def sklearn(rows: Rows, name: str) -> Prepared:
    """One encoder of scikit-learn."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    X: Any = rows.matrix
    if name == "sklearn-ordinal":
        return Prepared(lambda: OrdinalEncoder(dtype=np.float64).fit_transform(X), expected_of(rows))
    if name == "sklearn-one-hot":
        return Prepared(lambda: Indicators(OneHotEncoder().fit_transform(X)), expected_of(rows))
    lists, options = X.tolist(), {"input_type": "string", "alternate_sign": False}
    return Prepared(lambda: Indicators(FeatureHasher(N_COMPONENTS, **options).transform(lists)), expected_of(rows))


KEYS = ("int", "text")
NEEDED = ("category_encoders",)
CONTENDERS = [
    OF_TARGETS["ce-count"],
    Bounded("ce-ordinal", "library", partial(category_encoders, name="ce-ordinal"), ("ordinal",), KEYS, NEEDED),
    Bounded(
        "ce-one-hot",
        "library",
        partial(category_encoders, name="ce-one-hot"),
        ("one-hot",),
        KEYS,
        NEEDED,
        most_categories={"one-hot": MOST_DENSE},
    ),
    Bounded("ce-hashing", "library", partial(category_encoders, name="ce-hashing"), ("hashing",), KEYS, NEEDED),
    Bounded("ce-evidence", "library", evidence, ("evidence", "evidence-folds"), KEYS, NEEDED),
    Bounded("ce-glmm", "library", mixed_model, ("glmm",), KEYS, (*NEEDED, "statsmodels")),
    OF_TARGETS["fe-count"],
    Bounded("sklearn-ordinal", "scikit-learn", partial(sklearn, name="sklearn-ordinal"), ("ordinal",), KEYS),
    Bounded("sklearn-one-hot", "scikit-learn", partial(sklearn, name="sklearn-one-hot"), ("one-hot",), KEYS),
    Bounded("sklearn-hashing", "scikit-learn", partial(sklearn, name="sklearn-hashing"), ("hashing",), ("text",)),
]
