"""Infrequent categories follow from the rows that each row sees; they are joined into one category, or are unseen."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from gpu_encode import TargetEncoder
from gpu_encode.formulas.infrequent import find_infrequent
from tests.family.drawn import check_rows_in_sight
from tests.family.members import AMOUNT, GRADIENTS, KIND, ROWS, SOLD, WEIGHTS, N, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
# A city that is missing is a category of its own.
CITIES = ROWS[["city"]].fillna("missing")


def rare_among(cities, weights, min_frequency=None, max_categories=None):
    """Return the rare categories by scikit-learn's rule, in the order of their names."""
    sizes = weights.groupby(cities).sum().sort_index()
    sizes = sizes[sizes > 0]
    least = min_frequency if isinstance(min_frequency, int) else (min_frequency or 0) * weights.sum()
    rare = {city for city, size in sizes.items() if size < least}
    if max_categories is not None and max_categories < len(sizes) - len(rare) + 1:
        # The sort is stable: among equally frequent categories the first are dropped first.
        lightest = sorted(sizes.index, key=lambda city: sizes[city])
        rare |= set(lightest[: len(sizes) - (max_categories - 1)])
    return rare


def test_a_rare_category_shows_in_the_indicator_only_where_it_has_no_code():
    for handle, flags in (("prior", {0.0, 1.0}), ("category", {0.0})):
        encoder = TargetEncoder(max_categories=3, handle_infrequent=handle, indicators=True, cv=2)
        assert set(encoder.fit(CITIES, SOLD).transform(CITIES)["city_unseen"]) == flags


@pytest.mark.parametrize("weights", [[5.0, 1.0, 2.0, 2.0, 0.5], [1.0, 1.0, 1.0], [3.0]])
@pytest.mark.parametrize("rule", [(None, 2), (2, None), (0.3, 3), (None, 1), (2, 9)])
def test_the_rule_is_that_of_scikit_learn(rule, weights):
    from sklearn.preprocessing import OneHotEncoder

    counts = (np.array(weights) * 2).astype(int)
    X = np.repeat(np.arange(len(counts)), counts)[:, None]
    theirs = OneHotEncoder(min_frequency=rule[0], max_categories=rule[1]).fit(X).infrequent_categories_[0]
    ours = find_infrequent(counts.astype(float), float(counts.sum()), *rule)
    assert np.flatnonzero(ours).tolist() == ([] if theirs is None else theirs.tolist())


ONES = np.ones(N, int)
RULES = [{"min_frequency": 0.1}, {"min_frequency": 12}, {"min_frequency": 2, "max_categories": 4}]
OF_CLASSES = {"target_type": "multiclass"}

# A function that makes an encoder from a scheme and other parameters, and the encoder's target.
ENCODERS = {
    "counts": (ge.CountEncoder, {}, SOLD),
    "evidence": (ge.WeightOfEvidenceEncoder, {}, SOLD),
    "evidence, classes": (ge.WeightOfEvidenceEncoder, {"regularization": 0.0, **OF_CLASSES}, KIND),
    "statistics": (ge.StatisticEncoder, {"statistics": ["count", "sum", "mean", "var", "sem", "skew"]}, AMOUNT),
    "statistics, classes": (ge.StatisticEncoder, {"statistics": ["count", "sum", "std"], **OF_CLASSES}, KIND),
    "impact": (ge.ImpactEncoder, {"target_type": "continuous"}, AMOUNT),
    "impact, logit": (ge.ImpactEncoder, {"parts": ["logit", "impact"], "smooth": ge.JamesStein(), **OF_CLASSES}, KIND),
    "catboost": (ge.CatBoostEncoder, {"cv": 3, "target_type": "continuous"}, AMOUNT),
    "catboost, borders": (ge.CatBoostEncoder, {"cv": 3, "statistic": "borders", "borders": [-2.0, 30.0]}, AMOUNT),
    "catboost, buckets": (ge.CatBoostEncoder, {"cv": 3, "statistic": "buckets", "scale": "sqrt", **OF_CLASSES}, KIND),
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
ORDERED = {"order statistics": (ge.StatisticEncoder, {"statistics": ["median", "count", "nunique"]}, AMOUNT)}


def unseen_word(encoder):
    return "zero" if encoder in (ge.WeightOfEvidenceEncoder, ge.CountEncoder) else "prior"


def fit_by_hand(encoder, parameters, y, rule, together):
    """Fit an encoder without infrequent categories, and return it with the rows in its form."""
    rare = rare_among(CITIES["city"], pd.Series(WEIGHTS), **rule)
    assert rare
    merged = CITIES["city"].where(~CITIES["city"].isin(rare), "~rare").to_frame()
    kept = "auto" if together else [sorted(set(CITIES["city"][WEIGHTS > 0]) - rare)]
    return encoder(categories=kept, **parameters).fit(merged, y, sample_weight=WEIGHTS), merged


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(("name", "together"), [*product(ENCODERS, (True, False)), ("order statistics", False)])
def test_put_together_or_left_out_by_hand(name, together, rule):
    encoder, parameters, y = (ENCODERS | ORDERED)[name]
    made = encoder(handle_infrequent="category" if together else unseen_word(encoder), **rule, **parameters)
    by_hand, merged = fit_by_hand(encoder, parameters, y, rule, together)
    same(made.fit(CITIES, y, sample_weight=WEIGHTS).transform(CITIES), by_hand.transform(merged))
    information = [getattr(fitted, "information_value_", 0.0) for fitted in (made, by_hand)]
    np.testing.assert_allclose(*information, rtol=1e-14)


@pytest.mark.parametrize("together", [True, False], ids=["together", "as unseen"])
@pytest.mark.parametrize("name", ["mean of categories", "james-stein", "gradients, order", "catboost, counter"])
def test_a_fold_without_rare_categories_has_none_together(name, together):
    # All rows of the only rare city are in the first fold, which therefore sees no rare city.
    cities = np.where(np.arange(N) % 15 == 0, "rare", np.where(np.arange(N) % 5 < 2, "b", "a"))
    encoder, parameters, y = ENCODERS[name]
    handle = "category" if together else unseen_word(encoder)
    make = partial(encoder, handle_infrequent=handle, min_frequency=10, **parameters)
    check_rows_in_sight(make, y, pd.DataFrame({"city": cities}), "folds")


def test_columns_of_values_tell_their_own_rare_categories():
    X = pd.DataFrame({"k": list("aaabbbcc"), "v": [1.0, 2.0, 3.0, 4.0, None, None, 7.0, 8.0], "w": np.arange(8.0)})
    encoder = ge.StatisticEncoder(["count", "mean"], values=["v", "w"], min_frequency=3, handle_infrequent="category")
    table = encoder.fit_transform(X)
    # Of v there are 3, 1 and 2 values, of w 3, 3 and 2.
    assert table["k_v_count"].tolist() == [3.0] * 8
    assert table["k_v_mean"].tolist() == [2.0] * 3 + [19.0 / 3] * 5
    assert table["k_w_count"].tolist() == [3.0] * 6 + [2.0] * 2
    assert table["k_w_mean"].tolist() == [1.0] * 3 + [4.0] * 3 + [6.5] * 2
