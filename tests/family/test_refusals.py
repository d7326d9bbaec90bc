"""The errors of each encoder of the family and their words; after an error the encoder is unchanged."""

import math

import numpy as np
import pytest

import gpu_encode as ge
from tests.family.members import AMOUNT, CITY, FLAGS, GRADIENTS, KIND, ROWS, SOLD, TOGETHER, N

pytestmark = pytest.mark.host
X = ROWS.assign(
    large=np.where(np.arange(N) == 2, 1e200, 1.0),
    id=np.where(np.arange(N) == 1, 2**53 + 1, 3),
    zeros=np.where(np.arange(N) == 1, 0.0, 2.0),
    far=np.where(np.arange(N) == 3, math.inf, 1.0),
    day=np.datetime64("2024-01-01", "us"),
)
Y = AMOUNT
LOGS = ge.MergeableStatistic("logs", [np.log], lambda count, total: total / count)
LARGE, ID = (np.where(np.arange(N) == 2, -1e101, Y), np.where(np.arange(N) == 1, 2**53 + 1, np.arange(N)))


def total(count, mean, variance):
    return count.sum()


def finish(count, total):
    return total


def spread(count, mean, variance):
    return variance / mean


def of(encoder, y, *cases):
    """Name cases of one encoder and target: parameters, and what the error says."""
    name = encoder.__name__
    return [pytest.param(encoder, y, *case, id=f"{name}, {number}, {case[1]}") for number, case in enumerate(cases)]


def one(statistic, **parameters):
    return {"statistics": [statistic], **parameters}


def pairs(statistics, **parameters):
    return {"statistics": statistics, "columns": None, **parameters}


ROWS_OF_THEIR_OWN = "infrequent for each fold, but LeaveOneOut has no folds. Leave out min_frequency"
ALL_AT_ONCE = "of OrdinalEncoder looks at all"
CODED = {"handle_unknown": "use_encoded_value"}
NAMES = "values must be a list of names or positions"
BETWEEN = "may be anything from "
POSITIVE = "parameter of TargetEncoder must be a finite number of at least 0"
NO_LIST = r"'indicators' parameter of CountEncoder must be one of True, False, a list of some of \['unseen'"
LISTED = "statistics must be a list of at least one of 'count', 'sum'"
CALLED = "'x' cannot be called with"
FEW_BORDERS = "'borders' parameter of CatBoostEncoder must be None, a number of borders from 1 to 255"
COUNTS_AT_ONCE = "statistic='counter' of CatBoostEncoder looks at all categories at once"
FINITE = "a list of finite numbers"
SUMMED = r"'price' is used by the scheme .* or summed \(values\), .* Leave it out of"
WHOLE_NUMBERS = r"whole numbers up to 2\*\*53, but a value is 9007199254740993 in row 1"

