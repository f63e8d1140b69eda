# SPDX-License-Identifier: Apache-2.0
"""Changes an ONNX model: puts a ConvTranspose in place of two nodes, and removes what nothing reads any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from .graph import COMPUTED, Scope, graphs_of, is_operator, reads_of
from .pairs import Layer
from .weights import Array


class Rewriter:
    """Of one model. Call `finish` after the last layer."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._names = {name for graph in graphs_of(model.graph) for name in _names_in(graph)}
        self._filters: dict[tuple[Any, ...], str] = {}
        self._unread: set[str] = set()
        self._replaced: list[tuple[GraphProto, Layer, NodeProto | None]] = []

    def put(self, layer: Layer, scope: Scope) -> None:
        """Replaces the layer's nodes; raises `Left`, with the model as it was, if its weights cannot be rounded."""
        conv, output = layer.convolution, layer.last.output[0]
        key = (scope, layer.filter, *layer.form)
        if key not in self._filters:
            self._filters[key] = self._add(layer.weights(), f"{layer.filter}_{layer.form[0].lower()}")
        inputs = [layer.data, self._filters[key]]
        add = None
        if layer.bias:
            inputs.append(layer.bias)
        elif layer.phases is not None and layer.phases[0].size == 1:
            inputs.append(self._add(layer.phases.reshape(-1), f"{output}_bias"))
        elif layer.phases is not None and layer.output is not None:
            repeats = [1, *(y // s for y, s in zip(layer.output, layer.strides))]
            bias = self._add(np.tile(layer.phases, repeats)[np.newaxis], f"{output}_bias")
            unbiased = self._name(f"{output}_without_bias")
            add = helper.make_node("Add", [unbiased, bias], [output], f"{conv.name}_bias" if conv.name else "")
        new = helper.make_node(
            "ConvTranspose",
            inputs,
            [output if add is None else add.input[0]],
            conv.name,
            kernel_shape=layer.kernel,
            strides=layer.strides,
            dilations=layer.dilations,
            pads=[*layer.begin, *layer.end],
            group=layer.groups,
        )
        self._unread.update([layer.first.output[0], *layer.first.input, *layer.last.input])
        self._replaced.append((scope.graph, layer, add))
        layer.last.CopyFrom(new)

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _add(self, values: Array, wanted: str) -> str:
        """A constant of the outermost graph, which all graphs can read; before version 4 of the format it must be an
        input as well."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(values), self._name(wanted))
        graph = self._model.graph
        graph.initializer.append(tensor)
        if self._model.ir_version < 4:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        return tensor.name

    def finish(self) -> None:
        for graph, layer, add in self._replaced:
            if add is not None:
                graph.node.insert(_index_of(graph, layer.last) + 1, add)
            del graph.node[_index_of(graph, layer.first)]
        self._remove_unread()

    def _remove_unread(self) -> None:
        """Constants that only replaced nodes read, and what the model says about values that are no more."""
        reads = reads_of(self._model.graph)
        removed: set[str] = set()
        producers = {
            name: (graph, node) for graph in graphs_of(self._model.graph) for node in graph.node for name in node.output
        }
        unread = list(self._unread)
        while unread:
            name = unread.pop()
            if reads[name] > 0 or not name or name in removed:
                continue
            if name in producers:
                graph, node = producers[name]
                if not is_operator(node, *COMPUTED):
                    continue
                inputs = list(node.input)
                del graph.node[_index_of(graph, node)]
                for other in inputs:
                    reads[other] -= 1
                unread += inputs
            removed.add(name)
        if self._model.ir_version < 4:
            constants = {tensor.name for tensor in self._model.graph.initializer}
            _delete(self._model.graph.input, removed & constants, "name")
        for graph in graphs_of(self._model.graph):
            _delete(graph.initializer, removed, "name")
            _delete(graph.value_info, removed, "name")
            _delete(graph.quantization_annotation, removed, "tensor_name")


def _names_in(graph: GraphProto) -> Iterable[str]:
    for values in (graph.input, graph.output, graph.initializer, graph.value_info):
        yield from (value.name for value in values)
    for node in graph.node:
        yield from (*node.input, *node.output)


def _index_of(graph: GraphProto, node: NodeProto) -> int:
    return next(i for i, other in enumerate(graph.node) if other is node)


def _delete(values: Any, names: set[str], member: str) -> None:
    for i in reversed(range(len(values))):
        if getattr(values[i], member) in names:
            del values[i]
