"""An ONNX graph that is built step by step, and the model that is made of it."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.serve.export.onnx_nodes import ML, ML_OPSET, OPSET

if TYPE_CHECKING:
    from onnx import ModelProto

# The version of the format that contains the operators.
FORMAT = 8


class Graph:
    """A graph to which `onnx_nodes` adds nodes, and its inputs.

    Parameters
    ----------
    taken : list of str
        Names that inputs will have.
    """

    def __init__(self, taken: Sequence[str]) -> None:
        self.taken = {*taken}
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def named(self, stem: str) -> str:
        """Give a name that is not used in the graph yet."""
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name

    def input(self, name: str, dtype: np.dtype[Any], width: int) -> str:
        """Add an input of several columns."""
        self.inputs.append(matrix_of(name, dtype, width))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node."""
        from onnx.helper import make_node

        output = self.named(operator.lower())
        self.nodes.append(make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def constant(self, array: Array) -> str:
        """Add a constant."""
        from onnx.numpy_helper import from_array

        name = self.named("constant")
        self.constants.append(from_array(array, name))
        return name

    def model(self, matrix: str, dtype: np.dtype[Any], names: Sequence[str], told: Mapping[str, Any]) -> "ModelProto":
        """Give the model, with one matrix of named columns as its output, and what else it tells as metadata."""
        from onnx import helper

        output = self.named("encodings")
        nodes = [*self.nodes, helper.make_node("Identity", [matrix], [output])]
        outputs = [matrix_of(output, dtype, len(names))]
        graph = helper.make_graph(nodes, "encoder", self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(graph, producer_name="gpu_encode", opset_imports=versions, ir_version=FORMAT)
        helper.set_model_props(model, {name: json.dumps(fact) for name, fact in {"names": names, **told}.items()})
        return model


def matrix_of(name: str, dtype: np.dtype[Any], width: int) -> Any:
    """Describe a matrix of some columns and any number of rows."""
    from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

    return make_tensor_value_info(name, np_dtype_to_tensor_dtype(dtype), ["rows", width])
