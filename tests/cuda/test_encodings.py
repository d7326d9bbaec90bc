"""Encodings in one pass on a GPU, against the array expressions on NumPy, bit for bit."""

from importlib import import_module
from itertools import product

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.types import Rows
from gpu_encode.formulas.encoding_rule import EncodingRule, table
from gpu_encode.schemes.plans import LeaveOneOutPlan, OrderedPlan, upload
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.training import encodings
from gpu_encode.training.tasks import EncodingTask
from tests.bits import assert_same_bits
from tests.cpu_fallback import test_blending as tables
from tests.cpu_fallback import test_row_encodings as by_row

WIDE = [("wild", "none"), ("large", "real")]
ROWS = [*product(["classes", "real", "whole"], ["none", "whole", "real"]), *WIDE]


@pytest.fixture
def device(ops):
    """The backend as it is, on whose device all arrays lie."""
    return import_module("gpu_encode.cuda")


def on(ops, array):
    return None if array is None else ops.to_device(array)


def train_rows(ops, plan, *description, dtype="float64"):
    task = by_row.task_of(cpu_fallback, *description)
    rows = Rows(*(on(ops, part) for part in (task.rows.codes, task.rows.classes, task.rows.target, task.rows.weight)))
    moved = EncodingTask(ops, rows, task.key, task.n_classes, task.spec, task.rule)
    out = ops.empty((len(rows), task.n_outputs * encodings.n_columns(plan)), dtype, "F")
    result = encodings.train(moved, upload(plan, ops), out, want_unseen=True)
    return ops.to_host(out), ops.to_host(result.unseen), result.statistics


def assert_same_rows(ops, plan, *description, dtype="float64"):
    expected, stated = by_row.train_rows(cpu_fallback, plan, *description, dtype=dtype)
    result, unseen, statistics = train_rows(ops, plan, *description, dtype=dtype)
    assert_same_bits(result, expected)
    assert np.array_equal(unseen, stated.unseen)
    assert np.array_equal(ops.to_host(statistics.accumulators), stated.statistics.accumulators)


@pytest.mark.parametrize("smoothing", by_row.SMOOTHINGS)
@pytest.mark.parametrize(("target", "weight"), ROWS)
def test_leave_one_out(device, target, weight, smoothing):
    for number, rule in enumerate(by_row.RULES):
        assert_same_rows(device, LeaveOneOutPlan(), target, weight, smoothing, rule, 40 + number)


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
    return table(sums, tables.VISIBILITIES[visibility], tables.key_of(len(accumulators)), formula, ops)
