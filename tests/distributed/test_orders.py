"""Ordered schemes: rows as they stand, shuffled, and in time, with the bits of the whole frame."""

import dask
import pandas as pd
import pytest

from gpu_encode import EmpiricalBayes, JamesStein, Ordered, Prefixes, TargetEncoder
from gpu_encode.distributed import orders
from tests.distributed.cases import KEYS, assert_same, assert_same_encoder, partitioned, pieces, rows

WHOLE = rows()
pytestmark = pytest.mark.filterwarnings("ignore:.*see no rows at all")
SCHEMES = {
    "rows": Ordered(shuffle=False),
    "rows, burn-in": Ordered(shuffle=False, burn_in=30),
    "random": Ordered(random_state=3),
    "averaged": Ordered(3),
    "apart": Ordered(2, average=False),
    "time": Ordered(time="when"),
    "time, burn-in": Ordered(time="when", burn_in=0.1),
}
SMOOTHINGS = {
    "bayes": {},
    "between": {"smooth": EmpiricalBayes(tau="between")},
    "james-stein": {"smooth": JamesStein(), "prior": "category_mean"},
    "indicators": {"indicators": True, "min_count": 2},
    "hierarchy": {"hierarchy": {"shop": Prefixes(1)}},
}


@pytest.fixture(autouse=True)
def _synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def columns_for(scheme):
    return [*KEYS, "when"] if scheme.time is not None else KEYS


def check(scheme, number, targets="amount", frame=WHOLE, weighted=False, **parameters):
    parameters = {"cv": scheme, "columns": ["shop", ("city", "size")], **parameters}
    cut, names = partitioned(frame, number), columns_for(scheme)
    whole, encoder = TargetEncoder(**parameters), TargetEncoder(**parameters)
    wanted = whole.fit_transform(frame[names], frame[targets], sample_weight=frame["weight"] if weighted else None)
    codes = encoder.fit_transform(cut[names], cut[targets], sample_weight=cut["weight"] if weighted else None)
    assert_same(codes.compute(), wanted)
    assert_same_encoder(encoder, whole)
    return codes, wanted


@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize("name", SCHEMES)
def test_training_codes_are_those_of_the_whole_frame(name, number):
    check(SCHEMES[name], number)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("name", ["rows", "averaged", "time"])
def test_every_smoothing(name, smoothing):
    check(SCHEMES[name], 4, **SMOOTHINGS[smoothing])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", ["sold", "grade"])
@pytest.mark.parametrize("name", ["rows", "random", "time"])
def test_classes_and_weights(name, target, weighted):
    check(SCHEMES[name], 5, target, weighted=weighted)


@pytest.mark.parametrize("name", ["rows", "averaged"])
def test_many_partitions_most_of_them_empty(name):
    check(SCHEMES[name], 64, frame=rows(40))


@pytest.mark.parametrize("name", ["averaged", "time"])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_the_number_of_buckets_does_not_matter(name, most, monkeypatch):
    monkeypatch.setattr(orders, "MOST_BUCKETS", most)
    monkeypatch.setattr(orders, "MOST_ROWS", 50)
    check(SCHEMES[name], 6)


@pytest.mark.parametrize("name", ["rows", "random"])
def test_partitions_that_are_picked(name):
    codes, wanted = check(SCHEMES[name], 7)
    start = sum(len(part) for part in pieces(WHOLE, 7)[:4])
    part = codes.partitions[4].compute()
    assert_same(part, wanted.iloc[start : start + len(part)])
    assert_same(codes.tail(2), wanted.tail(2))


@pytest.mark.parametrize("name", ["rows", "averaged", "time"])
def test_lists_of_tables(name):
    scheme, names = SCHEMES[name], columns_for(SCHEMES[name])
    parameters = {"cv": scheme, "columns": ["shop"]}
    cut = partitioned(WHOLE, 5)
    codes = TargetEncoder(**parameters).fit_transform(cut[names].to_delayed(), cut["amount"].to_delayed())
    wanted = TargetEncoder(**parameters).fit_transform(WHOLE[names], WHOLE["amount"])
    assert_same(pd.concat(dask.compute(*codes)), wanted)


@pytest.mark.parametrize("name", ["rows", "averaged"])
def test_threads(name):
    with dask.config.set(scheduler="threads"):
        check(SCHEMES[name], 3)
