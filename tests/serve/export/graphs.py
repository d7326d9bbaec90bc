"""Runs graphs of ONNX, with the columns of tables as inputs."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

onnx = pytest.importorskip("onnx", reason="the extra onnx has it")
onnxruntime = pytest.importorskip("onnxruntime")
# Failures that tests cause on purpose are not logged.
onnxruntime.set_default_logger_severity(4)


def run(model: Any, rows: dict[str, Any]) -> list[Any]:
    """Check a graph, and give its outputs."""
    onnx.checker.check_model(model, full_check=True)
    used = {name for node in model.graph.node for name in node.input}
    assert {constant.name for constant in model.graph.initializer} <= used
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, rows)


def inputs_of(model: Any, X: pd.DataFrame, missing_text: str = "") -> dict[str, Any]:
    """Give the columns of a frame as the inputs of a graph, in their types."""
    found = {}
    for described in model.graph.input:
        column, element = X[[described.name]], described.type.tensor_type.elem_type
        if element == onnx.TensorProto.STRING:
            column = column.astype(object).where(column.notna(), missing_text)
        found[described.name] = column.to_numpy(onnx.helper.tensor_dtype_to_np_dtype(element))
    return found


def encodings(model: Any, X: pd.DataFrame, missing_text: str = "") -> pd.DataFrame:
    """Give a graph's outputs for a frame, by their names in the graph."""
    names = {entry.key: entry.value for entry in model.metadata_props}["names"]
    (values,) = run(model, inputs_of(model, X, missing_text))
    return pd.DataFrame(values, columns=json.loads(names))


def same_bits(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Demand equal columns, types and bits; any two NaN count as equal."""
    assert list(found.columns) == list(expected.columns)
    for name in found.columns:
        mine, theirs = found[name].to_numpy(), expected[name].to_numpy()
        assert mine.dtype == theirs.dtype
        both = np.isnan(mine.astype(float)) & np.isnan(theirs.astype(float))
        assert ((mine.view(f"i{mine.itemsize}") == theirs.view(f"i{mine.itemsize}")) | both).all(), name
