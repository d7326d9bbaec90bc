"""Encodings from ordered digits on a GPU, in tiles of any size, compared with NumPy bit for bit."""

from importlib import import_module

import pytest

import cpu_fallback
from gpu_encode.schemes.plans import OrderedPlan
from tests.bits import assert_same_bits
from tests.cpu_fallback import test_row_encodings as by_row
from tests.cuda.test_encodings import assert_same_rows, train_rows

pytestmark = pytest.mark.cuda
DRAWN = [("real", "none"), ("real", "real"), ("whole", "whole"), ("classes", "real"), ("classes", "whole")]


@pytest.fixture
def tiled(monkeypatch):
    """Send rows through one method only, and a few rows at a time."""
    module = import_module("gpu_encode.cuda.ordered_encodings")
    monkeypatch.setattr(module, "TILE", 48)
    monkeypatch.setattr(module, "BYTES_A_ROW", 1 << 20)
    monkeypatch.setattr(import_module("gpu_encode.cuda.ordered_sums"), "fits", lambda *_: False)
    return module


@pytest.mark.parametrize(("target", "weight"), DRAWN)
def test_tiles_of_rows(device, tiled, target, weight):
    for number, smoothing in enumerate(by_row.SMOOTHINGS):
        plan = OrderedPlan([by_row.order_of(["random", "rows"][number % 2], 130)], True, 5 * (number % 3))
        rule, dtype = [*by_row.RULES][number % len(by_row.RULES)], ["float32", "float64"][number % 2]
        assert_same_rows(device, plan, target, weight, smoothing, rule, 130, dtype=dtype)


@pytest.mark.parametrize("size", [1, 47, 48, 49, 96, 97])
def test_edges_of_tiles(device, tiled, size):
    for kind in ("random", "rows"):
        plan = OrderedPlan([by_row.order_of(kind, size)], True, 0)
        assert_same_rows(device, plan, "real", "none", "m-estimate", "plain", size)


@pytest.mark.parametrize("after", [20, 48, 100])
def test_digits_are_carried_on_the_way(device, tiled, monkeypatch, after):
    carried, carry = [], tiled.carry
    monkeypatch.setattr(tiled, "CARRY_AFTER", after)
    monkeypatch.setattr(tiled, "carry", lambda *given: carried.append(given[0].shape) or carry(*given))
    plan = OrderedPlan([by_row.order_of("random", 130)], True, 0)
    # The sums of all rows are the same numbers in other digits.
    expected, _ = by_row.train_rows(cpu_fallback, plan, "real", "real", "bayes", "plain", 130)
    assert_same_bits(train_rows(device, plan, "real", "real", "bayes", "plain", 130)[0], expected)
    # Sums so far, and of segments, after every tile that passes a bound.
    assert len(carried) == 2 * {20: 3, 48: 2, 100: 1}[after]


def test_what_a_tile_keeps_is_a_small_part_of_all_rows(ops):
    module = import_module("gpu_encode.cuda.ordered_encodings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TILE", 1 << 23)
        for length in (2, 5, 11, 24):
            a_row = 8 * length + module.BYTES_OF_TILE
            for n_rows in (10**8, 10**9):
                assert module.tile_size(n_rows, length) * a_row <= module.BYTES_A_ROW * n_rows
            assert module.tile_size(1000, length) == 1 << 20
            assert module.tile_size(10**12, length) == 1 << 23
