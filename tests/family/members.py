"""Every encoder of the family for tests of laws: how it is made, and how it uses y."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge

N = 90
RNG = np.random.default_rng(7)
ROWS = pd.DataFrame(
    {
        "city": pd.array(RNG.choice([*"abcdef", None], N, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.1]), dtype=object),
        "zip": RNG.integers(0, 12, N) ** 2,
        "price": RNG.normal(size=N).round(2),
        "rank": np.arange(N) % 11,
        "held": np.arange(N) % 5 < 2,
    }
)
ROWS.loc[::13, "price"] = None
ROWS.loc[80:, "city"] = "late"
SOLD = (RNG.random(N) < 0.4).astype(np.int64)
AMOUNT = RNG.normal(size=N) * 10.0 ** RNG.integers(-3, 4, N)
KIND = RNG.choice(["x", "y", "z"], N)
GRADIENTS = np.column_stack([AMOUNT.round(3), RNG.random(N)])
WEIGHTS = RNG.integers(0, 4, N)
JOINT = ("zip", "city")
COLUMNS = ["city", JOINT]


def member(encoder: Any, y: Any, *given: Any, columns: Any = COLUMNS, **parameters: Any) -> tuple[Any, Any]:
    """Return a function that makes an encoder, and its target or None."""
    return lambda: encoder(*given, columns=columns, **parameters), y


TOGETHER = {"handle_infrequent": "category"}
CLASSES = {"target_type": "multiclass"}
QUANTITY = {"target_type": "continuous"}
CITY, ZIP = {"columns": ["city"]}, {"columns": ["zip"]}
BOTH = {"columns": ["zip", "city"]}
DENSE = {"sparse_output": False, "handle_unknown": "infrequent_if_exist"}
FLAGS = {"indicators": ["missing", "unseen"]}
BORDERS = [-2.0, 30.0]
GROUPS, OTHER_GROUPS = ge.GroupKFold(3, groups="rank"), ge.GroupKFold(2, groups="held")
# Whole numbers in the first rows, and therefore in the first pieces.
WHOLE_AT_FIRST = np.where(np.arange(N) < 50, np.trunc(AMOUNT), AMOUNT)
# Rows without a target: a whole category, the last rows but one, and others; no piece loses all its rows.
LACKING = (np.arange(N) % 7 == 1) | ((ROWS["city"] == "f").to_numpy() & (np.arange(N) != 30)) | (np.arange(N) > 80)
KEPT = {"missing_target": "keep"}


def with_holes(y: Any) -> Any:
    """Return a target without values in the rows that lack one."""
    lacking = LACKING if y.ndim == 1 else np.column_stack([LACKING, np.arange(N) % 5 == 1])
    return np.where(lacking, None if y.dtype.kind == "U" else np.nan, y)


PAIRS = {
    "zip": {"price": ["mean", ("quantile", 0.5)], "rank": ["max", "sum"]},
    ("zip", "city"): {"price": ["sum"]},
}

MEMBERS: dict[str, tuple[Any, Any]] = {
    "count": member(ge.CountEncoder, None),
    "frequency": member(ge.CountEncoder, None, "frequency", indicators=True),
    "log": member(ge.CountEncoder, None, "log", **ZIP, min_count=3, dtype="float32"),
    "count, rare together": member(ge.CountEncoder, None, **BOTH, **TOGETHER, max_categories=4),
    "classes, window": member(
        ge.TargetEncoder,
        KIND,
        smooth="auto",
        cv=ge.Ordered(time="zip", window=30),
        min_count=2,
        **CITY,
        **CLASSES,
        **FLAGS,
    ),
    "glmm": member(ge.TargetEncoder, AMOUNT, smooth=ge.GLMM(), cv=ge.KFold(3)),
    "glmm, binary": member(ge.TargetEncoder, SOLD, smooth=ge.GLMM(), cv=ge.KFold(3)),
    "glmm, classes": member(ge.TargetEncoder, KIND, smooth=ge.GLMM(3), cv=ge.KFold(2), **CITY, **CLASSES),
    "glmm, blow-up": member(ge.TargetEncoder, SOLD, **ZIP, smooth=ge.GLMM(), cv=ge.KFold(2, blow_up=True)),
    "glmm, rare together": member(
        ge.TargetEncoder, AMOUNT, smooth=ge.GLMM(), cv=ge.KFold(2), max_categories=4, **BOTH, **TOGETHER
    ),
    "rare together": member(ge.TargetEncoder, AMOUNT, cv=ge.KFold(3), min_frequency=3, **TOGETHER),
    "missing": member(ge.TargetEncoder, SOLD, cv=ge.LeaveOneOut(), dtype="float32", **FLAGS),
    "missing, ordered": member(ge.TargetEncoder, SOLD, cv=ge.Ordered(2), indicators=["missing"]),
    "missing, impact": member(
        ge.ImpactEncoder, AMOUNT, cv=ge.KFold(3), indicators=["missing"], handle_missing="prior", **QUANTITY
    ),
    "held out by a mask": member(
        ge.TargetEncoder, AMOUNT, cv=ge.Holdout(mask="held", new_rows="all", calibration_rows="nan"), **QUANTITY
    ),
    "statistics, calibration by a mask": member(
        ge.StatisticEncoder, AMOUNT, ["mean", "max"], cv=ge.Holdout(mask="held"), indicators=True, **ZIP
    ),
    "log-odds": member(ge.TargetEncoder, SOLD, cv=ge.LeaveOneOut(), scale="logit"),
    "impact": member(ge.ImpactEncoder, AMOUNT, cv=ge.KFold(3), **QUANTITY),
    "impact, leave-one-out": member(ge.ImpactEncoder, SOLD, ["logit"], **ZIP, cv=ge.LeaveOneOut()),
    "deviation, leave-one-out": member(
        ge.ImpactEncoder, AMOUNT, ["deviation"], 2.0, **ZIP, cv=ge.LeaveOneOut(), **QUANTITY
    ),
    "impact, ordered": member(ge.ImpactEncoder, AMOUNT, **CITY, **QUANTITY, cv=ge.Ordered(random_state=3)),
    "impact, James-Stein, ordered": member(
        ge.ImpactEncoder, SOLD, ["impact", "logit"], ge.JamesStein(), **CITY, cv=ge.Ordered(2)
    ),
    "impact, classes, in rows": member(
        ge.ImpactEncoder, KIND, **CITY, target_type="multiclass", cv=ge.Ordered(shuffle=False)
    ),
    "by column": member(ge.TargetEncoder, AMOUNT, smooth={"city": 3.0}, prior={JOINT: "category_mean"}, cv=ge.KFold(3)),
    "by column, glmm": member(ge.TargetEncoder, SOLD, smooth={JOINT: ge.GLMM(), 0: None}, cv=ge.KFold(3)),
    "by column, leave-one-out": member(
        ge.TargetEncoder, AMOUNT, smooth={"city": ge.JamesStein(), JOINT: 2.0}, prior={"city": 0.5}, cv=ge.LeaveOneOut()
    ),
    "schemes by column": member(
        ge.TargetEncoder, AMOUNT, cv={"city": ge.LeaveOneOut(), JOINT: ge.Holdout(mask="held", new_rows="all")}, **FLAGS
    ),
    "by column, ordered": member(ge.TargetEncoder, SOLD, smooth={JOINT: None}, prior={"city": 0.5}, cv=ge.Ordered(2)),
    "impact, by column": member(ge.ImpactEncoder, AMOUNT, smooth={"city": 3.0, JOINT: "auto"}, cv=ge.KFold(3)),
    "evidence, by column": member(
        ge.WeightOfEvidenceEncoder, SOLD, {"city": ge.KFold(3, order="interleaved"), JOINT: 2}, {JOINT: 0.25}
    ),
    "catboost, by column": member(
        ge.CatBoostEncoder, AMOUNT, weight={"city": 5.0}, cv={"city": GROUPS, JOINT: OTHER_GROUPS}, **QUANTITY
    ),
    "ordinal": member(ge.OrdinalEncoder, None),
    "ordinal, frequency": member(
        ge.OrdinalEncoder, None, **BOTH, order="frequency", min_frequency=3, dtype="int32", encoded_missing_value=-1
    ),
    "ordinal, random": member(ge.OrdinalEncoder, None, order="random", n_draws=2, dtype="float32", random_state=3),
    "ordinal, target": member(ge.OrdinalEncoder, AMOUNT, order="target", cv=ge.KFold(3)),
    "ordinal, target, few": member(
        ge.OrdinalEncoder,
        SOLD,
        "auto",
        "int64",
        order="target",
        cv=ge.KFold(3),
        max_categories=4,
        encoded_missing_value=9,
        **CITY,
    ),
    "ordinal, target, blow-up": member(ge.OrdinalEncoder, SOLD, **ZIP, order="target", cv=ge.KFold(2, blow_up=True)),
    "one-hot": member(ge.OneHotEncoder, None, sparse_output=False, handle_unknown="ignore"),
    "one-hot, few": member(ge.OneHotEncoder, None, **ZIP, **DENSE, max_categories=4, drop="first", dtype="float32"),
    "one-hot, rare": member(ge.OneHotEncoder, None, **BOTH, **DENSE, min_frequency=0.1, drop="if_binary"),
    "one-hot, dropped by column": member(
        ge.OneHotEncoder, None, **DENSE, columns=["zip", "city", JOINT], drop={"zip": 0, JOINT: (1, None)}
    ),
    "one-hot, missing are zeros": member(ge.OneHotEncoder, None, **CITY, **DENSE, handle_missing="zero"),
    "class dropped": member(ge.TargetEncoder, KIND, drop="y", cv=ge.KFold(3), indicators=True, **CITY, **CLASSES),
    "class dropped, blow-up": member(
        ge.TargetEncoder, KIND, drop="z", cv=ge.KFold(2, blow_up=True), **BOTH, **CLASSES, dtype="float32"
    ),
    "class dropped, orders": member(
        ge.TargetEncoder, KIND, drop="x", cv=ge.Ordered(2, average=False), **CITY, **CLASSES
    ),
    "hashing": member(ge.HashingEncoder, None),
    "hashing, per column": member(
        ge.HashingEncoder, None, 5, per_column=True, alternate_sign=True, handle_missing="zero", dtype="float32"
    ),
    "evidence": member(ge.WeightOfEvidenceEncoder, SOLD, cv=ge.KFold(3)),
    "evidence, leave-one-out": member(ge.WeightOfEvidenceEncoder, SOLD, **ZIP, cv=ge.LeaveOneOut(), min_count=2),
    "evidence, classes": member(ge.WeightOfEvidenceEncoder, KIND, ge.KFold(2), **CITY, **CLASSES, indicators=True),
    "evidence, ordered": member(ge.WeightOfEvidenceEncoder, SOLD, ge.Ordered(), **CITY),
    "evidence, rare": member(ge.WeightOfEvidenceEncoder, SOLD, ge.KFold(3), min_frequency=0.05, **TOGETHER),
    "statistics": member(ge.StatisticEncoder, AMOUNT, ["count", "sum", "mean", "var", "sem"], cv=ge.KFold(3)),
    "statistics, undefined by the prior": member(
        ge.StatisticEncoder, AMOUNT, ["var", "skew"], cv=ge.KFold(3), undefined="prior"
    ),
    "statistics, undefined by a number": member(ge.StatisticEncoder, AMOUNT, ["sem", "max"], undefined=-1.5),
    "statistics, columns": member(ge.StatisticEncoder, None, ["count", "var"], values=["price"]),
    "statistics, columns, time folds": member(
        ge.StatisticEncoder,
        None,
        ["mean", "median"],
        values=["price", "rank"],
        cv=ge.TimeFolds(3, time="zip"),
        **CITY,
        **FLAGS,
    ),
    "statistics, rare, roots": member(
        ge.StatisticEncoder,
        None,
        ["count", "mean", "std"],
        values=["zip"],
        max_categories=4,
        scale="sqrt",
        **CITY,
        **TOGETHER,
    ),
    "statistics, missing, ordered": member(ge.StatisticEncoder, AMOUNT, cv=ge.Ordered(2), **CITY, **FLAGS),
    "statistics, in time": member(
        ge.StatisticEncoder, AMOUNT, ["count", "std"], cv=ge.Ordered(time="zip"), scale="log1p", **CITY
    ),
    "statistics, in time, halving": member(
        ge.StatisticEncoder, AMOUNT, ["count", "skew"], cv=ge.Ordered(time="zip", half_life=0.7), **CITY
    ),
    "pairs": member(ge.StatisticEncoder, None, PAIRS, columns=None, indicators=True),
    "pairs, leave-one-out": member(
        ge.StatisticEncoder, None, PAIRS, columns=None, cv=ge.LeaveOneOut(), indicators=True
    ),
    "skewness": member(ge.StatisticEncoder, AMOUNT, ["skew", "sum", "std"], cv=ge.KFold(3)),
    "skewness, leave-one-out": member(ge.StatisticEncoder, AMOUNT, ["skew"], **ZIP, cv=ge.LeaveOneOut(), ddof=0),
    "skewness, columns": member(ge.StatisticEncoder, None, ["skew"], values=["price", "zip"], **CITY),
    "kurtosis": member(ge.StatisticEncoder, AMOUNT, ["kurt", "skew", "mean"], cv=ge.KFold(3)),
    "kurtosis, leave-one-out": member(ge.StatisticEncoder, AMOUNT, ["kurt"], **ZIP, cv=ge.LeaveOneOut(), ddof=0),
    "kurtosis, in time": member(ge.StatisticEncoder, AMOUNT, ["kurt", "count"], cv=ge.Ordered(time="zip"), **CITY),
    "order statistics": member(ge.StatisticEncoder, AMOUNT, ["median", "nunique", "mode"], cv=ge.KFold(3)),
    "order statistics, leave-one-out": member(
        ge.StatisticEncoder, AMOUNT.round(), ["median", "mode", ("share", 0), "sem"], cv=ge.LeaveOneOut()
    ),
    "order statistics, columns": member(ge.StatisticEncoder, None, ["max"], values=["price"], **CITY),
    "order statistics, text": member(ge.StatisticEncoder, None, ["nunique", "mode"], values=["city"], **ZIP),
    "order statistics, text, leave-one-out": member(
        ge.StatisticEncoder, None, ["mode", "count"], values=["city"], **ZIP, cv=ge.LeaveOneOut(), indicators=True
    ),
    "gradients": member(ge.GradientEncoder, GRADIENTS, cv=ge.KFold(3)),
    "gradients, leave-one-out": member(ge.GradientEncoder, GRADIENTS, **ZIP, cv=ge.LeaveOneOut(), min_count=2),
    "gradients, in time": member(ge.GradientEncoder, GRADIENTS, regularization=0.5, cv=ge.Ordered(time="zip"), **CITY),
    "gradients, places": member(ge.GradientEncoder, GRADIENTS, "order", 1.0, ge.KFold(3)),
    "catboost": member(ge.CatBoostEncoder, AMOUNT, "borders", borders=BORDERS, cv=ge.KFold(3)),
    "catboost, leave-one-out": member(ge.CatBoostEncoder, KIND, "buckets", **CITY, **CLASSES, cv=ge.LeaveOneOut()),
    "catboost, stratified": member(
        ge.CatBoostEncoder, WHOLE_AT_FIRST, "buckets", borders=BORDERS, cv=ge.KFold(3, stratify=True)
    ),
    "catboost, ordered": member(ge.CatBoostEncoder, WHOLE_AT_FIRST, borders=BORDERS, cv=ge.Ordered(), **CITY),
    "catboost, frequency": member(ge.CatBoostEncoder, None, "frequency", weight=0.0, cv=ge.KFold(2)),
    "catboost, counter": member(ge.CatBoostEncoder, None, "counter"),
    "catboost, counter, rare": member(ge.CatBoostEncoder, None, "counter", max_categories=3, scale="log1p", **TOGETHER),
    "targets missing": member(ge.TargetEncoder, with_holes(AMOUNT), cv=ge.KFold(3), **KEPT),
    "targets missing, leave-one-out": member(ge.TargetEncoder, with_holes(SOLD), cv=ge.LeaveOneOut(), **KEPT, **FLAGS),
    "targets missing, ordered": member(ge.TargetEncoder, with_holes(AMOUNT), cv=ge.Ordered(2), **CITY, **KEPT),
    "targets missing, stratified": member(
        ge.WeightOfEvidenceEncoder, with_holes(KIND), ge.KFold(3, stratify=True), **CITY, **CLASSES, **KEPT
    ),
    "ordinal, target, targets missing": member(
        ge.OrdinalEncoder, with_holes(AMOUNT), order="target", cv=ge.KFold(3), **KEPT
    ),
    "targets missing, two": member(
        ge.GradientEncoder, with_holes(GRADIENTS), **CITY, cv=ge.Ordered(time="zip"), **KEPT
    ),
    "targets missing, borders": member(
        ge.CatBoostEncoder, with_holes(AMOUNT), borders=BORDERS, cv=ge.Ordered(), **CITY, **KEPT
    ),
    "targets missing, order statistics": member(
        ge.StatisticEncoder, with_holes(AMOUNT), ["median", "mean"], cv=ge.KFold(3), **CITY, **KEPT
    ),
    "clusters": member(ge.ClusterEncoder, AMOUNT, 3, cv=ge.KFold(3), **QUANTITY),
    "clusters, classes, ones": member(
        ge.ClusterEncoder,
        KIND,
        3,
        "statistics",
        statistics=["mean"],
        **BOTH,
        **CLASSES,
        cv=ge.KFold(2),
        output="onehot",
    ),
    "clusters, profiles": member(
        ge.ClusterEncoder, None, 3, "cooccurrence", against=("city", "rank"), **ZIP, output="onehot"
    ),
    "clusters, values": member(ge.ClusterEncoder, None, 3, "statistics", values=["price"], **BOTH),
    "spectra": member(ge.SpectralEncoder, None, 2, indicators=True),
    "spectra, weighted": member(ge.SpectralEncoder, None, 2, weighting="eta", dtype="float32", **CITY),
    "neighbours": member(ge.CooccurrenceEncoder, None, 2, scale="root", columns=["city", "zip", "rank"]),
    "neighbours, others": member(
        ge.CooccurrenceEncoder, None, 2, columns=None, pairs=[("city", "zip"), ("zip", ("city", "rank"))]
    ),
    "neighbours, rest": member(
        ge.CooccurrenceEncoder, None, None, columns=["city", "rank", "zip"], against="rest", weighting="log"
    ),
}
NOT_OF_ALL_ROWS = ("dropped", "halving", "window", "blow-up", "calibration")
MERGEABLE = {name: entry for name, entry in MEMBERS.items() if not any(word in name for word in NOT_OF_ALL_ROWS)}


def kind_of(make: Any) -> tuple[type, type]:
    """Return a member's kind: its encoder and the kind of its scheme."""
    encoder = make()
    return type(encoder), type(getattr(encoder, "cv", None))


# Laws about the same sums in another container take the first member of each kind, and at night all members.
KINDS = {kind_of(make): name for name, (make, _) in reversed(MEMBERS.items())}
OF_EACH_KIND = [
    pytest.param(*entry, id=name, marks=() if name in KINDS.values() else pytest.mark.nightly)
    for name, entry in MEMBERS.items()
]


def same(table: Any, expected: Any) -> None:
    """Compare tables bit by bit."""
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
