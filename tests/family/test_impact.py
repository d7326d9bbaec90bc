"""vtreat's treatment of categories: against the formulas in plain Python, by every scheme."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gpu_encode import GLMM, ImpactEncoder, KFold, MEstimate, TargetEncoder
from tests.family.drawn import SEEN
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N

pytestmark = pytest.mark.filterwarnings("ignore:Greedy", "ignore:.*see no rows")
CITIES = ROWS["city"].fillna("missing")
Y = np.round(AMOUNT * 64) / 64


def deviation(values):
    """Sample standard deviation, of exact fractions until the root."""
    values = [Fraction(float(value)) for value in values]
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def stated(visible, city):
    """Impact by the plain mean, deviation and prevalence of one category among the visible rows."""
    everything = [Fraction(float(Y[row])) for row in visible]
    own = [Fraction(float(Y[row])) for row in visible if CITIES[row] == city]
    if not own:
        return 0.0, deviation(everything), 0.0
    impact = float(sum(own) / len(own)) - float(sum(everything) / len(everything))
    return impact, deviation(own if len(own) > 1 else everything), len(own) / len(visible)


@pytest.mark.parametrize(("scheme", "sees"), SEEN.values(), ids=SEEN)
def test_every_part(scheme, sees):
    encoder = ImpactEncoder(smooth=MEstimate(0.0), cv=scheme(), target_type="continuous")
    found = encoder.fit_transform(CITIES.to_frame(), Y).to_numpy()
    # An ordered scheme takes the mean of all rows so far up to 1/256 before the row: here, exactly.
    for row in range(2, N):
        visible = [other for other in range(N) if sees(row, other)]
        impact, spread, share = stated(visible, CITIES[row])
        assert found[row, 2] == share
        assert found[row, 0] == pytest.approx(impact, rel=1e-14, abs=1e-12)
        assert found[row, 1] == pytest.approx(spread, rel=1e-15)


@pytest.mark.parametrize("y", [SOLD, KIND], ids=["binary", "classes"])
def test_impact_and_logit_are_those_of_the_target_encoder(y):
    parameters = {"smooth": "auto", "cv": KFold(3)}
    codes = TargetEncoder(**parameters).fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    found = ImpactEncoder(["impact", "logit"], **parameters).fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    log_odds = TargetEncoder(**parameters, scale="logit").fit_transform(ROWS[["city"]], y, sample_weight=WEIGHTS)
    for column in codes:
        # What is taken off is one number a fold.
        for part, whole in (("impact", codes), ("logit", log_odds)):
            taken_off = (whole[column] - found[f"{column}_{part}"]).round(12)
            assert taken_off.nunique() == 3


def test_what_nobody_has_seen():
    encoder = ImpactEncoder(target_type="continuous", indicators=True).fit(CITIES.to_frame(), Y)
    new = encoder.transform(CITIES.to_frame().assign(city="never seen")[:1])
    assert new.iloc[0].tolist() == [0.0, pytest.approx(deviation(Y), rel=1e-15), 0.0, 1.0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"parts": ["mean"]}, "'parts' parameter of ImpactEncoder must be one of 'impact', 'logit'"),
        ({"parts": ["impact", "impact"]}, "a list of different parts"),
        ({"parts": "impact"}, "'parts' parameter of ImpactEncoder must be one of a list of parts"),
        ({"parts": []}, "'parts' parameter of ImpactEncoder must be one of a list of parts"),
        ({"smooth": GLMM()}, "a smoothing with a formula for each category"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ImpactEncoder(**parameters).fit(CITIES.to_frame(), SOLD)


def test_log_odds_of_a_quantity():
    with pytest.raises(ValueError, match="ImpactEncoder"):
        ImpactEncoder(["logit"], target_type="continuous").fit(CITIES.to_frame(), Y)
