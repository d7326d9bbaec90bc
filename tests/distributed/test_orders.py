"""Ordered schemes: rows as they stand, shuffled, and in time, with the bits of the whole frame."""

import dask
import pandas as pd
import pytest

from gpu_encode import EmpiricalBayes, JamesStein, Prefixes, TargetEncoder
from gpu_encode.distributed import orders
from tests.bits import assert_same_encoder
from tests.distributed.cases import KEYS, ORDERS, assert_same, partitioned, rows

WHOLE = rows()
pytestmark = [pytest.mark.usefixtures("synchronous"), pytest.mark.filterwarnings("ignore:.*see no rows at all")]
SMOOTHINGS = {
    "bayes": {},
    "between": {"smooth": EmpiricalBayes(tau="between")},
    "james-stein": {"smooth": JamesStein(), "prior": "category_mean"},
    "indicators": {"indicators": True, "min_count": 2},
    "hierarchy": {"hierarchy": {"shop": Prefixes(1)}},
}


def check(name, number, **parameters):
    parameters = {"cv": ORDERS[name], "columns": ["shop", ("city", "size")], **parameters}
    names = [*KEYS, "when"] if "time" in name else KEYS
    cut = partitioned(WHOLE, number)
    whole, encoder = TargetEncoder(**parameters), TargetEncoder(**parameters)
    wanted = whole.fit_transform(WHOLE[names], WHOLE["amount"])
    assert_same(encoder.fit_transform(cut[names], cut["amount"]).compute(), wanted)
    assert_same_encoder(encoder, whole)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("name", ["ordered-rows", "averaged", "ordered-time"])
def test_every_smoothing(name, smoothing):
    check(name, 4, **SMOOTHINGS[smoothing])


@pytest.mark.parametrize("name", ["averaged", "ordered-time"])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_the_number_of_groups_does_not_matter(name, most, monkeypatch):
    monkeypatch.setattr(orders, "MOST_GROUPS", most)
    monkeypatch.setattr(orders, "MOST_ROWS", 50)
    check(name, 6)


@pytest.mark.parametrize("name", ["ordered-rows", "averaged", "ordered-time"])
def test_lists_of_tables(name):
    names = [*KEYS, "when"] if "time" in name else KEYS
    cut, parameters = partitioned(WHOLE, 5), {"cv": ORDERS[name], "columns": ["shop"]}
    codes = TargetEncoder(**parameters).fit_transform(cut[names].to_delayed(), cut["amount"].to_delayed())
    wanted = TargetEncoder(**parameters).fit_transform(WHOLE[names], WHOLE["amount"])
    assert_same(pd.concat(dask.compute(*codes)), wanted)
