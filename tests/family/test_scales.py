"""Codes on another scale are the codes as they are, put on it: in training, for new rows, and for what is unseen."""

import math

import numpy as np
import pytest

from gpu_encode import CatBoostEncoder, KFold, LeaveOneOut, Ordered, Prefixes, StatisticEncoder, TargetEncoder
from gpu_encode.formulas.scales import on_scale
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
SCALES = ["log1p", "sqrt", "logit", 2.0, 0.5]
SCHEMES = {"folds": KFold(3), "leave-one-out": LeaveOneOut(), "ordered": Ordered(), "blow-up": KFold(2, blow_up=True)}


def on(table, scale):
    return table.apply(lambda column: on_scale(column.to_numpy(), scale))


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize(
    "scale", [pytest.param(each, marks=() if each == "logit" else pytest.mark.host) for each in SCALES]
)
def test_every_scale_and_scheme(scale, scheme):
    for y in (SOLD, KIND, *([np.abs(AMOUNT)] if scale != "logit" else [])):
        codes = {}
        for each in ("identity", scale):
            encoder = TargetEncoder(cv=scheme, smooth=2.0, scale=each, handle_missing="prior")
            codes[each] = encoder.fit_transform(ROWS[["city"]], y), encoder.transform(ROWS[["city"]])
        for plain, scaled in zip(*codes.values(), strict=True):
            same(scaled, on(plain, scale))


def test_levels_are_blended_before_and_the_users_number_stays():
    plain, scaled = (
        TargetEncoder(hierarchy={"path": Prefixes(1)}, smooth=1.0, scale=scale, handle_unknown=-7.0)
        for scale in ("identity", "sqrt")
    )
    X = ROWS[["zip"]].astype(str).rename(columns={"zip": "path"})
    same(scaled.fit_transform(X, SOLD), on(plain.fit_transform(X, SOLD), "sqrt"))
    assert scaled.transform(X.assign(path="never seen")).to_numpy().max() == -7.0


@pytest.mark.parametrize("scale", SCALES)
def test_against_the_true_function(scale):
    truth = {"log1p": math.log1p, "sqrt": math.sqrt, "logit": lambda x: math.log(x / (1 - x))}
    function = truth.get(scale, lambda x: x**scale)
    values = np.array([1e-5, 0.1, 0.5, 0.9, 0.99999])
    # The functions are the library's own, within a few units in the last place of the true ones.
    assert on_scale(values, scale).tolist() == pytest.approx([function(x) for x in values], rel=1e-14, abs=1e-15)
    assert on_scale(np.array([0.0]), scale)[0] == (math.log(2.0**-20 / (1 - 2.0**-20)) if scale == "logit" else 0.0)
    assert np.isnan(on_scale(np.array([np.nan]), scale)[0])


def test_what_has_no_place_on_a_scale():
    with pytest.raises(
        ValueError, match=r"scale='sqrt' of TargetEncoder is for numbers of at least 0, but the mean of y may be"
    ):
        TargetEncoder(scale="sqrt").fit(ROWS, AMOUNT)
    with pytest.raises(ValueError, match="is for shares between 0 and 1, but the mean of y may be anything from "):
        TargetEncoder(scale="logit").fit(ROWS, np.abs(AMOUNT) * 9)
    for wrong in ("log", 0.0, True, None):
        with pytest.raises(ValueError, match="'scale' parameter of TargetEncoder must be"):
            TargetEncoder(scale=wrong).fit(ROWS, SOLD)


@pytest.mark.parametrize(("scale", "prior"), [("sqrt", -5.0), (0.5, -1.0), ("logit", 1.5), ("log1p", {"city": -1.0})])
def test_priors_have_a_place_on_the_scale(scale, prior):
    with pytest.raises(ValueError, match=r"parameter of TargetEncoder must be a finite number of at least 0"):
        TargetEncoder(scale=scale, prior=prior).fit(ROWS[["city"]], SOLD)


