"""Encodings from the rows of a window, by pairs of floats with a bound, and by exact sums: both give the same bits."""

from dataclasses import replace
from importlib import import_module
from itertools import product

import numpy as np
import pytest

from cpu_fallback.types import Rows
from tests.cases import pairs
from tests.cpu_fallback import test_estimates_by_age, test_ordered_pairs
from tests.cpu_fallback.test_estimates_by_age import DRAWS
from tests.cpu_fallback.test_ordered_pairs import RULES

# Times that a row looks back; and windows of any lengths, which begin later from time to time.
SPANS = (0, 1, 40, "any")
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


class Data(test_ordered_pairs.Data):
    """Rows in an order of time that see a window, and the shape of their sums."""

    def __init__(self, ops, target, n_rows, span, rows_of_time=1, n_categories=7):
        super().__init__(ops, target, n_rows, "times", rows_of_time, n_categories)
        times = np.arange(len(self.order.starts))
        any_first = np.minimum(np.sort(np.random.default_rng(1).integers(0, len(times) + 1, len(times))), times)
        self.order = replace(self.order, firsts=any_first if span == "any" else np.maximum(times - span, 0))

    encode = test_estimates_by_age.Data.encode


def assert_same(ops, by_age, monkeypatch, data, *given):
    found = data.encode(ops, *given)
    with monkeypatch.context() as patch:
        patch.setattr(by_age, "form_of", lambda *_: None)
        assert found == data.encode(ops, *given)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("target", "rule", "span"), pairs([*DRAWS], [*RULES], [*SPANS]))
def test_encodings_are_those_of_exact_sums(compiled, by_age, monkeypatch, target, rule, span, dtype):
    for size, rows_of_time in ((9, 1), (203, 5), (700, 1), (700, 60)):
        data = Data(compiled, target, size, span, rows_of_time)
        assert_same(compiled, by_age, monkeypatch, data, RULES[rule], dtype, size // 20)


@pytest.mark.parametrize("rule", ["mean", "unseen", "blend", "least weight of a blend"])
@pytest.mark.parametrize("rows_of_time", [1, 7, 100])
def test_threads_share_categories_and_times(compiled, by_age, monkeypatch, rule, rows_of_time):
    threads = import_module("cpu_fallback.compiled.threads")
    monkeypatch.setattr(threads, "SMALLEST_SHARE", 1)
    monkeypatch.setattr(import_module("cpu_fallback.compiled.pairs_by_age"), "TILE", 300)
    for n_threads, n_categories in ((1, 7), (2, 1), (3, 400)):
        threads.set_threads(n_threads)
        for target, span in product(("real", "whole"), SPANS):
            data = Data(compiled, target, 900, span, rows_of_time, n_categories)
            assert_same(compiled, by_age, monkeypatch, data, RULES[rule])
    threads.set_threads(None)


@pytest.mark.parametrize("rows_of_time", [1, 700])
@pytest.mark.parametrize("span", [0, 2, 1_200, "any"])
def test_more_rows_leave_than_are_picked_at_once(compiled, by_age, monkeypatch, open_rows, span, rows_of_time):
    for rule, n_threads in product(("mean", "blend"), (1, 2)):
        monkeypatch.setattr(import_module("cpu_fallback.compiled.threads"), "_chosen", [n_threads])
        monkeypatch.setattr(import_module("cpu_fallback.compiled.threads"), "SMALLEST_SHARE", 1)
        assert_same(compiled, by_age, monkeypatch, Data(compiled, "real", 3_300, span, rows_of_time), RULES[rule])
    # Otherwise exact code encoded all rows, twice.
    assert min(open_rows) < 100


@pytest.mark.parametrize("numbers", [[0.0, -0.0], [1.0, -1.0], [0.5], [5e-324, 1.0], [1e16, 1.0, -1e16]], ids=str)
def test_sums_of_few_numbers(compiled, by_age, monkeypatch, numbers):
    for rule, span in product(RULES.values(), SPANS):
        data = Data(compiled, "real", 300, span, 3)
        data.take(compiled, Rows(data.rows.codes, None, np.resize(numbers, 300), None))
        assert_same(compiled, by_age, monkeypatch, data, rule)


@pytest.mark.parametrize("rule", RULES)
def test_sums_of_large_numbers_leave_small_ones_behind(compiled, by_age, monkeypatch, rule):
    # A pair cannot hold both numbers of a category, so that its bound stays after the large one has left.
    data = Data(compiled, "real", 400, 40)
    values = np.where(np.arange(400) % 90 == 0, 2.0**130, np.random.default_rng(0).normal(size=400))
    data.take(compiled, Rows(data.rows.codes, None, values[np.argsort(data.order.rows)], None))
    assert_same(compiled, by_age, monkeypatch, data, RULES[rule])


@pytest.mark.parametrize("rule", ["mean", "given prior", "unseen", "blend"])
@pytest.mark.parametrize(("rows_of_time", "n_categories"), [(1, 7), (30, 7), (1, 20_000)])
def test_next_to_no_row_of_plain_data_stays_open(compiled, open_rows, rule, rows_of_time, n_categories):
    for target in ("real", "float32", "whole"):
        Data(compiled, target, 60_000, 3_000 // rows_of_time, rows_of_time, n_categories).encode(compiled, RULES[rule])
    assert max(open_rows) <= 6


def test_the_bound_of_squares_does_not_fall_when_rows_leave():
    # What the sum of two bounds rounds away would be missing if one of them were taken away again.
    pairs = import_module("cpu_fallback.compiled.running_pairs")
    form = pairs.Form(8, 4, False, True, False, RULES["blend"])
    sums, bounds = np.zeros(8), [0.0]
    for v, weight in ((0.1, 1.0), (1e-9, 1.0), (0.1, -1.0), (1e-9, -1.0)):
        pairs.add_row(v, weight, weight * v, 0.0, 1e9, form, sums, 0)
        bounds.append(sums[form.around + 2])
    assert (np.diff(bounds) > 0).all()
