"""Every encoder of the family, as law tests take them: how it is made, and what of y it reads."""

from typing import Any

import numpy as np
import pandas as pd

from gpu_encode import (
    GLMM,
    CatBoostEncoder,
    CountEncoder,
    GradientEncoder,
    HashingEncoder,
    ImpactEncoder,
    KFold,
    LeaveOneOut,
    OneHotEncoder,
    OrdinalEncoder,
    StatisticEncoder,
    TargetEncoder,
    WeightOfEvidenceEncoder,
)

N = 90
RNG = np.random.default_rng(7)
ROWS = pd.DataFrame(
    {
        "city": pd.array(RNG.choice([*"abcdef", None], N, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.1]), dtype=object),
        "zip": RNG.integers(0, 12, N) ** 2,
        "price": RNG.normal(size=N).round(2),
    }
)
ROWS.loc[80:, "city"] = "late"
SOLD = (RNG.random(N) < 0.4).astype(np.int64)
AMOUNT = RNG.normal(size=N) * 10.0 ** RNG.integers(-3, 4, N)
KIND = RNG.choice(["x", "y", "z"], N)
GRADIENTS = np.column_stack([AMOUNT.round(3), RNG.random(N)])
WEIGHTS = RNG.integers(0, 4, N)
COLUMNS = ["city", ("zip", "city")]


def member(encoder: Any, y: Any, *given: Any, columns: Any = COLUMNS, **parameters: Any) -> tuple[Any, Any]:
    """Give what makes an encoder, and its target or None."""
    return lambda: encoder(*given, columns=columns, **parameters), y


