"""A NaN among encodings has the bits of `np.nan`, whatever bits the processor's arithmetic gives."""

import os
from importlib import import_module

import numpy as np
import pytest

from gpu_encode import (
    GradientEncoder,
    KFold,
    LeaveOneOut,
    MergeableStatistic,
    MEstimate,
    Ordered,
    StatisticEncoder,
    TargetEncoder,
    TimeFolds,
    WeightOfEvidenceEncoder,
)
from tests.family.drawn import quietly

N = 40
ROWS = np.arange(N)
X = np.column_stack([ROWS * 7 % 5, np.where(ROWS % 7 == 3, -1, ROWS * 11 % 13), ROWS // 8]).astype(np.float64)
X[ROWS % 6 == 1, 1] = np.nan
QUANTITY, LABELS = np.sin(ROWS) + 2.0, ROWS * 5 % 3 // 2
GRADIENTS = np.column_stack([0.3 - LABELS, np.full(N, 0.21)])
# Both give what is no number, as 0 / 0 and as a root of a number below 0.
OWN = MergeableStatistic("own", [np.ones_like], lambda n, ones: (ones - n) / (n - n))


def root(n, mean, variance):
    """A user's own statistic."""
    return np.sqrt(-n - mean)


SUMS = ["mean", "var", "std", "sem", "skew", "kurt", OWN, root]
TIME = TimeFolds(4, time=2)
ALL = {"columns": [0, 1], "indicators": True}
# Encoders with rows that see no rows, or too few.
ENCODERS = {
    "folds": (TargetEncoder, QUANTITY, {"cv": TIME, **ALL}),
    "number": (TargetEncoder, QUANTITY, {"cv": TIME, "smooth": 2.5, **ALL}),
    "m-estimate": (TargetEncoder, QUANTITY, {"cv": TIME, "smooth": MEstimate(3.0), **ALL}),
    "scale": (TargetEncoder, QUANTITY, {"cv": TIME, "scale": "log1p", "handle_missing": "nan", **ALL}),
    "classes": (TargetEncoder, ROWS % 3, {"cv": TIME, "target_type": "multiclass", **ALL}),
    "hierarchy": (TargetEncoder, QUANTITY, {"cv": TIME, "columns": [1], "hierarchy": {1: [0]}}),
    "blow-up": (TargetEncoder, QUANTITY, {"cv": KFold(3, blow_up=True), "handle_unknown": "nan", **ALL}),
    "ordered": (TargetEncoder, QUANTITY, {"cv": Ordered(2, burn_in=5), "smooth": 1.0, **ALL}),
    "ordered, time": (TargetEncoder, QUANTITY, {"cv": Ordered(time=2), **ALL}),
    "leave-one-out": (TargetEncoder, QUANTITY, {"cv": LeaveOneOut(), "handle_unknown": "nan", **ALL}),
    "statistics": (StatisticEncoder, QUANTITY, {"statistics": SUMS, "cv": TIME, **ALL}),
    "statistics ordered": (StatisticEncoder, QUANTITY, {"statistics": SUMS, "cv": Ordered(), "columns": [0, 1]}),
    "scaled": (StatisticEncoder, QUANTITY, {"statistics": ["std", "sem"], "scale": "sqrt", "cv": LeaveOneOut()}),
    "orders": (StatisticEncoder, QUANTITY, {"statistics": ["median", ("share", 0.5)], "cv": TIME, "columns": [0, 1]}),
    "evidence": (WeightOfEvidenceEncoder, LABELS, {"cv": TIME, "handle_unknown": "nan", **ALL}),
    "gradient": (GradientEncoder, GRADIENTS, {"cv": TIME, "columns": [0, 1]}),
}


@pytest.fixture(autouse=True)
def _foreign_nan(monkeypatch):
    """Make arithmetic on the stand-in's arrays give NaN other bits, as a GPU does."""
    if os.environ.get("GPU_ENCODE_SIMULATED_ARRAYS") == "tests.cuda.stand_in":
        monkeypatch.setattr(import_module("tests.cuda.strict").StrictArray, "foreign_nan", True)


def words_of_nan(encodings):
    """Return the distinct bit patterns of NaN among encodings."""
    values = np.ascontiguousarray(encodings)
    return np.unique(values.view(f"u{values.itemsize}")[np.isnan(values)]).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_nan_has_the_bits_of_the_one_nan(name, dtype):
    make, y, parameters = ENCODERS[name]
    encoder, given = make(dtype=dtype, **parameters), X.astype(dtype)
    training = quietly(encoder.fit_transform, given, y)
    words = {*words_of_nan(training), *words_of_nan(quietly(encoder.transform, given * 2))}
    assert words == {int(np.array(np.nan, dtype).view(f"u{np.dtype(dtype).itemsize}"))}
