"""The tables and rules of a fitted encoder, applied in plain loops, give the values of `transform`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import gpu_encode as ge
from gpu_encode.serve import export
from gpu_encode.serve.export import from_arrow, to_arrow
from gpu_encode.serve.export.tables import tables_of, without_rare

FRAME = pd.DataFrame(
    {
        "town": ["x", "y", None, "x", "y", "z", "x", None],
        "size": [1.0, 2.0, 2.0, 1.0, None, 3.0, 2.0, None],
        "land": ["p", "p", "q", "q", "p", "p", None, "q"],
        "zip": ["101", "102", "201", "20", "2", "101", None, "2"],
    }
)
NEW = pd.DataFrame(
    {
        "town": ["x", "never", None, "z", None, "never", "y"],
        "size": [2.0, 9.0, None, 3.0, 2.0, None, None],
        "land": ["q", "p", "p", "never", None, None, "q"],
        "zip": ["109", "2", "209", "never", None, "3", "10"],
    }
)
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1])
ENCODERS = [
    ge.TargetEncoder(columns=["town", ("town", "size"), "size"]),
    ge.TargetEncoder(columns=["town", ("town", "size")], handle_missing="prior", dtype="float32"),
    ge.TargetEncoder(columns=["town"], hierarchy={"town": ["land"]}, smooth=1.0),
    ge.TargetEncoder(columns=["town"], hierarchy={"town": ["land", "size"]}, handle_missing="prior"),
    ge.TargetEncoder(columns=["town", ("town", "size")], indicators=("unseen", "missing")),
    ge.CountEncoder(columns=["land", "town"]),
    ge.CatBoostEncoder(),
    ge.StatisticEncoder(["mean", "count"], columns=["town", "size"]),
    ge.ClusterEncoder(2, columns=["town", "size"], output="onehot", cv=2),
    ge.ClusterEncoder(2, columns=["town", ("town", "size")], handle_missing="own", handle_unknown="nan", cv=2),
    # The outputs of a key do not follow one another.
    ge.CooccurrenceEncoder(2, pairs=[("town", "land"), ("land", "town"), ("town", "size")], indicators=True),
    ge.FactorizationEncoder(2, output="factors", columns=["town", "land"], handle_missing="mean", cv=2),
]


def follow(tables, row):
    """Give the encoding of a row of plain values, by the rules in the module's docstring."""
    found = []
    for key in tables.keys:
        values = tuple(row[column] for column in key.columns)
        lacks = None in values[key.n_above :]
        if lacks and (len(key.columns) == 1 or not key.missing_is_category):
            found += key.missing
            continue
        answer = key.unknown[lacks]
        for level in reversed(key.levels):
            rows = list(zip(*(column.to_pylist() for column in level.values.columns), strict=True))
            own = values[: len(level.values.columns)]
            if own in rows:
                answer = (level.lacking if lacks else level.present)[rows.index(own)]
        found += answer
    return [*(found[number] for number in tables.order), *(row[column] for column in tables.passed)]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_rules_followed_in_loops(encoder):
    encoder.fit(FRAME, Y)
    tables = tables_of(encoder)
    expected = encoder.transform(NEW)
    rows = NEW.astype(object).where(NEW.notna(), None).to_dict("records")
    found = pd.DataFrame([follow(tables, row) for row in rows], columns=tables.names)
    assert tables.names == list(expected.columns)
    for name in tables.names[: len(tables.order)]:
        np.testing.assert_array_equal(found[name].to_numpy(expected[name].dtype), expected[name].to_numpy())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_factors_of_several_classes_keep_their_order():
    encoder = ge.FactorizationEncoder(2, output="factors", columns=["town", "land"], cv=2, dtype="float32")
    encoder.fit(FRAME, ["a", "b", "c", "a", "b", "c", "a", "b"])
    expected = encoder.transform(NEW)
    assert len(encoder._model.positions()[0]) == 6
    again = from_arrow(to_arrow(encoder))
    pd.testing.assert_frame_equal(again.transform(NEW), expected, check_exact=True)
    row = dict(zip(NEW.columns, NEW.astype(object).iloc[0], strict=True))
    for one in (encoder, again):
        assert one.row_encoder()(row)[:12] == expected.iloc[0, :12].astype(float).tolist()


