"""Encodings of rows that lose weight, by pairs of floats with a bound, and by exact sums: both give the same bits."""

from importlib import import_module
from itertools import product

import numpy as np
import pytest

from cpu_fallback.decay import weights_of
from cpu_fallback.fused_rules import (
    AS_CATEGORY,
    AS_NAN,
    AS_PRIOR,
    EMPIRICAL_BAYES,
    M_ESTIMATE,
    Blend,
    FusedRule,
    RowEncodings,
    Shrinkage,
)
from cpu_fallback.row_numbers import TimeOrder
from cpu_fallback.types import Layout, Rows, SumShape, digit_window
from tests.cases import pairs
from tests.cpu_fallback.test_closed_forms import EXTREMES
from tests.cuda.test_leave_one_out import TARGETS

N_CATEGORIES = 7
DRAWS = TARGETS | EXTREMES
# Steps from one time to the next: none at all, within a block, from block to block, and beyond the block before.
STRIDES = {"still": 0, "slow": 1, "fast": 37, "blocks": 300, "far blocks": 1500}
RULES = {
    "mean": FusedRule(Blend(Shrinkage(M_ESTIMATE, 10.0), 0.0, False, 0.0), True, 0.0, AS_CATEGORY),
    "tiny m": FusedRule(Blend(Shrinkage(M_ESTIMATE, 1e-12), 0.0, False, 0.0), True, 0.0, AS_PRIOR),
    "given prior": FusedRule(Blend(Shrinkage(M_ESTIMATE, 2.5), 0.0, False, 0.0), False, 0.3, AS_NAN),
    "unseen": FusedRule(Blend(Shrinkage(M_ESTIMATE, 3.0), 0.0, True, -7.0), True, 0.0, AS_PRIOR),
    "least weight": FusedRule(Blend(Shrinkage(M_ESTIMATE, 3.0), 1.0, True, -7.0), True, 0.0, AS_PRIOR),
    "blend": FusedRule(Blend(Shrinkage(EMPIRICAL_BAYES), 0.0, False, 0.0), True, 0.0, AS_CATEGORY),
    "blend with a given prior": FusedRule(Blend(Shrinkage(EMPIRICAL_BAYES), 0.0, False, 0.0), False, 0.3, AS_NAN),
}
# Of the targets that are summed.
POWERS = (0, 1, 2)
# No GPU is needed.
pytestmark = pytest.mark.host


@pytest.fixture
def by_age():
    return import_module("cpu_fallback.compiled.encodings_by_age")


@pytest.fixture
def open_rows(by_age, monkeypatch):
    """Return a list: how many first rows each call left to exact code."""
    found, encode = [], by_age.AgeWalk.encode

    def watched(walk):
        found.append(encode(walk))
        return found[-1]

    monkeypatch.setattr(by_age.AgeWalk, "encode", watched)
    return found


