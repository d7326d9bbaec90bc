"""A graph of ONNX gives the bits of `transform` in onnxruntime."""

import builtins

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode as ge
from gpu_encode.serve.export import to_onnx
from tests.serve.export.graphs import encodings, inputs_of, onnx, run, same_bits
from tests.strategies import examples

pytestmark = pytest.mark.host

FRAME = pd.DataFrame(
    {
        "town": ["x", "y", None, "x", "y", "z", "x", None],
        "size": [1.0, 2.0, 2.0, 1.0, None, 3.0, 2.0, None],
        "land": ["p", "p", "q", "q", "p", "p", None, "q"],
        "rank": [1, 2, 1, -3, 2**62, 1, 2, 2],
        "grade": np.array([0.1, 0.2, 0.1, 0.1, 2.5, 0.1, 0.2, np.nan], np.float32),
        "held": [True, False, True, True, True, False, True, True],
    }
)
NEW = pd.DataFrame(
    {
        "town": ["x", "never", None, "z", None, "never", "y", "x"],
        "size": [2.0, 9.0, None, 3.0, 2.0, None, None, -0.0],
        "land": ["q", "p", "p", "never", None, None, "q", "p"],
        "rank": [1, 7, 2**62, -3, 2, 2**62 - 1, 1, 2],
        "grade": np.array([0.1, 0.3, np.nan, 2.5, 0.1, 0.2, 0.2, 0.1], np.float32),
        "held": [True, False, True, True, False, False, True, False],
    }
)
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1])
ALL = list(FRAME)
PAIR, TRIPLE = ("town", "size"), ("rank", "town", "held")
KEYS = [*ALL, PAIR, TRIPLE]
MISSING = ["category", "prior", "nan"]
ENCODERS = {
    **{
        f"unknown {unknown}, missing {missing}": ge.TargetEncoder(
            columns=KEYS, handle_unknown=unknown, handle_missing=missing, indicators=missing != "nan"
        )
        for unknown, missing in zip(["prior", "nan", -1.5], MISSING, strict=True)
    },
    "float32": ge.TargetEncoder(columns=KEYS, dtype="float32", indicators=["missing"]),
    "categories given": ge.TargetEncoder(columns=["town", "rank"], categories=[["x", "y"], [1, 9]]),
    "classes": ge.TargetEncoder(columns=["town", PAIR], target_type="multiclass", indicators=True),
    "a level above": ge.TargetEncoder(columns=["town"], hierarchy={"town": ["land"]}, smooth=1.0),
    "levels above": ge.TargetEncoder(columns=["town"], hierarchy={"town": ["land", "size"]}, indicators=True),
    "levels above, prior": ge.TargetEncoder(
        columns=["size"], hierarchy={"size": ["land", "town"]}, handle_missing="prior", smooth=2.0
    ),
    "rare": ge.TargetEncoder(columns=KEYS, min_count=2, handle_infrequent="category"),
    "blow-up": ge.TargetEncoder(columns=["town"], cv=ge.KFold(2, blow_up=True)),
    "counts": ge.CountEncoder(columns=KEYS),
    "clusters": ge.ClusterEncoder(2, columns=["town", PAIR], output="onehot", cv=2),
    "neighbours": ge.CooccurrenceEncoder(2, pairs=[("town", "land"), ("land", "town"), ("town", "rank")]),
    "factors": ge.FactorizationEncoder(2, output="factors", columns=["town", "land"], cv=2),
    "catboost": ge.CatBoostEncoder(columns=KEYS),
    "impact": ge.ImpactEncoder(columns=["town", PAIR], indicators=True),
    "evidence": ge.WeightOfEvidenceEncoder(columns=["town", PAIR]),
    "statistics": ge.StatisticEncoder(["mean", ("quantile", 0.5), "nunique"], columns=["town", PAIR]),
    "ordinal": ge.OrdinalEncoder(
        columns=KEYS, handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2, dtype="int32"
    ),
    "one-hot": ge.OneHotEncoder(columns=KEYS, sparse_output=False, handle_unknown="ignore", dtype="bool"),
    "one-hot, some": ge.OneHotEncoder(
        columns=KEYS, sparse_output=False, handle_unknown="infrequent_if_exist", min_frequency=2, handle_missing="zero"
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_bits_of_transform(name):
    encoder = ENCODERS[name].fit(FRAME, Y)
    expected = encoder.transform(NEW)
    expected = expected[list(expected.columns[: expected.shape[1] - len(encoder._model.selection.passed)])]
    model = to_onnx(encoder, passed=False, missing_text="")
    same_bits(encodings(model, NEW), expected)
    assert all(version.domain in ("", "ai.onnx.ml") for version in model.opset_import)


def test_gradients():
    encoder = ge.GradientEncoder(columns=["town", PAIR]).fit(FRAME, np.column_stack([Y - 0.5, np.ones(8)]))
    expected = encoder.transform(NEW)
    model = to_onnx(encoder, passed=False, missing_text="")
    same_bits(encodings(model, NEW), expected[list(encodings(model, NEW).columns)])


VALUES = {
    "text": st.sampled_from(["", "a", "A", "é", "a\0b", " a", "a,b", "💡", None]),
    "floats": st.sampled_from([0.0, -0.0, 0.1, 0.1 + 2**-56, 1e300, 5e-324, -1e-45, 2.0**53, 16777217.0, np.nan]),
    "whole": st.sampled_from([0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "held": st.booleans(),
}


@st.composite
def tables(draw):
    """Draw rows to fit and rows to encode."""
    n_rows = draw(st.integers(1, 6))
    rows = {name: draw(st.lists(of, min_size=2 * n_rows, max_size=2 * n_rows)) for name, of in VALUES.items()}
    return pd.DataFrame(rows).astype({"text": object}), n_rows


@given(
    tables(),
    st.lists(st.permutations(list(VALUES)), min_size=1, max_size=2),
    st.integers(2, 4),
    st.sampled_from(MISSING),
    st.booleans(),
)
@examples(15)
def test_any_values(table, orders, width, missing, has_levels):
    X, n_rows = table
    encoder = ge.TargetEncoder(
        columns=[*VALUES, *dict.fromkeys(tuple(order[:width]) for order in orders)],
        hierarchy={"floats": ["whole", "text"]} if has_levels else None,
        handle_missing=missing,
        indicators=["missing"],
        target_type="continuous",
    ).fit(X[:n_rows], np.arange(n_rows) ** 2 / 3)
    model = to_onnx(encoder, passed=False, missing_text="missing")
    found = encodings(model, X[n_rows:], "missing")
    same_bits(found, encoder.transform(X[n_rows:])[list(found.columns)])


@pytest.mark.parametrize(
    ("given", "types"),
    [
        (["1.5", "2", "1.5"], {}),
        ([1.5, 2.0, np.nan], {}),
        ([1, 2, 1], {"x0": "float64"}),
        ([1, 2**53 + 1, 1], {"x0": "float32"}),
        ([0.1, 0.5, 0.5], {"x0": "float32"}),
        ([1.0, 2.0, 2.5], {"x0": "int8"}),
        ([1, 0, 2], {"x0": "bool"}),
    ],
)
def test_types_of_inputs_may_be_others(given, types):
    X = np.array(given, object)[:, None]
    encoder = ge.TargetEncoder(smooth=0.0).fit(X, [0, 1, 1])
    model = to_onnx(encoder, types=types)
    frame = pd.DataFrame({"x0": [0, 1, 2, 300, 2] if "x0" in types else [*given, given[0]]}).fillna(np.nan)
    rows = inputs_of(model, frame)
    assert run(model, rows)[0].tolist() == encoder.transform(rows["x0"]).tolist()


@pytest.mark.parametrize(("largest", "dtype"), [(3, "DOUBLE"), (2**53, "INT64")])
def test_whole_numbers_that_rows_lacked_are_floats_where_these_hold_them(largest, dtype):
    X = pd.DataFrame({"size": pd.array([1, None, largest, 1], "Int64"), "land": ["p", "p", "q", "q"]})
    for levels in [{}, {"handle_missing": "prior", "hierarchy": {"size": ["land"]}}]:
        encoder = ge.TargetEncoder(columns=["size"], smooth=0.0, **levels).fit(X, [0, 1, 1, 1])
        model = to_onnx(encoder, passed=False)
        assert model.graph.input[0].type.tensor_type.elem_type == getattr(onnx.TensorProto, dtype)
        known = X.dropna()
        same_bits(encodings(model, known), encoder.transform(known)[["size"]])


def test_one_matrix():
    X = np.array([["a", "p"], ["b", "q"], ["a", "q"]], object)
    encoder = ge.TargetEncoder(columns=[1, (0, 1)], smooth=0.0).fit(X, [0, 1, 1])
    model = to_onnx(encoder, matrix=True, passed=False)
    assert [described.name for described in model.graph.input] == ["X"]
    assert run(model, {"X": X})[0].tolist() == encoder.transform(X)[:, :2].tolist()


def test_passed_columns_stand_last():
    encoder = ge.TargetEncoder(columns=["town"], dtype="float32").fit(FRAME[["rank", "town", "grade"]], Y)
    model = to_onnx(encoder, types={"rank": "int64"})
    found = encodings(model, NEW)
    assert list(found.columns) == ["town", "rank", "grade"]
    assert [described.name for described in model.graph.input] == ["rank", "town", "grade"]
    # The common type of float32 and int64 is float64, as in NumPy.
    assert found["rank"].to_list() == NEW["rank"].astype("float64").to_list()
    np.testing.assert_array_equal(found["grade"], NEW["grade"])


def test_columns_named_like_tensors():
    X = pd.DataFrame({"encodings": ["a", "b"], "constant": ["p", "q"], "X": ["a", "a"], "gather": [1, 2]})
    encoder = ge.TargetEncoder(columns=[*X, ("constant", "gather")], smooth=0.0).fit(X, [0, 1])
    same_bits(encodings(to_onnx(encoder), X), encoder.transform(X))


def test_a_column_with_an_empty_name():
    encoder = ge.TargetEncoder(smooth=0.0).fit(pd.DataFrame({"": ["a", "b"]}), [0, 1])
    with pytest.raises(ValueError, match="one column has none: rename it, or give matrix=True"):
        to_onnx(encoder)
    assert run(to_onnx(encoder, matrix=True), {"X": np.array([["b"]])})[0].tolist() == [[1.0]]


def test_text_that_is_missing():
    encoder = ge.TargetEncoder(columns=["town"], smooth=0.0).fit(FRAME[["town"]], Y)
    rows = pd.DataFrame({"town": ["", "NULL", "x"]})
    known = encoder.transform(pd.DataFrame({"town": [None, "never", "x"]}))["town"].to_list()
    for missing_text, expected in [(None, [1, 1, 2]), ("", [0, 1, 2]), ("NULL", [1, 0, 2])]:
        found = encodings(to_onnx(encoder, missing_text=missing_text), rows)["town"].to_list()
        assert found == [known[number] for number in expected]
    with pytest.raises(ValueError, match="missing_text='x' is a category of column 'town'"):
        to_onnx(encoder, missing_text="x")


def test_rare_values_leave_no_trace():
    encoder = ge.TargetEncoder(columns=["town", PAIR]).fit(FRAME, Y)
    model = to_onnx(encoder, min_count=2, passed=False, missing_text="")
    assert b"z" not in [text for node in model.graph.node for each in node.attribute for text in each.strings]
    found, unknown = encodings(model, NEW)["town"], encoder.transform(NEW.assign(town="never"))["town"]
    assert found[3] == unknown[3] != encoder.transform(NEW)["town"][3]
    same_bits(
        encodings(to_onnx(encoder, min_count=1, passed=False), FRAME), encodings(to_onnx(encoder, passed=False), FRAME)
    )


def test_all_values_missing():
    X = pd.DataFrame({"town": [None, None]})
    encoder = ge.TargetEncoder(columns=["town"], smooth=0.0).fit(X, [0.0, 1.0])
    rows = {"town": np.array([[np.nan], [1.0]])}
    assert (
        run(to_onnx(encoder), rows)[0].tolist()
        == encoder.transform(pd.DataFrame({"town": [None, "x"]})).values.tolist()
    )


REFUSED = [
    (
        ge.TargetEncoder(columns=["town"], handle_unknown="error"),
        {},
        ValueError,
        "cannot refuse rows, .* values of 'town'",
    ),
    (
        ge.TargetEncoder(columns=[("rank", "held")], handle_missing="error"),
        {},
        ValueError,
        r"values of \('rank', 'held'\)",
    ),
    (ge.OrdinalEncoder(columns=["town"]), {}, ValueError, r"with other policies \(handle_unknown"),
    (ge.SpectralEncoder(columns=["town", "land"], n_components=1), {}, TypeError, "SpectralEncoder cannot be exported"),
    (
        ge.StatisticEncoder(["mode"], values=["land"], columns=["town"]),
        {},
        TypeError,
        "Text or dates as encodings of column 'town'",
    ),
    (
        ge.TargetEncoder(columns=["town"], hierarchy={"town": ge.Prefixes(1)}),
        {},
        TypeError,
        r"levels above 'town' follow from its values by Prefixes.*hierarchy=\{'town': \[...\]\}",
    ),
    (ge.TargetEncoder(columns=["day"]), {}, TypeError, "Values of type timestamp.* of column 'day'"),
    (ge.TargetEncoder(columns=["wide"]), {}, TypeError, "Values of type uint64 of column 'wide'"),
    (ge.TargetEncoder(columns=["town"]), {"types": {"town": "int64"}}, TypeError, "was fitted on text, but .* 'int64'"),
    (ge.TargetEncoder(columns=["size"]), {"types": "str"}, TypeError, "was fitted on numbers, but .* 'str'"),
    (ge.TargetEncoder(columns=["town"]), {"types": {"twon": "str"}}, ValueError, "Did you mean 'town'"),
    (ge.TargetEncoder(columns=["size"]), {"types": "uint64"}, ValueError, "must be one of str, bool, int8"),
    (ge.TargetEncoder(columns=["town", "size"]), {"matrix": True}, ValueError, "theirs are {'town': 'str', 'size'"),
    (ge.TargetEncoder(columns=["town"]), {"passed": True, "types": {"land": "str"}}, TypeError, "passed=False"),
]


@pytest.mark.parametrize(("encoder", "given", "error", "message"), REFUSED)
def test_refused(encoder, given, error, message):
    X = FRAME.assign(day=pd.Timestamp("2026-01-01"), wide=np.array([2**63], np.uint64)[0])
    encoder.fit(X, Y)
    with pytest.raises(error, match=message):
        to_onnx(encoder, **{"passed": False} | given)


def test_without_onnx(monkeypatch):
    load = builtins.__import__

    def refuse(name, *others):
        if name == "onnx":
            raise ImportError(name)
        return load(name, *others)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"onnx is not installed: pip install '.\[onnx\]'"):
        to_onnx(ge.TargetEncoder().fit([["a"], ["b"]], [0, 1]))


def test_any_number_of_rows():
    encoder = ge.TargetEncoder(columns=KEYS).fit(FRAME, Y)
    model = to_onnx(encoder, passed=False)
    assert encodings(model, NEW[:0]).shape == (0, len(KEYS))
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.STRING
