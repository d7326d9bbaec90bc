"""Rows in parts, measured and added up in any order: every bit is that of one table."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from cpu_fallback.memory_pool import pool
from gpu_encode import GroupKFold, LeaveOneOut, Prefixes, TargetEncoder
from gpu_encode.scale.parts import Part, PartialSums, Profile, fit, measure, plan, profile
from tests.bits import assert_same_encoder
from tests.cases import STRATIFIED, fold_schemes, named, pairs, some_of
from tests.encoders.pieces import TARGETS, WEIGHTS, WHOLE, encoder, saved
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# One part lacks a city, some parts have no rows, and one has a single row.
CUTS = {1: [], 2: [50], 7: [1, 20, 30, 30, 47, 83], 64: [*range(1, 60), 60, 70, 70, 80]}
SCHEMES = fold_schemes() | {"groups-beside": GroupKFold(3)}
SOME_SCHEMES = ("k-fold", "time-folds", "leave-one-out")
QUANTITY = TARGETS["quantity"]


def assert_alike(y=QUANTITY, weights=None, cuts=7, folder=None, **parameters):
    """Encode in one piece and in parts; compare encodings, what is learned, and what is saved in a folder."""
    one, other = encoder(**parameters), encoder(**parameters)
    beside = isinstance(one.cv, GroupKFold) and one.cv.groups is None
    groups = WHOLE["shop"].to_numpy() if beside else None
    expected = one.fit_transform(WHOLE, y, sample_weight=weights, groups=groups)
    encodings = encoded_in_parts(other, parts_of(WHOLE, y, weights, groups, CUTS[cuts]))
    pd.testing.assert_frame_equal(pd.concat(encodings), expected, check_exact=True)
    assert_same_encoder(other, one)
    if folder is not None:
        assert saved(one, folder) == saved(other, folder)
    return other


# One scheme for each way in which rows see others: the GPU simulator needs no more.
@pytest.mark.parametrize("cv", named(SCHEMES, SOME_SCHEMES))
def test_every_scheme(cv, tmp_path):
    assert_alike(cuts=2, folder=tmp_path, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize(("cv", "target", "cuts", "weight"), pairs(SCHEMES, TARGETS, [1, 7, 64], WEIGHTS))
def test_every_target_and_number_of_parts(cv, target, weight, cuts, tmp_path):
    assert_alike(TARGETS[target], WEIGHTS[weight], cuts, folder=tmp_path, cv=SCHEMES[cv])


@pytest.mark.long
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("target", ["binary", "classes"])
@pytest.mark.parametrize("cv", named(STRATIFIED))
def test_folds_within_classes(cv, target, cuts):
    assert_alike(TARGETS[target], cuts=cuts, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("parameters", "cv"),
    some_of(
        [
            {"handle_missing": "prior"},
            {"handle_missing": "nan", "handle_unknown": -1.0},
            {"min_count": 4, "dtype": "float32"},
            {"hierarchy": {"city": Prefixes(1)}},
            {"columns": ["city"], "hierarchy": {"city": ["zip", "shop"]}, "indicators": False},
            {"columns": ["city", "zip"], "categories": [["b", "a", None], [1, 2, 3]], "indicators": False},
            {"prior": {"city": 0.25}},
        ],
        ["k-fold", "leave-one-out"],
    ),
    ids=str,
)
def test_parameters(cv, parameters, cuts):
    assert_alike(cuts=cuts, cv=SCHEMES[cv], **parameters)


@pytest.mark.host
@pytest.mark.parametrize("kinds", ["continuous", ["continuous", "binary"], ["auto", "auto"]])
def test_several_targets(kinds):
    assert_alike(np.column_stack([QUANTITY, TARGETS["binary"]]), target_type=kinds)


@pytest.mark.host
@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.r_[np.zeros(50), np.ones(33), 0.5], "continuous"),
        (np.r_[np.zeros(50), np.ones(34)], "binary"),
        (np.r_[np.zeros(50), np.ones(33), 2], "multiclass"),
        (np.r_[np.zeros(83), 2.0**70], "continuous"),
        (np.array(["no"] * 80 + ["yes"] * 4, object), "binary"),
        (np.arange(84) > 80, "binary"),
    ],
    ids=["a fraction in the last row", "two", "three", "a large number", "text", "booleans"],
)
def test_the_kind_of_target_follows_from_all_rows(y, kind):
    assert assert_alike(y).target_type_ == kind


@pytest.mark.parametrize("cv", [LeaveOneOut(), 3])
def test_sums_that_cancel_leave_room_for_every_row(cv):
    assert_alike(np.r_[np.full(40, 1e300), np.full(40, -1e300), [3.0, 1e-300, 0.1, 5.0]], cv=cv)


def test_zero_weights_of_a_whole_part():
    assert_alike(TARGETS["binary"], np.r_[np.zeros(50), np.ones(34)])


def test_only_one_target_at_a_time_has_its_sums_twice_while_parts_are_added_in_place(monkeypatch):
    # No freed memory is kept, which would hide what is freed.
    monkeypatch.setattr(pool, "most", 0)
    pool.free.clear()
    n_targets, rows, many = 8, np.arange(8000), TargetEncoder(columns=["k"], target_type="continuous")
    y = pd.DataFrame({f"y{number}": (rows + number) / 7 for number in range(n_targets)})
    parts = [Part(pd.DataFrame({"k": rows[a:b]}), y[a:b], first_row=a) for a, b in ((0, 7600), (7600, 8000))]
    encoding_plan = plan(many, sum((profile(many, part) for part in parts), Profile()))
    tracemalloc.start()
    total, few = (measure(encoding_plan, part) for part in parts)
    n_bytes = sum(sums.accumulators.nbytes for sums in total.model.statistics[0])
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    total.plus(few, in_place=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most - before < 0.4 * n_bytes


@pytest.mark.parametrize("target", TARGETS)
def test_sums_that_are_added_in_place_hold_the_same(target):
    def numbers(sums):
        return [column.accumulators.tobytes() for key in sums.model.statistics for column in key] if sums.model else []

    parts = parts_of(WHOLE, TARGETS[target], cuts=CUTS[7])
    one, encoding_plan = encoder(), plan(encoder(), sum((profile(encoder(), part) for part in parts), Profile()))
    total, kept = PartialSums(), PartialSums()
    for part in [parts[-1], *parts[:-1]]:
        total = total.plus(measure(encoding_plan, part), in_place=True)
        before, earlier = numbers(kept), kept
        kept = earlier + measure(encoding_plan, part)
        assert numbers(earlier) == before
    fit(one, encoding_plan, total)
    assert_same_encoder(one, encoder().fit(WHOLE, TARGETS[target]))
