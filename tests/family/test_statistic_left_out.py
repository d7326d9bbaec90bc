"""Order statistics under LeaveOneOut: every row's from all other rows, one row at a time, in plain Python."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import LeaveOneOut, StatisticEncoder
from gpu_encode.ops import use_backend
from gpu_encode.parts import Part, encode
from tests import strategies
from tests.bits import assert_same_bits
from tests.family.drawn import describe, quietly
from tests.parts.in_parts import fitted_in_parts, parts_of

# Values are sorted and selected on the host, whatever holds them; test_laws.py asks the backends.
pytestmark = pytest.mark.host

CHOSEN = ["median", "mode", "nunique", ("share", 0.5), "max", "count", ("quantile", 0.9), "min"]
NOTHING = describe([], CHOSEN)
POLICIES = [
    {},
    {"handle_unknown": -7.5, "handle_missing": "nan"},
    {"handle_unknown": "nan", "handle_missing": "prior"},
    {"min_count": 3, "handle_missing": "prior", "indicators": True},
    {"min_count": 2, "categories": [["b", "a", "z"]], "indicators": True, "handle_missing": "prior"},
    {"categories": [["a", None]], "handle_unknown": 2.0},
]


def code(row, keys, values, weights, policies):
    """Code of one row, and its indicator: what all others say, by the policies."""
    others = [(keys[i], values[i] + 0.0) for i in range(len(keys)) if i != row for _ in range(weights[i])]
    prior = [
        0.0 if statistic in ("count", "nunique") else found
        for statistic, found in zip(CHOSEN, describe([value for _, value in others], CHOSEN), strict=True)
    ]
    unseen = {"nan": [math.nan] * len(CHOSEN), "prior": prior}
    unknown = policies.get("handle_unknown", "prior")
    unknown = unseen[unknown] if isinstance(unknown, str) else [unknown] * len(CHOSEN)
    key, missing = keys[row], policies.get("handle_missing", "category")
    own = [value for other, value in others if other == key]
    known = key is None or key in policies.get("categories", [keys])[0]
    seen = known and len(own) >= max(policies.get("min_count", 0), 1) and (key is not None or missing == "category")
    if key is None and missing != "category":
        return [*unseen[missing], 1.0]
    return [*(describe(own, CHOSEN) if seen else unknown), float(not seen)]


def expected_encodings(drawn, weights, policies):
    rows = [code(row, drawn.keys, drawn.target.tolist(), weights, policies) for row in range(drawn.size)]
    return rows if policies.get("indicators") else [row[:-1] for row in rows]


@pytest.mark.parametrize("policies", POLICIES, ids=str)
@strategies.examples(10)
@given(data=st.data())
def test_every_row_is_described_by_all_others(policies, data):
    drawn = data.draw(strategies.drawn_rows("continuous", smallest=2, nulls=True, weighted=False))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=drawn.size, max_size=drawn.size).filter(any))
    for own in (None, np.array(weights)):
        encoder = StatisticEncoder(CHOSEN, cv=LeaveOneOut(), **policies)
        found = quietly(encoder.fit_transform, drawn.frame, drawn.target, sample_weight=own)
        assert_same_bits(found, expected_encodings(drawn, [1] * drawn.size if own is None else weights, policies))


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_table(weighted):
    generator = np.random.default_rng(5)
    X, y = generator.integers(0, 300, (70_000, 1)), generator.integers(0, 30, 70_000) / 4
    weight = generator.integers(0, 3, len(y)) if weighted else None
    chosen, found = ["median", "mode", "nunique", ("share", 2)], []
    for name in ("numpy", "compiled"):
        with use_backend(name):
            found.append(StatisticEncoder(chosen, cv=LeaveOneOut()).fit_transform(X, y, sample_weight=weight))
    assert_same_bits(*found)
    for row in range(0, len(y), 700):
        rest = (X[:, 0] == X[row, 0]) & (np.arange(len(y)) != row)
        values = np.repeat(y[rest], 1 if weight is None else weight[rest])
        distinct, times = np.unique(values, return_counts=True)
        expected = [np.median(values), distinct[np.argmax(times)], len(distinct), np.count_nonzero(values > 2)]
        assert found[0][row].tolist() == [*expected[:3], expected[3] / len(values)]


def test_values_beyond_float64_are_told_apart():
    large = 2**53
    y = np.array([large, large + 1, large + 1, large + 2])
    codes = StatisticEncoder(["nunique", ("share", large + 1), "count"], cv=LeaveOneOut()).fit_transform([["a"]] * 4, y)
    assert codes.tolist() == [[2, 1 / 3, 3], [3, 1 / 3, 3], [3, 1 / 3, 3], [2, 0, 3]]


def test_nobody_else():
    encoder = StatisticEncoder(CHOSEN, cv=LeaveOneOut())
    with pytest.warns(UserWarning, match="1 rows see no rows at all and get NaN: there are no other rows"):
        assert_same_bits(encoder.fit_transform([["a"]], [2.5]), [NOTHING])


def test_columns_without_a_value():
    X = pd.DataFrame({"key": ["a", "a", "b"], "price": [math.nan] * 3})
    codes = quietly(StatisticEncoder(CHOSEN, values=["price"], cv=LeaveOneOut()).fit_transform, X)
    assert_same_bits(codes, [NOTHING] * 3)


@pytest.mark.parametrize("changed", [[0.5, 3.0], [0.5, 0.5]], ids=str)
def test_parts_that_hold_other_rows_are_refused(changed):
    encoder, parts = StatisticEncoder(CHOSEN, cv=LeaveOneOut()), parts_of([["a"], ["b"]], [0.5, 1.0])
    tables = fitted_in_parts(encoder, parts)
    assert encode(tables, parts[0]).shape == (2, len(CHOSEN))
    with pytest.raises(ValueError, match=re.escape("values of rows that were not there when the rows were looked")):
        encode(tables, Part([["a"], ["b"]], changed))
