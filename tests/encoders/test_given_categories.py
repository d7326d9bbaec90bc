"""Categories that the user gives: a missing value that is not among them is unknown, like any other value."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import TargetEncoder as ScikitTargetEncoder

import gpu_encode as ge
from tests.bits import assert_same_bits

CITIES = [*"xyxy", None, "x", None, "z", "y", "x", None, "y"] * 2
X = pd.DataFrame({"city": pd.Series(CITIES, dtype=object)})
SIZES = pd.DataFrame({"city": X["city"].map({"x": 1.5, "y": 2.0, "z": 3.0}).astype(float)})
SOLD = np.arange(len(X)) % 3 % 2
AMOUNT = np.arange(len(X)) / 4
QUANTITY = {"target_type": "continuous"}
SCHEMES = {"folds": ge.KFold(3), "leave-one-out": ge.LeaveOneOut(), "ordered": ge.Ordered()}
ENCODERS = {
    **{f"target, {name}": (partial(ge.TargetEncoder, **QUANTITY, cv=cv), AMOUNT) for name, cv in SCHEMES.items()},
    "to NaN": (partial(ge.TargetEncoder, handle_unknown="nan", **QUANTITY), AMOUNT),
    "to a number": (partial(ge.TargetEncoder, handle_unknown=-7.0), SOLD),
    "count": (ge.CountEncoder, None),
    "statistic": (partial(ge.StatisticEncoder, ["count", "median"]), AMOUNT),
    "evidence": (ge.WeightOfEvidenceEncoder, SOLD),
    "impact": (partial(ge.ImpactEncoder, **QUANTITY), AMOUNT),
    "catboost": (ge.CatBoostEncoder, SOLD),
    "ordinal": (partial(ge.OrdinalEncoder, handle_unknown="use_encoded_value", unknown_value=-1), None),
    "one-hot": (partial(ge.OneHotEncoder, sparse_output=False, handle_unknown="ignore"), None),
}


@pytest.mark.filterwarnings("ignore:.* see no rows")
@pytest.mark.parametrize(("table", "given", "other"), [(X, ["x", "y"], "?"), (SIZES, [1.5, 2.0], -1.0)])
@pytest.mark.parametrize(("make", "y"), ENCODERS.values(), ids=ENCODERS)
def test_missing_values_are_unknown(make, y, table, given, other):
    encoders = [make(categories=[given]) for _ in range(3)]
    filled = table.fillna(other)
    expected = encoders[0].fit_transform(filled, y)
    assert_same_bits(encoders[1].fit_transform(table, y), expected)
    pieces = encoders[2].fit_transform([table[:5], table[5:]], None if y is None else [y[:5], y[5:]])
    assert_same_bits(pd.concat(pieces), expected)
    for encoder in encoders:
        assert_same_bits(encoder.transform(table), encoders[0].transform(filled))
        assert encoder.categories_[0].tolist() == given
        assert_same_bits(encoder.encodings_, encoders[0].encodings_)


def test_what_scikit_learn_gives():
    choices = {"categories": [["x", "y"]], "smooth": 0.0, **QUANTITY}
    # Its fit counts unknown rows to the first category.
    known = X["city"].isin(["x", "y"]).to_numpy()
    theirs = ScikitTargetEncoder(**choices).fit(X[known].to_numpy(), AMOUNT[known]).transform(X.to_numpy())
    ours = ge.TargetEncoder(**choices).fit(X[known], AMOUNT[known]).transform(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-15)


def test_unknown_values_that_are_errors():
    encoder = ge.TargetEncoder(categories=[["x", "y", "z"]], handle_unknown="error")
    with pytest.raises(ValueError, match=r"unknown categories in column 'city' during fit: 6 rows, the first in row 4"):
        encoder.fit(X, SOLD)
    encoder.fit(X.dropna(), SOLD[X["city"].notna()])
    with pytest.raises(ValueError, match=r"unknown categories in column 'city'.*: 6 rows, the first in row 4 \(None\)"):
        encoder.transform(X)
    listed = ge.TargetEncoder(categories=[["x", "y", "z", None]], handle_unknown="error").fit(X, SOLD)
    assert listed.categories_[0].tolist() == ["x", "y", "z", None]


@pytest.mark.parametrize(("policy", "encoding"), [("nan", np.nan), ("prior", AMOUNT.mean())])
def test_what_becomes_of_missing_values_may_be_said(policy, encoding):
    encoder = ge.TargetEncoder(categories=[["x", "y"]], handle_missing=policy, handle_unknown=-7.0, **QUANTITY)
    assert_same_bits(encoder.fit(X, AMOUNT).transform(X)["city"][[4, 7]].to_numpy(), np.array([encoding, -7.0]))
    with pytest.raises(ValueError, match="missing"):
        encoder.set_params(handle_missing="error").fit(X, AMOUNT)


def test_indicators_tell_missing_from_unseen():
    encoder = ge.CountEncoder(categories=[["x", "y"]], indicators=["missing", "unseen"])
    for encoded in (encoder.fit_transform(X), encoder.transform(X)):
        assert encoded["city_missing"].tolist() == X["city"].isna().tolist()
        assert encoded["city_unseen"].tolist() == (X["city"].isna() | (X["city"] == "z")).tolist()
