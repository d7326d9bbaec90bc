"""Skewness, kurtosis and a user's own statistics: exact sums of terms, compared with definitions in fractions."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.exact import cube_parts, fourth_parts
from gpu_encode import Greedy, KFold, LeaveOneOut, MergeableStatistic, StatisticEncoder
from tests.family.drawn import quietly
from tests.family.members import AMOUNT, ROWS, WEIGHTS, N, same
from tests.laws import encoding
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

X = ROWS[["zip"]]
GEOMETRIC = MergeableStatistic("geometric_mean", [np.log], lambda count, logs: np.exp(logs / count))
TOTAL = MergeableStatistic("total", [np.copy], lambda count, total: total)


def add_terms(count, logs, squares):
    return logs + squares


LOG_TOTALS = MergeableStatistic("log_totals", [np.log1p, np.square], add_terms)


def skewness(values, ddof):
    """Third standardized moment: exact, but for one root at the end."""
    values = [Fraction(value) for value in values]
    n = len(values)
    if n < (3 if ddof else 1):
        return math.nan
    mean = sum(values) / n
    second, third = (sum((value - mean) ** power for value in values) / n for power in (2, 3))
    if second == 0:
        return 0.0
    encodings = math.copysign(math.sqrt(third**2 / second**3), third)
    return encodings * math.sqrt(n * (n - 1)) / (n - 2) if ddof else encodings


@pytest.mark.host
@given(st.floats(-1e100, 1e100).filter(lambda value: value == 0 or abs(value) > 1e-90))
def test_parts_of_a_cube_add_up_exactly(value):
    assert sum(Fraction(float(part[0])) for part in cube_parts(np.array([value]))) == Fraction(value) ** 3


def kurtosis(values, ddof):
    """Fourth standardized moment less 3, exact until it is rounded."""
    values = [Fraction(value) for value in values]
    n = len(values)
    if n < (4 if ddof else 1):
        return math.nan
    mean = sum(values) / n
    second, fourth = (sum((value - mean) ** power for value in values) / n for power in (2, 4))
    if second == 0:
        return 0.0
    excess = fourth / second**2 - 3
    return float(((n + 1) * excess + 6) * (n - 1) / ((n - 2) * (n - 3)) if ddof else excess)


@pytest.mark.host
@given(st.floats(-1e75, 1e75).filter(lambda value: value == 0 or abs(value) > 1e-55))
def test_parts_of_a_fourth_power_add_up_exactly(value):
    assert sum(Fraction(float(part[0])) for part in fourth_parts(np.array([value]))) == Fraction(value) ** 4


@pytest.mark.parametrize(("name", "definition"), [("skew", skewness), ("kurt", kurtosis)])
@pytest.mark.parametrize("ddof", [pytest.param(0, marks=pytest.mark.host), 1])
@pytest.mark.parametrize("shift", [pytest.param(0.0, marks=pytest.mark.host), 1e8], ids=["plain", "far from zero"])
def test_shape_of_every_category(name, definition, ddof, shift):
    y = AMOUNT + shift
    encoder = StatisticEncoder([name], cv=Greedy(), ddof=ddof).fit(X, y, sample_weight=WEIGHTS)
    seen = 0
    for category, code in zip(encoder.categories_[0], encoder.encodings_[0], strict=True):
        own = np.repeat(y, WEIGHTS)[np.repeat(X["zip"] == category, WEIGHTS)]
        expected = definition(own.tolist() if len(own) else np.repeat(y, WEIGHTS).tolist(), ddof)
        assert code == pytest.approx(expected, rel=4e-15, nan_ok=True)
        seen += not math.isnan(expected)
    assert seen > 5


@pytest.mark.host
@pytest.mark.parametrize("name", ["skew", "kurt"])
def test_shapes_are_those_of_pandas(name):
    encodings = StatisticEncoder([name], values=["price"], columns=["zip"]).fit(ROWS).encodings_[0]
    expected = ROWS.groupby("zip")["price"].apply(lambda prices: getattr(prices, name)()).to_numpy()
    assert encodings == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert np.isfinite(encodings).any()


def test_equal_values_have_no_shape():
    y = [0.1, 0.1, 0.1, 0.1, 3.0, 3.0, 3.0, 7.0, 7.0, 8.0]
    skews, kurtoses = StatisticEncoder(["skew", "kurt"]).fit(np.array([list("aaaabbbccd")]).T, y).encodings_
    assert skews.tolist() == pytest.approx([0.0, 0.0, math.nan, math.nan], nan_ok=True)
    assert kurtoses.tolist() == pytest.approx([0.0, math.nan, math.nan, math.nan], nan_ok=True)


@pytest.mark.host
@pytest.mark.parametrize("scheme", sorted(encoding.SCHEMES))
def test_other_statistics_keep_their_bits_beside_terms(scheme):
    X = ROWS[["zip"]].assign(group=np.arange(N) % 7, time=np.arange(N) // 4)
    names = ["mean", "sum", "var", "sem", "count"]
    cv = encoding.SCHEMES[scheme]
    alone, beside = (
        quietly(StatisticEncoder(statistics, cv=cv, columns=["zip"]).fit_transform, X, AMOUNT, sample_weight=WEIGHTS)
        for statistics in (names, [*names, "kurt", "skew", TOTAL])
    )
    same(beside.drop(columns=["zip_kurt", "zip_skew", "zip_total"]), alone)
    seen = beside["zip_count"] > 0
    assert beside["zip_total"][seen].equals(beside["zip_sum"][seen].rename("zip_total"))


@pytest.mark.parametrize("cv", [KFold(3, order="interleaved"), LeaveOneOut()], ids=["folds", "leave-one-out"])
def test_a_statistic_of_the_users_own(cv):
    y = np.abs(AMOUNT) + 0.25
    encodings = quietly(StatisticEncoder([GEOMETRIC], cv=cv).fit_transform, X, y).to_numpy()[:, 0]
    rows = np.arange(N)
    for row in rows:
        sees = rows != row if isinstance(cv, LeaveOneOut) else rows % 3 != row % 3
        own = sees & (X["zip"] == X["zip"][row]).to_numpy()
        used = own if own.any() else sees
        # Python's sum of floats is exact before it is rounded, too.
        assert encodings[row] == np.exp(np.array([math.fsum(np.log(y[used])) / used.sum()]))[0]


def test_terms_of_rows_without_a_value_are_none():
    values = pd.DataFrame({"shop": list("aabb"), "price": [2.0, None, 3.0, 27.0]})
    encoder = StatisticEncoder([GEOMETRIC, "count"], values=["price"]).fit(values)
    assert encoder.encodings_[0] == pytest.approx([2.0, 9.0])
    assert encoder.encodings_[1].tolist() == [1.0, 2.0]


@pytest.mark.host
@pytest.mark.parametrize("cv", [KFold(3), LeaveOneOut(), Greedy()], ids=repr)
@pytest.mark.filterwarnings("ignore:Greedy")
def test_parts_pieces_and_pickles(cv):
    """A file cannot hold functions, and the laws of all encoders write files."""
    y, statistics = np.abs(AMOUNT), ["skew", "kurt", LOG_TOTALS, MergeableStatistic("total", [np.square], sum_of)]
    whole, in_pieces, in_parts = (StatisticEncoder(statistics, cv=cv) for _ in range(3))
    expected = quietly(whole.fit_transform, X, y, sample_weight=WEIGHTS)
    pieces = [[rows[:20], rows[20:21], rows[21:]] for rows in (X, y, WEIGHTS)]
    same(pd.concat(quietly(in_pieces.fit_transform, *pieces[:2], sample_weight=pieces[2])), expected)
    same(pd.concat(encoded_in_parts(in_parts, parts_of(X, y, WEIGHTS, None, [20, 21]))), expected)
    same(pickle.loads(pickle.dumps(in_parts)).transform(X), whole.transform(X))


def sum_of(count, total):
    return total


def log_of_sum(count, total):
    assert isinstance(count, np.ndarray)
    assert isinstance(total, np.ndarray)
    total += 1.0
    return np.log(total)


@pytest.mark.parametrize("cv", [KFold(3, order="interleaved"), LeaveOneOut()], ids=["folds", "leave-one-out"])
def test_sums_are_finished_on_the_host_and_may_be_written_to(cv):
    statistics = [
        MergeableStatistic("log", [np.square], log_of_sum),
        MergeableStatistic("squares", [np.square], sum_of),
    ]
    encodings = quietly(StatisticEncoder(statistics, cv=cv).fit_transform, X, AMOUNT)
    assert encodings["zip_log"].tolist() == np.log(encodings["zip_squares"].to_numpy() + 1.0).tolist()


@pytest.mark.host
def test_terms_are_the_same_of_integers_and_of_floats():
    squares = MergeableStatistic("squares", [lambda values: values * values * 2], lambda count, total: total)
    y = [4_000_000_000, 1, 2, 3]
    expected = [3.2e19 + 2 + 8 + 18]
    for pieces in ([np.array(y)], [np.array(y, float)], [np.array(y[:1]), np.array(y[1:], float)]):
        encoder = StatisticEncoder([squares])
        for piece in pieces:
            encoder.partial_fit(np.array([["a"]] * len(piece)), piece)
        assert encoder.encodings_[0].tolist() == expected
