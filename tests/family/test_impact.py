"""vtreat's treatment of categories: against the formulas in plain Python."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gpu_encode import ImpactEncoder, KFold, MEstimate, TargetEncoder
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N

pytestmark = pytest.mark.filterwarnings("ignore:Greedy", "ignore:.*see no rows")
CITIES = ROWS["city"].fillna("missing")
Y = np.round(AMOUNT * 64) / 64


def deviation(values):
    """Sample standard deviation, of exact fractions until the root."""
    values = [Fraction(float(value)) for value in values]
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def state(city):
    """Impact by the plain mean, deviation and prevalence of one category."""
    everything = [Fraction(float(y)) for y in Y]
    members = [Fraction(float(y)) for y in Y[city == CITIES]]
    impact = float(sum(members) / len(members)) - float(sum(everything) / N)
    return impact, deviation(members if len(members) > 1 else everything), len(members) / N


def test_every_part():
    encoder = ImpactEncoder(smooth=MEstimate(0.0), target_type="continuous").fit(CITIES.to_frame(), Y)
    encodings = encoder.transform(CITIES.to_frame()).to_numpy()
    for row in range(N):
        impact, spread, share = state(CITIES[row])
        assert encodings[row, 2] == share
        assert encodings[row, 0] == pytest.approx(impact, rel=1e-14, abs=1e-12)
        assert encodings[row, 1] == pytest.approx(spread, rel=1e-15)


@pytest.mark.parametrize("y", [SOLD, KIND], ids=["binary", "classes"])
def test_impact_and_logit_are_those_of_the_target_encoder(y):
    parameters = {"smooth": "auto", "cv": KFold(3)}
    codes = TargetEncoder(**parameters).fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    parts = ImpactEncoder(["impact", "logit"], **parameters).fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    log_odds = TargetEncoder(**parameters, scale="logit").fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    for column in codes:
        # What is taken off is one number a fold.
        for part, whole in (("impact", codes), ("logit", log_odds)):
            taken_off = (whole[column] - parts[f"{column}_{part}"]).round(12)
            assert taken_off.nunique() == 3


def test_what_nobody_has_seen():
    encoder = ImpactEncoder(target_type="continuous", indicators=True).fit(CITIES.to_frame(), Y)
    new = encoder.transform(CITIES.to_frame().assign(city="never seen")[:1])
    assert new.iloc[0].tolist() == [0.0, pytest.approx(deviation(Y), rel=1e-15), 0.0, 1.0]
