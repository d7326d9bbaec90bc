"""More rows than digits can hold between carries: with a smaller capacity, the encodings have the same bits."""

from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest

from gpu_encode import TargetEncoder
from gpu_encode.fitting import ordered
from gpu_encode.sums import category_sums
from tests.backends import ON_CUDA, small_tiles
from tests.cases import STRATIFIED, schemes, some

N = 120
# Number of rows of a tile in the simulator.
TILES = 64
RNG = np.random.default_rng(3)
X = np.column_stack([RNG.integers(0, 5, N), RNG.integers(0, 40, N)])
TARGETS = {
    "classes": (RNG.integers(0, 3, N), "multiclass"),
    "real": (RNG.normal(size=N) * 10.0 ** RNG.integers(-9, 9, N), "continuous"),
}
WEIGHTS = {"plain": None, "weighted": RNG.random(N)}
SCHEMES = some(
    schemes(time=1) | STRATIFIED,
    *("greedy", "k-fold", "contiguous", "interleaved", "stratified", "time-folds", "holdout", "leave-one-out"),
    *("ordered", "ordered-time"),
)
# A backend is told folds, and deals none but random and stratified ones: the simulator of a GPU sees no others.
ALIKE = ("contiguous", "interleaved", "holdout")
CASES = [
    pytest.param(scheme, target, weight, marks=pytest.mark.host if scheme in ALIKE else ())
    for scheme in SCHEMES
    for target in TARGETS
    for weight in WEIGHTS
    if scheme != "stratified" or target == "classes"
]


@pytest.mark.filterwarnings("ignore:Greedy", "ignore:.*rows see no rows at all")
@pytest.mark.parametrize(("scheme", "target", "weight"), CASES)
def test_encodings_are_those_of_one_go(scheme, target, weight):
    y, kind = TARGETS[target]

    def encoded():
        encoder = TargetEncoder(columns=[0], cv=SCHEMES[scheme], target_type=kind, smooth="auto", prior="category_mean")
        encodings = encoder.fit_transform(X, y, sample_weight=WEIGHTS[weight])
        return encodings.tobytes(), [learned.tobytes() for learned in encoder.encodings_]

    expected = encoded()
    with little_room():
        assert encoded() == expected


@contextmanager
def little_room():
    """Carry every 32 rows, and check that no digit has been added to more often, but for a tile's rows."""
    carry, tile = category_sums.carry, 24
    room = 32 + max(tile, TILES)
    sizes = []

    def check_and_carry(accumulators, layout):
        sizes.append(len(accumulators))
        for window, _, columns in layout.measures():
            if accumulators.size and not window.whole:
                assert int(np.abs(accumulators[..., columns]).max()) <= room << 32
        carry(accumulators, layout)

    with small_tiles(tile), pytest.MonkeyPatch.context() as patch:
        passes = ["cpu_fallback.compiled", *(["gpu_encode.cuda"] if ON_CUDA else [])]
        passes = [import_module(f"{name}.ordered_encodings") for name in passes]
        for module in (category_sums, ordered, *passes):
            patch.setattr(module, "CARRY_AFTER", 32)
            patch.setattr(module, "carry", check_and_carry, raising=module is not passes[0])
        yield sizes


@pytest.mark.parametrize("scheme", ["leave-one-out", "ordered", "ordered-time"])
def test_no_digit_is_added_to_without_a_carry(scheme):
    """All rows are of one time and one category: a single digit gets all of them."""
    same, y = np.zeros((8 * N, 2), np.int64), np.full(8 * N, 0.1)
    with little_room() as sizes:
        # Without weights, orders on a GPU add no digits.
        encoder = TargetEncoder(columns=[0], cv=SCHEMES[scheme], target_type="continuous", prior=0.5)
        encoder.fit_transform(same, y, sample_weight=np.full(8 * N, 0.5))
    # One category, unknown and missing: the sums of earlier rows, or of blocks of rows.
    assert sizes.count(3) >= 8 * N // max(32, TILES) - 1


@pytest.mark.parametrize("n_rows", [31, 32, 33, 64, 100])
def test_sums_of_blocks_are_carried(n_rows, monkeypatch):
    """The capacity of an int64 is counted in additions: after a carry, digits of many rows count as one addition."""
    monkeypatch.setattr(category_sums, "CARRY_AFTER", 32)
    seen = []
    measure = category_sums.CategorySums.measure.__func__

    def record(cls, *given):
        seen.append(measure(cls, *given))
        return seen[-1]

    monkeypatch.setattr(category_sums.CategorySums, "measure", classmethod(record))
    # Sums of whole numbers are found without `measure`.
    TargetEncoder(columns=[0], target_type="continuous").fit(X[:n_rows].astype(float), np.full(n_rows, 0.1))
    (sums,) = seen
    assert sums.added == (n_rows if n_rows <= 32 else 1)
    digits = sums.accumulators[..., 1 : sums.spec.layout.total.width]
    assert bool((digits < 1 << 32).all()) == (n_rows > 32)
