"""The guide's lines about category_encoders: the encodings of new rows, with categories of one row."""

import category_encoders
import numpy as np
import pandas as pd
import pytest

from gpu_encode import (
    CountEncoder,
    JamesStein,
    LeaveOneOut,
    Ordered,
    Sigmoid,
    StatisticEncoder,
    TargetEncoder,
    WeightOfEvidenceEncoder,
)

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")]

RANDOM = np.random.default_rng(0)
X = pd.DataFrame({"shop": (RANDOM.zipf(1.5, 600) % 90).astype(str)})
NEW = pd.DataFrame({"shop": [*X["shop"].unique(), "never seen"]})
Y = {"binary": pd.Series(RANDOM.integers(0, 2, 600)), "continuous": pd.Series(RANDOM.normal(size=600) + 5)}
BOTH, REAL = ("binary", "continuous"), ("continuous",)
# Their encoder, ours, and the targets; min_count stands where they treat a category of one row as unknown.
EQUAL = {
    "target": (("TargetEncoder", {"min_samples_leaf": 5, "smoothing": 3}), {"smooth": Sigmoid(5, 3)}, BOTH),
    "m-estimate": (("MEstimateEncoder", {"m": 3}), {"smooth": 3}, BOTH),
    "catboost": (("CatBoostEncoder", {"a": 1}), {"smooth": 1, "cv": Ordered(shuffle=False), "min_count": 2}, BOTH),
    "leave-one-out": (("LeaveOneOutEncoder", {}), {"smooth": None, "cv": LeaveOneOut(), "min_count": 2}, BOTH),
    "james-stein": (("JamesSteinEncoder", {"model": "independent"}), {"smooth": JamesStein("independent")}, REAL),
    "james-stein pooled": (("JamesSteinEncoder", {"model": "pooled"}), {"smooth": JamesStein("pooled")}, REAL),
}
CASES = [(name, kind) for name, (*_, kinds) in EQUAL.items() for kind in kinds]


def theirs_of(name, parameters, kind):
    encoder = getattr(category_encoders, name)(cols=["shop"], **parameters).fit(X, Y[kind])
    return encoder.transform(NEW).to_numpy(float)


def test_some_categories_have_one_row() -> None:
    assert (X["shop"].value_counts() == 1).sum() > 10


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_new_rows_of_target_encoders(name, kind) -> None:
    theirs, parameters, _ = EQUAL[name]
    ours = TargetEncoder(target_type=kind, **parameters).fit(X, Y[kind]).transform(NEW)
    np.testing.assert_allclose(ours.to_numpy(), theirs_of(*theirs, kind), rtol=1e-12)


def test_new_rows_of_the_weight_of_evidence() -> None:
    ours = WeightOfEvidenceEncoder(regularization=2.0, min_count=2).fit(X, Y["binary"]).transform(NEW)
    np.testing.assert_allclose(ours, theirs_of("WOEEncoder", {"regularization": 2.0}, "binary"), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("statistic", "q"), [("median", 0.5), (("quantile", 0.25), 0.25), (("quantile", 0.9), 0.9)])
def test_new_rows_of_quantiles(statistic, q) -> None:
    ours = StatisticEncoder([statistic]).fit(X, Y["continuous"]).transform(NEW)
    theirs = theirs_of("QuantileEncoder", {"quantile": q, "m": 0}, "continuous")
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(("kind", "normalize"), [("count", False), ("frequency", True)])
def test_new_rows_of_counts(kind, normalize) -> None:
    ours = CountEncoder(kind).fit(X).transform(NEW)
    theirs = theirs_of("CountEncoder", {"normalize": normalize}, "continuous")
    assert ours.to_numpy().ravel().tolist() == theirs.ravel().tolist()
