"""Encodings from ordered counts on a GPU, compared bit for bit with the array expressions on NumPy."""

from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import islice, product

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.row_numbers import Permutation, RowOrder
from cpu_fallback.types import Layout, Rows
from gpu_encode import MEstimate
from gpu_encode.fitting import fit
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.schemes.plans import upload
from gpu_encode.sums.category_sums import SumSpec
from tests.cpu_fallback.test_row_encodings import OnlyKey
from tests.cuda import orders

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("few_checkpoints")]
SMOOTHINGS = dict(orders.SMOOTHINGS)
RULES = orders.RULES | {"below zero": {"prior": -3.1, "unseen": 7.5, "missing": "prior"}}
ORDERS = orders.ORDERS | {"odd blocks": lambda size: Permutation(size, 6, 21)}


def draw(size, n_categories=6, n_classes=2, seed=0):
    """Return codes, some of them common, missing or unknown; and classes."""
    random = np.random.default_rng(size + seed)
    codes = np.minimum(random.zipf(1.3, size) - 3, n_categories - 1)
    return codes.astype(np.int32), (random.random(size) ** 2 * n_classes).astype(np.int32)


def task_on(ops, codes, classes, n_classes, smoothing, rule):
    codes, classes = (array if ops is cpu_fallback else ops.to_device(array) for array in (codes, classes))
    spec = SumSpec(Layout(), True, 1 if n_classes == 2 else 0)
    key = OnlyKey(n_categories=max(int(codes.max()) + 1, 1))
    given = EncodingRule(SMOOTHINGS[smoothing], **RULES[rule])
    return EncodingTask(ops, Rows(codes, classes), key, n_classes, spec, given)


def train(ops, plan, dtype, *description):
    task = task_on(ops, *description)
    shape = len(task.rows), task.n_outputs * fit.n_columns(plan)
    out = np.empty(shape, dtype, "F") if ops is cpu_fallback else ops.empty(shape, dtype, "F")
    learned = fit.train(task, upload(plan, ops), out, want_unseen=True)
    return [ops.to_host(part) for part in (out, learned.unseen, learned.statistics.accumulators)]


assert_same = partial(orders.assert_same, train)


@pytest.mark.parametrize(("smoothing", "dtype"), [*product(SMOOTHINGS, ["float32", "float64"])])
def test_every_formula_rule_and_order(device, left_to_digits, smoothing, dtype):
    for number, (rule, n_classes) in enumerate(product(RULES, [2, 3])):
        order = [*ORDERS][(number + len(smoothing)) % len(ORDERS)]
        known = draw(520, n_classes=n_classes)
        assert_same(device, ORDERS[order](520), [0, 5][number % 2], dtype, *known, n_classes, smoothing, rule)
    assert len(left_to_digits) == len(RULES) * 2
    # Only digits tell where m is beyond all bounds, or a prior below zero cancels the rows of a class.
    asked = {rule for (rule, _), number in zip(product(RULES, [2, 3]), left_to_digits, strict=True) if number}
    assert asked <= (RULES.keys() if smoothing == "tiny m" else {"below zero"})
    assert asked or smoothing != "tiny m"


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 512, 513, 769])
def test_edges_of_turns_chunks_and_tiles(device, left_to_digits, size):
    for order, n_classes in product(ORDERS, [2, 3]):
        assert_same(device, ORDERS[order](size), 0, "float32", *draw(size, 3, n_classes), n_classes, "m", "plain")
    assert not any(left_to_digits)


@pytest.mark.parametrize("codes", [np.zeros(400), np.arange(400) % 200, np.full(400, -1), np.arange(400) % 7 - 2])
def test_one_category_and_many(device, left_to_digits, codes):
    classes = (np.arange(400) * 7919 % 13 < 5).astype(np.int32)
    for dtype, rule in product(["float32", "float64"], ["plain", "given prior"]):
        assert_same(device, RowOrder(), 0, dtype, codes.astype(np.int32), classes, 2, "m", rule)
    assert left_to_digits == [0] * 4


@pytest.mark.parametrize("burned", [1, 127, 128, 300, 10**6])
def test_places_without_an_encoding(device, burned):
    for order in ORDERS.values():
        assert_same(device, order(390), burned, "float64", *draw(390), 2, "bayes", "plain")


