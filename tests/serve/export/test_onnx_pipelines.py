"""skl2onnx converts pipelines with our encoders; the graphs predict as scikit-learn does."""

import builtins
import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpu_encode as ge
from gpu_encode.serve.export import register_onnx_converters
from tests.serve.export.graphs import inputs_of, run

pytestmark = pytest.mark.host
convert_sklearn = pytest.importorskip("skl2onnx", reason="the extra onnx has it").convert_sklearn
types = pytest.importorskip("skl2onnx.common.data_types")
onnx_helper = pytest.importorskip("onnx.helper")

RANDOM = np.random.default_rng(5)
N = 80
X = pd.DataFrame(
    {
        "town": RANDOM.choice(["a", "b", "c", None], N),
        "size": RANDOM.integers(0, 4, N),
        "grade": RANDOM.integers(0, 3, N) / 10,
        "price": RANDOM.normal(size=N),
    }
)
Y = (RANDOM.random(N) < 0.3 + 0.4 * (X["town"] == "a")).astype(int)
NEW = pd.DataFrame(
    {"town": ["b", "never", None], "size": [3, 9, 1], "grade": [0.1, 0.5, 0.2], "price": [0.5, -1.0, 2.0]}
)
COLUMN = {"town": types.StringTensorType([None, 1]), "size": types.Int64TensorType([None, 1])}
DOUBLES = dict.fromkeys(["grade", "price"], types.DoubleTensorType([None, 1]))
KEYS = ["town", "size", ("town", "size"), "grade"]


@pytest.fixture(autouse=True)
def registered():
    register_onnx_converters(dtype="float64", missing_text="")


def in_columns(encoder):
    """Give a transformer of numbers beside an encoder of columns of several types."""
    return ColumnTransformer([("price", StandardScaler(), ["price"]), ("codes", encoder, ["town", "size", "grade"])])


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(3, random_state=0)])
@pytest.mark.parametrize(
    "encoder",
    [
        ge.TargetEncoder(columns=KEYS, indicators=True),
        ge.CatBoostEncoder(columns=KEYS),
        ge.CountEncoder(columns=KEYS),
        ge.OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
    ],
)
def test_predictions_of_a_pipeline(encoder, model):
    pipeline = make_pipeline(in_columns(encoder), model).fit(X, Y)
    graph = convert_sklearn(pipeline, initial_types=[*(COLUMN | DOUBLES).items()], options={"zipmap": False})
    labels, probabilities = run(graph, inputs_of(graph, NEW))
    assert labels.tolist() == pipeline.predict(NEW).tolist()
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(NEW), rtol=1e-6, atol=1e-6)


def test_float32_needs_no_options():
    register_onnx_converters(missing_text="")
    pipeline = make_pipeline(ge.TargetEncoder(columns=KEYS[:3]), LogisticRegression()).fit(X[["town", "size"]], Y)
    graph = convert_sklearn(pipeline, initial_types=[*COLUMN.items()])
    labels, probabilities = run(graph, inputs_of(graph, NEW))
    assert labels.tolist() == pipeline.predict(NEW[["town", "size"]]).tolist()
    found = pd.DataFrame(probabilities).to_numpy()
    np.testing.assert_allclose(found, pipeline.predict_proba(NEW[["town", "size"]]), rtol=1e-5)


def test_encodings_are_those_of_transform():
    encoder = ge.TargetEncoder(columns=KEYS).fit(X, Y)
    graph = convert_sklearn(encoder, initial_types=[*(COLUMN | DOUBLES).items()])
    (found,) = run(graph, inputs_of(graph, NEW))
    expected = encoder.transform(NEW)
    assert found.dtype == np.float64
    assert found.tolist() == expected.to_numpy().tolist()
    assert list(expected.columns)[-1] == "price"


@pytest.mark.parametrize("width", [2, None])
def test_one_matrix(width):
    array = np.array([["a", "p"], ["b", "q"], ["a", "q"]], object)
    encoder = ge.TargetEncoder(columns=[1], smooth=0.0, dtype="float32").fit(array, [0, 1, 1])
    with pytest.raises(TypeError, match=r"Columns \['x0'\] of text pass through"):
        convert_sklearn(encoder, initial_types=[("X", types.StringTensorType([None, width]))])
    encoder = ge.TargetEncoder(columns=[0, 1, (0, 1)], smooth=0.0, dtype="float32").fit(array, [0, 1, 1])
    graph = convert_sklearn(encoder, initial_types=[("X", types.StringTensorType([None, width]))])
    assert run(graph, {"X": array})[0].tolist() == encoder.transform(array).tolist()


