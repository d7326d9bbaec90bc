"""Rows in parts, measured and added up in any order: every bit is that of the rows in one piece."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import GroupKFold, KFold, LeaveOneOut, Prefixes, TargetEncoder
from gpu_encode.parts import PartialSums, Profile, fit, measure, plan, profile
from tests.bits import assert_same_bits, assert_same_encoder
from tests.cases import SMOOTHINGS, STRATIFIED, fold_schemes, named, some
from tests.encoders.pieces import (
    LIBRARIES,
    TARGETS,
    WEIGHTS,
    WHOLE,
    assert_same_rows,
    encoder,
    in_libraries,
    saved,
)
from tests.parts.in_parts import encoded_in_parts, parts_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# Nothing of a city in one part, parts without rows, a part of one row.
CUTS = {1: [], 2: [50], 7: [1, 20, 30, 30, 47, 83], 64: [*range(1, 60), 60, 70, 70, 80]}
SCHEMES = fold_schemes() | {"groups-beside": GroupKFold(3)}
SOME_SCHEMES = some(SCHEMES, "k-fold", "time-folds", "leave-one-out")
QUANTITY = TARGETS["quantity"]


def compared(y=QUANTITY, weights=None, cuts=7, library="pandas", folder=None, **parameters):
    """Encode in one piece and in parts; compare codes and what is learned, and what is saved in a folder."""
    one, other = encoder(**parameters), encoder(**parameters)
    beside = isinstance(one.cv, GroupKFold) and one.cv.groups is None
    groups = {"groups": WHOLE["shop"].to_numpy()} if beside else {}
    expected = one.fit_transform(WHOLE, y, sample_weight=weights, **groups)
    parts = parts_of(WHOLE, y, weights, groups.get("groups"), CUTS[cuts])
    tables = in_libraries([part.X for part in parts], LIBRARIES[library])
    found = encoded_in_parts(other, [replace(part, X=X) for part, X in zip(parts, tables, strict=True)])
    if library == "pandas":
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)
        assert_same_encoder(other, one)
    else:
        assert_same_rows(found, expected)
        for mine, theirs in zip(one.encodings_, other.encodings_, strict=True):
            assert_same_bits(mine, theirs)
    if folder is not None:
        assert saved(one, folder) == saved(other, folder)
    return other


# One of each way in which rows see others: the simulator of a GPU asks no more.
@pytest.mark.parametrize("cv", named(SCHEMES, tuple(SOME_SCHEMES)))
def test_every_scheme(cv):
    compared(cuts=2, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "weight", "cuts"),
    [
        *itertools.product(TARGETS, ["unweighted"], [1, 7]),
        *itertools.product(TARGETS, ["weighted"], [7]),
        ("quantity", "unweighted", 64),
    ],
)
@pytest.mark.parametrize("cv", named(SCHEMES))
def test_every_scheme_target_and_number_of_parts(cv, target, weight, cuts, tmp_path):
    compared(TARGETS[target], WEIGHTS[weight], cuts, folder=tmp_path, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("target", ["binary", "classes"])
@pytest.mark.parametrize("cv", named(STRATIFIED))
def test_folds_within_classes(cv, target, cuts):
    compared(TARGETS[target], cuts=cuts, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize(
    "smooth", named(some(SMOOTHINGS, "auto", "sigmoid", "between", "james-stein", "partial-pooling"))
)
@pytest.mark.parametrize("cv", named(some(SCHEMES, "k-fold", "leave-one-out")))
def test_smoothings(cv, smooth):
    compared(cv=cv, smooth=smooth)
    compared(TARGETS["classes"], cv=cv, smooth=smooth, prior="category_mean")


@pytest.mark.long
@pytest.mark.parametrize("library", [library for library in LIBRARIES if library != "numpy"])
@pytest.mark.parametrize("cv", named(SOME_SCHEMES))
def test_libraries(cv, library):
    compared(library=library, cv=cv)


@pytest.mark.long
@pytest.mark.parametrize(
    "parameters",
    [
        {"handle_missing": "prior"},
        {"handle_missing": "nan", "handle_unknown": -1.0},
        {"min_count": 4, "dtype": "float32"},
        {"hierarchy": {"city": Prefixes(1)}},
        {"columns": ["city"], "hierarchy": {"city": ["zip", "shop"]}, "indicators": False},
        {"columns": ["city", "zip"], "categories": [["b", "a", None], [1, 2, 3]], "indicators": False},
        {"prior": {"city": 0.25}},
    ],
    ids=str,
)
@pytest.mark.parametrize("cv", named(some(SCHEMES, "k-fold", "leave-one-out")))
def test_parameters(cv, parameters):
    for cuts in CUTS:
        compared(cuts=cuts, cv=cv, **parameters)


@pytest.mark.host
@pytest.mark.parametrize("kinds", ["continuous", ["continuous", "binary"], ["auto", "auto"]])
def test_several_targets(kinds):
    compared(np.column_stack([QUANTITY, TARGETS["binary"]]), target_type=kinds)


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
    assert compared(y).target_type_ == kind


@pytest.mark.parametrize("cv", [LeaveOneOut(), 3])
def test_sums_that_cancel_leave_room_for_every_row(cv):
    compared(np.r_[np.full(40, 1e300), np.full(40, -1e300), [3.0, 1e-300, 0.1, 5.0]], cv=cv)


def test_zero_weights_of_a_whole_part():
    compared(TARGETS["binary"], np.r_[np.zeros(50), np.ones(34)])


def test_types_that_only_some_parts_have():
    X = pl.DataFrame({"size": [1, 2, 3, 2], "word": ["a", "b", "a", None]})
    pieces = [X[:2].with_columns(pl.col("size").cast(pl.Int16)), X[2:].with_columns(pl.col("size").cast(pl.Float64))]
    y = [0, 1, 1, 0]
    parts = [replace(part, X=piece) for part, piece in zip(parts_of(X, y, cuts=[2]), pieces, strict=True)]
    found = pl.concat(encoded_in_parts(TargetEncoder(cv=KFold(2)), parts))
    assert found.equals(TargetEncoder(cv=KFold(2)).fit_transform(X, y))


@pytest.mark.parametrize("target", TARGETS)
def test_sums_that_are_given_up_hold_the_same(target):
    parts = parts_of(WHOLE, TARGETS[target], cuts=CUTS[7])
    one, encoding_plan = encoder(), plan(encoder(), sum((profile(encoder(), part) for part in parts), Profile()))
    total, kept = PartialSums(), PartialSums()
    for part in [parts[-1], *parts[:-1]]:
        total = total.plus(measure(encoding_plan, part), in_place=True)
        before = [each.accumulators.copy() for own in kept.model.statistics for each in own] if kept.model else []
        earlier, kept = kept, kept + measure(encoding_plan, part)
        after = [each.accumulators for own in earlier.model.statistics for each in own] if earlier.model else []
        assert all(np.array_equal(*each) for each in zip(before, after, strict=True))
    fit(one, encoding_plan, total)
    expected = encoder().fit(WHOLE, TARGETS[target])
    assert all(np.array_equal(*each) for each in zip(one.encodings_, expected.encodings_, strict=True))