FAMILY = {
    "statistics": lambda **given: StatisticEncoder(["count", "mean", "std", "sum"], target_type="auto", **given),
    "labels and priors": lambda **given: CatBoostEncoder("buckets", target_type="multiclass", **given),
    "a mean and priors": lambda **given: CatBoostEncoder("mean", [0.0, 0.25], 2.0, target_type="binary", **given),
}


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("make", FAMILY.values(), ids=FAMILY)
def test_every_encoder_and_scheme(make, scheme):
    for scale in ("log1p", 0.5):
        plain, scaled = make(cv=scheme), make(cv=scheme, scale=scale)
        same(scaled.fit_transform(ROWS[["city"]], SOLD), on(plain.fit_transform(ROWS[["city"]], SOLD), scale))
        same(scaled.transform(ROWS[["city"]]), on(plain.transform(ROWS[["city"]]), scale))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("statistic", ["counter", "frequency"])
def test_counts(statistic, scale):
    plain, scaled = (CatBoostEncoder(statistic, scale=each) for each in ("identity", scale))
    same(scaled.fit_transform(ROWS[["city"]]), on(plain.fit_transform(ROWS[["city"]]), scale))


def test_values_in_order():
    given = {"values": ["price"], "columns": ["city"]}
    statistics = ["median", "max", "nunique", ("quantile", 0.3), "mode"]
    X = ROWS.assign(price=ROWS["price"].abs())
    plain, scaled = (StatisticEncoder(statistics, scale=each, **given).fit(X) for each in ("identity", "sqrt"))
    columns = [name for name in plain.get_feature_names_out() if name.startswith("city")]
    same(scaled.transform(X)[columns], on(plain.transform(X)[columns], "sqrt"))
    shares = StatisticEncoder([("share", 0.5), "mean"], values=["price"], columns=["city"], scale="logit")
    assert not np.isnan(shares.fit_transform(X.assign(price=X["price"] % 1.0))["city_price_mean"]).any()


def spread(count, mean, variance):
    return variance / mean


@pytest.mark.host
@pytest.mark.parametrize(
    ("statistic", "scale", "where"),
    [
        ("mean", "sqrt", "'mean' of 'price' may be anything from -"),
        ("min", 2.0, "'min' of 'price' may be anything from -"),
        (("quantile", 0.5), "log1p", "'quantile_0.5' of 'price' may be anything from -"),
        ("sum", "log1p", "'sum' of 'price' may be anything from -inf to inf"),
        ("skew", "sqrt", "'skew' of 'price' may be anything from -inf to inf"),
        (spread, "sqrt", "'spread' of 'price' may be anything from -inf to inf"),
        ("count", "logit", "'count' of 'price' may be anything from 0 to inf"),
        ("std", "logit", "'std' of 'price' may be anything from 0 to inf"),
        ("nunique", "logit", "'nunique' of 'price' may be anything from 0 to inf"),
    ],
)
def test_statistics_that_have_no_place_on_a_scale(statistic, scale, where):
    encoder = StatisticEncoder([statistic], values=["price"], scale=scale)
    wanted = "shares between 0 and 1" if scale == "logit" else "numbers of at least 0"
    with pytest.raises(ValueError, match=f"={scale!r} of StatisticEncoder is for {wanted}, but the statistic {where}"):
        encoder.fit(ROWS)


@pytest.mark.host
def test_statistics_that_have_one_whatever_the_values():
    kept = ["count", "var", "std", "sem", "nunique", ("share", 0.1)]
    codes = StatisticEncoder(kept, values=["price"], columns=["city"], scale="sqrt", ddof=0).fit_transform(ROWS)
    assert not codes.isna().to_numpy().any()


@pytest.mark.host
@pytest.mark.parametrize(
    ("parameters", "y"),
    [
        ({"priors": [-1.0]}, SOLD),
        ({"statistic": "counter", "priors": [0.5, -0.5]}, None),
        ({}, AMOUNT),
        ({"priors": [1.5], "scale": "logit"}, SOLD),
    ],
)
def test_priors_that_have_no_place_on_a_scale(parameters, y):
    encoder = CatBoostEncoder(**{"scale": "sqrt"} | parameters)
    with pytest.raises(ValueError, match=r"statistic='.*' with priors=\[.*\] of y may be anything from "):
        encoder.fit(ROWS[["city"]], y)