TARGET = [
    *of(
        ge.TargetEncoder,
        SOLD,
        ({"min_frequency": 0}, "'min_frequency' parameter of TargetEncoder must be one of None, an integer of at"),
        ({"min_frequency": 1.5}, "a share of the rows between 0 and 1"),
        ({"min_frequency": 1.0}, "a share of the rows between 0 and 1"),
        ({"max_categories": 0}, "'max_categories' parameter of TargetEncoder must be an integer of at least 1"),
        ({"handle_infrequent": "other"}, "must be one of 'prior', 'category'"),
        ({"cv": ge.LeaveOneOut(), "max_categories": 3}, ROWS_OF_THEIR_OWN),
        ({"cv": ge.Ordered(), "max_categories": 3}, "for each fold, but Ordered has no folds"),
        (
            {"hierarchy": {"city": ["zip"]}, "max_categories": 2, **TOGETHER},
            r"=\"category\" together with a hierarchy, whose .*\. Leave one of them out",
        ),
        (
            {"smooth": ge.GLMM(), "cv": ge.LeaveOneOut()},
            "GLMM of TargetEncoder looks at all categories at once; with LeaveOneOut",
        ),
        ({"smooth": ge.GLMM(), "cv": ge.Ordered()}, "with Ordered, it would have to do so for every row"),
        ({"smooth": ge.GLMM(), "prior": 0.5}, "estimates the common value of the categories: leave out prior=0.5"),
        ({"smooth": ge.GLMM(), "prior": "category_mean"}, "leave out prior='category_mean'"),
        ({"smooth": ge.GLMM(), "hierarchy": {"city": ["zip"]}}, "takes no hierarchy"),
        ({"smooth": ge.GLMM(0)}, "'points' parameter of GLMM must be an integer of at least 1 and at most 100"),
        ({"smooth": ge.GLMM(101)}, "at most 100"),
        *(
            ({"scale": scale}, "'scale' parameter of TargetEncoder must be")
            for scale in ("ln", ("ln", 1), 0.0, True, None)
        ),
        ({"scale": ("log", 0.0)}, "'scale floor' parameter of TargetEncoder must be"),
        ({"scale": "sqrt", "prior": -5.0}, POSITIVE),
        ({"scale": 0.5, "prior": -1.0}, POSITIVE),
        ({"scale": "logit", "prior": 1.5}, POSITIVE),
        ({"scale": "log1p", "prior": {"city": -1.0}}, POSITIVE),
    ),
    *of(
        ge.TargetEncoder,
        Y,
        ({"scale": "sqrt"}, f"='sqrt' of TargetEncoder is for numbers of at least 0, but the mean of y {BETWEEN}"),
        ({"scale": "logit"}, f"is for shares between 0 and 1, but the mean of y {BETWEEN}"),
    ),
]
OTHERS = [
    *of(
        ge.CountEncoder,
        None,
        *(
            ({"indicators": wrong}, NO_LIST)
            for wrong in ("missing", ["absent"], ["unseen", "unseen"], None, 1, [["unseen"]])
        ),
    ),
    *of(
        ge.OrdinalEncoder,
        Y,
        ({"order": "mean"}, "'order' parameter of OrdinalEncoder must be one of 'value', 'frequency'"),
        ({"n_draws": 2}, "order='value' gives the same codes in each of n_draws=2 draws. Choose order='random'"),
        ({"order": "random", "n_draws": 0}, "'n_draws' .* integer of at least 1"),
        ({"order": "random", "random_state": None}, "'random_state' .* integer of at least 0. Got None"),
        ({"handle_unknown": "ignore"}, "'handle_unknown' .* one of 'error', 'use_encoded_value'"),
        ({"unknown_value": 3}, "unknown_value should only be set when .* got 3"),
        (CODED, "unknown_value should be an integer or .* got None"),
        ({"encoded_missing_value": 1.5}, "'encoded_missing_value' .* an integer, np.nan. Got 1.5"),
        ({"min_frequency": 1.0}, "'min_frequency' .* a share of the rows between 0 and 1. Got 1.0"),
        ({"max_categories": 0}, "'max_categories' .* at least 1"),
        ({"dtype": "str"}, "'dtype' .* a type of floats, a type of integers"),
        ({"dtype": "i4,,"}, "'dtype' parameter of OrdinalEncoder must be one of a type of floats"),
        ({"encoded_missing_value": 2**53 + 1}, r"'encoded_missing_value' .* from -2\*\*53 to 2\*\*53"),
        ({"unknown_value": 2049, "dtype": "float16", **CODED}, "needs the code 2049, which float16 cannot hold"),
        ({"encoded_missing_value": 70_001, "dtype": "float16"}, "needs the code 70001, which float16"),
        ({"encoded_missing_value": -(2**24) - 1, "dtype": "float32"}, "needs the code -16777217, which"),
        ({"dtype": int}, r"missing values in features \['city'\].* dtype: <class 'int'>, set encoded_missing"),
        ({"unknown_value": 6, **CODED}, "unknown_value 6 is one of .*0 to 6"),
        ({"encoded_missing_value": 6}, r"encoded_missing_value \(6\) is already used .*: \['city'\]"),
        ({"encoded_missing_value": -1, "dtype": "uint8"}, "Column 'city' needs the code -1, which uint8"),
        ({"categories": [[*"abcdef", "late"]]}, r"column 'city' during fit: 7 rows, .* row 16.*None for missing"),
        ({"order": "target", "cv": ge.LeaveOneOut()}, ALL_AT_ONCE),
        ({"order": "target", "cv": ge.Ordered()}, ALL_AT_ONCE),
    ),
    *of(
        ge.HashingEncoder,
        None,
        (
            {"n_components": 0},
            "'n_components' parameter of HashingEncoder must be an integer of at least 1 and at most 65536. Got 0",
        ),
        ({"alternate_sign": 1}, "'alternate_sign' .* one of True, False"),
        ({"per_column": "yes"}, "'per_column' .* one of True, False"),
        ({"seed": -1}, "'seed' .* integer of at least 0"),
        ({"seed": 1 << 32}, "'seed' .* at most 4294967295. Got 4294967296"),
        ({"handle_missing": "nan"}, "'handle_missing' .* one of 'category', 'zero', 'error'. Got 'nan'"),
        ({"dtype": "int8"}, "'dtype' .* one of 'float64', 'float32'"),
        ({"columns": ["shrub"]}, "'shrub' is not a column of X"),
    ),
    *of(
        ge.WeightOfEvidenceEncoder,
        SOLD,
        ({"regularization": -1}, "'regularization' parameter of WeightOfEvidenceEncoder must be a"),
        ({"handle_unknown": "prior"}, "must be one of 'zero', 'nan', 'error', a number"),
        ({"handle_missing": "error"}, 'Fill them, or choose handle_missing="category", or another'),
        ({"handle_infrequent": "frequent"}, "'handle_infrequent' parameter of WeightOfEvidenceEncoder must be one of"),
        ({"cv": ge.LeaveOneOut(), "max_categories": 3}, ROWS_OF_THEIR_OWN),
    ),
    *of(ge.WeightOfEvidenceEncoder, Y, ({}, "needs a binary or multiclass target, but y is continuous")),
    *of(
        ge.ImpactEncoder,
        SOLD,
        ({"parts": ["mean"]}, "'parts' parameter of ImpactEncoder must be one of 'impact', 'logit'"),
        ({"parts": ["impact", "impact"]}, "a list of different parts"),
        ({"parts": "impact"}, "'parts' parameter of ImpactEncoder must be one of a list of parts"),
        ({"parts": []}, "'parts' parameter of ImpactEncoder must be one of a list of parts"),
        ({"smooth": ge.GLMM()}, "a smoothing with a formula for each category"),
        ({"cv": ge.LeaveOneOut(), "max_categories": 3}, ROWS_OF_THEIR_OWN),
    ),
    *of(ge.ImpactEncoder, Y, ({"parts": ["logit"], "target_type": "continuous"}, "ImpactEncoder")),
    *of(
        ge.GradientEncoder,
        GRADIENTS,
        ({"output": "rank"}, "'output' parameter of GradientEncoder must be one of 'ratio', 'order'"),
        ({"regularization": -1}, "must be a finite number of at least 0"),
        ({"output": "order", "cv": ge.LeaveOneOut()}, "looks at all categories at once"),
        ({"output": "order", "cv": ge.Ordered()}, "looks at all categories at once"),
    ),
    *of(ge.GradientEncoder, Y, ({}, r"two columns, the gradient and the hessian of each row's loss, but y has 1\. P")),
    *of(ge.GradientEncoder, np.tile(GRADIENTS, 2), ({}, "y of two columns.* y has 4")),
    *of(
        ge.GradientEncoder,
        -GRADIENTS,
        ({}, r"Hessians .*GradientEncoder's y.* must be at least 0\. Got -.* in row 0\. Are .* swapped\?"),
    ),
    *of(
        ge.GradientEncoder,
        [["x", "y"]] * N,
        ({}, "needs numbers in y, but it holds 'x' in row 0. Convert y, or choose an encoder"),
    ),
]
CATBOOST = [
    *of(
        ge.CatBoostEncoder,
        Y,
        ({"statistic": "median"}, "'statistic' parameter of CatBoostEncoder must be one of 'mean', 'borders'"),
        ({"priors": 0.5}, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
        ({"priors": []}, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
        ({"priors": ["mean"]}, "'priors' parameter of CatBoostEncoder must be a finite number"),
        ({"priors": [1, 1.0]}, "a list of different numbers"),
        ({"weight": -1}, "'weight' parameter of CatBoostEncoder must be a finite number of at least 0"),
        ({"statistic": "borders"}, "statistic='borders' of CatBoostEncoder counts labels, but y is continuous"),
        ({"statistic": "buckets"}, "Give borders, numbers at which y is cut"),
        ({"borders": []}, FEW_BORDERS),
        ({"borders": 0}, FEW_BORDERS),
        ({"borders": 256}, FEW_BORDERS),
        ({"borders": True}, FEW_BORDERS),
        ({"borders": [1.0, 1.0]}, "in rising order"),
        ({"borders": [0.0, math.inf]}, FINITE),
        ({"borders": ["low"]}, FINITE),
        ({"borders": [0.0], "target_type": "binary"}, "target_type='binary'. Pass target_type=\"auto\""),
        ({"statistic": "counter", "cv": ge.LeaveOneOut()}, COUNTS_AT_ONCE),
        ({"statistic": "counter", "cv": ge.Ordered()}, COUNTS_AT_ONCE),
        ({"statistic": "counter", "borders": [0.0]}, "statistic='counter' of CatBoostEncoder reads no target"),
        ({"cv": 1.5}, "The 'cv' parameter of CatBoostEncoder must be one of an integer"),
        ({"cv": 5, "shuffle": "no"}, "The 'shuffle' parameter of CatBoostEncoder must be one of True, False"),
        ({"cv": ge.LeaveOneOut(), "max_categories": 3}, ROWS_OF_THEIR_OWN),
        ({"scale": "sqrt"}, rf"statistic='.*' with priors=\[.*\] of y {BETWEEN}"),
    ),
    *of(ge.CatBoostEncoder, KIND, ({"borders": [0.0]}, "borders of CatBoostEncoder cut numbers, but y holds")),
    *of(ge.CatBoostEncoder, np.where(Y > 9, np.inf, Y), ({"borders": [0.0]}, "Input y contains infinity")),
    *of(ge.CatBoostEncoder, np.c_[Y, Y], ({"borders": [0.0]}, "CatBoostEncoder cut one target, but y holds 2")),
    *of(
        ge.CatBoostEncoder,
        SOLD,
        ({"scale": "sqrt", "priors": [-1.0]}, BETWEEN),
        ({"scale": "logit", "priors": [1.5]}, BETWEEN),
        ({"scale": "sqrt", "statistic": "counter", "priors": [0.5, -0.5]}, BETWEEN),
    ),
]
NEAR = {
    "variance": "var",
    "skewness": "skew",
    "kurtosis": "kurt",
    "average": "mean",
    "stdev": "std",
    "unique": "nunique",
    "Mean": "mean",
    "medain": "median",
    "counts": "count",
}
STATISTICS = [
    *of(
        ge.StatisticEncoder,
        Y,
        ({"statistics": "mean"}, f"{LISTED}.* Got 'mean'"),
        ({"statistics": []}, LISTED),
        (one("kurtosis"), "statistics names 'kurtosis', which is neither one of 'count'"),
        (one("quantile"), r'names .quantile., which is neither one of .*, \("quantile", q\), \("share", t\) nor a'),
        (one("xxxxx"), r"names 'xxxxx', which is neither one of .* nor a function\.$"),
        *((one(word), rf"names '{word}', which is .* Did you mean '{meant}'\?$") for word, meant in NEAR.items()),
        ({"statistics": ["mean", "mean"]}, "statistics lists 'mean' twice"),
        ({"statistics": ["mean", ge.MergeableStatistic("mean", [np.copy], np.add)]}, "lists 'mean' twice"),
        (one(lambda count, mean, variance: mean), "has no name for its column"),
        (one(total), r"the statistic 'total' must give an array of shape .* but gave"),
        ({"ddof": 2}, "The 'ddof' parameter of StatisticEncoder must be one of 0, 1"),
        ({"handle_unknown": "zero"}, "'handle_unknown' parameter of StatisticEncoder must be one of"),
        *(
            (one(wrong), r"A quantile is \(\"quantile\", q\) with q from 0 to 1")
            for wrong in (
                ("quantile", 1.5),
                ("quantile", "a"),
                ("share", math.inf),
                ("share", 10**400),
                ["quantile", True],
            )
        ),
        (
            {"statistics": ["mean", "median"], "cv": ge.Ordered()},
            r"statistics=\['median'\] of Stat.* Ordered, they would .* Take cv=LeaveOneOut\(\)",
        ),
        (
            {"statistics": ["sum", "median"], "max_categories": 3, **TOGETHER},
            r"\"category\" for statistics=\['median'\], which cannot be computed from sums\. Leave",
        ),
        ({"cv": ge.LeaveOneOut(), "max_categories": 3}, ROWS_OF_THEIR_OWN),
        *(
            (one(ge.MergeableStatistic(*given)), message)
            for given, message in (
                (("x", [np.log], finish), r"^terms\[0\] of the statistic 'x' must be finite, .* the value -.* in row"),
                (("x", [np.sum], np.add), r"terms\[0\] of the statistic 'x' must give an array of numbers"),
                (("x", [np.copy], lambda *_: 1.0), "the statistic 'x' must give an array of shape"),
                (("x", [np.copy], lambda count: count), f"{CALLED} 2 arrays, counts"),
                (("x", [np.copy, np.square], finish), f"{CALLED} 3 arrays, counts"),
                (("x", [], np.add), r"MergeableStatistic\('x', \.\.\.\) needs terms"),
                (("x", np.log, np.add), "needs terms, a list of functions"),
                (("a b", [np.copy], finish), "must be a Python identifier, such as 'geometric_mean'. Got 'a b'"),
                (("", [np.copy], finish), "must be a Python identifier, .* Got ''"),
                ((3, [np.copy], finish), r"must be a Python identifier, .* Got 3\."),
            )
        ),
    ),
    *of(ge.StatisticEncoder, [*"uv"] * (N // 2), ({}, "A continuous target needs numbers in y")),
    *of(ge.StatisticEncoder, LARGE, (one("skew"), r"^'skew' .* up to 1e\+100, but a value is -1e\+101 in row 2\.")),
    *of(ge.StatisticEncoder, LARGE, (one("kurt"), r"^'kurt' .* up to 1e\+75, but a value is -1e\+101 in row 2\.")),
    *of(
        ge.StatisticEncoder,
        np.where(LARGE < -1e100, 1e-60, LARGE),
        (one("kurt"), r"^'kurt' .* from 1e-55 .* a value is 1e-60 in row 2\."),
    ),
    *of(ge.StatisticEncoder, ID, (one("skew"), WHOLE_NUMBERS), (one("kurt"), WHOLE_NUMBERS)),
    *of(
        ge.StatisticEncoder,
        SOLD,
        *(
            (one(name, target_type="auto"), f"'{name}' of StatisticEncoder needs a continuous target, but y is binary")
            for name in ("skew", "kurt", "median")
        ),
    ),
]
VALUES = of(
    ge.StatisticEncoder,
    None,
    ({"values": []}, NAMES),
    ({"values": "price"}, NAMES),
    ({"values": ["price", "price"]}, f"{NAMES} .* each once"),
    ({"values": ["price", 2]}, "each once"),
    ({"values": ["prise"]}, "values: 'prise' is not a column of X. Did you mean 'price'"),
    (
        {"values": ["city"], "columns": ["zip"]},
        "values: column 'city' holds text, for which StatisticEncoder has 'count', 'nunique', 'mode'; 'mean' is for",
    ),
    ({"values": ["day"]}, "values: column 'day' holds dates, for which .*'seconds_since_last'; 'mean' is"),
    ({"values": ["far"]}, "contains infinity: column 'far', the first in row 3"),
    ({"values": ["price"], "columns": ["price"]}, SUMMED),
    (one("skew", values=["price", "large"]), r"^values: in column 'large', 'skew' .* in row 2\."),
    (one("skew", values=["price", "id"]), r"^values: in column 'id', 'skew', 'kurt' and .* in row 1\."),
    (
        one(LOGS, values=["zeros"]),
        r"^values: in column 'zeros', terms\[0\] of the statistic 'logs' must be finite, .* in row 1\.",
    ),
    *(
        (
            one(statistic, values=["price"], scale=scale),
            f"={scale!r} of StatisticEncoder is for {place}, but the statistic '{name}' of 'price' {BETWEEN}{bounds}",
        )
        for statistic, name, scale, place, bounds in (
            ("mean", "mean", "sqrt", "numbers of at least 0", "-"),
            ("min", "min", 2.0, "numbers of at least 0", "-"),
            (("quantile", 0.5), "quantile_0.5", "log1p", "numbers of at least 0", "-"),
            ("sum", "sum", "log1p", "numbers of at least 0", "-inf to inf"),
            ("skew", "skew", "sqrt", "numbers of at least 0", "-inf to inf"),
            ("kurt", "kurt", "sqrt", "numbers of at least 0", "-inf to inf"),
            (spread, "spread", "sqrt", "numbers of at least 0", "-inf to inf"),
            ("count", "count", "logit", "shares between 0 and 1", "0 to inf"),
            ("std", "std", "logit", "shares between 0 and 1", "0 to inf"),
            ("nunique", "nunique", "logit", "shares between 0 and 1", "0 to inf"),
        )
    ),
    (pairs({}), "statistics is an empty dict"),
    (pairs({"zip": ["mean"]}), r"Got 'zip': \['mean'\]"),
    (pairs({"zip": {}}), "Got 'zip': {}"),
    (pairs({"zip": {"price": "mean"}}), "Got 'zip': {'price': 'mean'}"),
    (pairs({"zip": {"price": ("quantile", 0.5)}}), r"Got 'zip': {'price': \('quantile', 0.5\)}"),
    (pairs({"zip": {("price", "rank"): ["mean"]}}), r"Got 'zip': {\('price', 'rank'\)"),
    (pairs({("zip", "price"): ["mean"]}), r"A tuple is a joint key: write {'zip': {'price': \[\.\.\.\]}} for a pair"),
    (pairs({"zip": {"price": ["mode", "average"]}}), "names 'average', which is neither one of"),
    (pairs({"zip": {"cost": ["mean"]}}), "'cost' is not a column of X"),
    (pairs({"zap": {"price": ["mean"]}}), "'zap' is not a column of X"),
    (pairs({"zip": {"price": ["mean"]}}, columns=["zip"]), r"leave out columns=\['zip'\]"),
    (pairs({"zip": {"price": ["mean"]}}, values=["price"]), r"leave out values=\['price'\]"),
)


@pytest.mark.parametrize(("encoder", "y", "parameters", "message"), [*TARGET, *OTHERS, *CATBOOST, *STATISTICS, *VALUES])
def test_refusals(encoder, y, parameters, message):
    fitted = encoder().fit(ROWS[["zip"]], GRADIENTS if encoder is ge.GradientEncoder else SOLD)
    model = fitted._model
    with pytest.raises((ValueError, TypeError), match=message):
        fitted.set_params(**CITY | parameters).fit_transform(X, y)
    assert fitted._model is model
    assert fitted.feature_names_in_.tolist() == ["zip"]


def test_rows_are_named_in_their_piece():
    pieces, y = [ROWS[["city"]][:3], ROWS[["city"]][3:]], [GRADIENTS[:3], GRADIENTS[3:].copy()]
    y[1][1, 1] = -1.0
    with pytest.raises(ValueError, match=r"in row 4 \(row 1 of y\[1\]\)"):
        ge.GradientEncoder().fit(pieces, y)
    with pytest.raises(ValueError, match=r"row 3 \(row 1 of X\[1\]\)"):
        ge.StatisticEncoder(values=["far"]).fit([X[["city", "far"]][:2], X[["city", "far"]][2:]])


@pytest.mark.parametrize("encoder", [ge.StatisticEncoder, ge.WeightOfEvidenceEncoder])
def test_unknown_values_are_refused(encoder):
    fitted = encoder(handle_unknown="error", **CITY, **FLAGS).fit(ROWS, SOLD)
    with pytest.raises(ValueError, match="Found unknown categories"):
        fitted.transform(ROWS.assign(city="never seen"))


def test_weights_with_fractions_leave_statistics_of_sums():
    message = "whole weights, .* has fractions.*statistics of sums: count, sum, mean, var, std, sem, skew, kurt"
    with pytest.raises(ValueError, match=message):
        ge.StatisticEncoder(["median"]).fit(ROWS[["city"]], Y, sample_weight=np.full(N, 0.5))
