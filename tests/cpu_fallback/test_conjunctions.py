"""Compiled sums of conjunctions and moments of log-odds, compared with their definitions, on any number of threads."""

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback import compiled
from cpu_fallback.compiled.threads import set_threads
from cpu_fallback.types import FoldedResponses, KeyColumns
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
    """Return sums of h and of h * z by fold and code (0 unless two folds have weight), and how many codes have rows."""
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
    """Return cases with few and with many cells, and with few cells that have rows."""
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
@pytest.mark.parametrize("information", [None, RNG.integers(1, 1 << 22, N)], ids=["none", "weights"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_scores_of_many_are_those_of_each(information, dtype):
    """Return cases in which any column has codes without a category, and few cells have rows."""
    sizes, absent = [5, 7, 9, 40, 3], [-1, -1, 8, 0, 2]
    columns = [FOLDS, *(RNG.integers(0, size, N) for size in sizes[1:])]
    columns[2] = np.minimum(columns[2], columns[1] % 4 + 5)
    codes = np.array(columns).astype(dtype)
    visibility = 1 - np.eye(5, dtype=np.int64)
    numbers = [2.0**-24, 2.0**-20, 2.0**10, 2.0**5, 2.0**20, 8.0]
    for ridge in (-1.0, 40.0):
        for members in ([(0, 1, 2), (0, 3, 2), (0, 4, 1)], [(0, 1, 2, 3), (0, 4, 3, 1), (0, 2, 1, 4)]):
            rows = FoldedResponses(RESPONSE, information, visibility)
            given = KeyColumns(codes, sizes, members)
            views, counts = compiled.fused.score_conjunctions(given, absent, rows, ridge, numbers)
            for found, count, key in zip(views, counts, members, strict=True):
                known = np.all([columns[i] != absent[i] for i in key], axis=0)
                code = np.ravel_multi_index([columns[i] for i in key[1:]], [sizes[i] for i in key[1:]])
                distinct, code = np.unique(np.where(known, code, -1), return_inverse=True)
                code, distinct = code - (distinct[0] < 0), distinct[distinct >= 0]
                own, n_codes = sums_by_definition(code, len(distinct), information)
                assert count == n_codes
                parts = [part.astype(np.int64) for part in np.unravel_index(distinct, [sizes[i] for i in key[1:]])]
                every = np.ones((1, 5), np.int64)
                no_steps = np.empty((0, 0))
                gains = compiled.fused.conjunction_gains(own, visibility, parts, ridge, numbers, no_steps)
                assert found[:5].tobytes() == gains.tobytes()
                of_all = compiled.fused.conjunction_gains(own, every, parts, ridge, numbers, no_steps)
                assert found[5, 1:].tobytes() == of_all[0, 1:].tobytes()
                assert gains[:, 0].any()


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
