"""Encodings from ordered sums of numbers on a GPU, compared bit for bit with the array expressions on NumPy."""

from functools import partial
from importlib import import_module
from itertools import product

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import Permutation, RowOrder
from cpu_fallback.types import Layout, Rows
from gpu_encode import MEstimate
from gpu_encode.fitting import fit
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.schemes.plans import OrderedPlan, upload
from gpu_encode.sums import category_sums
from gpu_encode.sums.category_sums import SumSpec
from tests.bits import assert_same_bits
from tests.cpu_fallback.test_row_encodings import OnlyKey
from tests.cuda import orders

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("few_checkpoints")]
SMOOTHINGS = orders.SMOOTHINGS | {"one": MEstimate(1.0)}
RULES = orders.RULES | {"half": {"prior": 0.5, "unseen": 7.5, "missing": "prior"}}
ORDERS = orders.ORDERS


def tied(size, random):
    """Return a few numbers; their sums, once divided, often lie half-way between two floats."""
    return random.choice([19.99, 5.01, 1.0, 2.0**-20, -19.99, 2.0**20 + 2.0**-32, 0.1], size)


NUMBERS = {
    "normal": lambda size, random: random.standard_normal(size),
    "float32": lambda size, random: random.standard_normal(size).astype(np.float32),
    "ties": tied,
    "cancelling": lambda size, _: np.where(np.arange(size) % 2, 1 / 3, -1 / 3),
    "cancelling variance": lambda size, random: 1e8 + random.standard_normal(size) * 1e-8,
    "zeros of both signs": lambda size, _: np.where(np.arange(size) % 2, 0.0, -0.0),
    "one number": lambda size, _: np.full(size, -1.7),
    "words": lambda size, random: random.choice([1.0, -1.0, 2.0**32 - 1, 1 - 2.0**32, 2.0**-9, -(2.0**52)], size),
    "lowest and highest": lambda size, random: random.choice([2.0**-64, -(2.0**63), 2.0**62 + 2.0**20, -1.5], size),
    "whole floats": lambda size, random: random.integers(-40, 40, size).astype(np.float32),
    "integers": lambda size, random: random.integers(-9, 100, size),
    "the smallest of float32": lambda size, random: random.choice(np.float32([1e-45, -1e-39, -0.0]), size),
    "large integers": lambda size, random: random.choice([2**62, -(2**63), 2**63 - 1, -1, 12345], size),
}
# The smallest floats do not share a layout with others that kernels take.
FALLING_BACK = {
    "far apart": lambda size, random: random.standard_normal(size) * 10.0 ** random.choice([-290, 0, 290], size),
    "the smallest": lambda size, random: random.choice([5e-324, -1e-310, 2.2250738585072014e-308], size),
}


def draw(size, name="normal", n_categories=11, seed=0):
    """Return codes, some of them common, missing or unknown; and numbers."""
    random = np.random.default_rng(size + seed)
    codes = np.minimum(random.zipf(1.3, size) - 3, n_categories - 1)
    return codes.astype(np.int32), {**NUMBERS, **FALLING_BACK}[name](size, random)


def task_on(ops, codes, target, smoothing, rule):
    given = EncodingRule(SMOOTHINGS[smoothing], **RULES[rule])
    # The NumPy backend does not take float32: its rows are float64.
    wide = target.astype(np.float64) if target.dtype == np.float32 else target
    windows = category_sums.windows(cpu_fallback, wide, None, 2 if given.statistic.needs.squares else 1, len(codes))
    rows = (codes, wide) if ops is cpu_fallback else (ops.to_device(codes), ops.to_device(target))
    key = OnlyKey(max(int(codes.max()) + 1, 1))
    return EncodingTask(ops, Rows(rows[0], None, rows[1]), key, 1, SumSpec(Layout(*windows), False), given)


def train(ops, plan, dtype, *description):
    task = task_on(ops, *description)
    shape = len(task.rows), fit.n_columns(plan)
    out = np.empty(shape, dtype, "F") if ops is cpu_fallback else ops.empty(shape, dtype, "F")
    learned = fit.train(task, upload(plan, ops), out, want_unseen=True)
    sums = learned.statistics
    held = ops.to_host(sums.accumulators)
    canonical = type(sums)(held, sums.spec, sums.added).to_canonical().accumulators
    return ops.to_host(out), ops.to_host(learned.unseen), canonical


assert_same = partial(orders.assert_same, train)


@pytest.mark.parametrize("name", NUMBERS)
def test_every_kind_of_numbers(device, left_to_digits, name):
    for number, (smoothing, dtype) in enumerate(product(SMOOTHINGS, ["float32", "float64"])):
        order = [*ORDERS.values()][number % len(ORDERS)]
        assert_same(device, order(230), [0, 5][number % 2], dtype, *draw(230, name), smoothing, "plain")
    # Squares of the lowest and the highest numbers together have more digits than any pass takes.
    assert len(left_to_digits) == 2 * (len(SMOOTHINGS) - (name == "lowest and highest"))


