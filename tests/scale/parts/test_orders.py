"""Ordered schemes in parts give the bits of one table: groups in sequence, or each from the sums before it."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gpu_encode import EmpiricalBayes, JamesStein, Ordered, PartialPooling, Prefixes, WeightOfEvidenceEncoder
from gpu_encode.fitting.ordered import average
from gpu_encode.scale.parts import (
    CategoryMeanDeltas,
    CategoryMeanScan,
    OrderedRows,
    OrderedScan,
    PrecedingSums,
    encode,
    shuffle,
    with_categories,
)
from tests.backends import small_tiles
from tests.cases import named, ordered_schemes, pairs, some, some_of
from tests.encoders.pieces import TARGETS, WEIGHTS, WHOLE, encoder
from tests.scale.parts.in_parts import fitted_in_parts, parts_of, through_pickle
from tests.scale.parts.test_laws import CUTS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCHEMES = ordered_schemes()


def one_after_another(tables, order, buckets):
    """Encode each bucket by one scan through all of them."""
    scan = OrderedScan(tables, order)
    return [scan.encode(bucket) for bucket in buckets]


def sums_before(tables, buckets):
    """Give each bucket with the sums of those before it, which travel by pickle."""
    before = None
    for bucket in buckets:
        yield bucket, through_pickle(before)
        sums = PrecedingSums.of(tables, bucket)
        before = sums if before is None else before + sums


def side_by_side(tables, order, buckets):
    """Encode each bucket by itself, from the sums of those before it."""
    return [OrderedScan(tables, order, before).encode(bucket) for bucket, before in sums_before(tables, buckets)]


def deltas_of(scan, buckets):
    for bucket in buckets:
        scan.add(bucket)
    return through_pickle(scan.deltas())


def deltas_one_after_another(tables, order, buckets):
    return deltas_of(CategoryMeanScan(tables, order), buckets)


def deltas_side_by_side(tables, order, buckets):
    deltas = [
        deltas_of(CategoryMeanScan(tables, order, before), [bucket]) for bucket, before in sums_before(tables, buckets)
    ]
    return sum(reversed(deltas), CategoryMeanDeltas({}))


WAYS = {
    "one after another": (one_after_another, deltas_one_after_another),
    "side by side": (side_by_side, deltas_side_by_side),
}


def encoded(one, parts, n_buckets, way):
    """Give the training encodings of every part, by buckets that hold rows of all parts."""
    tables = fitted_in_parts(one, parts)
    in_rows = tables.encoding_plan.order == "rows"
    shuffled = [shuffle(tables, part, 1 if in_rows else n_buckets) for part in parts]
    encode_buckets, sum_deltas = WAYS[way]
    orders = []
    for order in range(len(tables.before)):
        buckets = [rows[order] for rows in shuffled if rows[order]]
        joint = [rows[0] for rows in buckets] if in_rows else map(OrderedRows.join, zip(*buckets, strict=True))
        orders.append([through_pickle(rows) for rows in joint if len(rows)])
    if tables.needs_categories:
        tables = with_categories(tables, [sum_deltas(tables, order, rows) for order, rows in enumerate(orders)])
    placed = [encode_buckets(tables, order, rows) for order, rows in enumerate(orders)]
    ends = [part.first_row + len(part.X) for part in parts]
    return [
        encode(tables, part, [[rows.between(part.first_row, end) for rows in order] for order in placed])
        for part, end in zip(parts, ends, strict=True)
    ]


def assert_alike(y=TARGETS["quantity"], weight=None, cuts=7, n_buckets=3, way="one after another", **parameters):
    expected = encoder(**parameters).fit_transform(WHOLE, y, sample_weight=weight)
    encodings = encoded(encoder(**parameters), parts_of(WHOLE, y, weight, cuts=CUTS[cuts]), n_buckets, way)
    pd.testing.assert_frame_equal(pd.concat(encodings), expected, check_exact=True)


@pytest.fixture(autouse=True)
def tiles_within_buckets():
    with small_tiles(40):
        yield


# The simulator of a GPU takes seconds for an order.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cv", named(SCHEMES, ("ordered", "ordered-time-burn-in")))
def test_every_order(cv, way):
    assert_alike(way=way, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize(("cv", "target", "n_buckets", "way"), pairs(SCHEMES, TARGETS, [1, 40], WAYS))
def test_every_target_and_number_of_buckets(cv, target, n_buckets, way):
    assert_alike(TARGETS[target], n_buckets=n_buckets, way=way, cv=SCHEMES[cv])


@pytest.mark.long
@pytest.mark.parametrize(("cv", "cuts"), some_of(SCHEMES, [(1, "quantity"), (2, "classes"), (64, "binary")]))
def test_parts_and_weights(cv, cuts):
    cuts, target = cuts
    assert_alike(TARGETS[target], WEIGHTS["weighted"], cuts, cv=SCHEMES[cv])


PARAMETERS = [
    {"smooth": "auto"},
    {"smooth": JamesStein()},
    {"smooth": PartialPooling()},
    {"smooth": EmpiricalBayes(tau="between")},
    {"smooth": EmpiricalBayes("anova", pooled=True)},
    {"prior": "category_mean"},
    {"hierarchy": {"city": Prefixes(1)}, "prior": "category_mean"},
    {"columns": ["city"], "hierarchy": {"city": ["zip", "shop"]}, "indicators": False},
    {"handle_missing": "nan", "dtype": "float32"},
    {"prior": 0.5, "min_count": 3},
]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("parameters", "cv"), some_of(PARAMETERS, ["ordered-rows", "averaged", "ordered-time"], 3), ids=str
)
def test_parameters(cv, parameters, way):
    assert_alike(TARGETS["quantity" if way == "side by side" else "binary"], way=way, cv=SCHEMES[cv], **parameters)


@pytest.mark.long
@pytest.mark.parametrize("cv", named(some(SCHEMES, "ordered-rows", "ordered", "ordered-time")))
@pytest.mark.parametrize(
    "y",
    [
        np.r_[np.full(40, 1e300), np.full(40, -1e300), [3.0, 1e-300, 0.1, 5.0]],
        np.r_[np.full(40, 1 << 56), np.full(44, -(1 << 56))],
    ],
    ids=["real", "whole"],
)
def test_sums_that_cancel_leave_room_for_every_row(cv, y):
    assert_alike(y, way="side by side", cv=cv, target_type="continuous")


@pytest.mark.host
@pytest.mark.parametrize("cv", named(SCHEMES))
def test_rows_with_none_before_them_are_warned_of_once(cv):
    def messages(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [str(warning.message) for warning in caught]

    y = TARGETS["binary"]
    parts = parts_of(WHOLE, y, cuts=CUTS[7])
    expected = messages(lambda: encoder(cv=cv).fit_transform(WHOLE, y))
    assert messages(lambda: encoded(encoder(cv=cv), parts, 3, "side by side")) == expected


def test_infinite_evidence_of_one_order_is_no_average():
    X, y = np.array([list("aaabbbab")]).T, np.array([1, 1, 1, 0, 0, 1, 1, 0])
    one, other = (WeightOfEvidenceEncoder(regularization=0, cv=Ordered(shuffle=False)) for _ in range(2))
    expected = one.fit_transform(X, y)
    assert np.isinf(expected).sum() > 2
    encodings = encoded(other, parts_of(X, y, None, None, [3, 4]), 1, "one after another")
    assert np.concatenate(encodings).tobytes() == expected.tobytes()


def test_orders_that_agree_on_infinity():
    inf, nan = np.inf, np.nan
    orders = [[inf, -inf, nan, -0.0, 1.0], [inf, -inf, inf, -0.0, 3.0], [inf, nan, inf, -0.0, 2.0]]
    assert average(np.array(orders)).tolist() == [inf, -inf, inf, 0.0, 2.0]
    assert np.signbit(average(np.array([[-0.0]]))[0])
