"""Columns whose names are no strings are called x0, x1, ... by their position, in every output and by every encoder."""

import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import gpu_encode as ge

pytestmark = pytest.mark.host

ROWS = [["a", 1, "p"], ["b", 2, "q"], ["a", 3, "r"]]
Y = [0.5, 1.5, 2.5]
NAMES = {"integers": [7, 8, 9], "from zero": [0, 1, 2], "tuples": pd.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 2)])}
ENCODERS = {
    "target": ge.TargetEncoder(columns=[2], target_type="continuous", cv=ge.KFold(2)),
    "one hot": ge.OneHotEncoder(columns=[2], sparse_output=False),
    "hashing": ge.HashingEncoder(columns=[2], n_components=2),
    "cluster": ge.ClusterEncoder(columns=[2], n_clusters=2, target_type="continuous", cv=ge.Greedy()),
}


def frame(names):
    return pd.DataFrame(ROWS, columns=NAMES[names])


def names_of(table):
    return list(table.columns)


@pytest.mark.filterwarnings("ignore::gpu_encode.LeakWarning", "ignore:X has columns of several levels")
@pytest.mark.parametrize("wanted", [None, "pandas", "polars"])
@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_names(encoder, names, wanted):
    X = frame(names)
    made = clone(encoder).set_output(transform=wanted)
    expected = made.fit(X, Y).get_feature_names_out().tolist()
    assert expected[-2:] == ["x0", "x1"]
    for output in (made.fit_transform(X, Y), made.transform(X)):
        assert names_of(output) == expected
        assert isinstance(output, pl.DataFrame if wanted == "polars" else pd.DataFrame)
        assert list(output["x0"]) == ["a", "b", "a"]
    assert list(X.columns) == list(NAMES[names])


@pytest.mark.filterwarnings("ignore::gpu_encode.LeakWarning")
@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_columns_of_several_levels_are_told(encoder):
    X = frame("tuples").rename(columns=str)
    with pytest.warns(UserWarning, match=r"columns of several levels.* called x0, x1.*X.columns.map\(\"_\".join\)"):
        made = clone(encoder).fit(X, Y)
    made.transform(X)
    X.columns = X.columns.map("_".join)
    output = clone(encoder).set_params(columns=["2_2"]).fit(X, Y).transform(X)
    assert {"1_2", "1_3"} <= set(output.columns)


def test_pieces():
    encoder, X = ENCODERS["target"], frame("integers")
    pieces = [X[:2], X[2:].to_numpy()]
    tables = encoder.fit_transform(pieces, Y)
    assert names_of(tables[0]) == ["x2", "x0", "x1"]
    assert [table.shape for table in tables] == [(2, 3), (1, 3)]


def test_names_at_fit_hold():
    """An encoder fitted with names gives them to a table without names."""
    named = frame("integers").set_axis(["one", "two", "three"], axis=1)
    encoder = ge.CountEncoder(columns=["three"]).fit(named)
    output = encoder.transform(frame("integers"))
    assert names_of(output) == encoder.get_feature_names_out().tolist() == ["three", "one", "two"]


def test_columns_that_training_alone_reads():
    X = frame("integers")
    encoder = ge.StatisticEncoder(["mean"], values=[1]).fit(X)
    assert names_of(encoder.transform(X.drop(columns=8))) == ["x0_x1_mean", "x2_x1_mean"]
    assert names_of(encoder.transform(X)) == ["x0_x1_mean", "x2_x1_mean"]


@pytest.mark.parametrize("parameters", [{"columns": [8]}, {"cv": ge.TimeFolds(2, time=8)}], ids=str)
def test_an_integer_is_a_position(parameters):
    message = "8 is out of range: X has 3 columns, and an integer is a position. The column named 8 is at 1."
    with pytest.raises(ValueError, match=message):
        ge.TargetEncoder(**parameters).fit(frame("integers"), Y)
    with pytest.raises(ValueError, match=r"an integer is a position\.$"):
        ge.TargetEncoder(**parameters).fit(frame("from zero"), Y)


def test_string_names_stay():
    X = frame("integers").set_axis(pd.Index(["a", "b", "c"], name="columns"), axis=1)
    output = ENCODERS["target"].fit_transform(X, Y)
    assert names_of(output) == ["c", "a", "b"]
    assert output["b"].equals(X["b"])
