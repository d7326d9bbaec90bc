"""Unknown parameters are errors that say which one was meant."""

import inspect

import pytest
from sklearn.base import clone

import gpu_encode as ge
from gpu_encode.errors.keywords import INSTEAD

ENCODERS = [getattr(ge, name) for name in ge.__all__ if name.endswith("Encoder")]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (ge.TargetEncoder, "cols", "What takes its place here: columns"),
        (ge.TargetEncoder, "smoothing", r"smooth=Sigmoid\(k=min_samples_leaf, f=smoothing\)"),
        (ge.TargetEncoder, "min_samples_leaf", r"smooth=Sigmoid\(k=min_samples_leaf, f=smoothing\)"),
        (ge.TargetEncoder, "sigma", "place here: cv: training encodings need no noise"),
        (ge.TargetEncoder, "verbose", "nothing: leave it out"),
        (ge.TargetEncoder, "random_sate", r"Did you mean 'random_state'\?"),
        (ge.CountEncoder, "cv", "it is for encoders that learn from a target"),
        (ge.CountEncoder, "smoothing", "it is for encoders that learn from a target"),
        (ge.GradientEncoder, "smoothing", "It has: "),
        (ge.HashingEncoder, "cols", "What takes its place here: columns"),
        (ge.CatBoostEncoder, "has_time", r"cv=Ordered\(shuffle=False\)"),
        (ge.CountEncoder, "qqq", "It has: kind, "),
    ],
)
def test_what_was_meant(kind, name, message):
    begun = rf"^{kind.__name__}\(\) got an unexpected keyword argument '{name}'"
    with pytest.raises(TypeError, match=f"{begun}.*{message}"):
        kind(**{name: 1})


@pytest.mark.parametrize("kind", ENCODERS)
def test_own_parameters_are_none_of_them(kind):
    parameters = inspect.signature(kind).parameters
    assert [*sorted(parameters)] == kind._get_param_names()
    assert not {name for name in INSTEAD if name in parameters} - {"seed"}
    required = {name: ["a"] for name, one in parameters.items() if one.default is inspect.Parameter.empty}
    clone(kind(**required))
    with pytest.raises(TypeError, match="columns"):
        kind(cols=["a"])
