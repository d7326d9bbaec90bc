"""Infrequent categories in every encoder: as if they had been put together, or left out, among the rows in sight."""

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from cpu_fallback.elementary import log
from tests.family.members import AMOUNT, GRADIENTS, KIND, SOLD, WEIGHTS, N, same
from tests.family.test_infrequent import CITIES, rare_among

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
HOST = pytest.mark.host
ONES = np.ones(N, int)
RULES = [
    {"min_frequency": 0.1},
    *(pytest.param(rule, marks=HOST) for rule in ({"min_frequency": 12}, {"min_frequency": 2, "max_categories": 4})),
]
OF_CLASSES = {"target_type": "multiclass"}

# How an encoder is made of a scheme and other parameters, and its target.
ENCODERS = {
    "evidence": (ge.WeightOfEvidenceEncoder, {}, SOLD),
    "evidence, classes": (ge.WeightOfEvidenceEncoder, {"regularization": 0.0, **OF_CLASSES}, KIND),
    "statistics": (ge.StatisticEncoder, {"statistics": ["count", "sum", "mean", "var", "sem", "skew"]}, AMOUNT),
    "statistics, classes": (ge.StatisticEncoder, {"statistics": ["count", "sum", "std"], **OF_CLASSES}, KIND),
    "impact": (ge.ImpactEncoder, {"target_type": "continuous"}, AMOUNT),
    "impact, logit": (ge.ImpactEncoder, {"parts": ["logit", "impact"], "smooth": ge.JamesStein(), **OF_CLASSES}, KIND),
    "catboost": (ge.CatBoostEncoder, {"target_type": "continuous"}, AMOUNT),
    "catboost, borders": (ge.CatBoostEncoder, {"statistic": "borders", "borders": [-2.0, 30.0]}, AMOUNT),
    "catboost, buckets": (ge.CatBoostEncoder, {"statistic": "buckets", "scale": "sqrt", **OF_CLASSES}, KIND),
    "catboost, counter": (ge.CatBoostEncoder, {"statistic": "counter"}, SOLD),
    "catboost, frequency": (ge.CatBoostEncoder, {"statistic": "frequency", "weight": 0.0}, SOLD),
    "gradients": (ge.GradientEncoder, {"regularization": 0.5}, GRADIENTS),
    "gradients, order": (ge.GradientEncoder, {"output": "order"}, GRADIENTS),
    "glmm": (ge.TargetEncoder, {"smooth": ge.GLMM()}, SOLD),
    "james-stein": (ge.TargetEncoder, {"smooth": ge.JamesStein(), "target_type": "continuous"}, AMOUNT),
    "means": (ge.TargetEncoder, {"smooth": 3.0}, SOLD),
    "means of a quantity": (ge.TargetEncoder, {"smooth": 3.0, "target_type": "continuous"}, AMOUNT),
    "means of classes": (ge.TargetEncoder, {"smooth": 3.0, **OF_CLASSES}, KIND),
    "mean of categories": (ge.TargetEncoder, {"smooth": 1.0, "prior": "category_mean"}, SOLD),
}
HANDLED = {True: "category", False: "prior"}
ORDERED = {"order statistics": (ge.StatisticEncoder, {"statistics": ["median", "count", "nunique"]}, AMOUNT)}


def unseen_word(encoder):
    return "zero" if encoder in (ge.WeightOfEvidenceEncoder, ge.CountEncoder) else "prior"


def stated(encoder, parameters, y, weights, visible, rows, rule, together, cities=CITIES["city"]):
    """Codes of some rows from those that are visible, by an encoder that knows nothing of infrequent categories."""
    rare = rare_among(cities[visible], pd.Series(weights)[visible], **rule)
    merged = cities.where(~cities.isin(rare), "~rare").to_frame()
    seen = cities[visible & (weights > 0)]
    kept = "auto" if together else [sorted(set(seen) - rare)]
    plain = encoder(cv=ge.Greedy(), categories=kept, **parameters)
    plain.fit(merged[visible], y[visible], sample_weight=weights[visible])
    return plain.transform(merged[rows])


