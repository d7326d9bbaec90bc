"""Partitions of Dask as rows of an engine: columns are selected, rows counted, results added up and distributed."""

from dataclasses import replace

import dask
import pytest

from gpu_encode.scale.dask.partitions import read
from tests.scale.dask.cases import partitioned, pieces, rows

WHOLE = rows(60)
PARTS = pieces(WHOLE, 4)
COLUMNS = ["shop", "city", "price"]
pytestmark = pytest.mark.usefixtures("synchronous")


@pytest.fixture(params=["frame", "list"])
def given(request):
    """Give rows with a target and weights."""
    cut = partitioned(WHOLE, 4)
    X, y, weight = cut[COLUMNS], cut["amount"], cut["weight"]
    if request.param == "list":
        X, y = X.to_delayed(), y.to_delayed()
    return replace(read(X, y, weight), sample=WHOLE[COLUMNS].iloc[:0], roles=["_y", "_weight", "_groups"])


class Seen(list):
    """Return what tasks have seen, in the order of partitions."""

    def __add__(self, other):
        return Seen([*self, *other])


def look(known, part):
    """Record the arguments of a task."""
    columns = part.select(COLUMNS).column_names
    return Seen([(known, part.number, part.first_row, len(part), columns, part.y is None, part.sample_weight is None)])


def test_a_pass_reads_what_is_picked(given):
    lengths = [len(part) for part in PARTS]
    firsts = [sum(lengths[:number]) for number in range(4)]
    for names, columns, no_y, no_weight in (
        (["city", "_y"], ["city"], False, True),
        (["_weight"], ["shop"], True, False),
        (["price", "shop"], ["shop", "price"], True, True),
    ):
        counted = replace(given, lengths=lengths).pick(names)
        expected = [(7, *which, columns, no_y, no_weight) for which in zip(range(4), firsts, lengths, strict=True)]
        assert counted.add_up(look, 7) == expected
    assert [seen[2] for seen in given.pick(["city"]).add_up(look, 7)] == [0] * 4


def by_city(known, part):
    """Give the prices of rows by city."""
    table, dealt = part.select(["city", "price"]).to_pylist(), {}
    for row in table:
        dealt.setdefault(row["city"] % known, []).append(row["price"])
    return dealt


def gather(known, group):
    """Give everything that came to a bucket."""
    return known, group[0], [price for prices in group[1] for price in prices]


def test_buckets_get_what_is_dealt_in_the_order_of_partitions(given):
    made = given.pick(["city", "price"]).deal(by_city, 5, 7).map(gather, "all")
    expected = [("all", bucket, WHOLE.loc[WHOLE["city"] % 5 == bucket, "price"].tolist()) for bucket in range(7)]
    assert list(dask.compute(*made)) == expected


def test_rows_that_are_taken_as_they_are(given):
    found = dask.compute(*given.map(lambda known, part: known.append(part.X) or part.X.shape, []))
    assert list(found) == [(len(part), 3) for part in PARTS]
