"""A fitted encoder as a graph of standard ONNX operators, which gives the values of `transform` without Python."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_encode.encoders.base import Encoder, names_at_fit
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.onnx_graph import Graph
from gpu_encode.serve.export.onnx_nodes import InputColumn, is_number, needed_columns, write_encodings
from gpu_encode.serve.export.tables import EncoderTables, facts_to_leave, tables_to_leave
from gpu_encode.words.errors.parameters import bad_option
from gpu_encode.words.errors.tables import unknown_column

if TYPE_CHECKING:
    from onnx import ModelProto

# Types of inputs that are accepted.  A uint64 would be compared as an int64.
TYPES = ("str", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64")


def to_onnx(
    encoder: Encoder,
    *,
    types: str | Mapping[str, str] | None = None,
    matrix: bool = False,
    passed: bool = True,
    missing_text: str | None = None,
    min_count: float = 0,
    hash_key: bytes | None = None,
) -> "ModelProto":
    """Give a fitted encoder as a graph of ONNX.

    The graph has only standard operators, of opset 15 and ai.onnx.ml 2, so that any runtime runs it, alone or before a
    model.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder, whose encodings depend on single keys, and whose policies do not refuse rows.
    types : str or dict of str to str, optional
        NumPy's types of the inputs ("str", "bool", "int64", "float32" and so on) by column, or one for all.  By default
        a column has the type that it had at fit.  Bool and whole numbers below 2**53 become float64 if rows of fit
        lacked a value.  Columns that pass through have the type of the output.
    matrix : bool, default=False
        False: each column has an input of shape (n_rows, 1), with the name of the column.  True: there is one input "X"
        of shape (n_rows, n_columns), with all columns in their order at fit, and of one type.
    passed : bool, default=True
        Whether columns that pass through are inputs; in the output they come after the encodings.
    missing_text : str, optional
        The text that stands for a missing value, for example "", since ONNX has no missing text.  By default no text
        does.
    min_count : float, default=0
        Categories whose training rows have less weight are left out of the file, and their values count as unknown.
    hash_key : bytes, optional
        A key of at least 16 bytes.  The graph then holds `hash_values` by this key instead of values, and takes these
        hashes, as text, as the inputs of its keys.

    Returns
    -------
    onnx.ModelProto
        Its output "encodings", of shape (n_rows, n_outputs), has the bits of `transform`, in the encoder's dtype;
        if columns pass through, all are cast to a type that holds both.  The names of its columns are its metadata
        "names", as a list in JSON; the encoder's `origin_` and parameters are its metadata "origin" and "parameters".

    Raises
    ------
    ImportError
        Without onnx.
    TypeError
        If encodings do not depend on single keys, or are text or dates.  If ONNX has no type for the categories (dates,
        bytes, decimals), if a rule makes levels of a hierarchy from text, or if no category could equal an input of the
        requested type.
    ValueError
        If a policy is "error", since a graph cannot refuse rows.  If a matrix would have several types.  If
        `missing_text` is a category.  If `hash_key` is one that `to_arrow` refuses.

    Notes
    -----
    Numbers are compared exactly, as `transform` does: a float32 input never equals the float64 category 0.1.  NaN is
    missing.  Whole numbers and bool cannot be missing, so give such columns the type "float64" if rows may lack a
    value.  An infinite number, which `transform` refuses, is unknown.

    Examples
    --------
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import to_onnx
    >>> X = pd.DataFrame({"shop": ["a", "a", "b"], "size": [1, 2, 2]})
    >>> encoder = TargetEncoder(columns=["shop", ("shop", "size")], smooth=0.0).fit(X, [0, 1, 1])
    >>> session = onnxruntime.InferenceSession(to_onnx(encoder).SerializeToString())
    >>> rows = {"shop": X[["shop"]].to_numpy(object), "size": X[["size"]].to_numpy()}
    >>> session.run(None, rows)[0].tolist()
    [[0.5, 0.0], [0.5, 1.0], [1.0, 1.0]]
    """
    require_onnx()
    tables = tables_to_leave(encoder, min_count, hash_key)
    through = tables.passed if passed else []
    model = encoder._model
    labels, optional = names_at_fit(model), model.selection.optional
    dtypes = read_types(tables, through, labels, types, encoder._output_type)
    if matrix:
        graph = Graph([])
        present = [label for position, label in enumerate(labels) if position not in optional]
        columns = matrix_input(graph, present, dtypes)
    else:
        graph = Graph(labels)
        columns = column_inputs(graph, dtypes)
    dtype = np.result_type(encoder._output_type, *(dtypes[label] for label in through))
    encodings = write_encodings(graph, tables, columns, through, dtype, missing_text)
    names = tables.names if passed else tables.names[: len(tables.order)]
    return graph.model(encodings, dtype, names, facts_to_leave(encoder, min_count, hash_key))


def column_inputs(graph: Graph, types: Mapping[str, np.dtype[Any]]) -> dict[str, InputColumn]:
    """Give each column an input of its own."""
    if "" in types:
        raise ValueError("Inputs of ONNX have names, and one column has none: rename it, or give matrix=True.")
    flat = graph.constant(np.array([-1]))
    inputs = {label: graph.input(label, dtype, 1) for label, dtype in types.items()}
    return {label: InputColumn(label, graph.add("Reshape", name, flat), types[label]) for label, name in inputs.items()}


def matrix_input(graph: Graph, labels: Sequence[str], types: Mapping[str, np.dtype[Any]]) -> dict[str, InputColumn]:
    """Give all columns one input, and take from it the columns that are read."""
    dtype, *others = dict.fromkeys(types.values())
    if others:
        words = {label: "str" if of_column.kind == "O" else of_column.name for label, of_column in types.items()}
        raise ValueError(
            f"matrix=True makes all columns one input of one type, and theirs are {words}. Leave it out, or give one "
            "type that holds all of them, such as types='float64'."
        )
    matrix = graph.input("X", dtype, len(labels))
    positions = {label: graph.constant(np.array(labels.index(label))) for label in types}
    return {
        label: InputColumn(label, graph.add("Gather", matrix, position, axis=1), dtype)
        for label, position in positions.items()
    }


def read_types(
    tables: EncoderTables,
    passed: Sequence[str],
    labels: Sequence[str],
    types: str | Mapping[str, str] | None,
    of_passed: np.dtype[Any],
) -> dict[str, np.dtype[Any]]:
    """Give the type of each needed column, in the order at fit: the type that was asked for, or that of fit."""
    asked = dict.fromkeys(labels, types) if isinstance(types, str) else dict(types or {})
    if unknown := [label for label in asked if label not in labels]:
        raise unknown_column("The column of types", unknown[0], labels)
    needed, held = needed_columns(tables, passed), types_at_fit(tables) | dict.fromkeys(passed, of_passed)
    return {label: read_type(asked[label]) if label in asked else held[label] for label in labels if label in needed}


def types_at_fit(tables: EncoderTables) -> dict[str, np.dtype[Any]]:
    """Give the type of each column that keys read, by its categories; float64 if all values are missing."""
    found: dict[str, np.dtype[Any]] = {}
    for key in tables.keys:
        for number, label in enumerate(key.columns):
            values = key.levels[0].values.column(label)
            # If missing values did not become a category, it is unknown which column of a joint key lacked a value.
            lacks = values.null_count > 0 or (number == key.n_above == len(key.columns) - 1 and key.missing_weight > 0)
            dtype = type_at_fit(label, values, lacks)
            # Categories that the user gave may have a narrower type than the same column's in other keys.
            found[label] = np.result_type(dtype, found.get(label, dtype))
    return found


def type_at_fit(label: str, values: Any, lacks: bool) -> np.dtype[Any]:
    """Give NumPy's type of a column of Arrow that holds categories; `lacks` says whether rows lacked a value."""
    kind = values.type
    if pa.types.is_large_string(kind):
        return np.dtype(object)
    if pa.types.is_uint64(kind) and pc.max(values).as_py() < 1 << 63:
        kind = pa.int64()
    if pa.types.is_null(kind) or (lacks and is_number(kind) and not pa.types.is_floating(kind) and are_doubles(values)):
        return np.dtype(np.float64)
    if not is_number(kind) or pa.types.is_uint64(kind):
        raise messages.not_exact(f"Values of type {kind}", label, "ONNX")
    return np.dtype(kind.to_pandas_dtype())


def are_doubles(values: Any) -> bool:
    """Tell whether float64 keeps all numbers of a column of Arrow different from all other numbers."""
    return all(abs(number) < 1 << 53 for number in values.drop_null().to_pylist())


def read_type(word: str) -> np.dtype[Any]:
    """Read a type of an input."""
    if word not in TYPES:
        raise bad_option("to_onnx", "types", word, TYPES)
    return np.dtype(object if word == "str" else word)


def require_onnx() -> None:
    """Raise ImportError if onnx is not installed."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise messages.not_installed("onnx", "onnx") from error
