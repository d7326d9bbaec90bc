"""TargetEncoder on arrays in a GPU's memory reads, computes and returns them there, with the bits of the CPU."""

import pickle
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold as SplitKFold

import gpu_encode
from gpu_encode import (
    EmpiricalBayes,
    GroupKFold,
    JamesStein,
    KFold,
    LeaveOneOut,
    MEstimate,
    Ordered,
    Sigmoid,
    TargetEncoder,
)
from gpu_encode.tables.categories import keys
from tests.cases import STRATIFIED, fold_schemes, ordered_schemes
from tests.family.drawn import quietly

pytestmark = pytest.mark.cuda

N = 60
ROWS = np.arange(N)
X = np.column_stack([ROWS * 7 % 5, ROWS * 11 % 13, ROWS % 3 - 1])
WITH_NAN = np.where(ROWS[:, None] % 7 == [[1, 2, 3]], np.nan, X)
QUANTITY = np.sin(ROWS) * 10.0 ** (ROWS % 5)
TARGETS = {
    "quantity": QUANTITY,
    "small floats": (QUANTITY * 1e-43).astype(np.float32),
    "whole": (ROWS * 37 % 101).astype(np.int64) * 10**12,
    "binary": (ROWS * 5 % 3 == 0).astype(np.int32),
    "yes or no": ROWS * 5 % 3 == 0,
    "classes": (ROWS * 5 % 4).astype(np.float32),
}
WEIGHT = (ROWS % 4 + 1) / 2.0
SCHEMES = (
    fold_schemes(groups=2, time=2, folds=ROWS * 3 % 4)
    | ordered_schemes(time=2)
    | {
        "stratified": STRATIFIED["stratified"],
        "groups beside": GroupKFold(3),
        "splitter": SplitKFold(3),
        "splits of half the rows": [
            (ROWS[(fold != ROWS % 3) & (ROWS % 7 != 0)], ROWS[fold == ROWS % 3]) for fold in range(3)
        ],
    }
)


def encoder(**parameters):
    return TargetEncoder(**({"target_type": "continuous"} | parameters))


def same(device, host, xp):
    """Whether a device array holds the same bits as a host array."""
    assert isinstance(device, xp.ndarray)
    assert device.dtype == host.dtype
    np.testing.assert_array_equal(device.get(), host, strict=True)


def compare(xp, rows, y, new, **parameters):
    """Fit and transform on both sides."""
    here, there = encoder(device="cpu", **parameters), encoder(**parameters)
    expected = quietly(here.fit_transform, rows, y)
    same(quietly(there.fit_transform, xp.asarray(rows), xp.asarray(y)), expected, xp)
    same(quietly(there.transform, xp.asarray(new)), quietly(here.transform, new), xp)


