"""GradientEncoder: against its definition in exact fractions, and what it refuses."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import GradientEncoder, Greedy, KFold, LeaveOneOut, Ordered
from tests import naive
from tests.family.drawn import SEEN
from tests.family.members import GRADIENTS, ROWS, WEIGHTS, N

CITIES = ROWS["city"].fillna("missing")
Y = np.column_stack([GRADIENTS[:, 0], np.where(np.arange(N) % 7 == 0, 0.0, GRADIENTS[:, 1])])


def sums(rows, weights):
    """Summed gradients and hessians of rows, each rounded once."""
    found = [Fraction(0), Fraction(0)]
    for row in rows:
        for place in range(2):
            found[place] += int(weights[row]) * Fraction(float(Y[row, place]))
    return [naive.nearest(each) for each in found]


def stated(visible, city, weights, regularization):
    own = [row for row in visible if CITIES[row] == city and weights[row] > 0]
    gradient, hessian = sums(own or visible, weights)
    below = hessian + regularization
    return gradient / below if below > 0 else 0.0


@pytest.mark.filterwarnings("ignore:Greedy", "ignore:.*see no rows")
@pytest.mark.parametrize(("scheme", "sees"), SEEN.values(), ids=SEEN)
@pytest.mark.parametrize("weights", [np.ones(N, int), WEIGHTS + (np.arange(N) == 0)], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("regularization", [0.0, 10.0])
def test_ratio(scheme, sees, weights, regularization):
    encoder = GradientEncoder(regularization=regularization, cv=scheme())
    found = encoder.fit_transform(CITIES.to_frame(), Y, sample_weight=weights).to_numpy()[:, 0]
    rows = range(1, N)
    expected = [stated([o for o in range(N) if sees(row, o)], CITIES[row], weights, regularization) for row in rows]
    assert found[1:].tolist() == expected
    of_all = [stated(range(N), city, weights, regularization) for city in encoder.categories_[0]]
    assert encoder.encodings_[0].tolist() == of_all


def test_order_is_that_of_the_ratio_in_every_fold():
    X, scheme = CITIES.to_frame(), KFold(3, order="interleaved")
    ratio = GradientEncoder("ratio", 1.0, scheme).fit_transform(X, Y).to_numpy()[:, 0]
    order = GradientEncoder("order", 1.0, scheme).fit_transform(X, Y).to_numpy()[:, 0]
    for fold in range(3):
        rows = np.arange(N) % 3 == fold
        visible = {city: stated(np.flatnonzero(~rows), city, np.ones(N), 1.0) for city in set(CITIES[~rows])}
        ranked = sorted(visible, key=lambda city: (visible[city], city))
        expected = [ranked.index(city) if city in visible else -1 for city in CITIES[rows]]
        seen = np.array(expected) >= 0
        assert order[rows][seen].tolist() == np.array(expected)[seen].tolist()
        assert ratio[rows][seen].tolist() == [visible[city] for city in CITIES[rows][seen]]


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
    assert GradientEncoder(regularization=0).fit([["a"], ["b"]], [[1.0, 0.0], [1, 2]]).encodings_[0].tolist() == [
        0,
        0.5,
    ]


@pytest.mark.host
def test_every_table_of_two_columns_will_do():
    expected = GradientEncoder(cv=3).fit_transform(ROWS[["city"]], Y)
    for y in (pd.DataFrame(Y, columns=["g", "h"]), pl.DataFrame(Y, schema=["g", "h"]), Y.tolist()):
        assert GradientEncoder(cv=3).fit_transform(ROWS[["city"]], y).equals(expected)
    assert expected.columns.tolist() == ["city"]


@pytest.mark.host
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:, 0], r"y of two columns, the gradient and the hessian of each row's loss, but y has 1\. Pass np"),
        (np.column_stack([Y, Y]), "y of two columns.* y has 4"),
        (
            np.column_stack([Y[:, 0], -1.0 - Y[:, 0] ** 2]),
            r"Hessians .*GradientEncoder's y.* must be at least 0\. Got -.* in row 0\. Are .* swapped\?",
        ),
        ([["x", "y"]] * N, "needs numbers in y, but it holds 'x'. Convert y, or choose an encoder"),
    ],
)
def test_what_is_no_gradient_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        GradientEncoder().fit(ROWS[["city"]], y)


@pytest.mark.host
def test_the_row_of_a_bad_hessian_is_found_in_pieces():
    pieces = [np.array([["a"], ["b"]]), np.array([["a"], ["b"]])]
    with pytest.raises(ValueError, match=r"in row 3 \(row 1 of y\[1\]\)"):
        GradientEncoder().fit(pieces, [np.ones((2, 2)), np.array([[1.0, 1.0], [1.0, -1.0]])])


@pytest.mark.host
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"output": "rank"}, "'output' parameter of GradientEncoder must be one of 'ratio', 'order'"),
        ({"regularization": -1}, "must be a finite number of at least 0"),
        ({"output": "order", "cv": LeaveOneOut()}, "looks at all categories at once"),
        ({"output": "order", "cv": Ordered()}, "looks at all categories at once"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        GradientEncoder(**parameters).fit(ROWS[["city"]], Y)
