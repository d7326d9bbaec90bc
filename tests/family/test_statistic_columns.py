"""StatisticEncoder of columns of X: nulls, types, schemes, several columns at once."""

import datetime
import math
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import KFold, LeaveOneOut, Ordered, StatisticEncoder, TimeFolds
from tests import strategies
from tests.family.drawn import ORDERS, STATISTICS, quietly
from tests.parts.in_parts import encoded_in_parts, parts_of

# Values are sorted and selected on the host, whatever holds them; test_laws.py asks the backends.
pytestmark = pytest.mark.host

VALUES = ["price", "pieces"]


def frame_of(n_rows=60):
    generator = np.random.default_rng(4)
    price = generator.normal(size=n_rows)
    price[::7] = np.nan
    return pd.DataFrame(
        {
            "city": generator.choice(["x", "y", "z", None], n_rows),
            "price": price,
            "zip": generator.integers(0, 5, n_rows),
            "pieces": generator.integers(-9, 9, n_rows),
            "day": generator.integers(0, 20, n_rows),
        }
    )


def encoder_of(**choices):
    return StatisticEncoder(
        **{"statistics": STATISTICS, "values": VALUES, "columns": ["city", ("zip", "city")]} | choices
    )


def test_every_key_value_and_statistic():
    X = frame_of()
    names = [f"{key}_{value}_{each}" for key in ("city", "zip_x_city") for value in VALUES for each in STATISTICS]
    encoder = encoder_of().fit(X)
    assert encoder.get_feature_names_out().tolist() == [*names, "price", "pieces", "day"]
    found = encoder.transform(X)
    assert found.columns.tolist() == [*names, "price", "pieces", "day"]
    groups = X.groupby("city", dropna=False)
    for value in VALUES:
        for each in STATISTICS:
            np.testing.assert_allclose(found[f"city_{value}_{each}"], groups[value].transform(each), rtol=1e-12)
    for each in ("count", "sum"):
        assert found[f"city_pieces_{each}"].tolist() == groups["pieces"].transform(each).tolist()