MEMBERS: dict[str, tuple[Any, Any]] = {
    "count": member(CountEncoder, None),
    "frequency": member(CountEncoder, None, "frequency", indicators=True),
    "log": member(CountEncoder, None, "log", columns=["zip"], min_count=3, dtype="float32"),
    "glmm": member(TargetEncoder, AMOUNT, smooth=GLMM(), cv=KFold(3)),
    "glmm, binary": member(TargetEncoder, SOLD, smooth=GLMM(), cv=KFold(3)),
    "glmm, classes": member(
        TargetEncoder, KIND, columns=["city"], smooth=GLMM(3), cv=KFold(2), target_type="multiclass"
    ),
    "count, rare together": member(
        CountEncoder, None, columns=["zip", "city"], max_categories=4, handle_infrequent="category"
    ),
    "rare together": member(TargetEncoder, AMOUNT, cv=KFold(3), min_frequency=3, handle_infrequent="category"),
    "rare together, glmm": member(
        TargetEncoder,
        AMOUNT,
        columns=["zip", "city"],
        smooth=GLMM(),
        cv=KFold(2),
        max_categories=4,
        handle_infrequent="category",
    ),
    "missing": member(TargetEncoder, SOLD, cv=LeaveOneOut(), indicators=["missing", "unseen"], dtype="float32"),
    "missing, impact": member(
        ImpactEncoder, AMOUNT, cv=KFold(3), indicators=["missing"], target_type="continuous", handle_missing="prior"
    ),
    "log-odds": member(TargetEncoder, SOLD, cv=LeaveOneOut(), scale="logit"),
    "impact": member(ImpactEncoder, AMOUNT, cv=KFold(3), target_type="continuous"),
    "impact, leave-one-out": member(ImpactEncoder, SOLD, ["logit"], columns=["zip"], cv=LeaveOneOut()),
    "ordinal": member(OrdinalEncoder, None),
    "ordinal, frequency": member(
        OrdinalEncoder,
        None,
        columns=["city", "zip"],
        order="frequency",
        min_frequency=3,
        dtype="int32",
        encoded_missing_value=-1,
    ),
    "ordinal, random": member(OrdinalEncoder, None, order="random", n_draws=2, dtype="float32", random_state=3),
    "ordinal, target": member(OrdinalEncoder, AMOUNT, order="target", cv=KFold(3)),
    "ordinal, target, few": member(
        OrdinalEncoder,
        SOLD,
        columns=["city"],
        order="target",
        cv=KFold(3),
        max_categories=4,
        dtype="int64",
        encoded_missing_value=9,
    ),
    "ordinal, target, blow-up": member(
        OrdinalEncoder, SOLD, columns=["zip"], order="target", cv=KFold(2, blow_up=True)
    ),
    "one-hot": member(OneHotEncoder, None, sparse_output=False, handle_unknown="ignore"),
    "one-hot, few": member(
        OneHotEncoder,
        None,
        columns=["zip"],
        sparse_output=False,
        max_categories=4,
        drop="first",
        dtype="float32",
        handle_unknown="infrequent_if_exist",
    ),
    "hashing": member(HashingEncoder, None),
    "hashing, per column": member(
        HashingEncoder, None, 5, per_column=True, alternate_sign=True, handle_missing="zero", dtype="float32"
    ),
    "evidence": member(WeightOfEvidenceEncoder, SOLD, cv=KFold(3)),
    "evidence, leave-one-out": member(WeightOfEvidenceEncoder, SOLD, columns=["zip"], cv=LeaveOneOut(), min_count=2),
    "evidence, classes": member(
        WeightOfEvidenceEncoder, KIND, KFold(2), target_type="multiclass", columns=["city"], indicators=True
    ),
    "evidence, rare": member(
        WeightOfEvidenceEncoder, SOLD, cv=KFold(3), min_frequency=0.05, handle_infrequent="category"
    ),
    "statistics, rare, roots": member(
        StatisticEncoder,
        None,
        ["count", "mean", "std"],
        values=["zip"],
        columns=["city"],
        max_categories=4,
        handle_infrequent="category",
        scale="sqrt",
    ),
    "statistics": member(StatisticEncoder, AMOUNT, ["count", "sum", "mean", "var", "sem"], cv=KFold(3)),
    "statistics, columns": member(StatisticEncoder, None, ["count", "var"], values=["price"]),
    "skewness": member(StatisticEncoder, AMOUNT, ["skew", "sum", "std"], cv=KFold(3)),
    "skewness, leave-one-out": member(StatisticEncoder, AMOUNT, ["skew"], columns=["zip"], cv=LeaveOneOut(), ddof=0),
    "skewness, columns": member(StatisticEncoder, None, ["skew"], values=["price", "zip"], columns=["city"]),
    "gradients": member(GradientEncoder, GRADIENTS, cv=KFold(3)),
    "gradients, leave-one-out": member(GradientEncoder, GRADIENTS, columns=["zip"], cv=LeaveOneOut(), min_count=2),
    "gradients, order": member(GradientEncoder, GRADIENTS, "order", 1.0, KFold(3)),
    "order statistics": member(StatisticEncoder, AMOUNT, ["median", "nunique", "mode"], cv=KFold(3)),
    "order statistics, leave-one-out": member(
        StatisticEncoder, AMOUNT.round(), ["median", "mode", ("share", 0), "sem"], cv=LeaveOneOut()
    ),
    "order statistics, columns": member(StatisticEncoder, None, ["max"], values=["price"], columns=["city"]),
    "catboost": member(CatBoostEncoder, AMOUNT, "borders", borders=[-2.0, 30.0], cv=KFold(3)),
    "catboost, counter, few": member(
        CatBoostEncoder, None, "counter", max_categories=3, handle_infrequent="category", scale="log1p"
    ),
    "catboost, leave-one-out": member(
        CatBoostEncoder, KIND, "buckets", columns=["city"], cv=LeaveOneOut(), target_type="multiclass"
    ),
    "catboost, counter": member(CatBoostEncoder, None, "counter"),
    "glmm, blow-up": member(TargetEncoder, SOLD, columns=["zip"], smooth=GLMM(), cv=KFold(2, blow_up=True)),
}
MERGEABLE = {name: each for name, each in MEMBERS.items() if "blow-up" not in name}


def same(found: Any, expected: Any) -> None:
    """Compare tables bit by bit."""
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
