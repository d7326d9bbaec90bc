"""Ordered schemes in parts: the bits of one piece, whether buckets follow one another or know sums of those before."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gpu_encode import EmpiricalBayes, JamesStein, PartialPooling, Prefixes
from gpu_encode.parts import (
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
from tests.cases import named, ordered_schemes, some
from tests.encoders.pieces import TARGETS, WEIGHTS, WHOLE, encoder
from tests.parts.in_parts import fitted_in_parts, parts_of, through_pickle
from tests.parts.test_laws import CUTS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCHEMES = ordered_schemes()


def one_after_another(tables, order, buckets):
    """Codes of each bucket by one walk through all of them."""
    running = OrderedScan(tables, order)
    return [running.encode(bucket) for bucket in buckets]


def side_by_side(tables, order, buckets):
    """Codes of each bucket by itself, from the sums of those before it."""
    found, before = [], None
    for bucket in buckets:
        found.append(OrderedScan(tables, order, through_pickle(before)).encode(bucket))
        own = PrecedingSums.of(tables, bucket)
        before = own if before is None else before + own
    return found


def gained_one_after_another(tables, order, buckets):
    gaining = CategoryMeanScan(tables, order)
    for bucket in buckets:
        gaining.add(bucket)
    return gaining.deltas()


def gained_side_by_side(tables, order, buckets):
    found, before = [], None
    for bucket in buckets:
        gaining = CategoryMeanScan(tables, order, before)
        gaining.add(bucket)
        found.append(through_pickle(gaining.deltas()))
        own = PrecedingSums.of(tables, bucket)
        before = own if before is None else before + own
    return sum(reversed(found), CategoryMeanDeltas({}))


WAYS = {
    "one after another": (one_after_another, gained_one_after_another),
    "side by side": (side_by_side, gained_side_by_side),
}


def encoded(one, parts, n_buckets, way):
    """Training codes of every part, by buckets that hold rows of all parts."""
    tables = fitted_in_parts(one, parts)
    in_rows = tables.encoding_plan.order == "rows"
    scattered = [shuffle(tables, part, 1 if in_rows else n_buckets) for part in parts]
    walk, gain = WAYS[way]
    orders = []
    for order in range(len(tables.before)):
        buckets = [own[order] for own in scattered if own[order]]
        chosen = (
            [own[0] for own in buckets] if in_rows else [OrderedRows.join(each) for each in zip(*buckets, strict=True)]
        )
        orders.append([through_pickle(each) for each in chosen if len(each)])
    if tables.needs_categories:
        tables = with_categories(tables, [gain(tables, order, own) for order, own in enumerate(orders)])
    placed = [walk(tables, order, own) for order, own in enumerate(orders)]
    ends = [part.first_row + len(part.X) for part in parts]
    return [
        encode(tables, part, [[each.between(part.first_row, end) for each in own] for own in placed])
        for part, end in zip(parts, ends, strict=True)
    ]


def compared(y=TARGETS["quantity"], weight=None, cuts=7, n_buckets=3, way="one after another", **parameters):
    expected = encoder(**parameters).fit_transform(WHOLE, y, sample_weight=weight)
    found = encoded(encoder(**parameters), parts_of(WHOLE, y, weight, cuts=CUTS[cuts]), n_buckets, way)
    pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


@pytest.fixture(autouse=True)
def tiles_within_buckets():
    with small_tiles(40):
        yield


# The simulator of a GPU takes seconds for an order.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cv", named(SCHEMES, ("ordered", "ordered-time-burn-in")))
def test_every_order(cv, way):
    compared(way=way, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_buckets", [1, 40])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cv", named(SCHEMES))
def test_every_order_target_and_number_of_buckets(cv, target, n_buckets, way):
    compared(TARGETS[target], n_buckets=n_buckets, way=way, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize(("cuts", "target"), [(1, "quantity"), (2, "classes"), (64, "binary")])
@pytest.mark.parametrize("cv", named(SCHEMES))
def test_parts_and_weights(cv, cuts, target):
    compared(TARGETS[target], WEIGHTS["weighted"], cuts, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "parameters",
    [
        {"smooth": "auto"},
        {"smooth": JamesStein()},
        {"smooth": PartialPooling()},
        {"smooth": EmpiricalBayes(tau="between")},
        {"prior": "category_mean"},
        {"hierarchy": {"city": Prefixes(1)}, "prior": "category_mean"},
        {"columns": ["city"], "hierarchy": {"city": ["zip", "shop"]}, "indicators": False},
        {"handle_missing": "nan", "dtype": "float32"},
        {"prior": 0.5, "min_count": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("cv", named(some(SCHEMES, "ordered-rows", "averaged", "ordered-time")))
def test_parameters(cv, parameters, way):
    compared(TARGETS["quantity" if way == "side by side" else "binary"], way=way, cv=cv, **parameters)


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
    compared(y, way="side by side", cv=cv, target_type="continuous")


@pytest.mark.host
@pytest.mark.parametrize("cv", named(SCHEMES))
def test_rows_with_none_before_them_are_warned_of_once(cv):
    def warned(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        return [str(each.message) for each in found]

    y = TARGETS["binary"]
    expected = warned(lambda: encoder(cv=cv).fit_transform(WHOLE, y))
    found = warned(lambda: encoded(encoder(cv=cv), parts_of(WHOLE, y, cuts=CUTS[7]), 3, "side by side"))
    assert found == expected