def test_a_category_of_more_rows_than_16_bits_count(device, left_to_digits):
    size = 2**16 + 300
    codes, classes = np.zeros(size, np.int32), (np.arange(size) % 3 > 0).astype(np.int32)
    codes[::5000] = 1
    assert_same(device, RowOrder(), 0, "float32", codes, classes, 2, "m", "plain")
    assert left_to_digits == [0]


@pytest.mark.parametrize("prior", [0.3, 0.30000000000000004, 0.3004561234, 1 / 3, 2.0**-30])
@pytest.mark.parametrize("m", [10.0, 7.0, 0.1, 1e-3, 1e20])
def test_ties_are_decided_where_they_are_found(device, left_to_digits, monkeypatch, prior, m):
    monkeypatch.setitem(SMOOTHINGS, "m", MEstimate(m))
    monkeypatch.setitem(RULES, "given", {"prior": prior})
    codes, classes = np.zeros(1500, np.int32), (np.arange(1500) * 7919 % 31 < 9).astype(np.int32)
    for dtype, rule in product(["float32", "float64"], ["given", "plain"]):
        assert_same(device, RowOrder(), 0, dtype, codes, classes, 2, "m", rule)
    assert left_to_digits == [0] * 4


def test_ties_go_to_the_even_number(device, left_to_digits, monkeypatch):
    monkeypatch.setitem(SMOOTHINGS, "m", MEstimate(5.0))
    for number in range(2**52 + 1, 2**52 + 49, 6):
        # The sixth part of one and five priors is an odd number of 2**-54, and lies between two float64 numbers.
        whole, left = divmod(2**53 + 5 * number, 3)
        assert (left, whole % 2) == (0, 1)
        monkeypatch.setitem(RULES, "given", {"prior": number * 2.0**-53})
        known = np.zeros(3, np.int32), np.array([1, 0, 1], np.int32)
        assert_same(device, RowOrder(), 0, "float64", *known, 2, "m", "given")
    assert not any(left_to_digits)


def middles_of_float32():
    """Priors and m for which a row that sees one row of the second class gets the middle of two float32 numbers.

    The product of the sum and the inverse of the divisor, both rounded, is another number, on the wrong side.
    """
    random = np.random.default_rng(0)
    while True:
        m, middle = float(random.integers(2, 60)), (2.0**24 + 2 * float(random.integers(2**22)) + 1) / 2.0**25
        prior = (middle * (1 + m) - 1) / m
        if (1 + Fraction(m) * Fraction(prior)) / (1 + Fraction(m)) == Fraction(middle):
            near = (1 + m * prior) * (1 / (1 + m))
            if np.float32(near) != np.float32(middle):
                yield m, prior


def test_middles_of_float32_numbers_are_rounded_as_the_float64_numbers_are(device, left_to_digits, monkeypatch):
    for m, prior in islice(middles_of_float32(), 6):
        monkeypatch.setitem(SMOOTHINGS, "m", MEstimate(m))
        monkeypatch.setitem(RULES, "given", {"prior": prior})
        for label in (0, 1):
            classes = np.array([1, label, 1], np.int32)
            assert_same(device, RowOrder(), 0, "float32", np.zeros(3, np.int32), classes, 2, "m", "given")


def test_more_categories_than_a_warp_has_room_for_go_the_other_way(device, monkeypatch):
    counts, room = import_module("gpu_encode.cuda.ordered_counts"), import_module("gpu_encode.cuda.raw").table_bytes()
    codes = np.arange(room // 8 - 1, dtype=np.int32)
    assert [counts.fits(len(codes), len(codes) + n_more, 2) for n_more in (1, 2)] == [True, False]
    monkeypatch.setattr(counts, "encode_counts", None)
    assert_same(device, RowOrder(), 0, "float64", codes, codes % 2, 2, "m", "plain")


def test_chunks_are_whole_groups_and_keep_all_warps_at_work():
    counts = import_module("gpu_encode.cuda.ordered_counts")
    for n_ranks, n_cells in product([1, 127, 129, 1000, 10**6, 10**8, 2**32 - 1], [2, 6, 100, 500]):
        chunks = counts.chunks_of(n_ranks, n_cells)
        assert chunks.size % counts.GROUP == chunks.early % counts.GROUP == 0
        last = chunks.n_early * chunks.early + (chunks.n_chunks - chunks.n_early - 1) * chunks.size
        assert last < n_ranks <= last + chunks.size
        assert chunks.n_chunks * n_cells <= max(n_ranks, n_cells)
        assert 4 * counts.warps_of(n_cells) * n_cells <= import_module("gpu_encode.cuda.raw").table_bytes()
