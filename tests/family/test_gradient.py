"""GradientEncoder, compared with its definition in exact fractions, and its errors."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import GradientEncoder, Greedy
from tests import naive
from tests.family.members import GRADIENTS, ROWS, WEIGHTS, N

CITIES = ROWS["city"].fillna("missing")
Y = np.column_stack([GRADIENTS[:, 0], np.where(np.arange(N) % 7 == 0, 0.0, GRADIENTS[:, 1])])


def sums(rows, weights):
    """Return the sums of gradients and of hessians, each rounded once."""
    return [naive.nearest(sum(int(weights[row]) * Fraction(float(column[row])) for row in rows)) for column in Y.T]


def state(visible, city, weights, regularization):
    members = [row for row in visible if CITIES[row] == city and weights[row] > 0]
    gradient, hessian = sums(members or visible, weights)
    below = hessian + regularization
    return gradient / below if below > 0 else 0.0


@pytest.mark.parametrize("weights", [np.ones(N, int), WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("regularization", [0.0, 10.0])
def test_ratio(weights, regularization):
    encoder = GradientEncoder(regularization=regularization).fit(CITIES.to_frame(), Y, sample_weight=weights)
    expected = [state(range(N), city, weights, regularization) for city in encoder.categories_[0]]
    assert encoder.encodings_[0].tolist() == expected


def test_order_is_that_of_the_ratio():
    encoders = [GradientEncoder(output, 1.0).fit(CITIES.to_frame(), Y) for output in ("ratio", "order")]
    ratio, places = (encoder.encodings_[0] for encoder in encoders)
    assert places.tolist() == np.argsort(np.argsort(ratio, kind="stable")).tolist()


@pytest.mark.host
def test_an_unseen_category_stands_where_all_rows_together_do():
    y = np.array([[-3.0, 1], [-3, 1], [6, 1], [6, 1], [2, 1], [2, 1]])
    X = np.array([list("aabbcc")]).T
    encoder = GradientEncoder("order", 0.0, Greedy()).fit(X, y)
    assert encoder.encodings_[0].tolist() == [0, 2, 1]
    assert encoder.transform([["never seen"]]).tolist() == [[1.0]]
    assert GradientEncoder("ratio", 0.0).fit(X, y).transform([["never seen"]]).tolist() == [[10 / 6]]


@pytest.mark.host
def test_an_unseen_category_stands_where_one_of_its_ratio_does():
    encoder = GradientEncoder("order").fit([["a"], ["b"], ["c"]], [[3.0, 1], [0, 1], [-3, 1]])
    assert encoder.transform([["a"], ["b"], ["c"], ["never seen"]]).tolist() == [[2.0], [1.0], [0.0], [1.0]]


def test_without_curvature_nothing_follows():
    encoder = GradientEncoder(regularization=0).fit([["a"], ["b"]], [[1.0, 0.0], [1, 2]])
    assert encoder.encodings_[0].tolist() == [0, 0.5]


@pytest.mark.host
def test_every_table_of_two_columns_will_do():
    expected = GradientEncoder(cv=3).fit_transform(ROWS[["city"]], Y)
    for y in (pd.DataFrame(Y, columns=["g", "h"]), pl.DataFrame(Y, schema=["g", "h"]), Y.tolist()):
        assert GradientEncoder(cv=3).fit_transform(ROWS[["city"]], y).equals(expected)
    assert expected.columns.tolist() == ["city"]
