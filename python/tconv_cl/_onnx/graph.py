# SPDX-License-Identifier: Apache-2.0
"""What nodes of an ONNX model read and write: constants, readers, and the extents that the model's inputs imply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Optional

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .weights import Array

Extents = list[Optional[int]]

# A node of these is a constant if its inputs are: exporters compute sizes and convert weights with them.
COMPUTED = frozenset(
    "Add Cast Concat Constant Div Floor Gather Identity Mul Reshape Shape Slice Squeeze Sub Transpose Unsqueeze".split()
)
LARGE = 1024  # elements of a constant that says no shape


def is_operator(node: NodeProto | None, *names: str) -> bool:
    return node is not None and node.op_type in names and node.domain in ("", "ai.onnx")


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Strings are text. Without those that a function takes from its call."""
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value for name, value in values.items()
    }


def input_of(node: NodeProto, index: int) -> str:
    """The name of an input; "" if there is none."""
    return node.input[index] if index < len(node.input) else ""


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all graphs inside it, from outside to inside."""
    yield graph
    for node in graph.node:
        for inner in graphs_inside(node):
            yield from graphs_of(inner)


def graphs_inside(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """All constants, where external data may be."""
    nodes = [node for function in model.functions for node in function.node]
    graphs = list(graphs_of(model.graph)) + [g for node in nodes for i in graphs_inside(node) for g in graphs_of(i)]
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield sparse.values
            yield sparse.indices
    for node in [*nodes, *(node for graph in graphs for node in graph.node)]:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def reads_of(graph: GraphProto) -> Counter[str]:
    """How often each value is read by nodes and as an output, in graphs inside as well."""
    reads: Counter[str] = Counter()
    for one in graphs_of(graph):
        reads.update(name for node in one.node for name in node.input)
        reads.update(output.name for output in one.output)
    return reads


def opset_of(model: ModelProto) -> int:
    return max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=1)


def extents_of(model: ModelProto) -> dict[str, Extents]:
    """The extents of values that follow from those of the inputs; None for one that is not known. What the model only
    claims of values in between does not count: nothing enforces it."""
    slim = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph, given = slim.graph, {value.name for value in model.graph.input}
    graph.name = model.graph.name
    graph.input.extend(model.graph.input)
    graph.node.extend(model.graph.node)
    for output in model.graph.output:
        graph.output.add().CopyFrom(output)
        graph.output[-1].type.tensor_type.ClearField("shape")
    for tensor in model.graph.initializer:
        if np.prod(tensor.dims) <= LARGE:
            graph.initializer.append(tensor)
        elif tensor.name not in given:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    try:
        graph = onnx.shape_inference.infer_shapes(slim, data_prop=True).graph
    except Exception:  # nodes that it cannot read: then only the inputs' are known
        graph = slim.graph
    return {
        value.name: [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    }


class Scope:
    """A graph of a model, and the graphs around it."""

    def __init__(self, model: ModelProto, graph: GraphProto, outer: Scope | None, extents: dict[str, Extents]) -> None:
        self.graph, self.extents = graph, extents
        self._outer, self.opset = outer, opset_of(model)
        self.nodes = list(graph.node)  # keeps these objects: nodes are compared by identity
        self._producers = {name: node for node in self.nodes for name in node.output if name}
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        # Before version 4, all initializers are inputs, and constants.
        self._inputs = {value.name for value in graph.input if model.ir_version >= 4 or outer is not None}
        self._outputs = {value.name for value in graph.output}
        self._readers: dict[str, list[NodeProto]] = {}
        for node in self.nodes:
            inside = [name for inner in graphs_inside(node) for name in reads_of(inner)]
            for name in (*node.input, *inside):
                self._readers.setdefault(name, []).append(node)

    def producer_of(self, name: str) -> NodeProto | None:
        return self._producers.get(name)

    def readers_of(self, name: str) -> list[NodeProto]:
        return self._readers.get(name, [])

    def is_read_once(self, name: str) -> bool:
        return len(self.readers_of(name)) == 1 and name not in self._outputs

    def is_input(self, name: str) -> bool:
        """True for an initializer, too, that the caller may replace."""
        return name in self._inputs or (
            name not in self._producers and self._outer is not None and self._outer.is_input(name)
        )

    def constant(self, name: str) -> Array | None:
        """The value of a constant; None if it is none."""
        if name in self._inputs or not name:
            return None
        if name in self._initializers:
            return numpy_helper.to_array(self._initializers[name])
        node = self._producers.get(name)
        if node is None:
            return None if self._outer is None else self._outer.constant(name)
        if not is_operator(node, *COMPUTED) or len(node.output) != 1:
            return None
        return self._constant_of(node) if node.op_type == "Constant" else self._computed(node)

    @staticmethod
    def _constant_of(node: NodeProto) -> Array | None:
        for name, value in attributes_of(node).items():
            if name == "value":
                return numpy_helper.to_array(value)
            if name in ("value_float", "value_floats"):
                return np.array(value, np.float32)
            if name in ("value_int", "value_ints"):
                return np.array(value, np.int64)
        return None

    def _computed(self, node: NodeProto) -> Array | None:
        if node.op_type == "Shape":
            extents, given = self.extents.get(node.input[0]), attributes_of(node)
            if extents is None:
                return None
            wanted = extents[given.get("start", 0) : given.get("end")]
            return None if None in wanted else np.array(wanted, np.int64)
        feeds = {name: self.constant(name) for name in node.input if name}
        if not feeds or any(value is None for value in feeds.values()):
            return None
        from onnx.reference import ReferenceEvaluator

        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in feeds.items()
            if value is not None
        ]
        graph = helper.make_graph([node], "constant", inputs, [helper.make_empty_tensor_value_info(node.output[0])])
        try:
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
            outputs: Any = ReferenceEvaluator(model).run(None, feeds)
            return np.asarray(outputs[0])
        except Exception:  # a node that cannot be computed
            return None
