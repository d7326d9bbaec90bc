"""Warnings point to the line of the user's own code."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from gpu_encode import Greedy, Ordered, TargetEncoder

X, Y = np.array([["a"], ["b"]] * 3), np.arange(6) / 10
WARNING = {
    "greedy": lambda: TargetEncoder(cv=Greedy()).fit_transform(X, Y),
    "nothing seen": lambda: TargetEncoder(cv=Ordered(time=0), columns=[1]).fit_transform(np.zeros((6, 2)), Y),
    "rare class": lambda: TargetEncoder(cv=4).fit_transform(X, ["u", "v"] * 3),
    "many classes": lambda: TargetEncoder().fit(np.zeros((101, 1)), np.arange(101.0)),
    "in a pipeline": lambda: make_pipeline(TargetEncoder(cv=Greedy()), LinearRegression()).fit(X, Y),
}


@pytest.mark.parametrize("call", WARNING.values(), ids=WARNING.keys())
def test_warnings_point_at_the_call(call) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    ours = [
        warning
        for warning in caught
        if issubclass(warning.category, UserWarning) and "unique classes" not in str(warning.message)
    ]
    assert [warning.filename for warning in ours] == [__file__]
