"""Encodings in one pass on a GPU, compared bit for bit with the array expressions on NumPy."""

from dataclasses import replace
from importlib import import_module
from itertools import product

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import Permutation, RowOrder
from cpu_fallback.types import Rows
from gpu_encode.fitting import fit
from gpu_encode.fitting.ordered import checkpoint_ranks, find_segments
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums
from gpu_encode.schemes.plans import LeaveOneOutPlan, OrderedPlan, upload
from gpu_encode.sums.category_sums import CategorySums
from tests.bits import assert_same_bits
from tests.cpu_fallback import test_blending as tables
from tests.cpu_fallback import test_row_encodings as by_row

ROWS = [*product(["classes", "real", "whole"], ["none", "whole", "real"]), ("large", "real")]


def on(ops, array):
    return None if array is None else ops.to_device(array)


def train_rows(ops, plan, *description, dtype="float64"):
    task = by_row.task_of(cpu_fallback, *description)
    rows = Rows(*(on(ops, part) for part in (task.rows.codes, task.rows.classes, task.rows.target, task.rows.weight)))
    moved = EncodingTask(ops, rows, task.key, task.n_classes, task.spec, task.rule)
    out = ops.empty((len(rows), task.n_outputs * fit.n_columns(plan)), dtype, "F")
    result = fit.train(moved, upload(plan, ops), out, want_unseen=True)
    return ops.to_host(out), ops.to_host(result.unseen), result.statistics


def assert_same_rows(ops, plan, *description, dtype="float64"):
    expected, stated = by_row.train_rows(cpu_fallback, plan, *description, dtype=dtype)
    result, unseen, statistics = train_rows(ops, plan, *description, dtype=dtype)
    assert_same_bits(result, expected)
    assert np.array_equal(unseen, stated.unseen)
    found = replace(statistics, accumulators=ops.to_host(statistics.accumulators))
    assert np.array_equal(found.to_canonical().accumulators, stated.statistics.to_canonical().accumulators)


@pytest.mark.parametrize(("target", "weight"), ROWS)
def test_rows_left_out_and_in_an_order(device, target, weight):
    for number, smoothing in enumerate(by_row.SMOOTHINGS):
        rule = [*by_row.RULES][(number + len(target) + len(weight)) % len(by_row.RULES)]
        assert_same_rows(device, LeaveOneOutPlan(), target, weight, smoothing, rule, 40)
        plan = OrderedPlan([by_row.order_of(["random", "rows"][number % 2], 140)], True, 5 * (number % 3))
        assert_same_rows(device, plan, target, weight, smoothing, rule, 140)


@pytest.mark.parametrize("kind", ["random", "rows", "times", "ties", "one time"])
@pytest.mark.parametrize("target", ["binary", "classes", "real"])
def test_every_order(device, target, kind):
    for number, rule in enumerate(by_row.RULES):
        plan = OrderedPlan([by_row.order_of(kind, 70)], True, 7 * number)
        assert_same_rows(device, plan, target, "none", "m-estimate", rule, 70, dtype="float32")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_rows(device, size):
    for target, kind in product(["binary", "real"], ["random", "rows"]):
        assert_same_rows(
            device, OrderedPlan([by_row.order_of(kind, size)], True, 0), target, "none", "bayes", "plain", size
        )
        assert_same_rows(device, LeaveOneOutPlan(), target, "real", "bayes", "plain", size)


def test_orders_beside_each_other_and_averaged(device):
    for average in (True, False):
        plan = OrderedPlan([Permutation(90, seed) for seed in (3, 4)], average, 2)
        for target in ("binary", "real"):
            assert_same_rows(device, plan, target, "none", "m-estimate", "plain", 90)