@pytest.mark.parametrize("kind", ["quantity", "small floats", "classes"])
def test_rows_without_a_target_stay_on_the_device(xp, kind):
    y = np.where(ROWS % 4 == 1, np.nan, TARGETS[kind]).astype(TARGETS[kind].dtype)
    given = {"target_type": "multiclass" if kind == "classes" else "continuous", "missing_target": "keep"}
    for cv in (KFold(3), LeaveOneOut(), Ordered()):
        compare(xp, X, y, X, cv=cv, **given)
    here, there = encoder(device="cpu", **given), encoder(**given)
    expected = quietly(here.fit_transform, X, y)
    pieces = quietly(
        there.fit_transform, [xp.asarray(X[:20]), xp.asarray(X[20:])], [xp.asarray(y[:20]), xp.asarray(y[20:])]
    )
    same(xp.concatenate(pieces), expected, xp)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_stays_on_the_device(xp, scheme):
    cv, kind, y = SCHEMES[scheme], "continuous", TARGETS["quantity"]
    if scheme == "stratified":
        kind, y = "binary", TARGETS["binary"]
    groups = {"groups": ROWS // 4} if scheme == "groups beside" else {}
    here = encoder(cv=cv, target_type=kind, device="cpu")
    expected = quietly(here.fit_transform, X, y, **groups)
    there = encoder(cv=xp.asarray(cv) if isinstance(cv, np.ndarray) else cv, target_type=kind)
    on_device = {name: xp.asarray(values) for name, values in groups.items()}
    same(quietly(there.fit_transform, xp.asarray(X), xp.asarray(y), **on_device), expected, xp)
    assert (here.device_, there.device_) == ("cpu", "cuda")
    same(there.transform(xp.asarray(X)), here.transform(X), xp)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_target_is_what_it_is_on_the_host(xp, target, weight, dtype):
    here, there = (TargetEncoder(cv=KFold(3), dtype=dtype, device=device) for device in ("cpu", "auto"))
    expected = quietly(here.fit_transform, WITH_NAN, TARGETS[target], sample_weight=weight)
    weighted = {} if weight is None else {"sample_weight": xp.asarray(weight)}
    same(quietly(there.fit_transform, xp.asarray(WITH_NAN), xp.asarray(TARGETS[target]), **weighted), expected, xp)
    assert there.target_type_ == here.target_type_
    if here.classes_ is not None:
        np.testing.assert_array_equal(there.classes_, here.classes_, strict=True)
    for name in ("encodings_", "categories_"):
        for array, expected in zip(getattr(there, name), getattr(here, name), strict=True):
            np.testing.assert_array_equal(array, expected, strict=True)


@pytest.mark.parametrize(
    "parameters",
    [
        {"columns": [0, (0, 1), (2, 1, 0)]},
        {"columns": [1], "indicators": True, "min_count": 6},
        {"columns": [(0, 1)], "handle_missing": "prior", "smooth": MEstimate(3)},
        {"handle_missing": "nan", "handle_unknown": 7.0, "smooth": Sigmoid(3, 2)},
        {"columns": [0], "hierarchy": {0: [2]}, "prior": "category_mean", "smooth": JamesStein()},
        {"columns": [1], "hierarchy": {1: [0]}, "cv": LeaveOneOut(), "prior": "category_mean", "min_count": 2},
        {"columns": [1], "hierarchy": {1: [0]}, "cv": Ordered(2), "handle_missing": "nan", "indicators": True},
        {"smooth": EmpiricalBayes("between"), "cv": Ordered(2, average=False), "prior": "category_mean"},
        {"smooth": gpu_encode.PartialPooling(), "prior": 0.5},
        {"categories": [[0, 1, 2], [3, 4, np.nan], [-1, 1]]},
    ],
)
def test_options(xp, parameters):
    compare(xp, WITH_NAN, QUANTITY, WITH_NAN[::-1] + (ROWS % 9 == 0)[:, None] * 100, **parameters)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float32])
def test_columns_of_every_type(xp, dtype):
    given = X.astype(dtype) if dtype is not np.uint64 else X.astype(dtype) + np.uint64(1 << 63)
    # Fitted on one type, it encodes another.
    compare(xp, given, QUANTITY, WITH_NAN)


def test_several_targets(xp):
    compare(xp, X, np.column_stack([QUANTITY, QUANTITY**2]), X)


def test_only_one_of_them_on_the_device(xp):
    expected = encoder(device="cpu").fit_transform(X, QUANTITY)
    same(encoder().fit_transform(xp.asarray(X), QUANTITY), expected, xp)
    mixed = encoder()
    result = mixed.fit_transform(X, xp.asarray(QUANTITY))
    np.testing.assert_array_equal(result, expected, strict=True)
    assert mixed.device_ == "cuda"


def test_host_frames_come_back_as_they_went(xp):
    frame = pd.DataFrame({"a": list("xyzxyz") * 10, "b": X[:, 0], "day": pd.date_range("2024", periods=N)})
    there = encoder(columns=["a", ("a", "b")], cv=Ordered(time="day"), device="cuda")
    here = encoder(columns=["a", ("a", "b")], cv=Ordered(time="day"), device="cpu")
    result, expected = quietly(there.fit_transform, frame, QUANTITY), quietly(here.fit_transform, frame, QUANTITY)
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    pd.testing.assert_frame_equal(there.transform(frame), here.transform(frame), check_exact=True)


def test_the_cpu_computes_what_the_device_holds(xp):
    there = encoder(device="cpu")
    same(there.fit_transform(xp.asarray(X), xp.asarray(QUANTITY)), encoder(device="cpu").fit_transform(X, QUANTITY), xp)
    assert there.device_ == "cpu"


def test_an_encoder_travels_between_devices(xp, tmp_path):
    there = encoder(columns=[0, 1]).fit(xp.asarray(X), xp.asarray(QUANTITY))
    expected = there.transform(xp.asarray(X)).get()
    for other in (pickle.loads(pickle.dumps(there)), save_and_load(there, tmp_path / "one")):
        np.testing.assert_array_equal(other.set_params(device="cpu").transform(X), expected, strict=True)
        same(other.set_params(device="cuda").transform(xp.asarray(X)), expected, xp)
        assert other.device_ == "cuda"
    here = encoder(columns=[0, 1], device="cpu").fit(X, QUANTITY)
    same(save_and_load(here, tmp_path / "two").set_params(device="auto").transform(xp.asarray(X)), expected, xp)


