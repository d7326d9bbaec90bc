"""Errors about unknown parameters name the parameter that was probably meant."""

import inspect

import pytest
from sklearn.base import BaseEstimator, clone

import gpu_encode as ge
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.schemes import Scheme
from gpu_encode.words.errors.keywords import IN_SCHEMES, INSTEAD

PUBLIC = [getattr(ge, name) for name in ge.__all__]
CLASSES = [one for one in PUBLIC if isinstance(one, type) and issubclass(one, BaseEstimator)]
RULES = [one for one in PUBLIC if isinstance(one, type) and issubclass(one, (Scheme, Smoothing))]
ENCODERS = [one for one in PUBLIC if one.__name__.endswith("Encoder")]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (ge.TargetEncoder, "cols", "Here it is replaced by: columns"),
        (ge.TargetEncoder, "groups", r"Here it is replaced by: cv=GroupKFold\(groups=\)"),
        (ge.TargetEncoder, "smoothing", r"smooth=Sigmoid\(k=min_samples_leaf, f=smoothing\)"),
        (ge.TargetEncoder, "min_samples_leaf", r"smooth=Sigmoid\(k=min_samples_leaf, f=smoothing\)"),
        (ge.TargetEncoder, "sigma", "replaced by: cv: training encodings need no noise"),
        (ge.TargetEncoder, "verbose", "nothing: leave it out"),
        (ge.TargetEncoder, "random_sate", r"Did you mean 'random_state'\?"),
        (ge.CountEncoder, "cv", "it is for encoders that learn from a target"),
        (ge.CountEncoder, "smoothing", "it is for encoders that learn from a target"),
        (ge.GradientEncoder, "smoothing", "It has: "),
        (ge.HashingEncoder, "cols", "Here it is replaced by: columns"),
        (ge.CatBoostEncoder, "has_time", r"cv=Ordered\(shuffle=False\)"),
        (ge.CountEncoder, "qqq", "It has: kind, "),
        (ge.Ordered, "halflife", r"Did you mean 'half_life'\?"),
        (ge.KFold, "folds", "Here it is replaced by: n_splits"),
        (ge.KFold, "seed", "Here it is replaced by: random_state"),
        (ge.KFold, "shuffle", "replaced by: order='random' or order='contiguous'"),
        (ge.GroupKFold, "shuffle", "It has: n_splits, groups, random_state"),
        (ge.LeaveOneOut, "random_state", "It has no parameters"),
        (ge.Sigmoid, "min_samples_leaf", "Here it is replaced by: k"),
        (ge.MEstimate, "alpha", "Here it is replaced by: m"),
        (ge.EmpiricalBayes, "pooling", r"Did you mean 'pooled'\?"),
        (ge.GLMM, "qqq", "It has"),
        (ge.ProximityRegressor, "orders", r"Did you mean 'order'\?"),
        (ge.Prefixes, "length", r"It has: \*lengths"),
    ],
)
def test_what_was_meant(kind, name, message):
    begun = rf"^{kind.__name__}\(\) got an unexpected keyword argument '{name}'"
    with pytest.raises(TypeError, match=f"{begun}.*{message}"):
        kind(**{name: 1})


@pytest.mark.parametrize("kind", RULES)
def test_schemes_and_smoothings_are_made_by_their_own_parameters(kind):
    parameters = inspect.signature(kind).parameters
    assert [*sorted(parameters)] == kind._get_param_names()
    assert not {name for name in IN_SCHEMES if name in parameters} - {"shuffle"}
    required = {name: "a" for name, one in parameters.items() if one.default is inspect.Parameter.empty}
    assert clone(kind(**required)).get_params() == kind(**required).get_params()


@pytest.mark.parametrize("kind", ENCODERS)
def test_own_parameters_are_none_of_them(kind):
    parameters = inspect.signature(kind).parameters
    assert [*sorted(parameters)] == kind._get_param_names()
    assert not {name for name in INSTEAD if name in parameters} - {"seed"}
    required = {name: ["a"] for name, one in parameters.items() if one.default is inspect.Parameter.empty}
    clone(kind(**required))
    with pytest.raises(TypeError, match="columns"):
        kind(cols=["a"])


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_public_class_names_its_parameters(kind):
    several = inspect.Parameter.VAR_POSITIONAL
    parameters = [(one.kind is several) * "*" + name for name, one in inspect.signature(kind).parameters.items()]
    known = f"It has: {', '.join(parameters)}" if parameters else "It has no parameters"
    with pytest.raises(TypeError) as refused:
        kind(qqq=1)
    assert str(refused.value) == f"{kind.__name__}() got an unexpected keyword argument 'qqq'. {known}."