def test_segments_are_those_of_the_definition(device, runtime):
    if not runtime.SIMULATED:
        pytest.skip("only the simulator calls functions of a device by themselves")
    segments = import_module("gpu_encode.cuda.order_segments")
    for n_rows in (1, 2, 511, 512, 513, 1023, 1024, 5000, 70_000):
        checkpoints = checkpoint_ranks(None, n_rows, cpu_fallback)
        places = np.arange(n_rows)
        expected = find_segments(checkpoints, places)
        assert segments.count_segments(n_rows) == len(checkpoints)
        assert [segments.segment_of(place) for place in places[:: max(n_rows // 700, 1)].tolist()] == (
            expected[:: max(n_rows // 700, 1)].tolist()
        )


@pytest.mark.parametrize("target", ["binary", "real"])
def test_what_is_encoded_in_one_pass(device, target, monkeypatch):
    passes = []
    for name in ("encode_categories", "leave_one_out_encodings", "ordered_encodings"):
        own = getattr(device.fused, name)
        monkeypatch.setattr(device.fused, name, lambda *given, own=own: passes.append(own(*given)) or passes[-1])
    for plan in (LeaveOneOutPlan(), OrderedPlan([RowOrder()], True, 0), OrderedPlan([Permutation(50, 2)], True, 0)):
        train_rows(device, plan, target, "none", "m-estimate", "plain", 50)
    assert len(passes) == 3
    assert all(result is not None for result in passes)


@pytest.mark.parametrize("plan", [OrderedPlan([RowOrder()], True, 0), LeaveOneOutPlan()])
def test_encodings_that_the_type_cannot_hold_are_counted(device, plan):
    beyond = "encodings are beyond the range of float32"
    with pytest.warns(UserWarning, match=beyond) as expected:
        by_row.train_rows(cpu_fallback, plan, "wild", "none", "none", "plain", 60, dtype="float32")
    with pytest.warns(UserWarning, match=beyond) as caught:
        train_rows(device, plan, "wild", "none", "none", "plain", 60, dtype="float32")
    assert [str(each.message) for each in caught] == [str(each.message) for each in expected]


def test_more_doubts_than_there_is_room_for_are_left_to_arrays(device, monkeypatch):
    monkeypatch.setattr(import_module("gpu_encode.cuda.encodings"), "ROOM_FOR_DOUBTS", 3)
    for plan in (LeaveOneOutPlan(), OrderedPlan([Permutation(50, 2)], True, 0)):
        for target in ("binary", "real"):
            assert_same_rows(device, plan, target, "none", "tiny m", "plain", 50)


@pytest.mark.parametrize("plan", [OrderedPlan([Permutation(50, 2)], True, 0), LeaveOneOutPlan()])
def test_estimates_in_doubt_below_the_normal_numbers_are_not_zero(device, plan, monkeypatch):
    values_of = by_row.values_of
    monkeypatch.setattr(by_row, "values_of", lambda *given: values_of(*given) * 1e-41)
    assert_same_rows(device, plan, "real", "none", "tiny m", "plain", 50, dtype="float32")


@pytest.mark.parametrize("visibility", tables.VISIBILITIES)
@pytest.mark.parametrize("kind", tables.LAYOUTS)
def test_tables(device, kind, visibility):
    for number, smoothing in enumerate(tables.SMOOTHINGS):
        for options in (tables.OPTIONS[0], tables.OPTIONS[number % len(tables.OPTIONS)]):
            formula, accumulators = EncodingRule(smoothing, **options), tables.cells_of(kind, 9, number)
            expected = table_of(cpu_fallback, kind, accumulators, visibility, formula)
            found = table_of(device, kind, accumulators, visibility, formula)
            assert_same_bits(device.to_host(found.values), expected.values)
            assert np.array_equal(device.to_host(found.unseen), expected.unseen)


def table_of(ops, kind, accumulators, visibility, formula):
    stated = tables.statistics_of(kind, accumulators)
    sums = CategorySums(ops.to_device(accumulators), stated.spec)
    return SeenSums(sums, tables.VISIBILITIES[visibility], formula, ops).table(tables.key_of(len(accumulators)))
