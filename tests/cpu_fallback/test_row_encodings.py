"""Encodings of rows in one pass, ordered or leave-one-out, have the bits of the array expressions on NumPy."""

from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import Permutation, RowOrder
from cpu_fallback.types import Layout, Rows
from gpu_encode import EmpiricalBayes, MEstimate, Sigmoid
from gpu_encode.fitting import fit
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.smoothing import JamesStein, NoSmoothing
from gpu_encode.schemes.plans import LeaveOneOutPlan, OrderedPlan, all_rows, by_time, starts_of, upload
from gpu_encode.sums import category_sums
from gpu_encode.sums.category_sums import SumSpec
from tests import backends
from tests.bits import assert_same_bits
from tests.cases import pairs
from tests.cpu_fallback.definitions import carried

N_CATEGORIES = 6
SMOOTHINGS = {
    "none": NoSmoothing(),
    "m-estimate": MEstimate(0.7),
    # The digits decide every one of these encodings.
    "tiny m": MEstimate(1e-100),
    "sigmoid": Sigmoid(3.0, 2.0),
    "bayes": EmpiricalBayes(),
}
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "policies": {"prior": 0.25, "unseen": 7.5, "missing": "nan", "min_count": 3.0},
    "prior for missing": {"unseen": -1.0, "missing": "prior", "min_count": 0.5},
}
TARGETS = ("binary", "classes", "whole", "large", "real", "wild")
WEIGHTS = ("none", "whole", "real")
ORDERS = ("random", "rows", "times", "ties", "one time", "late ties", "one tie")


@dataclass(frozen=True)
class OnlyKey:
    """All parameters of one key in a task."""

    n_categories: int = N_CATEGORIES
    levels: list[Any] = field(default_factory=list)


def values_of(kind, size, random):
    if kind == "large":
        return random.integers(-(2**62), 2**62, size) // size
    if kind == "whole":
        return random.integers(-40, 40, size)
    scale = 10.0 ** random.integers(-300, 150, size) if kind == "wild" else 10.0 ** random.integers(-3, 4, size)
    return random.standard_normal(size) * scale


def task_of(ops, target, weight, smoothing, rule, size):
    random = np.random.default_rng(size)
    codes = random.choice(np.arange(-2, N_CATEGORIES), size, p=[0.05, 0.1, 0.5, 0.2, 0.1, 0.04, 0.009, 0.001])
    drawn = {"none": None, "whole": random.integers(0, 4, size), "real": random.random(size)}[weight]
    given = EncodingRule(SMOOTHINGS[smoothing], **RULES[rule])
    if target in {"binary", "classes"}:
        n_classes = 2 if target == "binary" else 4
        rows = Rows(codes.astype(np.int32), random.integers(0, n_classes, size).astype(np.int32), None, drawn)
        windows = category_sums.windows(ops, None, drawn, 0, size)
        spec = SumSpec(Layout(*windows), True, 1 if target == "binary" else 0)
        return EncodingTask(ops, rows, OnlyKey(), n_classes, spec, given)
    values = values_of(target, size, random)
    windows = category_sums.windows(ops, values, drawn, 2 if given.statistic.needs.squares else 1, size)
    rows = Rows(codes.astype(np.int32), None, values, drawn)
    return EncodingTask(ops, rows, OnlyKey(), 1, SumSpec(Layout(*windows), False), given)


def in_time(codes):
    return by_time(codes, starts_of(np.bincount(codes)))


