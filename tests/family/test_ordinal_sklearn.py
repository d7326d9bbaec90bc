"""scikit-learn's own tests of its OrdinalEncoder, run with ours in its place, and its checks of any estimator."""

import inspect

import numpy as np
import pytest
from sklearn.preprocessing import OrdinalEncoder as Theirs
from sklearn.preprocessing.tests import test_encoders as theirs
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpu_encode import OrdinalEncoder

theirs.OrdinalEncoder = OrdinalEncoder
pytestmark = pytest.mark.host

EXCEPTIONS = {
    # Bytes are never text here: that part of it is asked for below.
    "test_encoders_string_categories",
}
# Tests of either encoder are given the class, and told below to take ours.
OF_BOTH = {
    name
    for name, function in vars(theirs).items()
    if name.startswith("test_") and "Encoder" in inspect.signature(function).parameters
}
OURS = {
    name: function
    for name, function in vars(theirs).items()
    if name.startswith("test_") and "OrdinalEncoder" in function.__code__.co_names and name not in EXCEPTIONS
}
globals().update(OURS)


def test_the_lists_are_not_empty() -> None:
    """The names of their tests are found, and so are the exceptions."""
    assert len(OURS) > 25
    assert len(OF_BOTH) == 4
    assert set(dir(theirs)) >= EXCEPTIONS


@pytest.mark.parametrize("name", sorted(OF_BOTH))
def test_of_both_encoders(name: str) -> None:
    """What scikit-learn asks of both its encoders holds for ours."""
    getattr(theirs, name)(OrdinalEncoder)


@pytest.mark.parametrize("dtypes", ["OO", "OU", "UO", "UU", "SS"])
@pytest.mark.parametrize("array_type", ["list", "array", "pandas"])
def test_string_categories(dtypes: str, array_type: str) -> None:
    """Text of every type is text, and bytes are bytes."""
    theirs.test_encoders_string_categories(*dtypes, array_type)


def test_bytes_are_no_text() -> None:
    """Where scikit-learn takes text for bytes, an error says what both are."""
    with pytest.raises(ValueError, match="column 0 was fitted on text values and now holds bytes values"):
        OrdinalEncoder(categories=[["b", "a"]]).fit(np.array([[b"a"]]))


@parametrize_with_checks([OrdinalEncoder(), OrdinalEncoder(order="target"), OrdinalEncoder(order="random", n_draws=2)])
def test_estimator_checks(estimator, check) -> None:
    """Encoders pass scikit-learn's checks."""
    check(estimator)


def test_parameters_mean_the_same() -> None:
    """Every parameter of scikit-learn's is there, with the same default."""
    defaults = {name: each.default for name, each in inspect.signature(OrdinalEncoder.__init__).parameters.items()}
    for name, each in inspect.signature(Theirs.__init__).parameters.items():
        if name == "dtype":
            assert np.dtype(defaults[name]) == np.dtype(each.default)
        elif name != "self":
            assert defaults[name] is each.default or defaults[name] == each.default


def test_fitted_attributes_are_there() -> None:
    """Every public attribute of a fitted one of scikit-learn's is one of ours."""
    X = [["a"], ["b"], ["b"], ["b"]]
    fitted = [encoder(max_categories=2).fit(X) for encoder in (Theirs, OrdinalEncoder)]
    public = [name for name in dir(fitted[0]) if name.endswith("_") and not name.startswith("_")]
    assert [name for name in public if not hasattr(fitted[1], name)] == []
