"""Infrequent categories are told by what each row sees, and are one category together or as if unseen."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import CountEncoder, Holdout, LeaveOneOut, Ordered, TargetEncoder
from gpu_encode.formulas.infrequent import find_infrequent
from tests.family.members import ROWS, SOLD, N, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
# A city that is missing is a category of its own.
CITIES = ROWS[["city"]].fillna("missing")


def rare_among(cities, weights, min_frequency=None, max_categories=None):
    """Rare categories by scikit-learn's rule, in the order of their names."""
    sizes = weights.groupby(cities).sum().sort_index()
    sizes = sizes[sizes > 0]
    least = min_frequency if isinstance(min_frequency, int) else (min_frequency or 0) * weights.sum()
    rare = {city for city, size in sizes.items() if size < least}
    if max_categories is not None and max_categories < len(sizes) - len(rare) + 1:
        # Stable: of equal ones the first go.
        lightest = sorted(sizes.index, key=lambda city: sizes[city])
        rare |= set(lightest[: len(sizes) - (max_categories - 1)])
    return rare


def test_a_rare_category_shows_in_the_indicator_only_where_it_has_no_code():
    for handle, flags in (("prior", {0.0, 1.0}), ("category", {0.0})):
        encoder = TargetEncoder(max_categories=3, handle_infrequent=handle, indicators=True, cv=2)
        assert set(encoder.fit(CITIES, SOLD).transform(CITIES)["city_unseen"]) == flags


def test_counts_together():
    sizes = CITIES["city"].value_counts()
    kept = set(sizes.index) - rare_among(CITIES["city"], pd.Series(np.ones(N)), max_categories=4)
    apart = CountEncoder(max_categories=4).fit_transform(CITIES)["city"]
    together = CountEncoder(max_categories=4, handle_infrequent="category").fit_transform(CITIES)["city"]
    rest = sum(size for city, size in sizes.items() if city not in kept)
    assert apart.tolist() == [float(sizes[city]) if city in kept else 0.0 for city in CITIES["city"]]
    assert together.tolist() == [float(sizes[city]) if city in kept else float(rest) for city in CITIES["city"]]


def test_no_row_changes_its_own_code():
    def codes(y):
        return TargetEncoder(cv=Holdout(0.4), max_categories=3, handle_infrequent="category").fit_transform(CITIES, y)

    before, changed = codes(SOLD), SOLD.copy()
    changed[5] = 1 - changed[5]
    same(codes(changed).iloc[[5]], before.iloc[[5]])
    assert not codes(changed).equals(before)


@pytest.mark.parametrize("weights", [[5.0, 1.0, 2.0, 2.0, 0.5], [1.0, 1.0, 1.0], [3.0]])
@pytest.mark.parametrize("rule", [(None, 2), (2, None), (0.3, 3), (None, 1), (2, 9)])
def test_the_rule_is_that_of_scikit_learn(rule, weights):
    from sklearn.preprocessing import OneHotEncoder

    counts = (np.array(weights) * 2).astype(int)
    X = np.repeat(np.arange(len(counts)), counts)[:, None]
    theirs = OneHotEncoder(min_frequency=rule[0], max_categories=rule[1]).fit(X).infrequent_categories_[0]
    ours = find_infrequent(counts.astype(float), float(counts.sum()), *rule)
    assert np.flatnonzero(ours).tolist() == ([] if theirs is None else theirs.tolist())


@pytest.mark.parametrize("scheme", [LeaveOneOut(), Ordered()], ids=str)
def test_schemes_whose_rows_see_sums_of_their_own(scheme):
    with pytest.raises(ValueError, match=r"rows of .* see sums of their own\. Leave out min_frequency"):
        TargetEncoder(cv=scheme, max_categories=3).fit_transform(CITIES, SOLD)
    with pytest.raises(ValueError, match=r"=\"category\" beside a hierarchy, whose .*\. Leave one of them out"):
        TargetEncoder(hierarchy={"city": ["zip"]}, handle_infrequent="category", max_categories=2).fit(ROWS, SOLD)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_frequency": 0}, "'min_frequency' parameter of TargetEncoder must be one of None, an integer of at"),
        ({"min_frequency": 1.5}, "a share of the rows between 0 and 1"),
        ({"min_frequency": 1.0}, "a share of the rows between 0 and 1"),
        ({"max_categories": 0}, "'max_categories' parameter of TargetEncoder must be an integer of at least 1"),
        ({"handle_infrequent": "other"}, "must be one of 'prior', 'category'"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TargetEncoder(**parameters).fit(CITIES, SOLD)
