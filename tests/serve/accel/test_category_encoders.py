"""Served calls give the bits of category_encoders: outputs, attributes and messages."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpu_encode.serve import accel

ce = pytest.importorskip("category_encoders")
pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not ce.__version__.startswith("2.11."), reason="a version that is not served"),
]

N_ROWS = 60
RNG = np.random.default_rng(0)


def draw(values, dtype=object):
    return pd.Series([values[number] for number in RNG.integers(0, len(values), N_ROWS)], dtype=dtype)


COLUMNS = {
    "text": draw(["b", "a", "", "ü"], "str"),
    "text with missing": draw(["b", "a", None, "c"], "str"),
    "nullable text": draw(["b", "a", None, "c"], "string"),
    "objects": draw(["b", "a", "z"]),
    "None": draw(["b", "a", None]),
    "NaN": draw(["b", "a", np.nan]),
    "None and NaN": draw(["b", "a", None, np.nan]),
    "mixed": draw(["1", 1, 2.5, True, "a", np.nan]),
    "categories": draw(["b", "a", None, "c"]).astype("category"),
    "ordered": draw(["b", "a", "c"]).astype(pd.CategoricalDtype(["c", "unused", "b", "a"], ordered=True)),
    "whole numbers": draw([3, 1, -2], "int64"),
    "floats": draw([0.5, -0.0, 0.0, np.nan], "float64"),
    "nullable": draw([3, 1, None], "Int64"),
    "booleans": draw([True, False], "bool"),
}
REAL, CLASS = RNG.normal(size=N_ROWS).round(2), (RNG.random(N_ROWS) < 0.4).astype(int)
ENCODERS = [
    *(ce.TargetEncoder(), ce.TargetEncoder(min_group_size=12, handle_missing="return_nan", handle_unknown="error")),
    ce.MEstimateEncoder(randomized=True, random_state=1, handle_unknown="return_nan"),
    *(ce.LeaveOneOutEncoder(), ce.LeaveOneOutEncoder(handle_missing="return_nan", handle_unknown="return_nan")),
    *(ce.LeaveOneOutEncoder(sigma=0.1, random_state=4), ce.LeaveOneOutEncoder(handle_unknown="error")),
    *(ce.CatBoostEncoder(), ce.CatBoostEncoder(a=2, sigma=0.1, random_state=4, handle_missing="return_nan")),
    *(ce.JamesSteinEncoder(), ce.WOEEncoder(handle_unknown="error")),
    *(ce.CountEncoder(), ce.CountEncoder(normalize=True, handle_unknown=7, handle_missing="return_nan")),
    *(ce.CountEncoder(min_group_size=12), ce.OrdinalEncoder(handle_missing="return_nan", return_df=False)),
    *(ce.OneHotEncoder(use_cat_names=True), ce.BinaryEncoder()),
]


def see(encoder, X, y, new_rows):
    """Return everything that a user sees of an encoder."""
    seen = {}
    encoder = clone(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in {
            "fit_transform": lambda: encoder.fit_transform(X, y),
            "mapping": lambda: encoder.mapping,
            "names": encoder.get_feature_names_out,
            "training rows as new": lambda: encoder.transform(X),
            "new rows": lambda: encoder.transform(new_rows),
        }.items():
            try:
                seen[name] = call()
            except Exception as error:
                seen[name] = type(error), str(error)
    return seen


def check(encoder, X, y, new_rows):
    """Compare everything that a user sees with and without the accelerator; give the accelerator's report."""
    before, theirs = X.copy(), see(encoder, X, y, new_rows)
    accel.install(fewest_rows=0)
    ours, report = see(encoder, X, y, new_rows), accel.report()
    accel.uninstall()
    if encoder.handle_unknown != "error":
        assert isinstance(theirs["fit_transform"], tuple) == (encoder.cols in (["nullable"], ["lists", "text"]))
    pd.testing.assert_frame_equal(X, before)
    for name, wanted in theirs.items():
        assert plain(ours[name]) == plain(wanted), name
    return report


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: repr(encoder).replace("\n", ""))
def test_bits(encoder):
    X = pd.DataFrame(COLUMNS).assign(aside=REAL).set_axis(RNG.permutation(N_ROWS))
    y = pd.Series(CLASS if isinstance(encoder, ce.WOEEncoder) else REAL, index=X.index)
    new_rows = X.iloc[: N_ROWS // 2].copy()
    for kind in ("text with missing", "objects", "None", "mixed"):
        new_rows.loc[new_rows.index[::3], kind] = "new"
    # These two refuse missing values of nullable numbers, at fit.
    refuses = isinstance(encoder, ce.LeaveOneOutEncoder | ce.CatBoostEncoder)
    columns = [kind for kind in COLUMNS if kind != "nullable" or not refuses]
    report = check(clone(encoder).set_params(cols=columns), X, y, new_rows)
    assert report.n_served >= 3
    if refuses:
        check(clone(encoder).set_params(cols=["nullable"]), X, y, new_rows)


def test_columns_that_cannot_be_numbered():
    X = pd.DataFrame({"lists": draw([["a"], ["b"]]), "text": COLUMNS["text"]})
    for encoder in (ce.TargetEncoder(), ce.CountEncoder(), ce.LeaveOneOutEncoder(), ce.CatBoostEncoder()):
        check(encoder.set_params(cols=[*X]), X, pd.Series(REAL), X)


@pytest.mark.filterwarnings("ignore")
def test_the_report_says_which_columns_were_not_served_and_why():
    X = pd.DataFrame({"text": COLUMNS["text"], "lists": draw([["a"], ["b"]])})
    accel.install(fewest_rows=0)
    ce.OrdinalEncoder(cols=["text"]).fit(X)
    with pytest.raises(TypeError):
        ce.LeaveOneOutEncoder(cols=["text", "lists"]).fit(X, REAL)
    ce.LeaveOneOutEncoder(cols=["text"]).fit(X, REAL).transform(X, REAL)
    ce.CatBoostEncoder(cols=["text"]).fit(X, REAL).transform(X, REAL)
    ce.HashingEncoder(cols=["text"], max_process=1).fit(X)
    lines = {line.method.removeprefix("category_encoders."): line for line in accel.report().lines}
    assert (lines["OrdinalEncoder.fit"].served_by, lines["OrdinalEncoder.fit"].n_rows) == ("cpu", N_ROWS)
    assert lines["LeaveOneOutEncoder.transform"].served_by == "cpu"
    refused = accel.report().lines[1]
    assert refused.served_by == "cpu"
    assert refused.reason == "a column cannot be numbered: unhashable type: 'list' (column 'lists')"
    for method, reason in {
        "CatBoostEncoder.transform": "rows see those before them",
        "HashingEncoder.fit": "no column is looked up value by value",
    }.items():
        assert (lines[method].served_by, lines[method].reason) == ("category_encoders", reason)
    accel.install(fewest_rows=N_ROWS + 1)
    ce.OrdinalEncoder(cols=["text"]).fit(X)
    assert accel.report().lines[-1].reason == "few rows"


def test_other_versions_serve_themselves(monkeypatch, capsys):
    before = ce.OrdinalEncoder._map_column
    monkeypatch.setattr(ce, "__version__", "2.12.0")
    accel.install()
    assert ce.OrdinalEncoder._map_column is before
    assert capsys.readouterr().err == (
        "gpu_encode.accel: not tested with category_encoders 2.12.0, which serves every call itself.\n"
    )


def test_uninstall_puts_everything_back():
    owners = (ce.OrdinalEncoder, ce.LeaveOneOutEncoder, ce.CatBoostEncoder, ce.CountEncoder, *ce.TargetEncoder.__mro__)
    before = [dict(vars(owner)) for owner in owners]
    accel.install()
    assert [dict(vars(owner)) for owner in owners] != before
    accel.uninstall()
    assert [dict(vars(owner)) for owner in owners] == before


def plain(value):
    """Give the parts of a value that its pickle depends on."""
    if isinstance(value, pd.DataFrame):
        return [(name, plain(column)) for name, column in value.items()]
    if isinstance(value, pd.Series):
        return str(value.dtype), value.name, repr(value.index.tolist()), repr(value.tolist())
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else repr(value)
