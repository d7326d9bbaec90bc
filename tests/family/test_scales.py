"""Codes on another scale are the codes as they are, put on it: in training, for new rows, and for what is unseen."""

import math

import numpy as np
import pytest

from gpu_encode import KFold, LeaveOneOut, Ordered, Prefixes, TargetEncoder
from gpu_encode.scales import on_scale
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
SCALES = ["log1p", "sqrt", "logit", 2.0, 0.5]
SCHEMES = {"folds": KFold(3), "leave-one-out": LeaveOneOut(), "ordered": Ordered(), "blow-up": KFold(2, blow_up=True)}


def on(table, scale):
    return table.apply(lambda column: on_scale(column.to_numpy(), scale))


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("scale", SCALES)
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
        ValueError, match=r"scale='sqrt' of TargetEncoder is for means of numbers of at least 0; y lies"
    ):
        TargetEncoder(scale="sqrt").fit(ROWS, AMOUNT)
    with pytest.raises(ValueError, match="is for means of shares between 0 and 1"):
        TargetEncoder(scale="logit").fit(ROWS, np.abs(AMOUNT) * 9)
    for wrong in ("log", 0.0, True, None):
        with pytest.raises(ValueError, match="'scale' parameter of TargetEncoder must be"):
            TargetEncoder(scale=wrong).fit(ROWS, SOLD)


@pytest.mark.parametrize(("scale", "prior"), [("sqrt", -5.0), (0.5, -1.0), ("logit", 1.5), ("log1p", {"city": -1.0})])
def test_priors_have_a_place_on_the_scale(scale, prior):
    with pytest.raises(ValueError, match=r"parameter of TargetEncoder must be a finite number of at least 0"):
        TargetEncoder(scale=scale, prior=prior).fit(ROWS[["city"]], SOLD)
