"""Indicators mark categories that no visible row has, and missing values, in training and for new rows."""

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from tests.family.members import ROWS, SOLD, N, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy", "ignore:.* rows see no rows")
HOST = pytest.mark.host
MOMENTS = [ge.TargetEncoder, ge.StatisticEncoder, ge.ImpactEncoder, ge.CatBoostEncoder]
ENCODERS = [*MOMENTS, ge.CountEncoder, ge.WeightOfEvidenceEncoder]
SCHEMES = {
    "folds": ge.KFold(3),
    "leave-one-out": ge.LeaveOneOut(),
    "ordered": ge.Ordered(n_permutations=2),
    "holdout": ge.Holdout(0.3),
    "blow-up": ge.KFold(2, blow_up=True),
    "permutations": ge.Ordered(n_permutations=2, average=False),
}
X = ROWS[["city", "zip"]].assign(zip=ROWS["zip"].where(ROWS["zip"] != 16).astype("Int64"))
JOINT = ("zip", "city")
BOTH = {"columns": ["city", JOINT], "indicators": ["missing", "unseen"]}
# Values that fit has not seen, alone and beside a missing one.
NEW = pd.DataFrame({"city": ["a", None, "new", "new", None, "b"], "zip": pd.array([0, 1, None, 4, None, 7], "Int64")})
NO_VALUE = {"city": ["city"], "zip_x_city": ["city", "zip"]}


def check_missing(encoded, table):
    for name, columns in NO_VALUE.items():
        flags = encoded[f"{name}_missing"]
        assert flags.tolist() == table[columns].isna().any(axis=1).astype(float).tolist()
        assert 0 < flags.sum() < len(flags)


def without(table):
    return table[[name for name in table.columns if not name.endswith("_missing")]]


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_every_scheme(scheme):
    encoder = ge.TargetEncoder(cv=scheme, **BOTH)
    codes = encoder.fit_transform(X, SOLD)
    wanted = [f"{name}_{each}" for name in NO_VALUE for each in BOTH["indicators"]]
    assert codes.columns[-4:].tolist() == encoder.get_feature_names_out()[-4:].tolist() == wanted
    check_missing(codes, X)
    check_missing(encoder.transform(NEW), NEW)
    # Nothing else changes.
    alone = ge.TargetEncoder(cv=scheme, columns=BOTH["columns"], indicators=True)
    same(without(codes), alone.fit_transform(X, SOLD))
    same(without(encoder.transform(NEW)), alone.transform(NEW))


@pytest.mark.parametrize("policy", ["category", "nan", "as unseen"])
@pytest.mark.parametrize("made", ENCODERS)
def test_every_encoder_and_policy(made, policy):
    unseen = "prior" if made in MOMENTS else "zero"
    encoder = made(handle_missing=unseen if policy == "as unseen" else policy, **BOTH)
    check_missing(encoder.fit_transform(X, SOLD), X)
    codes = encoder.transform(NEW)
    check_missing(codes, NEW)
    # A missing value has been seen if missing values are a category.
    assert codes["city_unseen"].tolist() == [0, 0 if policy == "category" else 1, 1, 1, int(policy != "category"), 0]


def test_no_list_is_as_before():
    for asked, listed in ((True, ["unseen"]), (False, [])):
        one, other = (ge.TargetEncoder(columns=["city"], indicators=each) for each in (asked, listed))
        same(one.fit_transform(X, SOLD), other.fit_transform(X, SOLD))
        same(one.transform(NEW), other.transform(NEW))
    only = ge.TargetEncoder(columns=["city"], indicators=["missing"]).fit(X, SOLD)
    assert only.get_feature_names_out().tolist() == ["city", "city_missing", "zip"]


def test_levels_and_given_categories():
    texts = pd.DataFrame({"path": ["aa", "ab", None, "ba", "bb", "aa"]})
    rule = ge.TargetEncoder(hierarchy={"path": ge.Prefixes(1)}, indicators=["missing"], cv=2)
    assert rule.fit_transform(texts, [0, 1, 1, 0, 1, 0])["path_missing"].tolist() == [0, 0, 1, 0, 0, 0]
    assert rule.transform(texts)["path_missing"].tolist() == [0, 0, 1, 0, 0, 0]
    # The levels above a column are no part of its key.
    above = ge.TargetEncoder(columns=["city"], hierarchy={"city": ["zip"]}, indicators=["missing"])
    assert above.fit_transform(X, SOLD)["city_missing"].tolist() == X["city"].isna().astype(float).tolist()
    assert above.transform(NEW)["city_missing"].tolist() == [0, 1, 0, 0, 1, 0]
    given = ge.CountEncoder(categories=[["a", "b"]], columns=["city"], indicators=["missing", "unseen"]).fit(X)
    assert given.transform(NEW)["city_missing"].tolist() == [0, 1, 0, 0, 1, 0]
    # A missing value is as unseen as any other, unless it is one of the given categories.
    assert given.transform(NEW)["city_unseen"].tolist() == [0, 1, 1, 1, 1, 0]


@HOST
def test_partial_fits_keep_their_indicators():
    encoder = ge.TargetEncoder(**BOTH).partial_fit(X[:40], SOLD[:40]).partial_fit(X[40:], SOLD[40:])
    same(encoder.transform(NEW), ge.TargetEncoder(**BOTH).fit(X, SOLD).transform(NEW))
    with pytest.raises(ValueError, match=r"indicators is now \(.missing.,\) and was"):
        encoder.set_params(indicators=["missing"]).partial_fit(X, SOLD)
    # True is another word for the same.
    one = ge.TargetEncoder(columns=["city"], indicators=True, cv=ge.Greedy()).partial_fit(X, SOLD)
    one.set_params(indicators=["unseen"]).partial_fit(X, SOLD)


@HOST
def test_a_table_without_rows_and_a_narrow_type():
    encoder = ge.TargetEncoder(dtype="float32", **BOTH).fit(X, SOLD)
    assert encoder.transform(NEW[:0]).shape == (0, 6)
    assert set(encoder.transform(NEW).dtypes) == {np.dtype("float32")}
    assert len(encoder.transform(X)) == N
