"""Sums of conjunctions and moments of log-odds, compiled, beside their definitions, for any number of threads."""

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback import compiled
from cpu_fallback.compiled.threads import set_threads
from gpu_encode.study.tuning.working_response import HeldOut, WorkingResponse

pytestmark = pytest.mark.host
N = 140_000
RNG = np.random.default_rng(4)
FOLDS = RNG.integers(0, 5, N).astype(np.int32)
RESPONSE = RNG.integers(-(1 << 30), 1 << 30, N)
WEIGHTS = {"none": None, "zeros": np.where(RNG.random(N) < 0.6, 0, RNG.integers(1, 1 << 22, N))}


@pytest.fixture(params=[1, 3])
def threads(request):
    set_threads(request.param)
    yield
    set_threads(None)


def sums_by_definition(code, n_codes, information):
    """Sums of h and of h * z by fold and code, 0 where no two folds have weight; how many codes have rows."""
    own = np.zeros((5, n_codes, 2), np.int64)
    known = code >= 0
    weight = np.ones(N, np.int64) if information is None else information
    np.add.at(own, (FOLDS[known], code[known]), np.stack([weight, weight * RESPONSE], axis=1)[known])
    own[:, (own[:, :, 0] > 0).sum(axis=0) < 2] = 0
    return own, len(np.unique(code[known]))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("information", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("sizes", [(7, 9), (40, 1), (200, 300), (300, 500)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_sums_are_those_of_joined_codes(sizes, information, is_sparse):
    """Where places are few and where they are many, and where few of them have rows."""
    left, right = (RNG.integers(-1, size, N).astype(np.int32) for size in sizes)
    if is_sparse:
        right = np.minimum(right, left % max(sizes[1] // 4, 1)).astype(np.int32)
    alone = sizes[1] == 1
    code = left.astype(np.int64) if alone else np.where((left < 0) | (right < 0), -1, left * sizes[1] + right)
    expected, n_codes = sums_by_definition(code, sizes[0] * sizes[1], information)
    given = left, None if alone else right
    occupied, (lefts, rights), own = compiled.fused.conjunction_sums(given, sizes, FOLDS, 5, RESPONSE, information)
    assert occupied == n_codes
    places = lefts.astype(np.int64) * sizes[1] + rights
    assert (np.diff(places) > 0).all()
    found = np.zeros_like(expected)
    found[:, places] = own
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("weight", [None, RNG.random(N)], ids=["unweighted", "weighted"])
def test_moments_of_log_odds_have_the_bits_of_their_definition(weight):
    values, offset = (RNG.random(N) < 0.4).astype(np.float64), np.clip(RNG.normal(size=N) * 6, -12, 12)
    offset[:3] = 0.0, 12.0, -12.0
    visibility = 1 - np.eye(5, dtype=np.int64)
    plain, fused = (
        WorkingResponse.at(HeldOut.of(ops, FOLDS, visibility, weight), True, values, 0, offset)
        for ops in (cpu_fallback, compiled)
    )
    for name in ("response", "information", "likelihood"):
        assert getattr(plain, name).tobytes() == getattr(fused, name).tobytes()
    assert (plain.largest, plain.bits) == (fused.largest, fused.bits)
