"""Bad parameters get an error that names them and what they may be, at fit, and leave the encoder as it was."""

import pandas as pd
import pytest

import gpu_encode as ge
from tests.encoders.unchanged import Unchanged

pytestmark = pytest.mark.host

PARAMETERS = [
    ({"columns": ["citty"]}, "columns: 'citty' is not a column of X. Did you mean 'city'"),
    ({"columns": "city"}, "columns must be a list of names, .* Got 'city'"),
    ({"columns": {"city": 1}}, "columns must be a list of names"),
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
    ({"hierarchy": {"city": ge.Bits(24)}}, "column 'city': Bits needs number values, but the column holds text"),
    ({"hierarchy": {"zip": ge.Prefixes(1)}}, "column 'zip': Prefixes needs text values, but the column holds number"),
    (
        {"hierarchy": {"zip": ge.Bits(1, width=2)}},
        r"column 'zip': Bits\(.*width=2\) does not apply to 2 of its values, the first 4",
    ),
    ({"hierarchy": {"city": ge.Prefixes()}}, r"needs at least one length, for example Prefixes\(4, 3\)"),
    ({"hierarchy": {"city": ge.Prefixes(1, 2)}}, r"Prefixes\(1, 2\) must fall strictly"),
    (
        {"hierarchy": {"city": ge.Prefixes(0)}},
        "'lengths' parameter of Prefixes must be an integer of at least 1. Got 0",
    ),
    ({"hierarchy": {"city": ge.Parts("")}}, "'separator' parameter of Parts must be a text that is not empty. Got ''"),
    ({"hierarchy": {"zip": ge.Bits(40)}}, "must lie below width=32"),
    (
        {"hierarchy": {("city", "zip"): ge.Prefixes(1)}, "columns": [("city", "zip")]},
        "Prefixes applies to a single column",
    ),
    ({"smooth": ge.MEstimate(-1)}, "'m' parameter of MEstimate must be a finite number of at least 0. Got -1"),
    ({"smooth": ge.MEstimate("1")}, "'m' parameter of MEstimate must be a finite number of at least 0. Got '1'"),
    ({"smooth": ge.Sigmoid(f=0)}, "'f' parameter of Sigmoid must be a finite number above 0. Got 0"),
    ({"smooth": ge.Sigmoid(k=-1)}, "'k' parameter of Sigmoid must be a finite number of at least 0. Got -1"),
    ({"smooth": ge.EmpiricalBayes("within")}, "'tau' parameter of EmpiricalBayes must be one of 'total', 'between'"),
    ({"smooth": ge.JamesStein("x")}, "'model' parameter of JamesStein must be one of 'pooled', 'independent'"),
    ({"smooth": -0.5}, "'smooth' parameter of TargetEncoder must be a finite number of at least 0. Got -0.5"),
    ({"smooth": float("nan")}, "'smooth' parameter of TargetEncoder must be a finite number"),
    ({"smooth": "atuo"}, r"'smooth' parameter .* one of \"auto\", a number of at least 0, None, MEstimate"),
    ({"cv": 1}, "'n_splits' parameter of KFold must be an integer of at least 2. Got 1"),
    ({"cv": 2.5}, "'cv' parameter of TargetEncoder must be one of an integer, None, a splitter, .* Got 2.5"),
    ({"cv": True}, "'cv' parameter of TargetEncoder must be one of .* Got True"),
    ({"cv": ge.KFold(2.5)}, "'n_splits' parameter of KFold must be an integer of at least 2. Got 2.5"),
    (
        {"cv": ge.KFold(order="sorted")},
        "'order' parameter of KFold must be one of 'random', 'contiguous', 'interleaved'",
    ),
    ({"cv": ge.KFold(stratify=1)}, "'stratify' parameter of KFold must be one of True, False. Got 1"),
    ({"cv": ge.KFold(blow_up="yes")}, "'blow_up' parameter of KFold must be one of True, False. Got 'yes'"),
    ({"cv": ge.KFold(random_state="7")}, "random_state must be an integer, None or a NumPy generator. Got '7'"),
    ({"cv": ge.GroupKFold(1, groups="shop")}, "'n_splits' parameter of GroupKFold must be an integer of at least 2"),
    ({"cv": ge.GroupKFold(groups="shp")}, "The scheme's column 'shp' is not a column of X. Did you mean 'shop'"),
    ({"cv": ge.GroupKFold(groups=pd.Series(range(12)))}, "must be the name or position of a column of X. Got a Series"),
    ({"cv": ge.TimeFolds(1, time="day")}, "'n_splits' parameter of TimeFolds must be an integer of at least 2"),
    (
        {"cv": ge.TimeFolds(3, time="day", gap=-1)},
        "'gap' parameter of TimeFolds must be an integer of at least 0. Got -1",
    ),
    (
        {"cv": ge.TimeFolds(3, time="day", gap=2)},
        "'gap' parameter of TimeFolds must be at most n_splits - 2 = 1, or no",
    ),
    ({"cv": ge.TimeFolds(3, time="dya")}, "The scheme's column 'dya' is not a column of X. Did you mean 'day'"),
    ({"cv": ge.Holdout(1.5)}, "'fraction' parameter of Holdout must be a finite number of at least 0 and at most 1"),
    ({"cv": ge.Holdout(0)}, "'fraction' parameter of Holdout must lie between 0.005 and 0.995. Got 0"),
    ({"cv": ge.Ordered(0)}, "'n_permutations' parameter of Ordered must be an integer of at least 1. Got 0"),
    ({"cv": ge.Ordered(burn_in=1.5)}, "'burn_in' parameter of Ordered must be an integer or a share below 1. Got 1.5"),
    ({"cv": ge.Ordered(burn_in=-1)}, "'burn_in' parameter of Ordered must be a finite number of at least 0. Got -1"),
    ({"cv": ge.Ordered(average=None)}, "'average' parameter of Ordered must be one of True, False. Got None"),
    ({"cv": ge.Ordered(shuffle=None)}, "'shuffle' parameter of Ordered must be one of True, False. Got None"),
    ({"cv": ge.Ordered(2, shuffle=False)}, r"Ordered\(shuffle=False\) has one order, that of the rows"),
    ({"cv": ge.Ordered(time="day", shuffle=False)}, r"Ordered\(shuffle=False\) has one order, that of the rows"),
    ({"cv": ge.Ordered(2, time="day")}, r"Ordered\(time=...\) has one order: leave n_permutations at 1"),
    ({"cv": "flod"}, "The scheme's column 'flod' is not a column of X"),
    ({"cv": "zip", "columns": ["zip"]}, "Column 'zip' is used by the scheme .* and cannot be encoded as well"),
    ({"cv": "zip", "columns": [("city", "zip")]}, "Column 'zip' is used by the scheme"),
    ({"shuffle": "no"}, "'shuffle' parameter of TargetEncoder must be one of True, False. Got 'no'"),
    ({"random_state": 1.5}, "random_state must be an integer, None or a NumPy generator. Got 1.5"),
    ({"target_type": "bin"}, "'target_type' .* must be one of 'auto', 'binary', 'continuous', 'multiclass'. Got 'bin'"),
    ({"target_type": ["continuous"] * 2}, "target_type lists 2 kinds for 1 targets"),
    ({"target_type": ["quantity"]}, "'target_type' .* must be one of 'auto', 'binary', 'continuous', 'multiclass'"),
    ({"target_type": "binary"}, 'needs at most 2 distinct labels in y. Got 12: .*"multiclass" for labels'),
    ({"handle_unknown": "value"}, "'handle_unknown' .* must be one of 'prior', 'nan', 'error', a number. Got 'value'"),
    ({"handle_unknown": float("inf")}, "'handle_unknown' parameter of TargetEncoder must not be infinite"),
    ({"handle_missing": "mean"}, "'handle_missing' .* one of 'category', 'prior', 'nan', 'error'. Got 'mean'"),
    ({"min_count": -1}, "'min_count' parameter of TargetEncoder must be a finite number of at least 0. Got -1"),
    ({"prior": "median"}, "'prior' parameter of TargetEncoder must be one of 'mean', 'category_mean'. Got 'median'"),
    ({"prior": None}, "'prior' .* one of 'mean', 'category_mean', a number, a dict of one number per column. Got None"),
    ({"prior": float("nan")}, "'prior' parameter of TargetEncoder must be a finite number. Got nan"),
    ({"prior": {"city": "x"}}, r"prior\['city'\].* must be a finite number. Got 'x'"),
    ({"prior": {"cty": 1.0}}, "prior: 'cty' is not a column of X. Did you mean 'city'"),
    ({"prior": {"zip": 1.0}, "columns": ["city"]}, "prior names 'zip', which is not among the columns to encode. Add"),
    ({"indicators": 1}, "'indicators' parameter of TargetEncoder must be one of True, False, a list of .* Got 1"),
    ({"drop": "last"}, "'drop' parameter of TargetEncoder must be one of None, 'first'. Got 'last'"),
    ({"device": "gpu"}, "'device' parameter of TargetEncoder must be one of 'auto', 'cpu', 'cuda'. Got 'gpu'"),
    ({"dtype": "float16"}, "'dtype' parameter of TargetEncoder must be one of 'float64', 'float32'. Got 'float16'"),
    ({"categories": "all"}, "'categories' .* one of 'auto', a list of one list of categories per column. Got 'all'"),
    ({"categories": [["a"]]}, "Shape mismatch: .* categories has 1 lists for 4 columns. Give one per column"),
    ({"categories": [["a", "b", "a"]], "columns": ["city"]}, "categories of column 'city' contain 'a' more than once"),
    ({"categories": [["a", None, "b"]], "columns": ["city"]}, r"a missing value \(None, NaN\) must be the last"),
    (
        {"categories": ["abc"], "columns": ["city"]},
        "categories of 'city' must be a list of values or 'auto'. Got 'abc'",
    ),
    ({"categories": [3], "columns": ["city"]}, "categories of 'city' must be a list of values or 'auto'. Got 3"),
    ({"categories": [["a"]], "columns": [("city", "zip")]}, "categories of 'city_x_zip' cannot be given: .* 'auto'"),
    (
        {"categories": [["a"]], "columns": ["city"], "handle_unknown": "error"},
        "'city' during fit: 8 rows, .* row 2. Add",
    ),
]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(("parameters", "match"), PARAMETERS, ids=range(len(PARAMETERS)))
def test_parameters(fitted, frame, y, method, parameters, match):
    with Unchanged(fitted, frame), pytest.raises(ValueError, match=match):
        getattr(fitted.set_params(**parameters), method)(frame, y)
