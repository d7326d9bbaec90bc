"""Which encoders may be merged: those of the same parameters, columns and targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gpu_encode.errors.learned import (
    merge_of_another_type,
    merge_of_blow_up,
    merge_of_other_columns,
    merge_of_other_parameters,
    merge_of_other_targets,
)
from gpu_encode.fitting.model import Model


def merged(encoder: BaseEstimator, model: Model, others: Sequence[Any]) -> Model:
    """Add what other encoders of the same type, parameters and columns have learned to the model of one."""
    learned = model
    for other in others:
        if type(other) is not type(encoder):
            raise merge_of_another_type(type(encoder).__name__, type(other).__name__)
        check_is_fitted(other, "_model")
        check_same_parameters(encoder, other)
        check_same_columns(model, other._model)
        check_one_view(model)
        learned = learned.merged(other._model)
    return learned


def check_same_parameters(one: BaseEstimator, other: BaseEstimator) -> None:
    """Raise ValueError unless two encoders have the same parameters."""
    mine, theirs = one.get_params(deep=True), other.get_params(deep=True)
    for name in sorted({*mine, *theirs}):
        if not equal(mine.get(name), theirs.get(name)):
            raise merge_of_other_parameters(name, mine.get(name), theirs.get(name))


def check_same_columns(one: Model, other: Model) -> None:
    """Raise ValueError unless two models have the same columns and targets."""
    if one.feature_names != other.feature_names or one.n_features != other.n_features:
        mine, theirs = one.feature_names or one.n_features, other.feature_names or other.n_features
        raise merge_of_other_columns(mine, theirs)
    if [target.name for target in one.targets] != [target.name for target in other.targets]:
        raise merge_of_other_targets()


def check_one_view(model: Model) -> None:
    """Raise ValueError for sums of each fold's own, which are not those of other encoders' folds."""
    if model.statistics[0][0].n_views > 1:
        raise merge_of_blow_up()


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
