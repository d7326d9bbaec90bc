"""Which encoders may be merged: those of the same parameters, columns and targets."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gpu_encode import errors
from gpu_encode.model import Model


def check_same_parameters(one: BaseEstimator, other: BaseEstimator) -> None:
    """Raise ValueError unless two encoders have the same parameters."""
    mine, theirs = one.get_params(deep=True), other.get_params(deep=True)
    for name in sorted({*mine, *theirs}):
        if not equal(mine.get(name), theirs.get(name)):
            raise errors.merge_of_other_parameters(name, mine.get(name), theirs.get(name))


def check_same_columns(one: Model, other: Model) -> None:
    """Raise ValueError unless two models have the same columns and targets, and one view of each category."""
    if one.feature_names != other.feature_names or one.n_features != other.n_features:
        mine, theirs = one.feature_names or one.n_features, other.feature_names or other.n_features
        raise errors.merge_of_other_columns(mine, theirs)
    if [target.name for target in one.targets] != [target.name for target in other.targets]:
        raise errors.merge_of_other_targets()
    if one.statistics[0][0].n_views > 1:
        raise errors.merge_of_blow_up()


def equal(a: Any, b: Any) -> bool:
    """Compare parameters; objects with parameters of their own compare by those."""
    if isinstance(a, BaseEstimator) and isinstance(b, BaseEstimator):
        return type(a) is type(b) and repr(a.get_params()) == repr(b.get_params())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a == b) or repr(a) == repr(b)
    except (TypeError, ValueError):
        return repr(a) == repr(b)