def test_rows_without_a_value_take_no_part():
    X = frame_of()
    encoder = encoder_of(values=["price"], columns=["zip"]).fit(X)
    there = X[X["price"].notna()]
    alone = StatisticEncoder(STATISTICS).fit(there[["zip"]], there["price"])
    for mine, theirs in zip(encoder.encodings_, alone.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_a_category_without_values_is_unseen():
    X = pd.DataFrame({"shop": ["a", "a", "b"], "price": [1.0, 3.0, None]})
    encoder = StatisticEncoder(["count", "sum", "mean"], values=["price"], indicators=True)
    assert encoder.fit_transform(X).to_numpy().tolist() == [[2.0, 4.0, 2.0, 0.0]] * 2 + [[0.0, 0.0, 2.0, 1.0]]


def test_no_target_is_needed_and_none_is_read():
    X = frame_of()
    with_y = encoder_of().fit_transform(X, ["not", "a", "number"] * 20)
    assert with_y.equals(encoder_of().fit_transform(X))
    assert with_y.equals(encoder_of().fit(X).transform(X))


@pytest.mark.parametrize("columns", [None, ["city"]])
def test_new_rows_need_no_values(columns):
    X = frame_of()[["city", "price", "pieces"]]
    encoder = encoder_of(columns=columns).fit(X)
    whole = encoder.transform(X)
    encoded = [name for name in whole.columns if name not in X]
    assert encoder.transform(X[["city"]])[encoded].equals(whole[encoded])
    assert [name for name in whole.columns if name in X] == ([] if columns is None else VALUES)


def test_columns_by_position():
    X = frame_of()
    named = encoder_of(columns=["zip"]).fit(X)
    plain = X.to_numpy(dtype=object)
    encoder = encoder_of(columns=[2], values=[1, -2]).fit(plain)
    assert encoder.get_feature_names_out()[0] == "x2_x1_count"
    for mine, theirs in zip(encoder.encodings_, named.encodings_, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_a_fold_sees_the_values_of_the_others():
    X = frame_of()
    folds = np.arange(len(X)) % 3
    found = encoder_of(cv=folds).fit_transform(X)
    for fold in range(3):
        others = encoder_of().fit(X[folds != fold])
        pd.testing.assert_frame_equal(found[folds == fold], others.transform(X[folds == fold]), check_exact=True)


@pytest.mark.parametrize("weight", [np.ones(30, int), np.arange(30) % 4], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("statistics", [STATISTICS, [*ORDERS, "mean", "var", "sum"]], ids=["sums", "orders"])
def test_leave_one_out_sees_the_other_rows(statistics, weight):
    X = frame_of(30)
    found = encoder_of(statistics=statistics, cv=LeaveOneOut()).fit_transform(X, sample_weight=weight)
    for row in range(len(X)):
        others = encoder_of(statistics=statistics).fit(X.drop(index=row), sample_weight=np.delete(weight, row))
        pd.testing.assert_frame_equal(found[row : row + 1], others.transform(X[row : row + 1]), check_exact=True)


def test_time_sees_earlier_rows():
    X = frame_of(30).astype({"pieces": float})
    found = quietly(encoder_of(cv=Ordered(time="day")).fit_transform, X)
    names = [name for name in found if name not in X]
    for row in np.flatnonzero(X["day"] > X["day"].min()):
        expected = encoder_of().fit(X[X["day"] < X["day"][row]]).transform(X[row : row + 1])
        pd.testing.assert_frame_equal(found[names][row : row + 1], expected[names], check_exact=True)


# Of codes that are blown up, the row's own fold's encoder has one in three.
@pytest.mark.parametrize(
    ("cv", "wide"),
    [(3, 1), (KFold(3, blow_up=True), 3), (LeaveOneOut(), 1), (Ordered(), 1), (TimeFolds(3, time="day"), 1)],
    ids=str,
)
@strategies.examples(5)
@given(data=st.data())
def test_a_flipped_value_leaves_the_own_code_alone(cv, wide, data):
    X, row, codes = frame_of(14), data.draw(st.integers(0, 13)), []
    for _ in range(2):
        X.loc[row, "price"] = data.draw(strategies.finite_numbers())
        found = quietly(encoder_of(cv=cv).fit_transform, X)
        codes.append(found[[name for name in found if name not in X]].to_numpy()[row].view(np.int64))
    assert (codes[0] == codes[1]).reshape(-1, wide).all(axis=0).any()


@pytest.mark.parametrize("cv", ["auto", 4, LeaveOneOut(), TimeFolds(3, time="day"), KFold(3, blow_up=True)], ids=str)
@pytest.mark.parametrize(("statistics", "unit"), [(STATISTICS, 0.5), (ORDERS, 1)], ids=["sums", "orders"])
def test_pieces_and_parts_are_one_table(statistics, unit, cv):
    X, weight = frame_of(), np.arange(60) % 4 * unit
    make = partial(encoder_of, statistics=statistics, cv=cv)
    whole = quietly(make().fit_transform, X, sample_weight=weight)
    cut = [X[:7], pl.from_pandas(X[7:8]), X[8:]]
    first, middle, last = quietly(make().fit_transform, cut, sample_weight=weight)
    pieces = pd.concat([first, middle.to_pandas().set_index(pd.RangeIndex(7, 8)), last])
    pd.testing.assert_frame_equal(pieces, whole, check_exact=True, check_dtype=False)
    parts = parts_of(X, None, weight, cuts=(7, 8, 31))
    tables = quietly(encoded_in_parts, make(), parts)
    pd.testing.assert_frame_equal(pd.concat(tables), whole, check_exact=True)


def test_an_order_in_parts_is_refused():
    with pytest.raises(ValueError, match="StatisticEncoder with values and cv=Ordered"):
        encoded_in_parts(encoder_of(cv=Ordered()), parts_of(frame_of(), None, cuts=(7,)))


def test_encoders_of_other_values_are_not_merged():
    X = frame_of()
    with pytest.raises(ValueError, match="values"):
        encoder_of().fit(X).merge(encoder_of(values=["pieces"]).fit(X))


KINDS = {
    "integers with nulls": pa.array([1, None, 2**60 + 1, 4]),
    "decimals": pa.array([Decimal("1.5"), None, Decimal("2.25"), Decimal(4)]),
    "booleans": pa.array([True, None, False, True]),
    "dictionary": pa.array([3, None, 3, 7]).dictionary_encode(),
    "floats": pa.array([0.5, float("nan"), 1e300, 2.0], pa.float64()),
    "small floats": pa.array([0.5, None, 1.25, 2.0], pa.float32()),
    "nulls alone": pa.array([None] * 4, pa.float64()),
}


@pytest.mark.parametrize("name", KINDS)
def test_types_of_values(name):
    column = KINDS[name]
    X = pa.table({"key": ["a"] * 4, "value": column})
    encoder = StatisticEncoder(["count", "sum"], values=["value"], handle_unknown=0.0).fit(X)
    there = [value for value in column.to_pylist() if value is not None and not math.isnan(value)]
    assert [codes.tolist() for codes in encoder.encodings_] == [[float(len(there))], [float(sum(there))]]


WRONG = [
    ({"values": []}, ValueError, "values must be a list of names or positions"),
    ({"values": "price"}, ValueError, "values must be a list of names or positions"),
    ({"values": ["price", "price"]}, ValueError, "values must be a list of names or positions .* each once"),
    ({"values": ["price", 1]}, ValueError, "each once"),
    ({"values": ["prise"]}, ValueError, "values: 'prise' is not a column of X. Did you mean 'price'"),
    ({"values": ["city"]}, TypeError, "values: column 'city' holds '.', which is no number"),
    ({"values": ["when"]}, TypeError, "values: column 'when' holds dates, times or spans"),
    ({"values": ["far"]}, ValueError, "contains infinity: column 'far', the first in row 3"),
    ({"columns": ["price"]}, ValueError, r"'price' is used by the scheme .* or summed \(values\), .* Leave it out of"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), WRONG, ids=[str(index) for index in range(len(WRONG))])
def test_refusals(parameters, error, message):
    X = frame_of().assign(when=datetime.datetime(2024, 1, 1), far=[0.0] * 3 + [math.inf] + [1.0] * 56)
    with pytest.raises(error, match=message):
        encoder_of(**parameters).fit(X)


def test_infinity_is_named_in_its_piece():
    X = frame_of()
    X.loc[12, "price"] = -math.inf
    with pytest.raises(ValueError, match=r"row 12 \(row 2 of X\[1\]\)"):
        encoder_of().fit([X[:10], X[10:]])
