"""CatBoost's statistics, compared with their formulas in plain Python, and targets cut at borders."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from gpu_encode import CatBoostEncoder, Ordered
from tests.bits import assert_same_bits
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
CITIES = ROWS["city"].fillna("missing").rename("city")
X = CITIES.to_frame()
Y = np.round(AMOUNT * 64) / 64
BORDERS = [-1.5, 0.25, 40.0]
PRIORS = [0.0, 0.5, 1.0]
FRACTIONS = np.round(np.abs(np.random.default_rng(1).normal(size=N)) * 8) / 8
ALL_WEIGHTS = {"unweighted": None, "whole": WEIGHTS, "fractions": FRACTIONS}
EACH_WEIGHT = [*(pytest.param(name, marks=pytest.mark.host) for name in ("unweighted", "whole")), "fractions"]


def bucket(value):
    """Give the number of borders that a value is above."""
    return sum(1 for border in BORDERS if value > border)


# What each row adds to S, one function a column.
ADDENDS = {
    "mean": [lambda row: Fraction(float(Y[row]))],
    "mean of buckets": [lambda row: Fraction(bucket(Y[row]) / len(BORDERS))],
    "borders": [lambda row, border=border: Fraction(int(Y[row] > border)) for border in BORDERS],
    "buckets": [lambda row, number=number: Fraction(int(bucket(Y[row]) == number)) for number in range(4)],
    "borders of labels": [lambda row, label=label: Fraction(int(KIND[row] > label)) for label in "xy"],
    "buckets of labels": [lambda row, label=label: Fraction(int(KIND[row] == label)) for label in "xyz"],
    "mean of labels": [lambda row, label=label: Fraction(int(KIND[row] == label)) for label in "xyz"],
    "borders of two labels": [lambda row: Fraction(int(SOLD[row] > 0))],
}
PARAMETERS = {
    "mean": ({"target_type": "continuous"}, Y),
    "mean of buckets": ({"borders": BORDERS}, Y),
    "borders": ({"statistic": "borders", "borders": BORDERS}, Y),
    "buckets": ({"statistic": "buckets", "borders": np.array(BORDERS)}, Y),
    "borders of labels": ({"statistic": "borders"}, KIND),
    "buckets of labels": ({"statistic": "buckets"}, KIND),
    "mean of labels": ({}, KIND),
    "borders of two labels": ({"statistic": "borders"}, SOLD),
}


def state(name, city, weight, a):
    """State a category's encodings: S and n are exact and then rounded, each step after that is one operation."""
    members = [row for row in range(N) if CITIES[row] == city]
    n = float(sum((Fraction(weight[row]) for row in members), Fraction(0)))
    totals = [
        float(sum((Fraction(weight[row]) * addend(row) for row in members), Fraction(0))) for addend in ADDENDS[name]
    ]
    return [prior if n == 0 else (s + a * prior) / (n + a) for s in totals for prior in PRIORS]


@pytest.mark.parametrize("weights", EACH_WEIGHT)
@pytest.mark.parametrize("name", PARAMETERS)
def test_means(name, weights):
    (parameters, y), weight = PARAMETERS[name], ALL_WEIGHTS[weights]
    encoder = CatBoostEncoder(priors=PRIORS, weight=2.5, **parameters).fit(X, y, sample_weight=weight)
    encodings = encoder.transform(pd.DataFrame({"city": [*CITIES, "never seen"]})).to_numpy()
    weight = np.ones(N) if weight is None else weight
    expected = [state(name, CITIES[row], weight.tolist(), 2.5) for row in range(N)]
    assert_same_bits(encodings, [*expected, PRIORS * len(ADDENDS[name])])


def test_the_default_is_catboosts_order():
    default, expected, in_order = (
        CatBoostEncoder(target_type="continuous", **scheme).fit_transform(X, Y).to_numpy()
        for scheme in ({"random_state": 3}, {"cv": Ordered(random_state=3)}, {"shuffle": False})
    )
    assert default.tobytes() == expected.tobytes()
    assert in_order[0].tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("weights", EACH_WEIGHT)