def draw_rows(random, target, n_rows, rows_of_time, n_categories=N_CATEGORIES):
    """Draw codes and targets, and the first rank of each time, the time of each rank, and the row of each rank."""
    codes = random.integers(-1, n_categories, n_rows).astype(np.int32)
    ties = np.sort(random.integers(0, n_rows // rows_of_time, n_rows)) if rows_of_time > 1 else np.arange(n_rows)
    _, starts, ties = np.unique(ties, return_index=True, return_inverse=True)
    rows, drawn = random.permutation(n_rows), DRAWS[target](random, n_rows)
    return codes, drawn.astype(np.int64 if drawn.dtype.kind in "iub" else np.float64), starts, ties, rows


class Data:
    """Rows in an order of time, which lose weight, and the shape of their sums."""

    def __init__(self, ops, target, n_rows, stride="slow", rows_of_time=1, n_categories=N_CATEGORIES):
        random = np.random.default_rng(n_rows)
        codes, numbers, starts, ties, rows = draw_rows(random, target, n_rows, rows_of_time, n_categories)
        steps = np.cumsum(random.integers(0, 2 * STRIDES[stride] + 1, len(starts))) - 700
        weight = np.empty(n_rows)
        weight[rows] = weights_of(steps[ties])
        self.order = TimeOrder(rows, ties, starts, None, steps)
        self.take(ops, Rows(codes, None, numbers, weight), n_categories)

    def take(self, ops, rows, n_categories=N_CATEGORIES):
        self.rows = rows
        powers = POWERS if rows.classes is None else POWERS[:1]
        layout = Layout(*(digit_window(each) for each in ops.extents(rows.target, rows.weight, powers)))
        self.shape = SumShape(n_categories, 1, 1 if rows.classes is None else 2, layout)

    def encode(self, ops, rule, dtype="float64", burn_in=0):
        n_rows = len(self.rows)
        values, unseen = np.full((n_rows, 1), -1.0, dtype, order="F"), np.ones(n_rows, np.bool_)
        lost = ops.fused.encodings_by_age(
            self.rows, self.shape, self.order, burn_in, rule, RowEncodings(values, unseen)
        )
        return values.tobytes(), unseen.tobytes(), lost


def assert_same(ops, by_age, monkeypatch, data, *given):
    found = data.encode(ops, *given)
    with monkeypatch.context() as patch:
        patch.setattr(by_age, "form_of", lambda *_: None)
        assert found == data.encode(ops, *given)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("target", "rule", "stride"), pairs([*DRAWS], [*RULES], [*STRIDES]))
def test_encodings_are_those_of_exact_sums(compiled, by_age, monkeypatch, target, rule, stride, dtype):
    for size, rows_of_time in ((9, 1), (203, 5), (700, 1), (700, 60)):
        data = Data(compiled, target, size, stride, rows_of_time)
        assert_same(compiled, by_age, monkeypatch, data, RULES[rule], dtype, size // 20)


@pytest.mark.parametrize(("rule", "stride"), pairs([*RULES], [*STRIDES]))
def test_two_classes_are_the_numbers_0_and_1(compiled, by_age, open_rows, monkeypatch, rule, stride):
    for size, rows_of_time in ((9, 1), (700, 1), (700, 60)):
        data = Data(compiled, "real", size, stride, rows_of_time)
        rows = data.rows
        data.take(compiled, Rows(rows.codes, (rows.target > 0).astype(np.int32), None, rows.weight))
        open_rows.clear()
        assert_same(compiled, by_age, monkeypatch, data, RULES[rule], "float64", size // 20)
        # Pairs encode the rows once, and exact sums encode them for comparison; a least weight needs exact sums.
        assert len(open_rows) == (rule != "least weight")


@pytest.mark.parametrize("rule", RULES)
def test_tiles_end_where_a_time_ends(compiled, by_age, monkeypatch, rule):
    monkeypatch.setattr(import_module("cpu_fallback.compiled.pairs_by_age"), "TILE", 16)
    for rows_of_time in (1, 7, 100):
        assert_same(compiled, by_age, monkeypatch, Data(compiled, "real", 900, "fast", rows_of_time), RULES[rule])


@pytest.mark.parametrize("numbers", [[0.0, -0.0], [1.0, -1.0], [0.5], [5e-324, 1.0], [1e16, 1.0, -1e16]], ids=str)
def test_sums_of_few_numbers(compiled, by_age, monkeypatch, numbers):
    for rule, stride in product(RULES.values(), ("still", "slow", "blocks")):
        data = Data(compiled, "real", 300, stride, 3)
        data.take(compiled, Rows(data.rows.codes, None, np.resize(numbers, 300), data.rows.weight))
        assert_same(compiled, by_age, monkeypatch, data, rule)


@pytest.mark.parametrize("rule", ["mean", "unseen", "blend"])
@pytest.mark.parametrize("rows_of_time", [1, 7, 100])
def test_threads_share_categories_and_times(compiled, by_age, monkeypatch, rule, rows_of_time):
    threads = import_module("cpu_fallback.compiled.threads")
    monkeypatch.setattr(threads, "SMALLEST_SHARE", 1)
    monkeypatch.setattr(import_module("cpu_fallback.compiled.pairs_by_age"), "TILE", 300)
    for n_threads, n_categories in ((1, 7), (2, 1), (3, 400), (5, 40)):
        threads.set_threads(n_threads)
        for target, stride in product(("real", "whole"), ("slow", "blocks")):
            data = Data(compiled, target, 900, stride, rows_of_time, n_categories)
            assert_same(compiled, by_age, monkeypatch, data, RULES[rule])
    threads.set_threads(None)


@pytest.mark.parametrize("rule", ["mean", "given prior", "unseen", "blend"])
@pytest.mark.parametrize(("rows_of_time", "n_categories"), [(1, 7), (30, 7), (1, 160), (1, 3_000)])
def test_next_to_no_row_of_plain_data_stays_open(compiled, open_rows, rule, rows_of_time, n_categories):
    # With 160 categories, most of a row's weight is that of the last row of its category.
    for target in ("real", "float32", "whole"):
        Data(compiled, target, 60_000, "slow", rows_of_time, n_categories).encode(compiled, RULES[rule])
    # The first rows, which see sums of a few numbers, may be ties.
    assert max(open_rows) < 200


@pytest.mark.parametrize("old", [0.3, -0.3, 0.0])
def test_a_row_that_lost_its_weight_decides_ties_of_means(compiled, by_age, monkeypatch, open_rows, old):
    # The mean of two numbers is half a unit after a float; the number before weighs 2**-105 of them.
    numbers = np.array([1.5, -2.5, old, 1.0, 1.0 + 2.0**-52, 0.7, 0.0])
    ties, steps = np.array([0, 1, 2, 3, 3, 3, 4]), np.array([0, 1, 2, 842, 843])
    data = Data(compiled, "real", 9)
    data.order = TimeOrder(np.arange(7), ties, np.array([0, 1, 2, 3, 6]), None, steps)
    data.take(compiled, Rows(np.array([1, 1, 0, 0, 0, 1, 0], np.int32), None, numbers, weights_of(steps[ties])))
    assert_same(compiled, by_age, monkeypatch, data, RULES["blend"])
    assert open_rows == [0]
