"""More rows than digits have room for between carries: the room is made small, and the codes are the same bits."""

from contextlib import contextmanager

import numpy as np
import pytest

from cpu_fallback.types import Layout, Window
from gpu_encode import TargetEncoder
from gpu_encode.sums import category_sums
from gpu_encode.training import ordered
from tests.backends import small_tiles
from tests.cases import STRATIFIED, schemes, some

N = 120
# Rows of a tile in the simulator.
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
def test_codes_are_those_of_one_go(scheme, target, weight):
    y, kind = TARGETS[target]

    def encoded():
        encoder = TargetEncoder(columns=[0], cv=SCHEMES[scheme], target_type=kind, smooth="auto", prior="category_mean")
        codes = encoder.fit_transform(X, y, sample_weight=WEIGHTS[weight])
        return codes.tobytes(), [each.tobytes() for each in encoder.encodings_]

    expected = encoded()
    with little_room():
        assert encoded() == expected


@contextmanager
def little_room():
    """Carry every 32 rows, and check that no digit has been added to more often, but for a tile's rows."""
    carry, tile = category_sums.carry, 24
    room = 32 + max(tile, TILES)
    carried = []

    def checked(accumulators, layout):
        carried.append(len(accumulators))
        for window, _, columns in layout.measures():
            if accumulators.size and not window.whole:
                assert int(np.abs(accumulators[..., columns]).max()) <= room << 32
        carry(accumulators, layout)

    with small_tiles(tile), pytest.MonkeyPatch.context() as patch:
        for module in (category_sums, ordered):
            patch.setattr(module, "CARRY_AFTER", 32)
            patch.setattr(module, "carry", checked)
        yield carried


@pytest.mark.parametrize("scheme", ["leave-one-out", "ordered", "ordered-time"])
def test_no_digit_is_added_to_without_a_carry(scheme):
    """All rows are of one time and one category: a single digit of a single cell gets all of them."""
    same, y = np.zeros((8 * N, 2), np.int64), np.full(8 * N, 0.1)
    with little_room() as carried:
        TargetEncoder(columns=[0], cv=SCHEMES[scheme], target_type="continuous", prior=0.5).fit_transform(same, y)
    # One category, unknown and missing: the sums of earlier rows, or of blocks of rows.
    assert carried.count(3) >= 8 * N // max(32, TILES) - 1


def test_all_digits_but_the_highest_fit_32_bits_after_a_carry():
    layout = Layout(Window(), Window(-2, 3, False))
    accumulators = np.array([[7, (5 << 32) + 9, -(3 << 40), 11], [1, -1, 0, 0]])
    value = accumulators[:, 1:].astype(object) @ [1, 1 << 32, 1 << 64]
    category_sums.carry(accumulators, layout)
    assert accumulators[:, 0].tolist() == [7, 1]
    assert (accumulators[:, 1:].astype(object) @ [1, 1 << 32, 1 << 64]).tolist() == value.tolist()
    assert ((accumulators[:, 1:3] >= 0) & (accumulators[:, 1:3] < 1 << 32)).all()


@pytest.mark.parametrize("n_rows", [31, 32, 33, 64, 100])
def test_sums_of_blocks_are_carried(n_rows, monkeypatch):
    """What an int64 has room for is counted in additions: digits of many rows count as one after a carry."""
    monkeypatch.setattr(category_sums, "CARRY_AFTER", 32)
    seen = []
    measure = category_sums.CategorySums.measure.__func__

    def noted(cls, *given):
        seen.append(measure(cls, *given))
        return seen[-1]

    monkeypatch.setattr(category_sums.CategorySums, "measure", classmethod(noted))
    # Sums of whole numbers are found without `measure`.
    TargetEncoder(columns=[0], target_type="continuous").fit(X[:n_rows].astype(float), np.full(n_rows, 0.1))
    (found,) = seen
    assert found.added == (n_rows if n_rows <= 32 else 1)
    _, total = found.measured.layout.count, found.measured.layout.total
    digits = found.accumulators[..., 1 : total.width]
    assert bool((digits < 1 << 32).all()) == (n_rows > 32)
