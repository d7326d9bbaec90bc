"""Converters for skl2onnx, so that scikit-learn pipelines with encoders become one ONNX graph."""

from typing import Any, Literal, NamedTuple

import numpy as np

import gpu_encode
from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder, names_at_fit
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.onnx_nodes import ML, ML_OPSET, InputColumn, needed_columns, write_encodings
from gpu_encode.serve.export.tables import EncoderTables, tables_to_leave
from gpu_encode.words.errors.parameters import bad_option
from gpu_encode.words.errors.tables import other_width

ENCODERS = (
    "CatBoostEncoder",
    "CountEncoder",
    "GradientEncoder",
    "ImpactEncoder",
    "OneHotEncoder",
    "OrdinalEncoder",
    "StatisticEncoder",
    "TargetEncoder",
    "WeightOfEvidenceEncoder",
)


def register_onnx_converters(
    *,
    dtype: Literal["float32", "float64"] = "float32",
    missing_text: str | None = None,
    min_count: float = 0,
    hash_key: bytes | None = None,
) -> None:
    """Let skl2onnx convert pipelines that contain encoders of this library.

    Afterwards `skl2onnx.to_onnx` and `skl2onnx.convert_sklearn` accept encoders wherever scikit-learn does: as a step
    of a pipeline, or as a part of a `ColumnTransformer`.

    Parameters
    ----------
    dtype : {"float32", "float64"}, default="float32"
        Type of encodings, and of columns that pass through encoders.  skl2onnx computes in "float32" if no input is
        float64. With "float64", encodings are those of `transform`; classifiers then need ``options={"zipmap":
        False}``, since ONNX makes dicts only of float32, and skl2onnx cannot convert some models.
    missing_text, min_count, hash_key
        As in `to_onnx`.

    Raises
    ------
    ImportError
        Without skl2onnx.
    ValueError
        If `dtype` is another type.

    Notes
    -----
    The settings apply to all later conversions; call this function again to change them.

    The types of columns are those that skl2onnx is given, in their order at fit.  Use `DoubleTensorType` for columns of
    float64, since a float32 never equals the float64 category 0.1.  Encoders are refused as in `to_onnx`.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from skl2onnx import to_onnx
    >>> from skl2onnx.common.data_types import StringTensorType
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import register_onnx_converters
    >>> X = np.array([["a"], ["a"], ["b"], ["b"]], dtype=object)
    >>> pipeline = make_pipeline(TargetEncoder(cv=2), LogisticRegression()).fit(X, [0, 0, 1, 1])
    >>> register_onnx_converters()
    >>> model = to_onnx(pipeline, initial_types=[("shop", StringTensorType([None, 1]))])
    >>> onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"shop": X})[0].tolist()
    [0, 0, 1, 1]
    """
    try:
        import skl2onnx
        from skl2onnx import _parse
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError as error:
        raise messages.not_installed("skl2onnx", "onnx") from error

    if dtype not in ("float32", "float64"):
        raise bad_option("register_onnx_converters", "dtype", dtype, ("'float32'", "'float64'"))
    tensor_type = DoubleTensorType if dtype == "float64" else FloatTensorType

    def parse(scope: Any, encoder: Encoder, inputs: Any, **_: Any) -> Any:
        # skl2onnx would assume that text output is float32, and derive wrong types from it.
        operator = scope.declare_local_operator(f"GpuEncode{type(encoder).__name__}", encoder)
        operator.inputs = inputs
        operator.outputs.append(scope.declare_local_variable("encodings", tensor_type()))
        return operator.outputs

    def describe(operator: Any) -> None:
        shape = [operator.inputs[0].get_first_dimension(), len(operator.raw_operator.get_feature_names_out())]
        operator.outputs[0].type = tensor_type(shape)

    def convert(scope: Any, operator: Any, container: Any) -> None:
        tables = tables_to_leave(operator.raw_operator, min_count, hash_key)
        write_operator(scope, operator, container, tables, np.dtype(dtype), missing_text)

    for name in ENCODERS:
        encoder = getattr(gpu_encode, name)
        skl2onnx.update_registered_converter(encoder, f"GpuEncode{name}", describe, convert, parser=parse)
    # A ColumnTransformer would join all columns of a transformer to a matrix of one type, text if any column is text.
    if Encoder not in _parse.do_not_merge_columns:
        _parse.do_not_merge_columns = (*_parse.do_not_merge_columns, Encoder)


class PipelineNodes:
    """Nodes in the graph of a pipeline.

    Parameters
    ----------
    scope : skl2onnx.common._topology.Scope
    container : skl2onnx.common._container.ModelComponentContainer
    """

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node."""
        output: str = self.scope.get_unique_variable_name(operator.lower())
        version = ML_OPSET if domain == ML else None
        name = self.scope.get_unique_operator_name(operator)
        self.container.add_node(
            operator, [*inputs], [output], op_domain=domain, op_version=version, name=name, **attributes
        )
        return output

    def constant(self, array: Array) -> str:
        """Add a constant."""
        from onnx.numpy_helper import from_array

        name: str = self.scope.get_unique_variable_name("constant")
        self.container.add_initializer(name, None, None, from_array(array))
        return name


class MatrixColumn(NamedTuple):
    """The position of a column: a matrix, the number of a column in it, and its type."""

    matrix: str
    column: int
    type: np.dtype[Any]


def matrix_columns(operator: Any) -> dict[str, MatrixColumn]:
    """Find each column of an encoder among the inputs of its operator, in their order at fit."""
    from onnx.helper import tensor_dtype_to_np_dtype

    encoder: Encoder = operator.raw_operator
    labels, optional = names_at_fit(encoder._model), encoder._model.selection.optional
    present = [label for position, label in enumerate(labels) if position not in optional]
    found: list[MatrixColumn] = []
    for variable in operator.inputs:
        dtype = tensor_dtype_to_np_dtype(variable.type.to_onnx_type().tensor_type.elem_type)
        # If the width of a matrix is unknown, all its columns belong to the encoder.
        width = variable.type.shape[1] or len(present)
        found += [MatrixColumn(variable.full_name, column, dtype) for column in range(width)]
    if len(found) not in (len(labels), len(present)):
        raise other_width(encoder._owner, len(found), len(labels))
    return dict(zip(labels if len(found) == len(labels) else present, found, strict=True))


def write_operator(
    scope: Any, operator: Any, container: Any, tables: EncoderTables, dtype: np.dtype[Any], missing_text: str | None
) -> None:
    """Write an encoder's nodes into the graph of a pipeline."""
    nodes, found = PipelineNodes(scope, container), matrix_columns(operator)
    columns = {}
    for label in needed_columns(tables, tables.passed):
        matrix, column, of_column = found[label]
        tensor = nodes.add("Gather", matrix, nodes.constant(np.array(column)), axis=1)
        columns[label] = InputColumn(label, tensor, of_column)
    matrix = write_encodings(nodes, tables, columns, tables.passed, dtype, missing_text)
    name = scope.get_unique_operator_name("encodings")
    container.add_node("Identity", matrix, operator.outputs[0].full_name, name=name)
