"""Formulas, rules and orders for tests of ordered encodings, and functions that compare the results."""

from typing import Any

import numpy as np

import cpu_fallback
from cpu_fallback.row_numbers import Permutation, RowOrder
from gpu_encode import EmpiricalBayes, MEstimate, Sigmoid
from gpu_encode.formulas.smoothing import NoSmoothing
from gpu_encode.schemes.plans import OrderedPlan
from tests.bits import assert_same_bits

SMOOTHINGS: dict[str, Any] = {
    "none": NoSmoothing(),
    "m": MEstimate(10.0),
    "odd m": MEstimate(0.7),
    "no m": MEstimate(0.0),
    # Only digits can round these encodings.
    "tiny m": MEstimate(1e-100),
    "sigmoid": Sigmoid(3.0, 2.0),
    "bayes": EmpiricalBayes(),
}
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "given prior": {"prior": 0.30412345678901237, "min_count": 2.5},
    "no prior": {"prior": 0.0, "missing": "nan"},
    # Encodings below all normal numbers of float32.
    "small prior": {"prior": 1e-42, "unseen": -1e-41},
}
ORDERS: dict[str, Any] = {
    "rows": lambda size: RowOrder(),
    "single": lambda size: Permutation(size, 11),
    "blocks": lambda size: Permutation(size, 5, 16),
    "large blocks": lambda size: Permutation(size, 7, 300),
}


def assert_same(train, device, order, burned, dtype, *description):
    """Demand that `train(ops, plan, dtype, *description)` gives the encodings, flags and sums of NumPy's backend."""
    plan = OrderedPlan([order], True, burned)
    expected, unseen, sums = train(cpu_fallback, plan, dtype, *description)
    found, flags, learned = train(device, plan, dtype, *description)
    assert_same_bits(found, expected)
    assert np.array_equal(flags, unseen)
    assert np.array_equal(learned, sums)