def test_levels_by_a_rule_are_labels():
    encoder = ge.TargetEncoder(columns=["zip"], hierarchy={"zip": ge.Prefixes(2, 1)}, smooth=1.0).fit(FRAME, Y)
    (key,) = tables_of(encoder).keys
    assert [level.values["zip"].to_pylist() for level in key.levels[1:]] == [["10", "20"], ["1", "2"]]
    by_label = dict(zip(["10", "20"], key.levels[1].present, strict=True))
    expected = encoder.transform(pd.DataFrame({"zip": ["109"], "town": "x", "size": 1.0, "land": "p"}))
    assert by_label["10"] == (expected["zip"][0],)


@pytest.mark.parametrize("encoder", [ge.HashingEncoder(n_components=4), ge.SpectralEncoder(n_components=1)])
def test_others_are_refused(encoder):
    X = pd.DataFrame({"a": ["x", "y", "x", "z"], "b": ["p", "q", "q", "p"]})
    with pytest.raises(TypeError, match="cannot be exported"):
        tables_of(encoder.fit(X))


def test_columns_of_ones_are_no_tables():
    encoder = ge.OneHotEncoder().fit(FRAME[["town"]])
    assert tables_of(encoder).keys[0].levels[0].present == [(0,), (1,), (2,)]
    with pytest.raises(TypeError, match=r"OneHotEncoder .* its categories are columns. to_sql, to_onnx and to_polars"):
        export.to_arrow(encoder)
    with pytest.raises(ValueError, match=r"min_count leaves out categories, .* Fit with min_frequency"):
        without_rare(tables_of(encoder), 2)


EXPORTS = {
    "to_arrow": ("pyarrow", {}),
    "to_json": ("pyarrow", {}),
    "to_onnx": ("onnx", {}),
    "to_polars": ("polars", {}),
    "to_sql": ("sqlglot", {"table": "rows"}),
    "to_sql_tables": ("sqlglot", {"name": "rows"}),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_what_every_export_is_told(name):
    needed, parameters = EXPORTS[name]
    pytest.importorskip(needed)
    write = getattr(export, name)
    for other, hint in {
        "a.model": r".load\('a.model'\)",
        None: ".load",
        3: ".load",
        ge.CountEncoder: r" CountEncoder\(\)",
    }.items():
        with pytest.raises(TypeError, match=rf"encoder must be an encoder of gpu_encode, .* Got .*{hint}"):
            write(other, **parameters)
    with pytest.raises(NotFittedError, match="CountEncoder instance is not fitted yet"):
        write(ge.CountEncoder(), **parameters)
    encoder = ge.CountEncoder().fit(FRAME)
    for least in (-1, np.nan, np.inf, "3", None, True):
        with pytest.raises(ValueError, match=r"'min_count' parameter of an export must be a finite number of"):
            write(encoder, **parameters, min_count=least)


def test_rare_categories_are_left_out():
    encoder = ge.TargetEncoder(columns=["town", "size"], hierarchy={"town": ["land"]}).fit(FRAME, Y)
    town, size = without_rare(tables_of(encoder), 2).keys
    assert town.levels[0].values.to_pylist() == [{"land": "p", "town": "y"}, {"land": "q", "town": None}]
    assert town.levels[1].values["land"].to_pylist() == ["p", "q"]
    assert size.levels[0].values["size"].to_pylist() == [1.0, 2.0]
    assert size.missing == tables_of(encoder).keys[1].missing
    assert without_rare(tables_of(encoder), 3).keys[1].missing == size.unknown[1] != size.missing
