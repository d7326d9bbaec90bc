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

# Without a target: name -> parameters.
MEMBERS: dict[str, tuple[Any, Any]] = {
    "count": (lambda: CountEncoder(columns=COLUMNS), None),
    "frequency": (lambda: CountEncoder("frequency", columns=COLUMNS, indicators=True), None),
    "log": (lambda: CountEncoder("log", columns=["zip"], min_count=3, dtype="float32"), None),
    "glmm": (lambda: TargetEncoder(columns=COLUMNS, smooth=GLMM(), cv=KFold(3)), AMOUNT),
    "glmm, binary": (lambda: TargetEncoder(columns=COLUMNS, smooth=GLMM(), cv=KFold(3)), SOLD),
    "glmm, classes": (
        lambda: TargetEncoder(columns=["city"], smooth=GLMM(3), cv=KFold(2), target_type="multiclass"),
        KIND,
    ),
    "count, rare together": (
        lambda: CountEncoder(columns=["zip", "city"], max_categories=4, handle_infrequent="category"),
        None,
    ),
    "rare together": (
        lambda: TargetEncoder(columns=COLUMNS, cv=KFold(3), min_frequency=3, handle_infrequent="category"),
        AMOUNT,
    ),
    "rare together, glmm": (
        lambda: TargetEncoder(
            columns=["zip", "city"], smooth=GLMM(), cv=KFold(2), max_categories=4, handle_infrequent="category"
        ),
        AMOUNT,
    ),
    "missing": (
        lambda: TargetEncoder(columns=COLUMNS, cv=LeaveOneOut(), indicators=["missing", "unseen"], dtype="float32"),
        SOLD,
    ),
    "missing, impact": (
        lambda: ImpactEncoder(
            columns=COLUMNS, cv=KFold(3), indicators=["missing"], target_type="continuous", handle_missing="prior"
        ),
        AMOUNT,
    ),
    "log-odds": (lambda: TargetEncoder(columns=COLUMNS, cv=LeaveOneOut(), scale="logit"), SOLD),
    "impact": (lambda: ImpactEncoder(columns=COLUMNS, cv=KFold(3), target_type="continuous"), AMOUNT),
    "impact, leave-one-out": (lambda: ImpactEncoder(["logit"], columns=["zip"], cv=LeaveOneOut()), SOLD),
    "ordinal": (lambda: OrdinalEncoder(columns=COLUMNS), None),
    "ordinal, frequency": (
        lambda: OrdinalEncoder(
            columns=["city", "zip"], order="frequency", min_frequency=3, dtype="int32", encoded_missing_value=-1
        ),
        None,
    ),
    "ordinal, random": (
        lambda: OrdinalEncoder(columns=COLUMNS, order="random", n_draws=2, dtype="float32", random_state=3),
        None,
    ),
    "ordinal, target": (lambda: OrdinalEncoder(columns=COLUMNS, order="target", cv=KFold(3)), AMOUNT),
    "ordinal, target, few": (
        lambda: OrdinalEncoder(
            columns=["city"], order="target", cv=KFold(3), max_categories=4, dtype="int64", encoded_missing_value=9
        ),
        SOLD,
    ),
    "ordinal, target, blow-up": (
        lambda: OrdinalEncoder(columns=["zip"], order="target", cv=KFold(2, blow_up=True)),
        SOLD,
    ),
    "one-hot": (lambda: OneHotEncoder(columns=COLUMNS, sparse_output=False, handle_unknown="ignore"), None),
    "one-hot, few": (
        lambda: OneHotEncoder(
            columns=["zip"],
            sparse_output=False,
            max_categories=4,
            drop="first",
            dtype="float32",
            handle_unknown="infrequent_if_exist",
        ),
        None,
    ),
    "hashing": (lambda: HashingEncoder(columns=COLUMNS), None),
    "hashing, per column": (
        lambda: HashingEncoder(
            5, columns=COLUMNS, per_column=True, alternate_sign=True, handle_missing="zero", dtype="float32"
        ),
        None,
    ),
    "evidence": (lambda: WeightOfEvidenceEncoder(columns=COLUMNS, cv=KFold(3)), SOLD),
    "evidence, leave-one-out": (lambda: WeightOfEvidenceEncoder(columns=["zip"], cv=LeaveOneOut(), min_count=2), SOLD),
    "evidence, classes": (
        lambda: WeightOfEvidenceEncoder(KFold(2), target_type="multiclass", columns=["city"], indicators=True),
        KIND,
    ),
    "evidence, rare": (
        lambda: WeightOfEvidenceEncoder(columns=COLUMNS, cv=KFold(3), min_frequency=0.05, handle_infrequent="category"),
        SOLD,
    ),
    "statistics, rare, roots": (
        lambda: StatisticEncoder(
            ["count", "mean", "std"],
            values=["zip"],
            columns=["city"],
            max_categories=4,
            handle_infrequent="category",
            scale="sqrt",
        ),
        None,
    ),
    "statistics": (
        lambda: StatisticEncoder(["count", "sum", "mean", "var", "sem"], columns=COLUMNS, cv=KFold(3)),
        AMOUNT,
    ),
    "statistics, columns": (lambda: StatisticEncoder(["count", "var"], values=["price"], columns=COLUMNS), None),
    "skewness": (lambda: StatisticEncoder(["skew", "sum", "std"], columns=COLUMNS, cv=KFold(3)), AMOUNT),
    "skewness, leave-one-out": (lambda: StatisticEncoder(["skew"], columns=["zip"], cv=LeaveOneOut(), ddof=0), AMOUNT),
    "skewness, columns": (lambda: StatisticEncoder(["skew"], values=["price", "zip"], columns=["city"]), None),
    "gradients": (lambda: GradientEncoder(columns=COLUMNS, cv=KFold(3)), GRADIENTS),
    "gradients, leave-one-out": (lambda: GradientEncoder(columns=["zip"], cv=LeaveOneOut(), min_count=2), GRADIENTS),
    "gradients, order": (lambda: GradientEncoder("order", 1.0, KFold(3), columns=COLUMNS), GRADIENTS),
    "order statistics": (lambda: StatisticEncoder(["median", "nunique", "mode"], cv=KFold(3), columns=COLUMNS), AMOUNT),
    "order statistics, leave-one-out": (
        lambda: StatisticEncoder(["median", "mode", ("share", 0), "sem"], cv=LeaveOneOut(), columns=COLUMNS),
        AMOUNT.round(),
    ),
    "order statistics, columns": (lambda: StatisticEncoder(["max"], values=["price"], columns=["city"]), None),
    "catboost": (lambda: CatBoostEncoder("borders", borders=[-2.0, 30.0], columns=COLUMNS, cv=KFold(3)), AMOUNT),
    "catboost, counter, few": (
        lambda: CatBoostEncoder(
            "counter", columns=COLUMNS, max_categories=3, handle_infrequent="category", scale="log1p"
        ),
        None,
    ),
    "catboost, leave-one-out": (
        lambda: CatBoostEncoder("buckets", columns=["city"], cv=LeaveOneOut(), target_type="multiclass"),
        KIND,
    ),
    "catboost, counter": (lambda: CatBoostEncoder("counter", columns=COLUMNS), None),
    "glmm, blow-up": (lambda: TargetEncoder(columns=["zip"], smooth=GLMM(), cv=KFold(2, blow_up=True)), SOLD),
}
MERGEABLE = {name: each for name, each in MEMBERS.items() if "blow-up" not in name}


def same(found: Any, expected: Any) -> None:
    """Compare tables bit by bit."""
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
