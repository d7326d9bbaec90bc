"""category_encoders and scikit-learn: ready-made encoders as their users call them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.contenders.libraries import COUNT, category_encoder, series_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import Rows
from studies.family import judge, words
from studies.family.indicators import MOST_DENSE, Indicators
from studies.family.judge import expect, expected_of
from studies.family.words import N_COMPONENTS


def of_keys(
    rows: Rows, make: Callable[[], Any], find: Callable[[Rows], Any], show: Callable[[Any], Any] = np.asarray
) -> Prepared:
    """Prepare an encoder of category_encoders that reads no target."""
    X = rows.frame
    return Prepared(lambda: show(make().fit_transform(X)), expect(find, rows))


def evidence(rows: Rows) -> Prepared:
    """Prepare WOEEncoder, which gives 0 to categories of one row; for folds, its wrapper."""
    from category_encoders.wrapper import NestedCVWrapper
    from sklearn.model_selection import PredefinedSplit

    X, y, make = rows.frame, series_of(rows), category_encoder("WOEEncoder")
    if rows.work == "evidence":
        expected = expect(partial(judge.evidence, least=2), rows)
        return Prepared(lambda: make().fit(X, y).transform(X).to_numpy(), expected)
    split = PredefinedSplit(rows.folds)
    expected = expect(partial(judge.evidence, folds=rows.folds, least=2), rows)
    return Prepared(lambda: NestedCVWrapper(make(), cv=split).fit_transform(X, y).to_numpy(), expected)


def sklearn(rows: Rows) -> Prepared:
    """Prepare the encoder of scikit-learn that does the work."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    X: Any = rows.matrix
    if rows.work == "ordinal":
        return Prepared(lambda: OrdinalEncoder(dtype=np.float64).fit_transform(X), expected_of(rows))
    if rows.work == "one-hot":
        return Prepared(lambda: Indicators(OneHotEncoder().fit_transform(X)), expected_of(rows))
    lists, options = X.tolist(), {"input_type": "string", "alternate_sign": False}
    return Prepared(lambda: Indicators(FeatureHasher(N_COMPONENTS, **options).transform(lists)), expected_of(rows))


def library(name: str, prepare: Callable[[Rows], Prepared], *works: str, **only: Any) -> Contender:
    """Make the contender for an encoder of category_encoders."""
    return Contender(name, "library", prepare, {"work": works, **only}, ("category_encoders",))


ORDINAL = partial(of_keys, make=category_encoder("OrdinalEncoder"), find=partial(judge.by_appearance, first=1))
ONE_HOT = partial(of_keys, make=category_encoder("OneHotEncoder"), find=judge.by_appearance, show=Indicators)
HASHING = partial(
    of_keys,
    make=category_encoder("HashingEncoder", n_components=N_COMPONENTS),
    find=partial(words.components, component=words.of_md5),
    show=Indicators,
)
CONTENDERS = (
    COUNT,
    library("ce-ordinal", ORDINAL, "ordinal"),
    library("ce-one-hot", ONE_HOT, "one-hot", categories=range(MOST_DENSE + 1)),
    library("ce-hashing", HASHING, "hashing"),
    library("ce-evidence", evidence, "evidence", "evidence-folds"),
    Contender("sklearn-ordinal", "scikit-learn", sklearn, {"work": ("ordinal",)}, ("sklearn",)),
    Contender("sklearn-one-hot", "scikit-learn", sklearn, {"work": ("one-hot",)}, ("sklearn",)),
    Contender("sklearn-hashing", "scikit-learn", sklearn, {"work": ("hashing",), "keys": ("text",)}, ("sklearn",)),
)