@pytest.mark.parametrize(("smoothing", "dtype"), [*product(SMOOTHINGS, ["float32", "float64"])])
def test_every_formula_rule_and_order(device, left_to_digits, smoothing, dtype):
    for number, (rule, name) in enumerate(product(RULES, ["normal", "ties"])):
        order = [*ORDERS][(number + len(smoothing)) % len(ORDERS)]
        assert_same(device, ORDERS[order](320), [0, 5][number % 2], dtype, *draw(320, name), smoothing, rule)
    assert len(left_to_digits) == len(RULES) * 2


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 1023, 1024, 1025, 2049, 4095, 4096, 4097, 5000])
def test_edges_of_turns_tiles_and_slabs(device, left_to_digits, size):
    for order, smoothing in zip(ORDERS, ["m", "bayes", "m", "none"], strict=True):
        assert_same(device, ORDERS[order](size), 0, "float32", *draw(size), smoothing, "plain")


@pytest.mark.parametrize("codes", [np.zeros(2100), np.arange(2100) % 60, np.full(2100, -1), np.arange(2100) % 7 - 2])
def test_one_category_and_many(device, left_to_digits, codes):
    for dtype, smoothing in product(["float32", "float64"], ["m", "bayes"]):
        assert_same(device, RowOrder(), 0, dtype, codes.astype(np.int32), draw(2100)[1], smoothing, "plain")
    assert len(left_to_digits) == 4


@pytest.mark.parametrize(("unit", "dtype"), [(2.0**-52, "float64"), (2.0**-23, "float32")])
def test_ties_go_to_the_even_number(device, left_to_digits, monkeypatch, unit, dtype):
    monkeypatch.setitem(RULES, "one", {"prior": 1.0})
    for odd in range(1, 33, 2):
        # Rows after the first see one number and a prior of one, then two numbers: both means lie in a middle.
        known = np.zeros(4, np.int32), 1 + np.array([odd, odd + 1, odd + 2, 5]) * unit
        for smoothing, rule in (("one", "one"), ("none", "plain"), ("no m", "plain"), ("sigmoid", "plain")):
            assert_same(device, RowOrder(), 0, dtype, *known, smoothing, rule)
    assert not any(left_to_digits)


@pytest.mark.parametrize("burned", [1, 127, 300, 10**6])
def test_places_without_an_encoding(device, left_to_digits, burned):
    for order in ORDERS.values():
        assert_same(device, order(390), burned, "float64", *draw(390), "bayes", "plain")


@pytest.mark.parametrize("name", FALLING_BACK)
def test_numbers_beyond_all_windows_go_another_way(device, name):
    sums = import_module("gpu_encode.cuda.ordered_sums")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "encode_sums", None)
        for smoothing in ("m", "bayes"):
            assert_same(device, ORDERS["single"](150), 0, "float64", *draw(150, name), smoothing, "plain")


def test_several_orders(device, left_to_digits):
    for average in (True, False):
        plan = OrderedPlan([Permutation(300, seed) for seed in (3, 4)], average, 2)
        for part, stated in zip(
            train(device, plan, "float64", *draw(300), "bayes", "plain"),
            train(cpu_fallback, plan, "float64", *draw(300), "bayes", "plain"),
            strict=True,
        ):
            if part.dtype == np.float64:
                assert_same_bits(part, stated)
            else:
                assert np.array_equal(part, stated)
    assert len(left_to_digits) == 4


def test_what_a_slab_keeps_is_a_small_part_of_all_rows(ops, monkeypatch):
    sums, raw = import_module("gpu_encode.cuda.ordered_sums"), import_module("gpu_encode.cuda.raw")
    monkeypatch.setattr(raw, "table_bytes", lambda: 227 << 10)
    on_a_gpu = {"RANKS": 1 << 25, "SORTERS": 512, "SORTERS_OF_FEW": 256, "FEW_BUCKETS": 512, "SHIFTS": (8, 9)}
    for name, value in (on_a_gpu | {"MOST_BUCKETS": 4096, "MOST_WARPS": 4, "PIECES": 4096, "ROWS_A_LINE": 16}).items():
        monkeypatch.setattr(sums, name, value)
    for n_lines, words, squares in product([3, 4098, 10**6 + 2], sums.WORDS, [False, True]):
        pieces = sums.pieces_of(n_lines, words, squares)
        assert pieces.n_buckets << pieces.shift >= n_lines
        assert pieces.warps * pieces.bytes_of_warp <= 227 << 10
        assert pieces.bytes_of(sums.RANKS) <= 8 * 10**8
    assert sums.pieces_of(10**8, 5, True) is None
