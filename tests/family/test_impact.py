"""vtreat's treatment of categories, compared with the formulas in plain Python."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from gpu_encode import ImpactEncoder, KFold, MEstimate, TargetEncoder
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N
from tests.laws import published

pytestmark = pytest.mark.filterwarnings("ignore:Greedy", "ignore:.*see no rows")
CITIES = ROWS["city"].fillna("missing")
Y = np.round(AMOUNT * 64) / 64


def variance(values):
    """Sample variance, exact."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def state(city, cities=CITIES, y=Y):
    """Return impact by the plain mean, deviation and prevalence of one category."""
    rows = {key: [Fraction(float(value)) for value in y[cities == key]] for key in dict.fromkeys(cities)}
    everything = [value for members in rows.values() for value in members]
    impact = float(sum(rows[city]) / len(rows[city])) - float(sum(everything) / len(everything))
    others = [variance(members) for members in rows.values() if len(members) > 1]
    own = variance(rows[city]) if len(rows[city]) > 1 else sum(others) / len(others)
    return impact, math.sqrt(own + Fraction(1, 1000)), len(rows[city]) / len(everything)


@pytest.mark.parametrize("cities", [CITIES, CITIES.where(ROWS.index > 1, "alone " + ROWS.index.astype(str))])
def test_every_part(cities):
    encoder = ImpactEncoder(smooth=MEstimate(0.0), target_type="continuous").fit(cities.to_frame(), Y)
    encodings = encoder.transform(cities.to_frame()).to_numpy()
    for row in range(N):
        impact, spread, share = state(cities[row], cities)
        assert encodings[row, 2] == share
        assert encodings[row, 0] == pytest.approx(impact, rel=1e-14, abs=1e-12)
        assert encodings[row, 1] == pytest.approx(spread, rel=1e-15)


@pytest.mark.parametrize("case", published.VTREAT_PARTS, ids=["aaabbc", "with missing values"])
def test_numbers_of_vtreat(case):
    X, new = pd.DataFrame({"x": case["x"]}), pd.DataFrame({"x": case["new"]})
    encodings = {}
    for missing in ("category", "prior"):
        encoder = ImpactEncoder(target_type="continuous", handle_missing=missing).fit(X, case["y"])
        encodings[missing] = encoder.transform(new)
    # A missing value is a category in the peer, except for its impact.
    np.testing.assert_allclose(encodings["prior"]["x_impact"], case["impact_code"], rtol=1e-14)
    np.testing.assert_allclose(encodings["category"]["x_deviation"], case["deviation_code"], rtol=1e-14)
    np.testing.assert_allclose(encodings["category"]["x_prevalence"], case["prevalence_code"], rtol=1e-14)


def test_log_odds_are_not_the_logarithms_of_vtreat():
    x, y, expected = published.VTREAT_LOGIT
    X = pd.DataFrame({"x": x})
    parts = ImpactEncoder(["impact", "logit"]).fit(X, y).transform(pd.DataFrame({"x": list(expected)}))
    overall = np.mean(y)
    means = parts["x_impact"] + overall
    logit_code = np.log((means + 1e-3) / (overall + 1e-3))
    np.testing.assert_allclose(logit_code, list(expected.values()), rtol=1e-12, atol=1e-15)
    log_odds = np.log(means / (1 - means)) - np.log(overall / (1 - overall))
    np.testing.assert_allclose(parts["x_logit"], log_odds, rtol=1e-12, atol=1e-15)


def test_single_rows_alone_have_no_deviation():
    encoder = ImpactEncoder(["deviation"], target_type="continuous").fit([["a"], ["b"], ["c"]], [1.0, 5.0, 9.0])
    assert encoder.transform([["a"], ["new"]]).tolist() == [[0.0], [0.0]]


def test_variances_beyond_float64_count():
    X, y = [["a"], ["a"], ["b"], ["b"], ["c"]], [1e200, -1e200, 3e200, 5e200, 0.0]
    encoder = ImpactEncoder(["deviation"], 0.0, target_type="continuous").fit(X, y)
    expected = [math.sqrt(2) * 1e200, math.sqrt(2) * 1e200, math.sqrt(2) * 1e200]
    np.testing.assert_allclose(encoder.transform([["a"], ["b"], ["c"]]).ravel(), expected, rtol=1e-15)


@pytest.mark.parametrize("y", [SOLD, KIND], ids=["binary", "classes"])
def test_impact_and_logit_are_those_of_the_target_encoder(y):
    parameters = {"smooth": "auto", "cv": KFold(3)}
    codes = TargetEncoder(**parameters).fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    parts = ImpactEncoder(["impact", "logit"], **parameters).fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    log_odds = TargetEncoder(**parameters, scale="logit").fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    for column in codes:
        # Each fold subtracts one number.
        for part, whole in (("impact", codes), ("logit", log_odds)):
            taken_off = (whole[column] - parts[f"{column}_{part}"]).round(12)
            assert taken_off.nunique() == 3


def test_what_nobody_has_seen():
    encoder = ImpactEncoder(target_type="continuous", indicators=True).fit(CITIES.to_frame(), Y)
    new = encoder.transform(CITIES.to_frame().assign(city="never seen")[:1])
    assert new.iloc[0].tolist() == [0.0, 0.0, 0.0, 1.0]
