"""A wrong call gives an error that says what is wrong, where, and what to do; the encoder is unchanged."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

import gpu_encode as ge
from gpu_encode.seam import devices
from tests.encoders.conftest import FRAME, LABELS, Y
from tests.encoders.unchanged import Unchanged

pytestmark = pytest.mark.host

JOINT = ("city", "zip")
BOTH = np.column_stack([LABELS, LABELS])
BLOW_UP = ge.KFold(2, blow_up=True)


def quantity(frame=FRAME, y=Y, **parameters):
    """Fit an encoder of a quantity."""
    return ge.TargetEncoder(target_type="continuous", **parameters).fit(frame, y)


def with_one(values, row, value):
    values = np.array(values, dtype=float)
    values[row] = value
    return values


def named(table):
    """Give the rows of a table as parameters, with the first column as their ids."""
    return [pytest.param(*case[1:], id=case[0]) for case in table]


PARAMETERS = [
    ({"columns": ["citty"]}, "columns: 'citty' is not a column of X. Did you mean 'city'"),
    ({"columns": "city"}, "columns must be a list of names, .* Got 'city'"),
    ({"columns": (name for name in ["city"])}, "columns must be a list of names"),
    ({"columns": []}, "No column is left to encode: columns is empty"),
    ({"columns": [4]}, "columns: 4 is out of range: X has 4 columns, and an integer is a position"),
    ({"columns": ["city", "city"]}, "columns lists 'city' twice"),
    ({"columns": [("city", "city")]}, r"The joint key \('city', 'city'\) must name different columns"),
    ({"columns": [()]}, r"The joint key \(\) must name different columns, at least one"),
    ({"columns": [None]}, "columns: None is not a column of X"),
    ({"hierarchy": {"city": ["regio"]}}, "hierarchy of 'city': 'regio' is not a column of X. X has: 'city', 'zip'"),
    ({"hierarchy": {"cit": ["zip"]}}, "hierarchy: 'cit' is not a column of X. Did you mean 'city'"),
    ({"hierarchy": ["zip"]}, "hierarchy must map a column to its levels"),
    ({"hierarchy": {"city": ["city"]}}, "hierarchy of 'city' must name different columns"),
    ({"hierarchy": {"city": ["zip"]}, "columns": ["shop"]}, "hierarchy names 'city', which is not among the columns"),
    ({"hierarchy": {"city": ge.Bits(24)}}, r"column 'city': Bits\(.*\) does not apply to . of its values"),
    ({"hierarchy": {"zip": ge.Prefixes(1)}}, "column 'zip': Prefixes needs text values, but the column holds number"),
    ({"hierarchy": {"zip": ge.Bits(1, width=2)}}, r"'zip': Bits\(.*width=2\) does not apply to 2 of its values, such"),
    ({"hierarchy": {"city": ge.Prefixes()}}, r"needs at least one length, for example Prefixes\(4, 3\)"),
    (
        {"hierarchy": {"city": ge.Prefixes(*range(1_001, 0, -1))}},
        "hierarchy of column 'city': Prefixes makes 1,001 levels, more than 1,000. Clean the column, or choose",
    ),
    ({"hierarchy": {"city": ge.Prefixes(1, 2)}}, r"Prefixes\(1, 2\) must fall strictly"),
    (
        {"hierarchy": {"city": ge.Prefixes(0)}},
        "'lengths' parameter of Prefixes must be an integer of at least 1 and at most 2147483647. Got",
    ),
    ({"hierarchy": {"city": ge.Parts("")}}, "'separator' parameter of Parts must be a text that is not empty. Got ''"),
    ({"hierarchy": {"zip": ge.Bits(40)}}, "must lie below width=32"),
    ({"hierarchy": {JOINT: ge.Prefixes(1)}, "columns": [JOINT]}, "Prefixes applies to a single column"),
    ({"smooth": ge.MEstimate(-1)}, "'m' parameter of MEstimate must be a finite number of at least 0. Got -1"),
    ({"smooth": ge.Sigmoid(f=0)}, "'f' parameter of Sigmoid must be a finite number above 0. Got 0"),
    ({"smooth": ge.Sigmoid(k=-1)}, "'k' parameter of Sigmoid must be a finite number of at least 0. Got -1"),
    (
        {"smooth": ge.EmpiricalBayes("within")},
        "'tau' parameter of EmpiricalBayes must be one of 'total', 'between', 'anova'",
    ),
    ({"smooth": ge.JamesStein("x")}, "'model' parameter of JamesStein must be one of 'pooled', 'independent'"),
    ({"smooth": -0.5}, "'smooth' parameter of TargetEncoder must be a finite number of at least 0. Got -0.5"),
    ({"smooth": "atuo"}, r"'smooth' parameter .* one of \"auto\", a number of at least 0, None, MEstimate"),
    ({"cv": 1}, "'n_splits' parameter of KFold must be an integer of at least 2. Got 1"),
    ({"cv": 2.5}, "'cv' parameter of TargetEncoder must be one of an integer, None, a splitter, .* Got 2.5"),
    ({"cv": ge.KFold(order="sorted")}, "'order' parameter of KFold must be one of 'random', 'contiguous', 'inter"),
    ({"cv": ge.KFold(stratify=1)}, "'stratify' parameter of KFold must be one of True, False. Got 1"),
    ({"cv": ge.KFold(blow_up="yes")}, "'blow_up' parameter of KFold must be one of True, False. Got 'yes'"),
    ({"cv": ge.KFold(random_state="7")}, "random_state must be an integer, None or a NumPy generator. Got '7'"),
    ({"cv": ge.GroupKFold(1, groups="shop")}, "'n_splits' parameter of GroupKFold must be an integer of at least 2"),
    ({"cv": ge.GroupKFold(groups="shp")}, "The scheme's column 'shp' is not a column of X. Did you mean 'shop'"),
    (
        {"cv": ge.GroupKFold(groups=pd.Series(range(12)))},
        "column of X. Got a Series instead. Join several columns to one",
    ),
    ({"cv": ge.GroupKFold("shop")}, "integer of at least 2: name a column by groups='shop'. Got 'shop'"),
    ({"cv": ge.KFold("shop")}, "integer of at least 2: name a column by by='shop'. Got 'shop'"),
    ({"cv": ge.GroupKFold}, r"must be a scheme, and not its class: write GroupKFold\(\). Got <class"),
    (
        {"columns": [["city", "zip"]]},
        r"columns must be .* Got a list instead. Write a joint key as a tuple, \('city",
    ),
    ({"cv": ge.TimeFolds(1, time="day")}, "'n_splits' parameter of TimeFolds must be an integer of at least 2"),
    ({"cv": ge.TimeFolds(3, time="day", gap=-1)}, "'gap' parameter of TimeFolds must be an integer of at least 0. Got"),
    ({"cv": ge.TimeFolds(3, time="day", gap=2)}, "'gap' parameter of TimeFolds must be at most n_splits - 2 = 1, or"),
    ({"cv": ge.TimeFolds(3, time="dya")}, "The scheme's column 'dya' is not a column of X. Did you mean 'day'"),
    ({"cv": ge.Holdout(1.5)}, "'fraction' parameter of Holdout must be a finite number of at least 0 and at most 1"),
    ({"cv": ge.Holdout(0)}, "'fraction' parameter of Holdout must lie between 0.005 and 0.995. Got 0"),
    (
        {"cv": ge.Ordered(0)},
        "'n_permutations' parameter of Ordered must be an integer of at least 1 and at most 65536. Got 0",
    ),
    ({"cv": ge.Ordered(burn_in=1.5)}, "'burn_in' parameter of Ordered must be an integer or a share below 1. Got 1.5"),
    ({"cv": ge.Ordered(average=None)}, "'average' parameter of Ordered must be one of True, False. Got None"),
    ({"cv": ge.Ordered(shuffle=None)}, "'shuffle' parameter of Ordered must be one of True, False. Got None"),
    ({"cv": ge.Ordered(block=0)}, "must be 'auto' or an integer of at least 1 and at most 4096. Got 0"),
    ({"cv": ge.Ordered(block=2**63)}, "'block' parameter of Ordered must be .* of at least 1 and at most 4096. Got 92"),
    ({"cv": ge.Ordered(block="all")}, "'block' parameter of Ordered must be 'auto' or an integer of .* Got 'all'"),
    ({"cv": ge.Ordered(block=4, shuffle=False)}, "block=4 is for random orders. Leave it out with time or shuffle=Fal"),
    ({"cv": ge.Ordered(2, shuffle=False)}, r"Ordered\(shuffle=False\) has one order, that of the rows"),
    ({"cv": ge.Ordered(2, time="day")}, r"Ordered\(time=...\) has one order: leave n_permutations at 1"),
    ({"cv": "flod"}, "The scheme's column 'flod' is not a column of X"),
    ({"cv": "zip", "columns": ["zip"]}, "Column 'zip' is used by the scheme .* and cannot be encoded as well"),
    ({"shuffle": "no"}, "'shuffle' parameter of TargetEncoder must be one of True, False. Got 'no'"),
    ({"random_state": 1.5}, "random_state must be an integer, None or a NumPy generator. Got 1.5"),
    ({"target_type": "bin"}, "'target_type' .* must be one of 'auto', 'binary', 'continuous', 'multiclass'. Got 'bin'"),
    ({"target_type": ["continuous"] * 2}, "target_type lists 2 kinds for 1 targets"),
    ({"target_type": "binary"}, 'needs at most 2 distinct labels in y. Got 12: .*"multiclass" for labels'),
    ({"handle_unknown": "value"}, "'handle_unknown' .* must be one of 'prior', 'nan', 'error', a number, a dict"),
    ({"handle_unknown": "return_nan"}, "what category_encoders calls 'return_nan' is 'nan' here. Got 'return_nan'"),
    ({"handle_missing": "value"}, "what category_encoders calls 'value' is 'category' here. Got 'value' instead"),
    ({"handle_unknown": float("inf")}, "'handle_unknown' parameter of TargetEncoder must not be infinite"),
    ({"handle_missing": "mean"}, "'handle_missing' .* one of 'category', 'prior', 'nan', 'error'. Got 'mean'"),
    ({"min_count": -1}, "'min_count' parameter of TargetEncoder must be a finite number of at least 0. Got -1"),
    (
        {"prior": "median"},
        "'prior' .* must be one of 'mean', 'category_mean', a number. Got 'median'",
    ),
    ({"prior": None}, "'prior' .* one of 'mean', 'category_mean', a number, a dict of one per column. Got None"),
    ({"prior": float("nan")}, "'prior' parameter of TargetEncoder must be a finite number. Got nan"),
    ({"prior": {"city": "x"}}, r"prior\['city'\].* must be one of 'mean', 'category_mean', a number. Got 'x'"),
    ({"prior": {"cty": 1.0}}, "prior: 'cty' is not a column of X. Did you mean 'city'"),
    ({"prior": {"zip": 1.0}, "columns": ["city"]}, "prior names 'zip', which is not among the columns to encode. Add"),
    ({"indicators": 1}, "'indicators' parameter of TargetEncoder must be one of True, False, a list of .* Got 1"),
    (
        {"drop": ["first"]},
        r"'drop' parameter of TargetEncoder must be one of None, 'first', the label of a class. Got \['f",
    ),
    (
        {"drop": "last"},
        "drop='last' of TargetEncoder is no class: y is a quantity. Give None, 'first' or the label of a",
    ),
    ({"device": "gpu"}, "'device' parameter of TargetEncoder must be one of 'auto', 'cpu', 'cuda'. Got 'gpu'"),
    ({"dtype": "float16"}, "'dtype' parameter of TargetEncoder must be one of 'float64', 'float32'. Got 'float16'"),
    ({"categories": "all"}, "'categories' .* one of 'auto', a list of one list of categories per column. Got 'all'"),
    ({"categories": [["a"]]}, "Shape mismatch: .* categories has 1 lists for 4 columns. Give one per column"),
    ({"categories": ["city"]}, r"Give one per column. If these are columns, pass columns=\['city'\]"),
    ({"categories": [3], "columns": ["city"]}, "categories of 'city' must be a list of values or 'auto'. Got 3"),
    ({"categories": [["a"]], "columns": [("city", "zip")]}, "categories of 'city_x_zip' cannot be listed: .* 'auto'"),
    ({"categories": [["a"]], "columns": ["city"], "handle_unknown": "error"}, "'city' during fit: 8 rows, .* row 2. A"),
]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(("parameters", "match"), PARAMETERS, ids=range(len(PARAMETERS)))
def test_parameters(fitted, method, parameters, match):
    with Unchanged(fitted, FRAME), pytest.raises(ValueError, match=match):
        getattr(fitted.set_params(**parameters), method)(FRAME, Y)


# What `tests/tables` has not: the rest of what is wrong with tables and vectors is refused where they are read.
ROWS = [
    ("weights too long", {"sample_weight": np.ones(13)}, ValueError, r"X has 12 rows and sample_weight 13"),
    ("y with NaN", {"y": with_one(Y, 4, np.nan)}, ValueError, "y has 1 missing value, in row 4. Drop or"),
    ("y infinite", {"y": with_one(Y, 7, np.inf)}, ValueError, "infinity.* 1 of 12 rows, the first in row 7"),
    (
        "y with text",
        {"y": list("abcdefghijkl")},
        ValueError,
        "continuous.* needs numbers in y, but it holds 'a' in row 0",
    ),
    ("weight NaN", {"sample_weight": with_one(Y, 3, np.nan)}, ValueError, r"1 NaN .* row 3 \(nan\). .* drop"),
    ("weight infinite", {"sample_weight": with_one(Y, 3, np.inf)}, ValueError, r"first in row 3 \(inf\)"),
    ("weight negative", {"sample_weight": with_one(Y**2, 5, -2)}, ValueError, r"1 negative .* row 5 \(-2.0\)"),
    ("weights of text", {"sample_weight": list("abcdefghijkl")}, ValueError, "must hold numbers, .* Got 'a'"),
    ("names of two types", {"X": FRAME.set_axis(["a", 1, "b", "c"], axis=1)}, TypeError, "have string names"),
    ("infinity", {"X": FRAME.assign(zip=np.inf)}, ValueError, "infinity: column 'zip', the first in row 0. Replace"),
]


@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
@pytest.mark.parametrize(("change", "error", "match"), named(ROWS))
def test_rows_to_learn_from(fitted, method, change, error, match):
    with Unchanged(fitted, FRAME), pytest.raises(error, match=match):
        getattr(fitted, method)(**{"X": FRAME, "y": Y, **change})


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_rows_that_all_weigh_nothing(fitted, method):
    with Unchanged(fitted, FRAME), pytest.raises(ValueError, match=r"non-zero number.* Leave sample_weight out"):
        getattr(fitted, method)(FRAME, Y, sample_weight=np.zeros(12))


@pytest.mark.parametrize("kind", ["auto", "continuous"])
@pytest.mark.parametrize(
    "make",
    [ge.TargetEncoder, ge.StatisticEncoder, partial(ge.CatBoostEncoder, "buckets")],
    ids=["mean", "statistics", "buckets"],
)
def test_floats_that_are_missing_are_counted_whoever_reads_them(make, kind):
    encoder = make() if kind == "auto" else make(target_type=kind)
    with pytest.raises(ValueError, match=r"y has 1 missing value, in row 1\. Drop or"):
        encoder.fit([[1], [2], [1]], np.array([0.5, np.nan, 1.0]))


SCHEMES = [
    ("more folds than rows", 13, "splits n_splits=13 greater than .* n_samples=12. Take fewer splits in KFold"),
    ("more folds than groups", ge.GroupKFold(4, groups="shop"), "greater than the number of groups: n_groups=3"),
    ("more times than rows", ge.TimeFolds(13, time="day"), "n_splits=13 greater than the number of samples"),
    ("no groups", ge.GroupKFold(2), r"needs groups: name their column, .* or pass fit_transform\(X, y, groups"),
    ("no groups for a splitter", GroupKFold(2), r"not be None. cv=GroupKFold\(.* takes them from fit_transform"),
    ("no labels to stratify", ge.KFold(2, stratify=True), "needs one classification target"),
    ("negative folds", np.array([0, 1, -1] * 4), "fold numbers must not be negative. Row 2 has -1"),
    ("fractional folds", np.array([0, 0.5, 1] * 4), "fold numbers must be integers. Row 1 has 0.5"),
    ("missing folds", [0, 1, None] * 4, "fold numbers holds 4 missing values, the first in row 2. Fill or"),
    ("folds of text", list("aabbaabbaabb"), "fold numbers must be integers. Row 0 has a"),
    ("a fold column of text", "shop", r"'shop' must be integers. Row 0 has p. To keep .* GroupKFold\(groups="),
    ("a fold column of dates", "day", "The fold numbers column 'day' must be integers.* Got datetime values"),
    ("a single fold", np.zeros(12, int), "hold a single fold, .* Give at least two folds"),
    ("too few fold numbers", [0, 1], "X has 12 rows and fold numbers 2"),
    ("rows in no test set", [(np.arange(6), np.arange(6, 12))], "cover each sample index exactly once"),
    ("a splitter of times", TimeSeriesSplit(3), "exactly once .* use TimeFolds or Ordered"),
    ("no splits", [], "cv must give at least one split"),
    ("half a split", [(1, 2, 3)], "each a pair of training rows and validation rows"),
    ("an absent row", [([0, 12], np.arange(12))], r"training rows of a split must lie in 0 \.\. 11. Got 12"),
    ("half a row", [([0.5], np.arange(12))], "training rows of a split must be integers or a mask"),
    ("a short mask", [([0], np.ones(3, bool))], "validation mask of a split has 3 entries for 12 rows"),
]


@pytest.mark.parametrize(("cv", "match"), named(SCHEMES))
def test_schemes_against_rows(fitted, cv, match):
    with Unchanged(fitted, FRAME), pytest.raises(ValueError, match=match):
        fitted.set_params(cv=cv).fit_transform(FRAME, Y)
    # `fit` alone has no folds.
    fitted.set_params(cv=cv).fit(FRAME, Y)


@pytest.mark.parametrize("cv", [ge.TimeFolds(2, time="day"), ge.Ordered(time="day")])
def test_times_with_nulls(fitted, cv):
    with_null = FRAME.assign(day=FRAME["day"].where(FRAME.index != 3))
    with pytest.raises(ValueError, match="'day' holds 1 missing values, the first in row 3"):
        fitted.set_params(cv=cv).fit_transform(with_null, Y)


def test_a_fold_for_every_row_is_refused_before_memory_runs_out():
    with pytest.raises(ValueError, match=r"20000 folds, but at most 10000 can be kept apart.* LeaveOneOut"):
        ge.TargetEncoder(cv=np.arange(20_000)).fit_transform(np.zeros((20_000, 1)), np.arange(20_000.0) / 7)


def test_no_error_comes_with_a_warning_before_it():
    # Warnings are errors here: of too many folds the error is said, not the warning of rare classes.
    with pytest.raises(ValueError, match="n_splits=13 greater than"):
        ge.TargetEncoder(cv=13).fit_transform(FRAME, LABELS)


def fit_as(kind, y):
    return lambda encoder: encoder.set_params(target_type=kind).fit(FRAME, y)


def partial_fit(frame=FRAME, y=Y, **parameters):
    return lambda encoder: encoder.set_params(**parameters).partial_fit(frame, y)


def merge(make):
    return lambda encoder: encoder.merge(quantity(), make())


def transform(**columns):
    return lambda encoder: encoder.transform(FRAME.assign(**columns))


MIXED = np.array([1, "a"] * 6, dtype=object)
# Calls of an encoder that was fitted on a quantity.
CALLS = [
    ("more targets", partial_fit(y=BOTH), "had 1 targets, this one has 2. Give the same"),
    ("targets without kinds", fit_as("auto", BOTH), "^y holds 2 targets: pass .* list .*'multilabel-indicator'"),
    ("one kind for two", fit_as("binary", BOTH), "y holds 2 targets, and target_type='binary' is for one"),
    ("new text for numbers", transform(zip="1"), "'zip' was fitted on number .* holds text"),
    ("new text for dates", transform(day="x"), "'day' was fitted on datetime values"),
    ("new infinity", transform(zip=np.inf), "infinity: column 'zip', the first in row 0"),
    ("another order", lambda encoder: encoder.transform(FRAME[FRAME.columns[::-1]]), "must be in the same order"),
    ("more with other columns", partial_fit(FRAME.rename(columns={"zip": "z"})), "with other columns .* Give the same"),
    ("more of another kind", partial_fit(FRAME.assign(city=1)), "'city' was fitted on text values and now holds"),
    ("more of another type", partial_fit(target_type="binary"), "had target_type 'continuous', this one asks for 'bin"),
    ("more of fewer columns", partial_fit(columns=["city"]), "with other columns than before"),
    ("more in another dtype", partial_fit(dtype="float32"), "before: dtype is now 'float32' and was 'float64'"),
    ("more with a prior", partial_fit(prior={"zip": 0.5}), "before: prior is now 0.5 and was 'mean'"),
    ("more with a least count", partial_fit(min_count=2), "before: min_count is now 2.0 and was 0.0"),
    ("more to blow up", partial_fit(cv=BLOW_UP), "partial_fit has no folds, which blow-up columns need. Call fit"),
    ("another smoothing", merge(lambda: quantity(smooth=3.0)), "smooth is 'auto'"),
    ("another prior strength", merge(lambda: quantity(smooth=ge.MEstimate(2))), r"'auto' and MEstimate\(m=2\)"),
    ("other columns", merge(lambda: quantity(FRAME[["city"]])), "of different colum"),
    ("another kind", merge(lambda: quantity(FRAME.assign(city=1))), "'city' was fitted"),
    ("other targets", merge(lambda: quantity(y=np.c_[Y, Y])), "different targets"),
]
OTHER_ERRORS = [
    ("labels that do not compare", fit_as("auto", MIXED), TypeError, "labels that cannot be compared: int, str. Conv"),
    ("such binary labels", fit_as("binary", MIXED), TypeError, "labels that cannot be compared: int, str. Convert"),
    ("y for new rows", lambda encoder: encoder.transform(FRAME, Y), TypeError, r"no y. .* call fit_transform\(X, y\)"),
    ("no encoder", lambda encoder: encoder.merge(3), TypeError, r"Cannot merge int into TargetEncoder. Give fitted"),
    ("no fitted one", lambda encoder: encoder.merge(ge.TargetEncoder()), NotFittedError, "not fitted yet"),
    ("no device", lambda one: one.set_params(device="cuda").fit(FRAME, Y), RuntimeError, "'cuda' was asked for, but"),
]
NAMED_ERRORS = [(name, call, ValueError, match) for name, call, match in CALLS] + OTHER_ERRORS


@pytest.mark.parametrize(("call", "error", "match"), named(NAMED_ERRORS))
def test_calls(call, error, match, fitted, monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: False)
    with Unchanged(fitted, FRAME), pytest.raises(error, match=match):
        call(fitted)


def test_listed_columns_missing_from_new_rows():
    encoder = ge.TargetEncoder(columns=["city", JOINT]).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"The fitted column 'zip' is not a column of X. Did you mean 'zipp'"):
        encoder.transform(FRAME.rename(columns={"zip": "zipp"}))
    with pytest.raises(ValueError, match="The passed-through column 'day' is not a column of X"):
        encoder.transform(FRAME.drop(columns="day"))
    with pytest.raises(ValueError, match=r"The passed-through column 'day' is not a column of the row\..*passed=False"):
        encoder.row_encoder()(FRAME.drop(columns="day").iloc[0].to_dict())
    # Rows are compared by the columns of keys alone.
    assert encoder.drift(FRAME.drop(columns="day")) == encoder.drift(FRAME)
    with pytest.raises(ValueError, match="The fitted column 'zip' is not a column of X"):
        encoder.drift(FRAME.drop(columns="zip"))


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("autp", '"auto"'),
        ("Auto", '"auto"'),
        ("sigmiod", r"Sigmoid\(k, f\)"),
        ("jamesstein", r"JamesStein\(\)"),
        ("glm", r"GLMM\(points\)"),
    ],
)
def test_a_smoothing_that_is_nearly_spelt_right(word, near):
    with pytest.raises(ValueError, match=rf"must be one of .* Got '{word}' instead\. Did you mean {near}\?$"):
        ge.TargetEncoder(smooth=word).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"Got 'weather' instead\.$"):
        ge.TargetEncoder(smooth="weather").fit(FRAME, Y)


def test_refused_values_of_new_rows():
    encoder = ge.TargetEncoder(columns=["city"], handle_unknown="error", handle_missing="error").fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"unknown categories in column 'city': 12 rows, .* row 0 \('z'\). Choose"):
        encoder.transform(FRAME.assign(city="z"))
    for call in (encoder.transform, lambda frame: encoder.fit(frame, Y)):
        with pytest.raises(ValueError, match=r"'city' holds 12 missing values, the first in row 0. Fill them, or cho"):
            call(FRAME.assign(city=None))


@pytest.mark.parametrize("call", ["transform", "get_feature_names_out", "merge", "save"])
def test_before_fit(call):
    arguments = {"transform": [FRAME], "merge": [ge.TargetEncoder()], "save": ["never-written"]}
    with pytest.raises(NotFittedError, match=r"This TargetEncoder instance is not fitted yet. Call 'fit'"):
        getattr(ge.TargetEncoder(), call)(*arguments.get(call, []))


@pytest.mark.parametrize("name", ["categories_", "encodings_", "target_mean_"])
def test_fitted_attributes_before_fit(name):
    with pytest.raises(AttributeError, match="not fitted yet: call fit or fit_transform first"):
        getattr(ge.TargetEncoder(), name)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ([0.5, 1.5] * 6, "had target_type 'binary', but y now holds fractions. Fit with target_type='continuous'"),
        ([1, 2] * 6, 'needs at most 2 distinct labels in y. Got 3: 0, 1, 2. Pass target_type="multiclass"'),
        (list("ab") * 6, "y held the labels 0, 1 and now holds 'a', 'b'. Convert them to one type"),
    ],
)
def test_partial_fit_with_other_labels(more, match):
    encoder = ge.TargetEncoder().fit(FRAME, LABELS)
    with Unchanged(encoder, FRAME), pytest.raises(ValueError, match=match):
        encoder.partial_fit(FRAME, more)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (Y, "Targets of different kinds: 'binary' and 'continuous'"),
        (LABELS + 1, r'binary target now has 3 labels: .* Fit with target_type="multiclass"'),
        (np.where(LABELS, "a", "b"), "y held the labels 0, 1 and now holds 'a', 'b'"),
    ],
)
def test_merge_of_other_targets(y, match):
    encoder = ge.TargetEncoder().fit(FRAME, LABELS)
    with Unchanged(encoder, FRAME), pytest.raises(ValueError, match=match):
        encoder.merge(ge.TargetEncoder().fit(FRAME, y))


def test_merge_of_blow_up_columns():
    one, other = (quantity(cv=BLOW_UP) for _ in range(2))
    with Unchanged(one, FRAME), pytest.raises(ValueError, match="merge has no folds, which blow-up columns need"):
        one.merge(other)
