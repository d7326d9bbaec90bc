"""What an encoder of places refuses, and what it then leaves as it was."""

from math import nan

import numpy as np
import pandas as pd
import pytest

from gpu_encode import LeaveOneOut, Ordered, OrdinalEncoder, TimeFolds
from tests.family.test_ordinal import X, Y

pytestmark = pytest.mark.host


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"order": "mean"}, ValueError, "'order' parameter of OrdinalEncoder must be one of 'value', 'frequency'"),
        ({"n_draws": 2}, ValueError, "order='value' gives the same codes in each of n_draws=2. Choose order='random'"),
        ({"order": "random", "n_draws": 0}, ValueError, "'n_draws' .* integer of at least 1"),
        ({"order": "random", "random_state": None}, ValueError, "'random_state' .* integer of at least 0. Got None"),
        ({"handle_unknown": "ignore"}, ValueError, "'handle_unknown' .* one of 'error', 'use_encoded_value'"),
        ({"unknown_value": 3}, TypeError, "unknown_value should only be set when .* got 3"),
        ({"handle_unknown": "use_encoded_value"}, TypeError, "unknown_value should be an integer or .* got None"),
        ({"encoded_missing_value": 1.5}, ValueError, "'encoded_missing_value' .* an integer, np.nan. Got 1.5"),
        ({"min_frequency": 0}, ValueError, "'min_frequency' .* at least 1"),
        ({"min_frequency": 1.0}, ValueError, "'min_frequency' .* a share of the rows between 0 and 1. Got 1.0"),
        ({"max_categories": 0}, ValueError, "'max_categories' .* at least 1"),
        ({"dtype": "str"}, ValueError, "'dtype' .* a type of floats, a type of integers"),
        ({"dtype": "foo"}, ValueError, "'dtype' parameter of OrdinalEncoder must be one of a type of floats, .*Got"),
        ({"dtype": "i4,,"}, ValueError, "'dtype' parameter of OrdinalEncoder must be one of a type of floats"),
        ({"encoded_missing_value": 2**53 + 1}, ValueError, r"'encoded_missing_value' .* from -2\*\*53 to 2\*\*53"),
        (
            {"handle_unknown": "use_encoded_value", "unknown_value": 2049, "dtype": "float16"},
            ValueError,
            "needs the code 2049, which float16 cannot hold",
        ),
        ({"encoded_missing_value": 70_001, "dtype": "float16"}, ValueError, "needs the code 70001, which float16"),
        ({"encoded_missing_value": -(2**24) - 1, "dtype": "float32"}, ValueError, "needs the code -16777217, which"),
        ({"dtype": int}, ValueError, r"missing values in features \[0\].* dtype: <class 'int'>, set encoded_missing"),
        ({"handle_unknown": "use_encoded_value", "unknown_value": 6}, ValueError, "unknown_value 6 is one of .*0 to 6"),
        ({"encoded_missing_value": 6}, ValueError, r"encoded_missing_value \(6\) is already used .*: \[0\]"),
        ({"encoded_missing_value": -1, "dtype": "uint8"}, ValueError, "Column 'x0' needs the code -1, which uint8"),
        ({"categories": [[*"abcdefg"]]}, ValueError, r"unknown categories \[nan\] in column 'x0' during fit"),
        ({"order": "target", "cv": LeaveOneOut()}, ValueError, "order='target' of OrdinalEncoder looks at all"),
        ({"order": "target", "cv": Ordered()}, ValueError, "order='target' of OrdinalEncoder looks at all"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_errors_leave_everything_as_it_was(parameters, error, match):
    fitted = OrdinalEncoder().fit(pd.DataFrame({"other": ["a"]}))
    with pytest.raises(error, match=match):
        fitted.set_params(**parameters).fit(X, Y)
    assert fitted.feature_names_in_.tolist() == ["other"]
    assert fitted.categories_[0].tolist() == ["a"]


def test_codes_that_no_category_has():
    encoder = OrdinalEncoder().fit([["a"], ["b"]])
    for code in (2, -1, 0.5, nan):
        with pytest.raises(ValueError, match=r"X holds .* for column 'x0', whose codes are 0 to 1"):
            encoder.inverse_transform([[code]])


def test_too_many_categories_for_a_type():
    with pytest.raises(ValueError, match="Column 'x0' needs the code 128, which int8 cannot hold"):
        OrdinalEncoder(dtype="int8").fit([[number] for number in range(129)])
    assert OrdinalEncoder(dtype="int8").fit_transform([[number] for number in range(128)])[-1, 0] == 127


def test_a_float_holds_all_codes_exactly_or_none():
    """Half floats hold the integers up to 2048."""
    rows = np.arange(2050).reshape(-1, 1)
    with pytest.raises(ValueError, match="'x0' needs the code 2049, which float16 cannot hold"):
        OrdinalEncoder(dtype="float16").fit_transform(rows)
    assert OrdinalEncoder(dtype="float16").fit_transform(rows[:-1])[:, 0].tolist() == list(range(2049))
    encoder = OrdinalEncoder("auto", "float16", "use_encoded_value", 4096).fit(rows[:-1])
    assert encoder.transform([[-1]]).item() == 4096


def test_the_place_of_what_is_unseen_is_a_code():
    """Rows whose value is missing take part in the mean, which lies above those of all 128 categories here."""
    X = [[number] for number in range(128)] + [[None]]
    y = [*np.arange(128) / 128, 1000.0]
    codes = {"encoded_missing_value": -1, "order": "target", "target_type": "continuous"}
    with pytest.raises(ValueError, match="Column 'x0' needs the code 128, which int8 cannot hold"):
        OrdinalEncoder(dtype="int8", **codes).fit(X, y)
    assert OrdinalEncoder(dtype="uint8", **codes | {"encoded_missing_value": 255}).fit(X, y).encodings_[0].max() == 255


def test_rows_that_see_nothing():
    frame = pd.DataFrame({"key": ["a", "b"] * 4, "time": range(8)})
    cv = TimeFolds(4, time="time")
    y = np.arange(8) / 8
    codes = OrdinalEncoder(order="target", cv=cv).fit_transform(frame, y)
    assert np.isnan(codes["key"]).tolist() == [True] * 2 + [False] * 6
    with pytest.raises(ValueError, match="2 codes are NaN, because their rows see no other rows, and int32 has none"):
        OrdinalEncoder("auto", "int32", order="target", cv=cv).fit_transform(frame, y)
    encoder = OrdinalEncoder("auto", "int32", "use_encoded_value", -1, order="target", cv=cv)
    assert encoder.fit_transform(frame, y)["key"].tolist()[:2] == [-1, -1]


def test_a_merge_that_needs_a_code_taken_changes_nothing():
    one, other = (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=1) for _ in range(2))
    one.fit([["a"]])
    with pytest.raises(ValueError, match="unknown_value 1 is one of the values"):
        one.merge(other.fit([["b"]]))
    assert one.categories_[0].tolist() == ["a"]
