"""Rows in parts, measured and added up in any order: every bit is that of the rows in one piece."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import (
    EmpiricalBayes,
    Greedy,
    GroupKFold,
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    PartialPooling,
    Prefixes,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
)
from gpu_encode.parts import PartialSums, Profile, fit, measure, plan, profile
from tests.encoders.test_pieces import (
    LIBRARIES,
    TARGETS,
    WEIGHTS,
    WHOLE,
    assert_same_bits,
    encoder,
    in_libraries,
    saved,
)
from tests.parts.in_parts import encoded_in_parts, parts_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# Nothing of a city in one part, parts without rows, a part of one row.
CUTS = {1: [], 2: [50], 7: [1, 20, 30, 30, 47, 83], 64: [*range(1, 60), 60, 70, 70, 80]}
SCHEMES = {
    "number": lambda: 3,
    "random": lambda: KFold(3, random_state=4),
    "contiguous": lambda: KFold(4, order="contiguous"),
    "interleaved": lambda: KFold(3, order="interleaved"),
    "blow-up": lambda: KFold(2, blow_up=True),
    "groups in a column": lambda: GroupKFold(3, groups="shop"),
    "groups beside": lambda: GroupKFold(3),
    "time folds": lambda: TimeFolds(4, time="day"),
    "holdout": lambda: Holdout(0.4),
    "leave one out": LeaveOneOut,
    "greedy": Greedy,
    "fold numbers": lambda: "fold",
}
FOR_LABELS = {
    "stratified": lambda: KFold(3, stratify=True),
    "stratified, interleaved": lambda: KFold(3, stratify=True, order="interleaved"),
    "stratified, contiguous": lambda: KFold(3, stratify=True, order="contiguous"),
}
SMOOTHINGS = {
    "auto": "auto",
    "sigmoid": Sigmoid(),
    "between": EmpiricalBayes(tau="between"),
    "James-Stein": JamesStein(),
    "pooled": PartialPooling(),
}


def compared(scheme, target="quantity", weight="unweighted", cuts=7, library="pandas", folder=None, **parameters):
    """Encode in one piece and in parts; compare codes and what is saved."""
    y, weights = TARGETS[target], WEIGHTS[weight]
    groups = (
        {"groups": WHOLE["shop"].to_numpy()} if isinstance(scheme(), GroupKFold) and scheme().groups is None else {}
    )
    one = encoder(cv=scheme(), **parameters)
    expected = one.fit_transform(WHOLE, y, sample_weight=weights, **groups)
    parts = parts_of(WHOLE, y, weights, groups.get("groups"), CUTS[cuts])
    tables = in_libraries([part.X for part in parts], LIBRARIES[library])
    other = encoder(cv=scheme(), **parameters)
    found = encoded_in_parts(other, [replace(part, X=X) for part, X in zip(parts, tables, strict=True)])
    if library == "pandas":
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)
    else:
        assert_same_bits(found, expected)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one.encodings_, other.encodings_, strict=True))
    if folder is not None:
        assert saved(one, folder) == saved(other, folder)
    return one, other


# One of each way in which rows see others: the simulator of a GPU asks no more.
OF_EACH_WAY = ("random", "time folds", "leave one out")


@pytest.mark.parametrize(
    "scheme",
    [
        pytest.param(scheme, id=name, marks=() if name in OF_EACH_WAY else pytest.mark.host)
        for name, scheme in SCHEMES.items()
    ],
)
def test_every_scheme(scheme):
    compared(scheme, cuts=2)


@pytest.mark.long
@pytest.mark.parametrize(("target", "cuts"), [*itertools.product(TARGETS, [1, 7]), ("quantity", 64)])
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_every_scheme_target_and_number_of_parts(scheme, target, cuts, tmp_path):
    compared(scheme, target, cuts=cuts, folder=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_weights(scheme, target, tmp_path):
    compared(scheme, target, "weighted", folder=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("target", ["binary", "classes"])
@pytest.mark.parametrize("scheme", FOR_LABELS.values(), ids=FOR_LABELS)
def test_folds_within_classes(scheme, target, cuts):
    compared(scheme, target, cuts=cuts)


@pytest.mark.long
@pytest.mark.parametrize("smooth", SMOOTHINGS.values(), ids=SMOOTHINGS)
@pytest.mark.parametrize("scheme", ["random", "leave one out"])
def test_smoothings(scheme, smooth):
    compared(SCHEMES[scheme], smooth=smooth)
    compared(SCHEMES[scheme], "classes", smooth=smooth, prior="category_mean")


@pytest.mark.long
@pytest.mark.parametrize("library", [library for library in LIBRARIES if library != "numpy"])
@pytest.mark.parametrize("scheme", ["random", "time folds", "leave one out"])
def test_libraries(scheme, library):
    compared(SCHEMES[scheme], library=library)


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
@pytest.mark.parametrize("scheme", ["random", "leave one out"])
def test_parameters(scheme, parameters):
    y = TARGETS["quantity"]
    expected = encoder(cv=SCHEMES[scheme](), **parameters).fit_transform(WHOLE, y)
    for cuts in CUTS.values():
        found = encoded_in_parts(encoder(cv=SCHEMES[scheme](), **parameters), parts_of(WHOLE, y, cuts=cuts))
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


@pytest.mark.host
def test_several_targets():
    y = np.column_stack([TARGETS["quantity"], TARGETS["binary"]])
    for kinds in ("continuous", ["continuous", "binary"], ["auto", "auto"]):
        expected = encoder(target_type=kinds).fit_transform(WHOLE, y)
        found = encoded_in_parts(encoder(target_type=kinds), parts_of(WHOLE, y, cuts=CUTS[7]))
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


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
    one, other = encoder(), encoder()
    expected = one.fit_transform(WHOLE, y)
    found = encoded_in_parts(other, parts_of(WHOLE, y, cuts=CUTS[7]))
    pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)
    assert one.target_type_ == other.target_type_ == kind
    assert (one.classes_ is None and other.classes_ is None) or one.classes_.tolist() == other.classes_.tolist()


def test_sums_that_cancel_leave_room_for_every_row():
    y = np.r_[np.full(40, 1e300), np.full(40, -1e300), [3.0, 1e-300, 0.1, 5.0]]
    for scheme in (LeaveOneOut(), 3):
        expected = encoder(cv=scheme).fit_transform(WHOLE, y)
        found = encoded_in_parts(encoder(cv=scheme), parts_of(WHOLE, y, cuts=CUTS[7]))
        pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


def test_zero_weights_of_a_whole_part():
    weight = np.r_[np.zeros(50), np.ones(34)]
    expected = encoder().fit_transform(WHOLE, TARGETS["binary"], sample_weight=weight)
    found = encoded_in_parts(encoder(), parts_of(WHOLE, TARGETS["binary"], weight, cuts=CUTS[7]))
    pd.testing.assert_frame_equal(pd.concat(found), expected, check_exact=True)


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
