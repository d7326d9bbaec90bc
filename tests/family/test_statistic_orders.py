"""Order statistics of StatisticEncoder: quantiles, extremes, modes and counts of distinct values, by definition."""

import math
import re
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

from gpu_encode import LeaveOneOut, StatisticEncoder
from gpu_encode.scale.parts import Part, encode
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_bits
from tests.family.drawn import ORDERS, check_rows_in_sight, describe, quietly
from tests.family.members import AMOUNT, ROWS, WEIGHTS
from tests.family.test_statistic_columns import encoder_of, frame_of
from tests.scale.parts.in_parts import fitted_in_parts, parts_of
from tests.storage.altered import assert_refused, changed, with_numbers

# Values are sorted and selected on the host, whatever holds them; test_laws.py asks the backends.
pytestmark = pytest.mark.host


def test_names_and_company():
    X = frame_of()
    encoder = StatisticEncoder([*ORDERS, "mean", "count"], values=["price"], columns=["city"]).fit(X)
    alone = StatisticEncoder(["mean", "count"], values=["price"], columns=["city"]).fit(X)
    names = [name for name in encoder.get_feature_names_out() if name.startswith("city")]
    words = ["min", "max", "median", "quantile_0.3", "quantile_0.75", "nunique", "mode", "share_above_0"]
    assert names == [f"city_price_{word}" for word in [*words, "mean", "count"]]
    for mine, theirs in zip(encoder.encodings_[-2:], alone.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


LARGE = 2**53


@pytest.mark.parametrize(
    "threshold", [LARGE, LARGE + 1, float(LARGE), LARGE - 1.0, -1.5, -0.5, 10**30, -(10**30), Fraction(1, 10)], ids=str
)
def test_shares_compare_exact_numbers(threshold):
    for values in (
        np.array([LARGE - 1, LARGE, LARGE + 1, LARGE + 2, -1, -2]),
        np.array([0.1, np.nextafter(0.1, 0), np.nextafter(0.1, 1), -0.5, 2.0**53, 2.0**53 + 2]),
    ):
        encoder = StatisticEncoder([("share", threshold)]).fit([["a"]] * 6, values)
        assert encoder.encodings_[0].tolist() == [sum(value > threshold for value in values.tolist()) / 6]


def test_thresholds_that_differ_have_names_that_differ():
    encoder = StatisticEncoder([("share", 1_000_001), ("share", 1_000_002), ("share", 0.5)]).fit([["a"]] * 2, [0.5, 2])
    names = ["x0_share_above_1000001", "x0_share_above_1000002", "x0_share_above_0.5"]
    assert encoder.get_feature_names_out().tolist() == names


DAMAGED = [
    (lambda sums: sums.pop("distribution"), "distribution"),
    (lambda sums: sums["distribution"].pop("values"), "values"),
    (lambda sums: sums["distribution"].update(value=sums["distribution"]["values"]), "counts of values are of"),
    (lambda sums: sums["distribution"]["counts"]["shape"].reverse(), "do not fit one another"),
]
OUT_OF_ORDER = [
    ("values", lambda values: values[::-1]),
    ("values", lambda values: np.where(values == values[-1], np.inf, values)),
    ("category", lambda codes: codes[::-1]),
    ("category", lambda codes: codes + 1),
    ("value", lambda places: places + 1),
    ("counts", lambda counts: -counts),
]


@pytest.fixture
def content(tmp_path):
    encoder_of(statistics=ORDERS, values=["price"], columns=["zip"]).fit(frame_of()).save(tmp_path / "encoder")
    return (tmp_path / "encoder").read_bytes()


@pytest.mark.parametrize(("change", "message"), DAMAGED, ids=[str(index) for index in range(len(DAMAGED))])
def test_damaged_files_are_refused(change, message, content, tmp_path):
    altered = changed(content, lambda document: change(document["model"]["statistics"][0][0]))
    assert_refused(tmp_path / "other", altered, message)


@pytest.mark.parametrize(("name", "change"), OUT_OF_ORDER, ids=[str(index) for index in range(len(OUT_OF_ORDER))])
def test_counts_out_of_order_are_refused(name, change, content, tmp_path):
    altered = with_numbers(content, lambda model: model["statistics"][0][0]["distribution"][name]["array"], change)
    assert_refused(tmp_path / "other", altered, "counts of values are out of order, negative, or of categories")


def test_pairs_that_weigh_nothing_are_forgotten():
    X, weight = frame_of(), np.arange(60) % 3
    there = X[weight > 0]
    one, other = (
        encoder_of(statistics=["median"], columns=["zip"], values=["price"]).fit(rows, sample_weight=times)
        for rows, times in ((X, weight), (there, weight[weight > 0]))
    )
    kept = [vars(encoder._model.statistics[0][0].distribution) for encoder in (one, other)]
    np.testing.assert_equal(*kept)


CHOSEN = ["median", "mode", "nunique", ("share", 0.5), "max", "count", ("quantile", 0.9), "min"]


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_table(weighted):
    generator = np.random.default_rng(5)
    X, y = generator.integers(0, 300, (70_000, 1)), generator.integers(0, 30, 70_000) / 4
    weight = generator.integers(0, 3, len(y)) if weighted else None
    chosen, tables = ["median", "mode", "nunique", ("share", 2)], []
    for name in ("numpy", "compiled"):
        with use_backend(name):
            tables.append(StatisticEncoder(chosen, cv=LeaveOneOut()).fit_transform(X, y, sample_weight=weight))
    assert_same_bits(*tables)
    for row in range(0, len(y), 700):
        rest = (X[:, 0] == X[row, 0]) & (np.arange(len(y)) != row)
        values = np.repeat(y[rest], 1 if weight is None else weight[rest])
        distinct, times = np.unique(values, return_counts=True)
        expected = [np.median(values), distinct[np.argmax(times)], len(distinct), np.count_nonzero(values > 2)]
        assert tables[0][row].tolist() == [*expected[:3], expected[3] / len(values)]


def test_values_beyond_float64_are_told_apart():
    large = 2**53
    y = np.array([large, large + 1, large + 1, large + 2])
    codes = StatisticEncoder(["nunique", ("share", large + 1), "count"], cv=LeaveOneOut()).fit_transform([["a"]] * 4, y)
    assert codes.tolist() == [[2, 1 / 3, 3], [3, 1 / 3, 3], [3, 1 / 3, 3], [2, 0, 3]]


def test_nobody_else():
    encoder = StatisticEncoder(CHOSEN, cv=LeaveOneOut())
    with pytest.warns(UserWarning, match="1 rows see no rows at all and get NaN: there are no other rows"):
        assert_same_bits(encoder.fit_transform([["a"]], [2.5]), [describe([], CHOSEN)])


def test_columns_without_a_value():
    X = pd.DataFrame({"key": ["a", "a", "b"], "price": [math.nan] * 3})
    training = quietly(StatisticEncoder(CHOSEN, values=["price"], cv=LeaveOneOut()).fit_transform, X)
    assert_same_bits(training, [describe([], CHOSEN)] * 3)


POLICIES = [
    {"handle_unknown": -7.5, "handle_missing": "nan"},
    {"handle_unknown": "nan", "handle_missing": "prior"},
    {"min_count": 3, "handle_missing": "prior", "indicators": True},
    {"min_count": 2, "categories": [["b", "a", "z"]], "indicators": True, "handle_missing": "prior"},
    {"categories": [["a", None]], "handle_unknown": 2.0},
]


@pytest.mark.parametrize("policies", POLICIES, ids=str)
@pytest.mark.parametrize("scheme", ["leave-one-out", "folds"])
def test_policies(scheme, policies):
    make = partial(StatisticEncoder, CHOSEN, columns=["city"], **policies)
    check_rows_in_sight(make, AMOUNT.round(), ROWS, scheme, WEIGHTS)


@pytest.mark.parametrize("changed", [[0.5, 3.0], [0.5, 0.5]], ids=str)
def test_parts_that_hold_other_rows_are_refused(changed):
    encoder, parts = StatisticEncoder(CHOSEN, cv=LeaveOneOut()), parts_of([["a"], ["b"]], [0.5, 1.0])
    tables = fitted_in_parts(encoder, parts)
    assert encode(tables, parts[0]).shape == (2, len(CHOSEN))
    with pytest.raises(
        ValueError, match=re.escape("values of rows that were not there in the first pass over the rows")
    ):
        encode(tables, Part([["a"], ["b"]], changed))