def test_integers_become_floats():
    register_onnx_converters()
    encoder = ge.OrdinalEncoder(dtype="int32", handle_unknown="use_encoded_value", unknown_value=-1)
    encoder.fit(X[["size"]])
    graph = convert_sklearn(encoder, initial_types=[("size", types.FloatTensorType([None, 1]))])
    (found,) = run(graph, {"size": NEW[["size"]].to_numpy(np.float32)})
    assert found.tolist() == encoder.transform(NEW[["size"]]).to_numpy().tolist()
    assert found.dtype == np.float32


def test_rare_categories():
    register_onnx_converters(min_count=100)
    encoder = ge.TargetEncoder(columns=["town"]).fit(X[["town"]], Y)
    graph = convert_sklearn(encoder, initial_types=[("town", COLUMN["town"])])
    assert len(set(run(graph, inputs_of(graph, X))[0].ravel().tolist())) == 1


def test_refused():
    encoder = ge.TargetEncoder().fit(X[["town", "size"]], Y)
    with pytest.raises(ValueError, match="X has 1 features"):
        convert_sklearn(encoder, initial_types=[("town", COLUMN["town"])])
    with pytest.raises(TypeError, match="was fitted on text"):
        convert_sklearn(encoder, initial_types=[("town", COLUMN["size"]), ("size", COLUMN["size"])])
    with pytest.raises(ValueError, match="must be one of 'float32', 'float64'"):
        register_onnx_converters(dtype="double")


def test_without_skl2onnx(monkeypatch):
    load = builtins.__import__

    def refuse(name, *others):
        if name == "skl2onnx":
            raise ImportError(name)
        return load(name, *others)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"skl2onnx is not installed: pip install '.\[onnx\]'"):
        register_onnx_converters()


# For each library: its classifier, and the module and function that convert it, of onnxmltools or its own.
BOOSTERS = {
    "xgboost": ("XGBClassifier", "onnxmltools.convert.xgboost.operator_converters.XGBoost", "convert_xgboost"),
    "lightgbm": ("LGBMClassifier", "onnxmltools.convert.lightgbm.operator_converters.LightGbm", "convert_lightgbm"),
    "catboost": ("CatBoostClassifier", "catboost.utils", "convert_to_onnx_object"),
}


def add_catboost(scope: Any, operator: Any, container: Any) -> None:
    """Add the only node of CatBoost's own graph to the graph of the pipeline."""
    node = importlib.import_module("catboost.utils").convert_to_onnx_object(operator.raw_operator).graph.node[0]
    attributes = {attribute.name: onnx_helper.get_attribute_value(attribute) for attribute in node.attribute}
    outputs = [output.full_name for output in operator.outputs]
    container.add_node(
        node.op_type, [operator.inputs[0].full_name], outputs, op_domain=node.domain, name="trees", **attributes
    )


def parse_catboost(scope: Any, classifier: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare the outputs of a classifier whose class does not inherit scikit-learn's."""
    operator = scope.declare_local_operator("OwnCatBoostClassifier", classifier)
    operator.inputs.extend(inputs)
    operator.outputs.append(scope.declare_local_variable("label", types.Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("probabilities", types.FloatTensorType()))
    return operator.outputs


@pytest.mark.parametrize("library", BOOSTERS)
def test_pipelines_with_boosters_fitted_on_pandas(library, tmp_path, monkeypatch):
    """Told "default", the encoder gives arrays, so that a booster keeps no names, which its converter refuses."""
    monkeypatch.chdir(tmp_path)  # CatBoost writes a folder where it stands.
    kind, module, function = BOOSTERS[library]
    classifier = getattr(pytest.importorskip(library), kind)
    converters = pytest.importorskip(module, reason="no extra has what converts boosters")
    shapes = pytest.importorskip("skl2onnx.common.shape_calculator").calculate_linear_classifier_output_shapes
    options = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    register = pytest.importorskip("skl2onnx").update_registered_converter
    own = {"parser": parse_catboost} if library == "catboost" else {}
    convert = add_catboost if own else getattr(converters, function)
    register(classifier, f"Own{kind}", shapes, convert, options=options, **own)
    pipeline = make_pipeline(ge.TargetEncoder(cv=3), classifier(n_estimators=5)).set_output(transform="default")
    pipeline.fit(X[["town", "size"]], Y)
    register_onnx_converters(missing_text="")
    asked = {"target_opset": {"": 18, "ai.onnx.ml": 3}, "options": {id(pipeline): {"zipmap": False}}}
    graph = convert_sklearn(pipeline, initial_types=list(COLUMN.items()), **asked)
    _, shares = run(graph, inputs_of(graph, NEW))
    np.testing.assert_allclose(shares, pipeline.predict_proba(NEW[["town", "size"]]), rtol=1e-5)