def save_and_load(fitted, path):
    fitted.save(path)
    return gpu_encode.load(path)


def test_pieces_and_merges(xp):
    whole = encoder(device="cpu").fit(X, QUANTITY)
    pieces = encoder()
    for start in range(0, N, 25):
        pieces.partial_fit(xp.asarray(X[start : start + 25]), xp.asarray(QUANTITY[start : start + 25]))
    merged = encoder().fit(xp.asarray(X[:9]), xp.asarray(QUANTITY[:9])).merge(encoder().fit(X[9:], QUANTITY[9:]))
    for result in (pieces, merged):
        np.testing.assert_array_equal(result.transform(X), whole.transform(X), strict=True)


def test_output_of_another_kind(xp):
    there = encoder(columns=[0]).set_output(transform="pandas")
    result = there.fit_transform(xp.asarray(X), xp.asarray(QUANTITY))
    assert isinstance(result, pd.DataFrame)
    assert result.columns.tolist() == ["x0", "x1", "x2"]


def test_inputs_are_never_written(xp):
    given, y, weight = xp.asarray(WITH_NAN), xp.asarray(QUANTITY), xp.asarray(WEIGHT)
    for cv in (KFold(3), LeaveOneOut(), Ordered()):
        encoder(cv=cv).fit_transform(given, y, sample_weight=weight)
    np.testing.assert_array_equal(given.get(), WITH_NAN)
    np.testing.assert_array_equal(y.get(), QUANTITY)
    np.testing.assert_array_equal(weight.get(), WEIGHT)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": np.where(ROWS[:, None] == [[9, 70, 70]], np.inf, X)}, "contains infinity: column 0.* in row 9"),
        ({"X": X[:, 0]}, "Expected 2D array, got 1D array"),
        ({"y": np.where(ROWS == 4, np.nan, QUANTITY)}, "y has 1 missing value, in row 4"),
        ({"y": QUANTITY[:-1]}, "X has 60 rows and y 59"),
        ({"sample_weight": -WEIGHT}, "60 negative weights, the first in row 0"),
        ({"sample_weight": WEIGHT * 0}, "all of them are zero"),
    ],
)
def test_errors_are_those_of_the_host(xp, change, match):
    given = {"X": X, "y": QUANTITY} | change
    for bring in (np.asarray, xp.asarray):
        with pytest.raises(ValueError, match=match):
            encoder().fit_transform(**{name: bring(values) for name, values in given.items()})


def test_values_that_policies_refuse(xp):
    fitted = encoder(handle_unknown="error").fit(xp.asarray(X), xp.asarray(QUANTITY))
    with pytest.raises(ValueError, match="unknown categories in column 1: 1 rows, the first in row 5"):
        fitted.transform(xp.asarray(np.where(ROWS[:, None] == [[70, 5, 70]], 99, X)))
    with pytest.raises(ValueError, match="missing values, the first in row"):
        encoder(handle_missing="error").fit(xp.asarray(WITH_NAN), xp.asarray(QUANTITY))


def test_integers_that_codes_would_round(xp):
    big = X.astype(np.int64) + (1 << 60)
    with pytest.raises(ValueError, match="cannot hold exactly"):
        encoder(columns=[0]).fit_transform(xp.asarray(big), xp.asarray(QUANTITY))


def test_combinations_of_a_joint_key_stay_on_the_device_until_asked_for(xp, monkeypatch):
    # For a short range the host knows the keys at once.
    monkeypatch.setattr(import_module("gpu_encode.cuda.categories"), "SHORT_INDEX", 0)
    asked, own = [], keys.on_host
    monkeypatch.setattr(keys, "on_host", lambda held: asked.append(held) or own(held))
    here, there = (encoder(device=device, cv=KFold(3), columns=[(0, 1, 2)]) for device in ("cpu", "auto"))
    found = there.fit_transform(xp.asarray(X), xp.asarray(QUANTITY))
    assert asked == []
    same(found, here.fit_transform(X, QUANTITY), xp)
    np.testing.assert_array_equal(there.categories_[0], here.categories_[0], strict=True)
    # Keys of two columns, and of all three.
    assert [isinstance(keys, xp.ndarray) for keys in asked[:2]] == [True, True]
