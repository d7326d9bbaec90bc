"""Parameters in files: all that affect `transform`, and of the others those whose size does not grow with the rows."""

import datetime
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import StratifiedKFold

from gpu_encode import GroupKFold, KFold, MEstimate, Prefixes, TargetEncoder, TimeFolds, load

X = np.array([["a"], ["b"], ["a"]] * 4, dtype=object)
Y = np.arange(12) % 2


def fitted(**changed: Any) -> TargetEncoder:
    """Fit, and then set parameters that no fit would accept."""
    return TargetEncoder().fit(X, Y).set_params(**changed)


VALUES = [
    None, True, 0, -3, 2**80, 0.1, -0.0, 5e-324, float("inf"), float("-inf"), float("nan"),
    "", "naïve\n\"", "\ud800", b"", b"\x00\xff", (), (1, ("a", None)), [], [[1.5], "x"], {},
    {("a", "b"): [1], 2: {"x": None}},
    Decimal("1.10"), datetime.date(2024, 2, 29), datetime.time(23, 59, 59, 999999), datetime.timedelta(-1, 5, 7),
    datetime.datetime(1, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    np.bool_(True), np.int8(-5), np.uint64(2**64 - 1), np.float16(0.1), np.float32(0.1), np.float64("nan"),
    np.str_("é"), np.bytes_(b"a"), np.datetime64("2024-01-01T00:00:00.5"), np.datetime64("NaT", "s"),
    np.timedelta64(3, "D"),
    np.dtype("float32"), np.float32, np.float64, MEstimate(0.5), Prefixes(3, 1), {"zip": Prefixes(2)},
]  # fmt: skip
ARRAYS = [
    np.arange(6, dtype=np.int16).reshape(2, 3), np.array([0.1, np.nan, -0.0], ">f8"), np.array([True, False]),
    np.array(["a", "bcd"]), np.array([b"a", b"\xff"]), np.array([1, "NaT"], "datetime64[25s]"), np.zeros((0, 2)),
    np.array([1, "a", None, 2.5, (1, 2)], dtype=object), np.array(5), np.arange(10)[::-2],
    np.array(["x", "y"], dtype="<U9"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_in_their_types(value: Any, reloaded: Any) -> None:
    again = reloaded(fitted(categories=value)).categories
    assert type(again) is type(value)
    assert repr(again) == repr(value)


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: f"{value.dtype.str} {value.shape}")
def test_arrays_come_back_in_their_types(value: Any, reloaded: Any) -> None:
    again = reloaded(fitted(categories=[value])).categories[0]
    assert again.dtype.str == value.dtype.str
    np.testing.assert_array_equal(again, value, strict=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pd.Index(["a", "b"]), ["a", "b"]),
        (pl.Series([1, 2]), [1, 2]),
        (pa.array(["a", None]), ["a", None]),
        ([pd.NA, pd.NaT], [None, None]),
        ([signal.SIGINT], [2]),
        ([pd.Timestamp(1)], [np.datetime64(1, "ns")]),
    ],
    ids=["pandas", "polars", "arrow", "nulls", "enum", "timestamp"],
)
def test_values_of_other_libraries_come_back_as_plain_ones(value: Any, expected: Any, reloaded: Any) -> None:
    assert reloaded(fitted(columns=value)).columns == expected


PER_ROW = [
    StratifiedKFold(3),
    [(np.arange(6), np.arange(6, 12))],
    iter([]),
    np.arange(12) % 3,
    GroupKFold(3, groups=np.arange(12)),
    TimeFolds(3, time=list(range(12))),
]


@pytest.mark.parametrize("cv", PER_ROW, ids=lambda cv: type(cv).__name__)
def test_splitters_and_what_is_row_by_row_is_left_out(cv: Any, path: Path) -> None:
    encoder = fitted(cv=cv)
    says = r"^cv=.* is not saved: it only matters for training. The loaded encoder has cv=5"
    with pytest.warns(UserWarning, match=says) as caught:
        encoder.save(path)
    assert [warning.filename for warning in caught] == [__file__]
    again = load(path)
    assert again.cv == 5
    assert again.transform(X).tobytes() == encoder.transform(X).tobytes()


def test_random_generators_are_left_out_and_what_is_around_them_is_not(path: Path) -> None:
    encoder = fitted(random_state=np.random.RandomState(3), cv=KFold(7, random_state=np.random.default_rng(1)))
    with pytest.warns(UserWarning, match="random_state") as caught:
        encoder.save(path)
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("cv__random_state=Generator(PCG64) is not saved")
    assert said[1].startswith("random_state=RandomState(MT19937) is not saved")
    assert all("has cv__random_state=0" in text or "has random_state=0" in text for text in said)
    again = load(path)
    assert (again.random_state, again.cv.n_splits, again.cv.random_state) == (0, 7, 0)


class OwnSmoothing(MEstimate):
    pass


class OwnEncoder(TargetEncoder):
    pass


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (TargetEncoder(smooth=OwnSmoothing()).fit(X, Y), "^smooth cannot be saved: it holds OwnSmoothing.. of type"),
        (fitted(categories=[[object()]]), "^categories cannot be saved: it holds <object object> of type object"),
        (fitted(categories=[np.zeros(2, complex)]), "^categories cannot be saved: it holds an array of complex128"),
        (fitted(prior=np.longdouble(1)), "^prior cannot be saved: it holds a NumPy scalar of"),
        (fitted(dtype=int), "^dtype cannot be saved: it holds the type int"),
        (OwnEncoder().fit(X, Y), "^OwnEncoder cannot be saved, only .*, and no subclass. Pickle it instead"),
    ],
    ids=["smoothing", "object", "complex", "longdouble", "type", "encoder"],
)
def test_what_transform_needs_and_no_file_can_hold_is_refused(encoder: Any, message: str, path: Path) -> None:
    with pytest.raises(TypeError, match=message):
        encoder.save(path)
    assert list(path.parent.iterdir()) == []
