"""CatBoost's statistics against their formulas in plain Python, by every scheme, and targets cut at borders."""

import math
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpu_encode import CatBoostEncoder, MEstimate, Ordered, TargetEncoder
from tests.bits import assert_same_bits
from tests.family.drawn import SEEN
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


def places():
    """Count the rows before each one in the random order of Ordered(), by an independent encoder of the scheme."""
    one = pd.DataFrame({"only": ["a"] * N})
    seen = TargetEncoder(cv=Ordered(), smooth=MEstimate(1.0), prior=0.0, target_type="continuous")
    codes = np.asarray(seen.fit_transform(one, np.ones(N)), dtype=np.float64)[:, 0]
    # n ones and one zero have the mean n / (n + 1).
    return np.round(codes / (1.0 - codes)).astype(int)


PLACES = places()
SCHEMES = SEEN | {"ordered": (Ordered, lambda row, other: PLACES[other] < PLACES[row])}


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


def stated(name, visible, key, weight, a=1.0):
    """Codes of a category by the formula: S and n are exact and then rounded, each step after that is one operation."""
    members = [row for row in visible if CITIES[row] == key]
    n = float(sum((Fraction(weight[row]) for row in members), Fraction(0)))
    found = []
    for addend in ADDENDS[name]:
        s = float(sum((Fraction(weight[row]) * addend(row) for row in members), Fraction(0)))
        found += [prior if n == 0 else (s + a * prior) / (n + a) for prior in PRIORS]
    return found


@pytest.mark.parametrize("weights", EACH_WEIGHT)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PARAMETERS)
def test_training_codes(name, scheme, weights):
    (parameters, y), (make, sees), weight = PARAMETERS[name], SCHEMES[scheme], ALL_WEIGHTS[weights]
    encoder = CatBoostEncoder(cv=make(), priors=PRIORS, weight=2.5, **parameters)
    found = np.asarray(encoder.fit_transform(X, y, sample_weight=weight))
    each = np.ones(N) if weight is None else weight
    for row in range(N):
        visible = [other for other in range(N) if sees(row, other)]
        assert_same_bits(found[row], stated(name, visible, CITIES[row], each.tolist(), 2.5))


@pytest.mark.parametrize("name", PARAMETERS)
def test_new_rows(name):
    parameters, y = PARAMETERS[name]
    encoder = CatBoostEncoder(**parameters).fit(X, y, sample_weight=FRACTIONS)
    found = encoder.transform(pd.DataFrame({"city": [*CITIES, "never seen"]})).to_numpy()
    for row in range(N):
        assert_same_bits(found[row], stated(name, range(N), CITIES[row], FRACTIONS.tolist()))
    assert_same_bits(found[N], PRIORS * len(ADDENDS[name]))


def test_the_default_is_catboosts_order():
    found, expected, in_order = (
        CatBoostEncoder(target_type="continuous", **scheme).fit_transform(X, Y).to_numpy()
        for scheme in ({"random_state": 3}, {"cv": Ordered(random_state=3)}, {"shuffle": False})
    )
    assert found.tobytes() == expected.tobytes()
    assert in_order[0].tolist() == [0.0, 0.5, 1.0]


def counts_of(visible, weight):
    """Weight of every visible category."""
    found = {}
    for row in visible:
        found[CITIES[row]] = found.get(CITIES[row], 0.0) + weight[row]
    return found


# The largest count is that of a table of all categories, which rows that see sums of their own have not.
WITH_TABLES = ("folds", "greedy")


@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - set(WITH_TABLES)))
def test_counters_without_a_table_are_refused(scheme):
    encoder = CatBoostEncoder("counter", PRIORS, 2.0, cv=SCHEMES[scheme][0]())
    with pytest.raises(ValueError, match="statistic='counter' of CatBoostEncoder looks at all categories at once"):
        encoder.fit_transform(X)


