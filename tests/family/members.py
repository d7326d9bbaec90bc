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
    JamesStein,
    KFold,
    LeaveOneOut,
    OneHotEncoder,
    Ordered,
    OrdinalEncoder,
    StatisticEncoder,
    TargetEncoder,
    TimeFolds,
    WeightOfEvidenceEncoder,
)

N = 90
RNG = np.random.default_rng(7)
ROWS = pd.DataFrame(
    {
        "city": pd.array(RNG.choice([*"abcdef", None], N, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.1]), dtype=object),
        "zip": RNG.integers(0, 12, N) ** 2,
        "price": RNG.normal(size=N).round(2),
        "rank": np.arange(N) % 11,
    }
)
ROWS.loc[::13, "price"] = None
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


TOGETHER = {"handle_infrequent": "category"}
CLASSES = {"target_type": "multiclass"}
QUANTITY = {"target_type": "continuous"}
CITY, ZIP = {"columns": ["city"]}, {"columns": ["zip"]}
BOTH = {"columns": ["zip", "city"]}
DENSE = {"sparse_output": False, "handle_unknown": "infrequent_if_exist"}
FLAGS = {"indicators": ["missing", "unseen"]}
BORDERS = [-2.0, 30.0]
# Whole numbers in the first rows, and therefore in the first pieces.
WHOLE_AT_FIRST = np.where(np.arange(N) < 50, np.trunc(AMOUNT), AMOUNT)
PAIRS = {
    ("zip", "price"): ["mean", ("quantile", 0.5)],
    (("zip", "city"), "price"): ["sum"],
    ("zip", "rank"): ["max", "sum"],
}