@pytest.mark.parametrize("statistic", ["counter", "frequency"])
def test_counts(statistic, weights):
    weight = ALL_WEIGHTS[weights]
    encoder = CatBoostEncoder(statistic, PRIORS, 2.0).fit(X, sample_weight=weight)
    counts = (pd.Series(np.ones(N)) if weight is None else pd.Series(weight)).groupby(CITIES).sum()
    whole = counts.max() if statistic == "counter" else counts.sum()
    expected = [[(counts[city] + 2.0 * prior) / (whole + 2.0) for prior in PRIORS] for city in CITIES]
    assert_same_bits(encoder.transform(X), expected)


def test_counts_of_all_rows_by_default():
    encoder = CatBoostEncoder("counter", [0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = encoder.fit_transform([["a"], ["a"], ["a"], ["b"]], ["y", "is", "not", None])
    assert codes.tolist() == [[3 / 4, 1.0]] * 3 + [[1 / 4, 2 / 4]]
    assert encoder.transform([["a"], ["never seen"]]).tolist() == [[3 / 4, 1.0], [0.0, 1 / 4]]
    assert CatBoostEncoder("frequency", [1.0]).fit([["a"], ["b"], ["b"]]).transform([["b"], ["c"]]).tolist() == [
        [3 / 4],
        [1 / 4],
    ]
    listed = CatBoostEncoder("counter", [0.0], 0.0, categories=[["a", "b"]], handle_missing="prior")
    # The most frequent category is neither an unknown value nor a missing one.
    assert listed.fit_transform([["a"], ["a"], ["b"], *[["c"]] * 3, *[[None]] * 4])[:3].tolist() == [[1], [1], [0.5]]
    rare = CatBoostEncoder("counter", [0.0], 0.0, min_count=9, handle_missing="nan").fit([["a"], [None]])
    assert_same_bits(rare.transform([["a"], ["c"], [None]]), [[0.0], [0.0], [math.nan]])


def test_category_encoders_numbers():
    # (sum + prior * a) / (count + a) with the mean of y as prior: category_encoders' CatBoostEncoder(a=1), new rows.
    y = [1, 0, 1, 1, 0]
    encoder = CatBoostEncoder(priors=[0.6]).fit([["a"], ["a"], ["a"], ["b"], ["b"]], y)
    assert encoder.transform([["a"], ["b"], ["c"]])[:, 0].tolist() == [(2 + 0.6) / 4, (1 + 0.6) / 3, 0.6]


@pytest.mark.parametrize(
    ("statistic", "y", "borders", "expected"),
    [
        ("borders", Y, BORDERS, ["city_above_-1.5", "city_above_0.25", "city_above_40.0"]),
        ("buckets", Y, [0.5], ["city_to_0.5", "city_to_inf"]),
        ("borders", KIND, None, ["city_above_x", "city_above_y"]),
        ("buckets", KIND, None, ["city_x", "city_y", "city_z"]),
        ("buckets", SOLD, None, ["city"]),
        ("mean", Y, BORDERS, ["city"]),
    ],
)
def test_names(statistic, y, borders, expected):
    one = CatBoostEncoder(statistic, [0.5], borders=borders).fit(X, y)
    assert one.get_feature_names_out().tolist() == expected
    two = CatBoostEncoder(statistic, [0, 2.5], borders=borders).fit(X, y)
    assert two.get_feature_names_out().tolist() == [f"{name}_prior_{p}" for name in expected for p in ("0", "2.5")]


def test_fractions_of_sums_beyond_floats_have_means():
    encoder = CatBoostEncoder(priors=[0.0], target_type="continuous").fit([["a"]] * 3, [1.5e308] * 3)
    assert encoder.encodings_[0].tolist() == [0.75 * 1.5e308]