@pytest.mark.parametrize("weights", EACH_WEIGHT)
@pytest.mark.parametrize(
    ("statistic", "scheme"), [*product(["counter"], WITH_TABLES), *product(["frequency"], SCHEMES)]
)
def test_counts(statistic, scheme, weights):
    (make, sees), weight = SCHEMES[scheme], ALL_WEIGHTS[weights]
    encoder = CatBoostEncoder(statistic, PRIORS, 2.0, cv=make())
    found = np.asarray(encoder.fit_transform(X, sample_weight=weight))
    each = (np.ones(N) if weight is None else weight).tolist()
    for row in range(N):
        counts = counts_of([other for other in range(N) if sees(row, other)], each)
        whole = max(counts.values(), default=0.0) if statistic == "counter" else sum(counts.values())
        n = counts.get(CITIES[row], 0.0)
        expected = [(n + 2.0 * prior) / (whole + 2.0) for prior in PRIORS]
        # So few rows come before any row that no checkpoint is stale.
        assert found[row].tolist() == expected


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
    given = CatBoostEncoder("counter", [0.0], 0.0, categories=[["a", "b"]], handle_missing="prior")
    # Neither a value that is none of the categories, nor a missing one, is the most frequent category.
    assert given.fit_transform([["a"], ["a"], ["b"], *[["c"]] * 3, *[[None]] * 4])[:3].tolist() == [[1.0], [1.0], [0.5]]
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


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"statistic": "median"}, Y, "'statistic' parameter of CatBoostEncoder must be one of 'mean', 'borders'"),
        ({"priors": 0.5}, Y, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
        ({"priors": []}, Y, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
        ({"priors": ["mean"]}, Y, "'priors' parameter of CatBoostEncoder must be a finite number"),
        ({"priors": [1, 1.0]}, Y, "a list of different numbers"),
        ({"weight": -1}, Y, "'weight' parameter of CatBoostEncoder must be a finite number of at least 0"),
        ({"statistic": "borders"}, Y, "statistic='borders' of CatBoostEncoder counts labels, but y is continuous"),
        ({"statistic": "buckets"}, Y, "Give borders, numbers at which y is cut"),
        ({"borders": []}, Y, "'borders' parameter of CatBoostEncoder must be None, a number of borders from 1 to 255"),
        ({"borders": 0}, Y, "'borders' parameter .* Got 0 instead"),
        ({"borders": 256}, Y, "'borders' parameter .* Got 256 instead"),
        ({"borders": True}, Y, "'borders' parameter .* Got True instead"),
        ({"borders": [1.0, 1.0]}, Y, "in rising order"),
        ({"borders": [0.0, math.inf]}, Y, "a list of finite numbers"),
        ({"borders": ["low"]}, Y, "a list of finite numbers"),
        ({"borders": [0.0], "target_type": "binary"}, Y, "target_type='binary'. Pass target_type=\"auto\""),
        ({"borders": [0.0]}, KIND, "borders of CatBoostEncoder cut numbers, but y holds"),
        ({"borders": [0.0]}, np.where(Y > 9, np.inf, Y), "Input y contains infinity"),
        ({"borders": [0.0]}, np.column_stack([Y, Y]), "borders of CatBoostEncoder cut one target, but y holds 2"),
        ({"statistic": "counter", "borders": [0.0]}, Y, "statistic='counter' of CatBoostEncoder reads no target"),
        ({"cv": 1.5}, Y, "The 'cv' parameter of CatBoostEncoder must be one of an integer"),
        ({"cv": 5, "shuffle": "no"}, Y, "The 'shuffle' parameter of CatBoostEncoder must be one of True, False"),
    ],
)
def test_refusals(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        CatBoostEncoder(**parameters).fit(X, y)


# Codes of training rows are not those of new rows, on purpose.
OUT_OF_FOLD = dict.fromkeys(
    ("check_transformer_general", "check_transformer_data_not_an_array"), "training codes are those of rows before"
)


@pytest.mark.host
@parametrize_with_checks(
    [CatBoostEncoder(), CatBoostEncoder("counter")],
    expected_failed_checks=lambda encoder: OUT_OF_FOLD if encoder.statistic == "mean" else {},
)
def test_estimator_checks(estimator, check) -> None:
    """scikit-learn's checks pass."""
    check(estimator)