MEMBERS: dict[str, tuple[Any, Any]] = {
    "count": member(CountEncoder, None),
    "frequency": member(CountEncoder, None, "frequency", indicators=True),
    "log": member(CountEncoder, None, "log", **ZIP, min_count=3, dtype="float32"),
    "count, rare together": member(CountEncoder, None, **BOTH, **TOGETHER, max_categories=4),
    "glmm": member(TargetEncoder, AMOUNT, smooth=GLMM(), cv=KFold(3)),
    "glmm, binary": member(TargetEncoder, SOLD, smooth=GLMM(), cv=KFold(3)),
    "glmm, classes": member(TargetEncoder, KIND, smooth=GLMM(3), cv=KFold(2), **CITY, **CLASSES),
    "glmm, blow-up": member(TargetEncoder, SOLD, **ZIP, smooth=GLMM(), cv=KFold(2, blow_up=True)),
    "glmm, rare together": member(
        TargetEncoder, AMOUNT, smooth=GLMM(), cv=KFold(2), max_categories=4, **BOTH, **TOGETHER
    ),
    "rare together": member(TargetEncoder, AMOUNT, cv=KFold(3), min_frequency=3, **TOGETHER),
    "missing": member(TargetEncoder, SOLD, cv=LeaveOneOut(), dtype="float32", **FLAGS),
    "missing, ordered": member(TargetEncoder, SOLD, cv=Ordered(2), indicators=["missing"]),
    "missing, impact": member(
        ImpactEncoder, AMOUNT, cv=KFold(3), indicators=["missing"], handle_missing="prior", **QUANTITY
    ),
    "log-odds": member(TargetEncoder, SOLD, cv=LeaveOneOut(), scale="logit"),
    "impact": member(ImpactEncoder, AMOUNT, cv=KFold(3), **QUANTITY),
    "impact, leave-one-out": member(ImpactEncoder, SOLD, ["logit"], **ZIP, cv=LeaveOneOut()),
    "impact, ordered": member(ImpactEncoder, AMOUNT, **CITY, **QUANTITY, cv=Ordered(random_state=3)),
    "impact, James-Stein, ordered": member(
        ImpactEncoder, SOLD, ["impact", "logit"], JamesStein(), **CITY, cv=Ordered(2)
    ),
    "impact, classes, in rows": member(
        ImpactEncoder, KIND, **CITY, target_type="multiclass", cv=Ordered(shuffle=False)
    ),
    "ordinal": member(OrdinalEncoder, None),
    "ordinal, frequency": member(
        OrdinalEncoder, None, **BOTH, order="frequency", min_frequency=3, dtype="int32", encoded_missing_value=-1
    ),
    "ordinal, random": member(OrdinalEncoder, None, order="random", n_draws=2, dtype="float32", random_state=3),
    "ordinal, target": member(OrdinalEncoder, AMOUNT, order="target", cv=KFold(3)),
    "ordinal, target, few": member(
        OrdinalEncoder,
        SOLD,
        "auto",
        "int64",
        order="target",
        cv=KFold(3),
        max_categories=4,
        encoded_missing_value=9,
        **CITY,
    ),
    "ordinal, target, blow-up": member(OrdinalEncoder, SOLD, **ZIP, order="target", cv=KFold(2, blow_up=True)),
    "one-hot": member(OneHotEncoder, None, sparse_output=False, handle_unknown="ignore"),
    "one-hot, few": member(OneHotEncoder, None, **ZIP, **DENSE, max_categories=4, drop="first", dtype="float32"),
    "one-hot, rare": member(OneHotEncoder, None, **BOTH, **DENSE, min_frequency=0.1, drop="if_binary"),
    "one-hot, missing are zeros": member(OneHotEncoder, None, **CITY, **DENSE, handle_missing="zero"),
    "hashing": member(HashingEncoder, None),
    "hashing, per column": member(
        HashingEncoder, None, 5, per_column=True, alternate_sign=True, handle_missing="zero", dtype="float32"
    ),
    "evidence": member(WeightOfEvidenceEncoder, SOLD, cv=KFold(3)),
    "evidence, leave-one-out": member(WeightOfEvidenceEncoder, SOLD, **ZIP, cv=LeaveOneOut(), min_count=2),
    "evidence, classes": member(WeightOfEvidenceEncoder, KIND, KFold(2), **CITY, **CLASSES, indicators=True),
    "evidence, ordered": member(WeightOfEvidenceEncoder, SOLD, Ordered(), **CITY),
    "evidence, rare": member(WeightOfEvidenceEncoder, SOLD, KFold(3), min_frequency=0.05, **TOGETHER),
    "statistics": member(StatisticEncoder, AMOUNT, ["count", "sum", "mean", "var", "sem"], cv=KFold(3)),
    "statistics, columns": member(StatisticEncoder, None, ["count", "var"], values=["price"]),
    "statistics, columns, time folds": member(
        StatisticEncoder,
        None,
        ["mean", "median"],
        values=["price", "rank"],
        cv=TimeFolds(3, time="zip"),
        **CITY,
        **FLAGS,
    ),
    "statistics, rare, roots": member(
        StatisticEncoder,
        None,
        ["count", "mean", "std"],
        values=["zip"],
        max_categories=4,
        scale="sqrt",
        **CITY,
        **TOGETHER,
    ),
    "statistics, missing, ordered": member(StatisticEncoder, AMOUNT, cv=Ordered(2), **CITY, **FLAGS),
    "statistics, in time": member(
        StatisticEncoder, AMOUNT, ["count", "std"], cv=Ordered(time="zip"), scale="log1p", **CITY
    ),
    "pairs": member(StatisticEncoder, None, PAIRS, columns=None, indicators=True),
    "pairs, leave-one-out": member(StatisticEncoder, None, PAIRS, columns=None, cv=LeaveOneOut(), indicators=True),
    "skewness": member(StatisticEncoder, AMOUNT, ["skew", "sum", "std"], cv=KFold(3)),
    "skewness, leave-one-out": member(StatisticEncoder, AMOUNT, ["skew"], **ZIP, cv=LeaveOneOut(), ddof=0),
    "skewness, columns": member(StatisticEncoder, None, ["skew"], values=["price", "zip"], **CITY),
    "order statistics": member(StatisticEncoder, AMOUNT, ["median", "nunique", "mode"], cv=KFold(3)),
    "order statistics, leave-one-out": member(
        StatisticEncoder, AMOUNT.round(), ["median", "mode", ("share", 0), "sem"], cv=LeaveOneOut()
    ),
    "order statistics, columns": member(StatisticEncoder, None, ["max"], values=["price"], **CITY),
    "gradients": member(GradientEncoder, GRADIENTS, cv=KFold(3)),
    "gradients, leave-one-out": member(GradientEncoder, GRADIENTS, **ZIP, cv=LeaveOneOut(), min_count=2),
    "gradients, in time": member(GradientEncoder, GRADIENTS, regularization=0.5, cv=Ordered(time="zip"), **CITY),
    "gradients, places": member(GradientEncoder, GRADIENTS, "order", 1.0, KFold(3)),
    "catboost": member(CatBoostEncoder, AMOUNT, "borders", borders=BORDERS, cv=KFold(3)),
    "catboost, leave-one-out": member(CatBoostEncoder, KIND, "buckets", **CITY, **CLASSES, cv=LeaveOneOut()),
    "catboost, stratified": member(
        CatBoostEncoder, WHOLE_AT_FIRST, "buckets", borders=BORDERS, cv=KFold(3, stratify=True)
    ),
    "catboost, ordered": member(CatBoostEncoder, WHOLE_AT_FIRST, borders=BORDERS, cv=Ordered(), **CITY),
    "catboost, frequency": member(CatBoostEncoder, None, "frequency", weight=0.0, cv=KFold(2)),
    "catboost, counter": member(CatBoostEncoder, None, "counter"),
    "catboost, counter, rare": member(CatBoostEncoder, None, "counter", max_categories=3, scale="log1p", **TOGETHER),
}
MERGEABLE = {name: entry for name, entry in MEMBERS.items() if "blow-up" not in name}


def same(table: Any, expected: Any) -> None:
    """Compare tables bit by bit."""
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
