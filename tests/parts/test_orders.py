"""Ordered schemes in parts: the bits of one piece, whether buckets follow one another or know sums of those before."""

import warnings

import numpy as np
import pandas as pd
import pytest

import cpu_fallback
from gpu_encode import EmpiricalBayes, JamesStein, Ordered, PartialPooling, Prefixes
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
from tests.encoders.test_pieces import TARGETS, WEIGHTS, WHOLE, encoder
from tests.parts.in_parts import fitted_in_parts, parts_of, through_pickle
from tests.parts.test_laws import CUTS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SCHEMES = {
    "rows": lambda: Ordered(shuffle=False),
    "rows, burn-in": lambda: Ordered(shuffle=False, burn_in=30),
    "random": lambda: Ordered(random_state=3),
    "random, burn-in": lambda: Ordered(burn_in=0.2),
    "averaged": lambda: Ordered(3),
    "apart": lambda: Ordered(2, average=False),
    "time": lambda: Ordered(time="day"),
    "time, burn-in": lambda: Ordered(time="day", burn_in=9),
}


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
            [own[0] for own in buckets]
            if in_rows
            else [OrderedRows.join(each) for each in zip(*buckets, strict=True)]
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


def compared(scheme, target="quantity", weight=None, cuts=7, n_buckets=3, way="one after another", **parameters):
    y = TARGETS[target]
    expected = encoder(cv=scheme(), **parameters).fit_transform(WHOLE, y, sample_weight=weight)
    other = encoder(cv=scheme(), **parameters)
    found = encoded(other, parts_of(WHOLE, y, weight, cuts=CUTS[cuts]), n_buckets, way)
    pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Cut buckets into tiles."""
    monkeypatch.setattr(cpu_fallback, "TILE", 40)


# The simulator of a GPU takes seconds for an order.
SIMULATED = ("random", "time, burn-in")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "scheme",
    [
        pytest.param(scheme, id=name, marks=() if name in SIMULATED else pytest.mark.host)
        for name, scheme in SCHEMES.items()
    ],
)
def test_every_order(scheme, way):
    compared(scheme, way=way)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_buckets", [1, 40])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_every_order_target_and_number_of_buckets(scheme, target, n_buckets, way):
    compared(scheme, target, n_buckets=n_buckets, way=way)


@pytest.mark.long
@pytest.mark.parametrize(("cuts", "target"), [(1, "quantity"), (2, "classes"), (64, "binary")])
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_parts_and_weights(scheme, cuts, target):
    compared(scheme, target, WEIGHTS["weighted"], cuts)


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
@pytest.mark.parametrize("scheme", ["rows", "averaged", "time"])
def test_parameters(scheme, parameters, way):
    compared(SCHEMES[scheme], "quantity" if way == "side by side" else "binary", way=way, **parameters)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["rows", "random", "time"])
def test_sums_that_cancel_leave_room_for_every_row(scheme):
    for y in (
        np.r_[np.full(40, 1e300), np.full(40, -1e300), [3.0, 1e-300, 0.1, 5.0]],
        np.r_[np.full(40, 1 << 56), np.full(44, -(1 << 56))],
    ):
        expected = encoder(cv=SCHEMES[scheme](), target_type="continuous").fit_transform(WHOLE, y)
        one = encoder(cv=SCHEMES[scheme](), target_type="continuous")
        found = encoded(one, parts_of(WHOLE, y, cuts=CUTS[7]), 3, "side by side")
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


@pytest.mark.host
@pytest.mark.parametrize("scheme", [*SCHEMES.values()], ids=SCHEMES)
def test_rows_with_none_before_them_are_warned_of_once(scheme):
    def warned(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        return [str(each.message) for each in found]

    y = TARGETS["binary"]
    expected = warned(lambda: encoder(cv=scheme()).fit_transform(WHOLE, y))
    assert (
        warned(lambda: encoded(encoder(cv=scheme()), parts_of(WHOLE, y, cuts=CUTS[7]), 3, "side by side")) == expected
    )