def order_of(kind, size):
    times = {
        "times": np.random.default_rng(1).permutation(size),
        "ties": np.arange(size) * 7 % size // 3,
        "one time": np.zeros(size, np.int64),
        "one tie": np.maximum(np.arange(size) - size // 2, 0),
        "late ties": np.maximum(np.arange(size) - size // 2, 0) // 40,
    }
    if kind == "random":
        return Permutation(size, 11)
    return RowOrder() if kind == "rows" else in_time(times[kind].astype(np.int32))


def window_of(window, size, burn_in):
    """Return a plan in which rows see the rows of at most `window` times before; times without rows have no number."""
    drawn = np.random.default_rng(window + size).integers(0, max(size // 3, 1), size) ** 2 // 40
    times, codes = np.unique(drawn, return_inverse=True)
    firsts = np.searchsorted(times, times - window)
    order = by_time(codes.astype(np.int32), starts_of(np.bincount(codes)), firsts)
    return OrderedPlan([order], True, burn_in, new_rows=all_rows())


def train_rows(ops, plan, *description, dtype="float64"):
    task = task_of(ops, *description)
    wide = fit.n_columns(plan)
    out = np.full((len(task.rows), task.n_outputs * wide), 9.0, dtype, order="F")
    result = fit.train(task, upload(plan, ops), out, want_unseen=True)
    return out, result


def assert_same(ops, plan, *description, dtype="float64"):
    expected, stated = train_rows(cpu_fallback, plan, *description, dtype=dtype)
    result, learned = train_rows(ops, plan, *description, dtype=dtype)
    assert_same_bits(result, expected)
    assert np.array_equal(learned.unseen, stated.unseen)
    # Equal sums may have other digits before they are carried.
    sums = (carried(each.statistics.accumulators, each.statistics.spec.layout) for each in (learned, stated))
    assert np.array_equal(*sums)
    assert learned.statistics.added == stated.statistics.added


# NumPy is the definition.
@pytest.fixture(scope="module", params=[name for name in backends.BACKENDS if name != "numpy"])
def ops(request):
    with backends.backend(request.param) as operations:
        yield operations


@pytest.fixture
def small_tiles(monkeypatch):
    """Make tiles and the memory for priors small, so that they end often."""
    ordered = import_module("cpu_fallback.compiled.ordered_encodings")
    monkeypatch.setattr(import_module("cpu_fallback.compiled.ordered_digits"), "MOST_SEGMENTS", 37)
    for name in ("TILE", "LEAST_TILE"):
        monkeypatch.setattr(ordered, name, 301)


@pytest.mark.long
@pytest.mark.parametrize(("target", "smoothing", "weight"), pairs(TARGETS, SMOOTHINGS, WEIGHTS))
@pytest.mark.usefixtures("small_tiles")
def test_every_order_and_leave_one_out(ops, target, weight, smoothing):
    for number, kind in enumerate(ORDERS):
        rule = [*RULES][(number + len(target)) % len(RULES)]
        plan = OrderedPlan([order_of(kind, 1300)], True, [0, 5][number % 2])
        assert_same(ops, plan, target, weight, smoothing, rule, 1300)
    for rule in RULES:
        assert_same(ops, LeaveOneOutPlan(), target, weight, smoothing, rule, 1300)


WINDOWS = [(400, 0), (400, 30), (90, 3), (90, 10**6), (2, 0)]


@pytest.mark.parametrize(
    ("number", "target", "weight"), [(n, *case) for n, case in enumerate(product(TARGETS, WEIGHTS))]
)
@pytest.mark.usefixtures("small_tiles")
def test_every_window(ops, number, target, weight):
    for place, smoothing in enumerate(SMOOTHINGS):
        size, window = WINDOWS[(number + place) % len(WINDOWS)]
        rule, dtype = [*RULES][(number + place) % len(RULES)], ["float64", "float32"][place % 2 and target != "wild"]
        assert_same(
            ops, window_of(window, size, [0, 40][number % 2]), target, weight, smoothing, rule, size, dtype=dtype
        )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("target", ["binary", "classes", "real"])
@pytest.mark.parametrize("kind", ORDERS)
def test_every_policy(ops, kind, target, rule):
    for burn_in in (0, 1, 50):
        plan = OrderedPlan([order_of(kind, 120)], True, burn_in)
        assert_same(ops, plan, target, "none", "m-estimate", rule, 120)


@pytest.mark.parametrize("target", ["binary", "classes", "real"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_rows(ops, size, target):
    for kind, burn_in in product(ORDERS, [0, 1, 9]):
        plan = OrderedPlan([order_of(kind, size)], True, burn_in)
        assert_same(ops, plan, target, "none", "bayes", "plain", size)
    assert_same(ops, LeaveOneOutPlan(), target, "real", "bayes", "plain", size)


@pytest.mark.parametrize("target", ["binary", "classes", "real"])
@pytest.mark.parametrize("average", [True, False])
def test_several_orders(ops, average, target):
    plan = OrderedPlan([Permutation(150, seed) for seed in (3, 4, 5)], average, 2)
    assert_same(ops, plan, target, "none", "m-estimate", "plain", 150)


@pytest.mark.parametrize("plan", [OrderedPlan([RowOrder()], True, 0), OrderedPlan([Permutation(150, 3)], True, 0)])
@pytest.mark.parametrize("target", ["binary", "real"])
def test_narrow_encodings(ops, plan, target):
    assert_same(ops, plan, target, "none", "m-estimate", "policies", 150, dtype="float32")


@pytest.mark.parametrize("plan", [OrderedPlan([RowOrder()], True, 0), window_of(30, 90, 0), LeaveOneOutPlan()])
def test_encodings_that_the_type_cannot_hold_are_counted_as_by_the_definition(ops, plan):
    for backend in (cpu_fallback, ops):
        with pytest.warns(UserWarning, match="encodings are beyond the range of float32") as caught:
            train_rows(backend, plan, "wild", "none", "none", "plain", 90, dtype="float32")
        assert len(caught) == 1
        if backend is cpu_fallback:
            expected = str(caught[0].message)
    assert str(caught[0].message) == expected


def test_the_compiled_backend_has_the_pass_and_numpy_leaves_it(monkeypatch):
    compiled = import_module("cpu_fallback.compiled")
    for ops, has in ((cpu_fallback, False), (compiled, True)):
        calls = []
        for name in ("ordered", "moments"):
            own = getattr(ops, name)
            monkeypatch.setattr(
                ops, name, lambda *given, own=own, name=name, calls=calls: calls.append(name) or own(*given)
            )
        for plan in (OrderedPlan([RowOrder()], True, 0), window_of(30, 50, 0)):
            train_rows(ops, plan, "real", "real", "bayes", "plain", 50)
            assert ("ordered" in calls) != has
            calls.clear()
        train_rows(ops, LeaveOneOutPlan(), "real", "real", "bayes", "plain", 50)
        assert ("moments" in calls) != has


def test_a_formula_that_asks_for_other_categories_has_no_rule():
    task = task_of(cpu_fallback, "real", "none", "bayes", "plain", 9)
    assert task.fused_rule() is not None
    for rule in (EncodingRule(JamesStein()), EncodingRule(NoSmoothing(), prior="category_mean")):
        assert EncodingTask(task.ops, task.rows, task.key, 1, task.spec, rule).fused_rule() is None
    assert EncodingTask(task.ops, task.rows, OnlyKey(levels=["one"]), 1, task.spec, task.rule).fused_rule() is None


def test_more_rows_than_digits_have_room_for_are_left_to_tiles(ops, monkeypatch):
    for name in ("gpu_encode.fitting.ordered", "cpu_fallback.compiled.ordered_encodings"):
        monkeypatch.setattr(import_module(name), "CARRY_AFTER", 99)
    for plan in (OrderedPlan([Permutation(100, 2)], True, 0), window_of(30, 100, 0)):
        assert_same(ops, plan, "real", "none", "bayes", "plain", 100)


@pytest.mark.parametrize("bits", [30, 53, 58, 59, 60, 62])
@pytest.mark.parametrize(("width", "low"), [*product(range(1, 10), [-40, -2, 0, 3])])
def test_blocks_of_numbers_are_rounded_as_single_ones(width, low, bits):
    block_moments = import_module("cpu_fallback.compiled.block_moments")
    moments = import_module("cpu_fallback.compiled.moments")
    random, size, step = np.random.default_rng(bits), 200, width + 2
    digits = random.integers(-(2**bits), 2**bits + 1, size * step) >> random.integers(0, bits + 1, size * step)
    # Digits at the bounds, and numbers whose upper digits, or all, are zero.
    digits[random.random(len(digits)) < 0.3] = 0
    digits[random.random(len(digits)) < 0.05] = -(2**bits)
    for upper in (4, 5, 6):
        digits.reshape(size, step)[random.random(size) < 0.6, 1 + upper :] = 0
    digits.reshape(size, step)[:9] = 0
    high, lower, power, word = block_moments.pairs_of(size)
    block_moments.pair_rows(digits, 1, size, step, width, low, high, lower, power, word)
    one = [moments.pair(digits, 1 + row * step, width, low) for row in range(size)]
    whole = [part.copy() for part in (high, lower, power)]
    for row in range(size):
        block_moments.pair_rows(digits, 1 + row * step, 1, step, width, low, high[row:], lower[row:], power[row:], word)
    for single, *in_blocks in zip(zip(*one, strict=True), whole, (high, lower, power), strict=True):
        for part in in_blocks:
            assert np.array_equal(part.view(np.int64), np.array(single, part.dtype).view(np.int64))


@pytest.mark.parametrize("reach", [800, 899, 900, 1300, 6000])
def test_blocks_are_divided_as_single_numbers_unless_a_result_may_leave_the_normal_numbers(reach):
    block_moments = import_module("cpu_fallback.compiled.block_moments")
    moments = import_module("cpu_fallback.compiled.moments")
    random, size = np.random.default_rng(reach), 200
    high, n_high = random.standard_normal(size), random.integers(0, 4, size).astype(float)
    lower, n_lower = high * 2.0**-60, n_high * 2.0**-61
    power, n_power = random.integers(-reach, reach + 1, size), np.zeros(size, np.int64)
    power[:2] = -reach, reach
    mean, weight = np.empty(size), np.empty(size)
    sure = block_moments.divide_rows(size, high, lower, power, n_high, n_lower, n_power, mean)
    block_moments.plain_rows(size, high, power, weight)
    parts = zip(high, lower, power, n_high, n_lower, strict=True)
    quotients = [(*moments.quotient(a, b, c, d), int(e)) for a, b, e, c, d in parts]
    assert sure == (reach < 900)
    assert not any(doubtful for _, doubtful, _ in quotients)
    if sure:
        expected = [moments.plain(near, exponent) for near, _, exponent in quotients]
        assert np.array_equal(mean, np.array(expected), equal_nan=True)
    assert np.array_equal(weight, [moments.plain(a, int(e)) for a, e in zip(high, power, strict=True)])
