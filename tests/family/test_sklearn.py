"""scikit-learn's own tests of OneHotEncoder and OrdinalEncoder, run with ours, and its checks of estimators."""

import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn import preprocessing
from sklearn.preprocessing.tests import test_encoders as theirs

import gpu_encode as ge
from gpu_encode import OneHotEncoder, OrdinalEncoder
from tests.estimator_checks import unexpected
from tests.versions import as_scikit_learn_1_9

# The policy "warn" also warns in scikit-learn, where it is no error.
pytestmark = [pytest.mark.host, as_scikit_learn_1_9, pytest.mark.filterwarnings("ignore:Found unknown categories")]

ENCODERS = {"OneHotEncoder": OneHotEncoder, "OrdinalEncoder": OrdinalEncoder}
ONE_NULL = "None and NaN are one missing value, the last category, shown as None beside text"
IN_ORDER = "a missing value among given categories is the last"
OWN_TYPES = "numbers in a column of objects are numbers, text is an object, whatever the array's type"
NO_BYTES = "bytes are no text, and an error says what both are"
EXCEPTIONS = {
    r"test_X_is_not_1D_pandas\[.*\]": "a series is refused as any vector is: Expected 2D array, got 1D array instead",
    r"test_one_hot_encoder_categories\[(mixed|string)\]": OWN_TYPES,
    r"test_one_hot_encoder_categories\[missing-(np|float)[.-]nan-object\]": ONE_NULL,
    r"test_one_hot_encoder_drop_manual\[nan.\]": ONE_NULL,
    r"test_one_hot_encoder_specified_categories\[object-(string-none|None-and-nan)-.*\]": IN_ORDER,
    r"test_one_hot_encoder_specified_categories_mixed_columns": OWN_TYPES,
    r"test_one_hot_encoder_unsorted_categories": "given numbers need no order",
    r"test_encoder_dtypes": OWN_TYPES,
    r"test_encoders_string_categories\[.*-S-[OU]\]": NO_BYTES,
    r"test_mixed_string_bytes_categoricals": NO_BYTES,
    r"test_ohe_missing_values_get_feature_names\[nan\]": ONE_NULL,
    r"test_ohe_missing_value_support_pandas_categorical\[.*\]": ONE_NULL,
}
FACTORS = "of rows that are all different, singular values are equal, and only the space of their vectors is defined"

for name, encoder in ENCODERS.items():
    setattr(theirs, name, encoder)
TESTS = {name: function for name, function in vars(theirs).items() if name.startswith("test_")}
# scikit-learn's tests take the class as a parameter; below they get this library's class.
OF_BOTH = sorted(name for name, function in TESTS.items() if "Encoder" in inspect.signature(function).parameters)
OURS = {
    name: function
    for name, function in TESTS.items()
    if {*ENCODERS, "check_categorical_onehot"} & set(function.__code__.co_names)
}
globals().update(OURS)


@pytest.fixture(autouse=True)
def _expected(request: pytest.FixtureRequest) -> None:
    """Expect the listed exceptions to fail, so that none stays listed after it passes."""
    for pattern, reason in EXCEPTIONS.items():
        if re.fullmatch(pattern, request.node.name):
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))


def test_the_lists_are_not_empty() -> None:
    """scikit-learn's tests are found."""
    assert len(OURS) > 80
    assert len(OF_BOTH) == 4


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("name", OF_BOTH)
def test_of_both_encoders(name: str, encoder: Any) -> None:
    """scikit-learn's tests of both its encoders hold for this library's encoders."""
    TESTS[name](encoder)


def test_bytes_are_no_text() -> None:
    """If scikit-learn takes text for bytes, this library's error says what both are."""
    with pytest.raises(ValueError, match="column 0 was fitted on text values and now holds bytes values"):
        OrdinalEncoder(categories=[["b", "a"]]).fit(np.array([[b"a"]]))


def expected_to_fail(encoder: Any) -> dict[str, str]:
    """Checks that cannot hold of singular vectors."""
    return {"check_sample_weight_equivalence_on_dense_data": FACTORS} if "Cooccurrence" in str(encoder) else {}


@pytest.mark.parametrize(
    "estimator",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
        OrdinalEncoder(order="target"),
        OrdinalEncoder(order="random", n_draws=2),
        ge.HashingEncoder(3, per_column=True, alternate_sign=True),
        ge.CatBoostEncoder("counter"),
        ge.ClusterEncoder(2, "statistics", output="onehot", target_type="continuous"),
        ge.CooccurrenceEncoder(1),
    ],
    ids=str,
)
def test_estimator_checks(estimator: Any) -> None:
    """Encoders with other parameters pass scikit-learn's checks, too; test_estimator_checks.py has the defaults."""
    assert unexpected(estimator, expected_to_fail(estimator)) == {}


@pytest.mark.parametrize("name", ENCODERS)
def test_parameters_mean_the_same(name: str) -> None:
    """Every parameter of scikit-learn's is there, with the same default."""
    ours = inspect.signature(ENCODERS[name].__init__).parameters
    for each in inspect.signature(getattr(preprocessing, name).__init__).parameters.values():
        if name == "OneHotEncoder":
            assert ours[each.name].kind is each.kind
        if each.name == "dtype":
            assert np.dtype(ours[each.name].default) == np.dtype(each.default)
        else:
            assert ours[each.name].default is each.default or ours[each.name].default == each.default


@pytest.mark.parametrize(("name", "parameters"), [("OneHotEncoder", {"drop": "first"}), ("OrdinalEncoder", {})])
def test_fitted_attributes_are_there(name: str, parameters: dict[str, Any]) -> None:
    """Every public attribute of scikit-learn's fitted encoders is one of ours, with the same values."""
    X = [["a"], ["b"], ["b"], ["b"], ["c"]]
    both = (getattr(preprocessing, name), ENCODERS[name])
    found: list[Any] = [encoder(max_categories=2, **parameters).fit(X) for encoder in both]
    public = [name for name in dir(found[0]) if name.endswith("_") and not name.startswith("_")]
    assert {"categories_", "infrequent_categories_", "n_features_in_"} <= set(public)
    for attribute in public:
        np.testing.assert_array_equal(getattr(found[1], attribute), getattr(found[0], attribute))
