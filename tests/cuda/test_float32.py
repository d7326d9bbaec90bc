"""Targets of float32 are read directly; kernels compute from them what they compute from the same float64 numbers."""

from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.types import Carry, Layout, Rows, SumShape, Window, digit_window
from tests.backends import memory

pytestmark = pytest.mark.cuda

LIMITS = np.finfo(np.float32)
EDGES = [
    0,
    1,
    1.5,
    LIMITS.max,
    LIMITS.tiny,
    LIMITS.tiny * 1.5,
    LIMITS.smallest_subnormal,
    3 * LIMITS.smallest_subnormal,
]
EDGES += [
    float(np.nextafter(np.float32(LIMITS.tiny), np.float32(0))),
    float(np.nextafter(np.float32(1), np.float32(0))),
]
NUMBERS = np.array([*EDGES, *(-number for number in EDGES)], np.float32)


def test_every_kind_of_number_is_widened():
    device_function = import_module("gpu_encode.cuda.digits").widen_bits
    widen_bits = getattr(device_function, "py_func", device_function)
    words = [*NUMBERS.view(np.uint32).tolist(), *(1 << place for place in range(31)), *range(0x007FFFF0, 0x00800010)]
    words = np.array([word for word in words if word & 0x7F800000 != 0x7F800000], np.uint32)
    expected = words.view(np.float32).astype(np.float64).view(np.uint64)
    assert [int(widen_bits(np.uint64(word))) for word in words] == expected.tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_digits_are_those_of_64_bits(ops, weighted):
    n_rows = 3 * len(NUMBERS)
    target = np.random.default_rng(3).permutation(np.repeat(NUMBERS, 3))
    wide, codes = target.astype(np.float64), (np.arange(n_rows) % 4 - 2).astype(np.int32)
    weight = np.arange(n_rows) % 5 / 4 if weighted else None
    powers = (0, 1, 2) if weighted else (1, 2)
    extents = cpu_fallback.extents(wide, weight, powers)
    assert ops.extents(target, weight, powers) == extents
    layout = Layout(*([] if weighted else [Window()]), *map(digit_window, extents))
    narrow, expected = Rows(codes, None, target, weight), Rows(codes, None, wide, weight)
    sums = cpu_fallback.accumulate(expected, SumShape(2, layout=layout))
    assert np.array_equal(ops.accumulate(narrow, SumShape(2, layout=layout)), sums)
    others = cpu_fallback.leave_one_out(sums[:, 0], expected, layout)
    assert np.array_equal(ops.leave_one_out(sums[:, 0], narrow, layout), others)
    carries = [Carry.empty(2, 1, layout.width, False) for _ in range(2)]
    earlier = cpu_fallback.ordered(expected, None, layout, carries[0])
    assert np.array_equal(ops.ordered(narrow, None, layout, carries[1]), earlier)
    assert np.array_equal(carries[0].sums, carries[1].sums)


def test_targets_of_a_gpu_stay_what_they_are(runtime):
    targets, ops = import_module("gpu_encode.sums.targets"), import_module("gpu_encode.cuda")
    y = memory.to_device(NUMBERS)
    (target,) = targets.read(ops, [("y", y)], "continuous")
    assert target.values.dtype == np.float32
    doubles = targets.as_doubles(ops, target.values)
    assert memory.to_host(doubles).tolist() == NUMBERS.astype(np.float64).tolist()
