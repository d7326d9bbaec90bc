"""Skewness and statistics of a user's own: sums of terms, exact, against definitions in fractions."""

import itertools
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.exact import cube_parts
from gpu_encode import Greedy, KFold, LeaveOneOut, MergeableStatistic, Ordered, StatisticEncoder
from tests.family.members import AMOUNT, ROWS, SOLD, WEIGHTS, N, same
from tests.laws import encoding
from tests.parts.in_parts import encoded_in_parts, parts_of

X = ROWS[["zip"]]
GEOMETRIC = MergeableStatistic("geometric_mean", [np.log], lambda count, logs: np.exp(logs / count))
TOTAL = MergeableStatistic("total", [np.copy], lambda count, total: total)
LOG_TOTALS = MergeableStatistic("log_totals", [np.log1p, np.square], lambda count, logs, squares: logs + squares)


def quietly(make, X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return make.fit_transform(X, y, **given)


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
    found = math.copysign(math.sqrt(third**2 / second**3), third)
    return found * math.sqrt(n * (n - 1)) / (n - 2) if ddof else found


@pytest.mark.host
@given(st.floats(-1e100, 1e100).filter(lambda value: value == 0 or abs(value) > 1e-90))
def test_parts_of_a_cube_add_up_exactly(value):
    assert sum(Fraction(float(part[0])) for part in cube_parts(np.array([value]))) == Fraction(value) ** 3


@pytest.mark.parametrize("ddof", [pytest.param(0, marks=pytest.mark.host), 1])
@pytest.mark.parametrize("shift", [pytest.param(0.0, marks=pytest.mark.host), 1e8], ids=["plain", "far from zero"])
def test_skewness_of_every_category(ddof, shift):
    y = AMOUNT + shift
    encoder = StatisticEncoder(["skew"], cv=Greedy(), ddof=ddof).fit(X, y, sample_weight=WEIGHTS)
    seen = 0
    for category, code in zip(encoder.categories_[0], encoder.encodings_[0], strict=True):
        own = np.repeat(y, WEIGHTS)[np.repeat(X["zip"] == category, WEIGHTS)]
        expected = skewness(own.tolist() if len(own) else np.repeat(y, WEIGHTS).tolist(), ddof)
        assert code == pytest.approx(expected, rel=4e-15, nan_ok=True)
        seen += not math.isnan(expected)
    assert seen > 5


@pytest.mark.host
def test_skewness_is_that_of_pandas():
    found = StatisticEncoder(["skew"], values=["price"], columns=["zip"]).fit(ROWS).encodings_[0]
    assert found == pytest.approx(ROWS.groupby("zip")["price"].skew().to_numpy(), rel=1e-12, nan_ok=True)


def test_equal_values_are_not_skewed():
    encoder = StatisticEncoder(["skew"]).fit(np.array([list("aaabbc")]).T, [0.1, 0.1, 0.1, 3.0, 3.0, 7.0])
    assert encoder.encodings_[0].tolist() == pytest.approx([0.0, math.nan, math.nan], nan_ok=True)


@pytest.mark.host
@pytest.mark.parametrize("scheme", sorted(encoding.SCHEMES))
def test_other_statistics_keep_their_bits_beside_terms(scheme):
    X = ROWS[["zip"]].assign(group=np.arange(N) % 7, time=np.arange(N) // 4)
    names = ["mean", "sum", "var", "sem", "count"]
    alone, beside = (
        quietly(
            StatisticEncoder(chosen, cv=encoding.SCHEMES[scheme], columns=["zip"]), X, AMOUNT, sample_weight=WEIGHTS
        )
        for chosen in (names, [*names, "skew", TOTAL])
    )
    same(beside.drop(columns=["zip_skew", "zip_total"]), alone)
    seen = beside["zip_count"] > 0
    assert beside["zip_total"][seen].equals(beside["zip_sum"][seen].rename("zip_total"))


@pytest.mark.parametrize("cv", [KFold(3, order="interleaved"), LeaveOneOut()], ids=["folds", "leave-one-out"])
def test_a_statistic_of_the_users_own(cv):
    y = np.abs(AMOUNT) + 0.25
    found = quietly(StatisticEncoder([GEOMETRIC], cv=cv), X, y).to_numpy()[:, 0]
    rows = np.arange(N)
    for row in rows:
        sees = rows != row if isinstance(cv, LeaveOneOut) else rows % 3 != row % 3
        own = sees & (X["zip"] == X["zip"][row]).to_numpy()
        used = own if own.any() else sees
        # Python's sum of floats is exact before it is rounded, too.
        assert found[row] == np.exp(np.array([math.fsum(np.log(y[used])) / used.sum()]))[0]


def test_terms_of_rows_without_a_value_are_none():
    values = pd.DataFrame({"shop": list("aabb"), "price": [2.0, None, 3.0, 27.0]})
    encoder = StatisticEncoder([GEOMETRIC, "count"], values=["price"]).fit(values)
    assert encoder.encodings_[0] == pytest.approx([2.0, 9.0])
    assert encoder.encodings_[1].tolist() == [1.0, 2.0]


@pytest.mark.host
@pytest.mark.parametrize("cv", [KFold(3), LeaveOneOut(), Greedy()], ids=repr)
@pytest.mark.filterwarnings("ignore:Greedy")
def test_parts_pieces_and_pickles(cv):
    encoder = StatisticEncoder(["skew", LOG_TOTALS, TOTAL], cv=cv)
    y = np.abs(AMOUNT)
    expected = quietly(encoder, X, y, sample_weight=WEIGHTS)
    cuts = [0, 20, 21, N]
    edges = list(itertools.pairwise(cuts))
    pieces = [[each[start:stop] for start, stop in edges] for each in (X, y, WEIGHTS)]
    other = StatisticEncoder(["skew", LOG_TOTALS, TOTAL], cv=cv)
    same(pd.concat(quietly(other, pieces[0], pieces[1], sample_weight=pieces[2])), expected)
    same(pd.concat([other.transform(X[start:stop]) for start, stop in edges]), encoder.transform(X))
    again = StatisticEncoder(["skew", TOTAL], cv=cv)
    wanted = quietly(again, X, y, sample_weight=WEIGHTS)
    named = MergeableStatistic("total", [np.square], sum_of)
    in_parts = StatisticEncoder(["skew", named], cv=cv)
    whole = quietly(StatisticEncoder(["skew", named], cv=cv), X, y, sample_weight=WEIGHTS)
    same(pd.concat(encoded_in_parts(in_parts, parts_of(X, y, WEIGHTS, None, cuts[1:-1]))), whole)
    same(pickle.loads(pickle.dumps(in_parts)).transform(X), in_parts.transform(X))
    same(wanted.filter(like="skew"), expected.filter(like="skew"))


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
    found = quietly(StatisticEncoder(statistics, cv=cv), X, AMOUNT)
    assert found["zip_log"].tolist() == np.log(found["zip_squares"].to_numpy() + 1.0).tolist()


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


def test_ordered_rows_see_the_terms_of_earlier_ones():
    found = quietly(StatisticEncoder([TOTAL], cv=Ordered(shuffle=False, burn_in=1)), X, AMOUNT).to_numpy()[:, 0]
    for row in np.flatnonzero(X.duplicated("zip")):
        assert found[row] == math.fsum(AMOUNT[:row][(X["zip"][:row] == X["zip"][row]).to_numpy()])


@pytest.mark.host
def test_statistics_with_functions_are_not_saved(tmp_path):
    encoder = StatisticEncoder([GEOMETRIC]).fit(X, np.abs(AMOUNT) + 1)
    with pytest.raises(TypeError, match="statistics cannot be saved"):
        encoder.save(tmp_path / "model")


@pytest.mark.host
@pytest.mark.parametrize(
    ("statistic", "message"),
    [
        (GEOMETRIC, r"terms\[0\] of the statistic 'geometric_mean' must be finite, but is nan of the value -.* in row"),
        (MergeableStatistic("x", [np.sum], np.add), r"terms\[0\] of the statistic 'x' must give an array of numbers"),
        (MergeableStatistic("x", [np.copy], lambda *_: 1.0), r"the statistic 'x' must give an array of shape"),
        (MergeableStatistic("a b", [np.copy], np.add), r"must be a Python identifier, .* Got 'a b'"),
        (MergeableStatistic("x", [np.copy], lambda count: count), "'x' cannot be called with 2 arrays, counts"),
        (MergeableStatistic("x", [np.copy, np.square], sum_of), "'x' cannot be called with 3 arrays, counts"),
        (MergeableStatistic("x", [], np.add), r"MergeableStatistic\('x', \.\.\.\) needs terms"),
        (MergeableStatistic("x", np.log, np.add), "needs terms, a list of functions"),
    ],
)
def test_mistakes(statistic, message):
    with pytest.raises(ValueError, match=message):
        StatisticEncoder([statistic]).fit(X, AMOUNT).transform(X)


@pytest.mark.host
def test_a_name_of_two_statistics_is_refused():
    with pytest.raises(ValueError, match="lists 'mean' twice"):
        StatisticEncoder(["mean", MergeableStatistic("mean", [np.copy], np.add)]).fit(X, AMOUNT)


@pytest.mark.host
def test_values_that_terms_cannot_hold_are_refused_with_their_row():
    with pytest.raises(ValueError, match=r"of values up to 1e100, but a value is -1e\+101 in row 2\."):
        StatisticEncoder(["skew"]).fit(np.array([list("abc")]).T, [1.0, 2.0, -1e101])
    with pytest.raises(ValueError, match=r"whole numbers up to 2\*\*53, but a value is 9007199254740993 in row 1"):
        StatisticEncoder(["skew"]).fit(np.array([list("abc")]).T, [1, 2**53 + 1, 3])
    with pytest.raises(ValueError, match="'skew' of StatisticEncoder needs a continuous target, but y is binary"):
        StatisticEncoder(["skew"], target_type="auto").fit(X, SOLD)
