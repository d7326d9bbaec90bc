"""What StatisticEncoder says of statistics that there are not, and of numbers that none can take."""

import re

import numpy as np
import pandas as pd
import pytest

from gpu_encode import MergeableStatistic, StatisticEncoder
from tests.family.members import AMOUNT, ROWS

pytestmark = pytest.mark.host

X = pd.DataFrame(
    {"city": ["a", "a", "b"], "large": [1.0, 2.0, 1e200], "id": [3, 2**53 + 1, 4], "size": [1.0, 0.0, 2.0]}
)
LOGS = MergeableStatistic("logs", [np.log], lambda count, total: total / count)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("variance", "var"),
        ("skewness", "skew"),
        ("average", "mean"),
        ("stdev", "std"),
        ("unique", "nunique"),
        ("Mean", "mean"),
        ("medain", "median"),
        ("counts", "count"),
    ],
)
def test_a_statistic_of_another_name_is_pointed_out(word, meant):
    with pytest.raises(ValueError, match=rf"^statistics names '{word}', which is .* Did you mean '{meant}'\?$"):
        StatisticEncoder([word]).fit(ROWS[["city"]], AMOUNT)


def test_nothing_is_pointed_out_where_nothing_is_near():
    with pytest.raises(ValueError, match=r"names 'xxxxx', which is none of .*, and no function of arrays\.$"):
        StatisticEncoder(["xxxxx"]).fit(ROWS[["city"]], AMOUNT)


@pytest.mark.parametrize("name", ["ge o", "", 3])
def test_the_name_of_a_mergeable_statistic_is_an_identifier(name):
    statistic = MergeableStatistic(name, [np.log], lambda count, total: total)
    says = f"name of a MergeableStatistic must be a Python identifier, such as 'geometric_mean'. Got {name!r}."
    with pytest.raises(ValueError, match=re.escape(says)):
        StatisticEncoder([statistic]).fit(ROWS[["city"]], AMOUNT)


@pytest.mark.parametrize(
    ("statistic", "column", "message"),
    [
        ("skew", "large", r"^values: in column 'large', 'skew' .* in row 2\."),
        ("skew", "id", r"^values: in column 'id', 'skew' .* in row 1\."),
        (LOGS, "size", r"^values: in column 'size', terms\[0\] of the statistic 'logs' must be finite, .* in row 1\."),
    ],
)
def test_the_column_of_a_number_that_is_refused_is_named(statistic, column, message):
    values = [each for each in ("price", column) if each in X]
    with pytest.raises(ValueError, match=message):
        StatisticEncoder([statistic], columns=["city"], values=values).fit(X)


def test_a_target_is_no_column_of_values():
    with pytest.raises(ValueError, match=r"^'skew' "):
        StatisticEncoder(["skew"]).fit(X[["city"]], X["large"])


def test_weights_with_fractions_leave_statistics_of_sums():
    with pytest.raises(ValueError, match="statistics of sums: count, sum, mean, var, std, sem, skew"):
        StatisticEncoder(["median"]).fit(X[["city"]], X["size"], sample_weight=[0.5, 1.0, 1.0])