@pytest.mark.parametrize("weights", [pytest.param(ONES, marks=HOST), WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(
    ("name", "together"), [*((name, flag) for name in ENCODERS for flag in (True, False)), ("order statistics", False)]
)
def test_put_together_or_left_out_by_hand(name, together, rule, weights):
    encoder, parameters, y = (ENCODERS | ORDERED)[name]
    handle = "category" if together else unseen_word(encoder)
    made = encoder(cv=ge.KFold(3, order="interleaved"), handle_infrequent=handle, **rule, **parameters)
    found = made.fit_transform(CITIES, y, sample_weight=weights)
    for fold in range(3):
        rows = np.arange(N) % 3 == fold
        same(found[rows], stated(encoder, parameters, y, weights, ~rows, rows, rule, together))
    everything = np.ones(N, bool)
    assert rare_among(CITIES["city"], pd.Series(weights), **rule)
    same(made.transform(CITIES), stated(encoder, parameters, y, weights, everything, everything, rule, together))


@pytest.mark.parametrize("together", [True, False], ids=["together", "as unseen"])
@pytest.mark.parametrize("name", ["mean of categories", "james-stein", "gradients, order", "catboost, counter"])
def test_a_fold_without_rare_categories_has_none_together(name, together):
    # All rows of the only rare city are of the first fold, which therefore sees none.
    cities = pd.Series(np.where(np.arange(N) % 15 == 0, "rare", np.where(np.arange(N) % 5 < 2, "b", "a")), name="city")
    (encoder, parameters, y), rule = ENCODERS[name], {"min_frequency": 10}
    made = encoder(cv=ge.KFold(3, order="interleaved"), handle_infrequent=HANDLED[together], **rule, **parameters)
    found = made.fit_transform(cities.to_frame(), y)
    for fold in range(3):
        rows = np.arange(N) % 3 == fold
        assert bool(rare_among(cities[~rows], pd.Series(ONES)[~rows], **rule)) == (fold > 0)
        same(found[rows], stated(encoder, parameters, y, ONES, ~rows, rows, rule, together, cities))


@pytest.mark.parametrize("together", [True, False], ids=["together", "as unseen"])
def test_evidence_and_counters_by_loops(together):
    rare = rare_among(CITIES["city"], pd.Series(ONES), max_categories=4)
    named = ["~rare" if city in rare else city for city in CITIES["city"]]
    n = {city: named.count(city) for city in named}
    ones = {city: sum(int(s) for c, s in zip(named, SOLD, strict=True) if c == city) for city in named}
    total = int(SOLD.sum())
    p = {city: (ones[city] + 1.0) / (total + 2.0) for city in n}
    q = {city: (n[city] - ones[city] + 1.0) / (N - total + 2.0) for city in n}
    largest = max(number for city, number in n.items() if together or city != "~rare")
    evidence = {city: float(log(np.array([p[city] / q[city]]))[0]) for city in n}
    counter = {city: n[city] / (largest + 1.0) for city in n}
    if not together:
        evidence["~rare"] = counter["~rare"] = 0.0
    given = {"max_categories": 4}
    encoder = ge.WeightOfEvidenceEncoder(handle_infrequent="category" if together else "zero", **given).fit(
        CITIES, SOLD
    )
    assert encoder.transform(CITIES)["city"].tolist() == [evidence[city] for city in named]
    information = sum((p[city] - q[city]) * evidence[city] for city in n)
    # Numpy's sum of five numbers is not the exact one.
    assert encoder.information_value_.tolist() == pytest.approx([information], rel=1e-14)
    encoder = ge.CatBoostEncoder("counter", [0.0], handle_infrequent="category" if together else "prior", **given)
    assert encoder.fit_transform(CITIES)["city"].tolist() == [counter[city] for city in named]


def test_columns_of_values_tell_their_own_rare_categories():
    X = pd.DataFrame({"k": list("aaabbbcc"), "v": [1.0, 2.0, 3.0, 4.0, None, None, 7.0, 8.0], "w": np.arange(8.0)})
    encoder = ge.StatisticEncoder(["count", "mean"], values=["v", "w"], min_frequency=3, handle_infrequent="category")
    found = encoder.fit_transform(X)
    # Of v there are 3, 1 and 2 values, of w 3, 3 and 2.
    assert found["k_v_count"].tolist() == [3.0] * 8
    assert found["k_v_mean"].tolist() == [2.0] * 3 + [19.0 / 3] * 5
    assert found["k_w_count"].tolist() == [3.0] * 6 + [2.0] * 2
    assert found["k_w_mean"].tolist() == [1.0] * 3 + [4.0] * 3 + [6.5] * 2


@HOST
@pytest.mark.parametrize(
    "encoder", [ge.WeightOfEvidenceEncoder, ge.StatisticEncoder, ge.ImpactEncoder, ge.CatBoostEncoder]
)
def test_refusals(encoder):
    name = encoder.__name__
    with pytest.raises(ValueError, match=f"'min_frequency' parameter of {name} must be one of None, an integer of at"):
        encoder(min_frequency=0).fit(CITIES, SOLD)
    with pytest.raises(ValueError, match=f"'handle_infrequent' parameter of {name} must be one of"):
        encoder(handle_infrequent="frequent").fit(CITIES, SOLD)
    with pytest.raises(ValueError, match=rf"{name} tells infrequent .* rows of LeaveOneOut see sums of their own\."):
        encoder(cv=ge.LeaveOneOut(), max_categories=3).fit(CITIES, SOLD)


@HOST
def test_values_in_order_are_not_pooled():
    encoder = ge.StatisticEncoder(["sum", "median"], max_categories=3, handle_infrequent="category")
    with pytest.raises(ValueError, match=r"\"category\" for statistics=\['median'\], which no sums give\. Leave"):
        encoder.fit(CITIES, AMOUNT)
