# SPDX-License-Identifier: Apache-2.0
"""Channels last, where that saves copies.

OpenVINO's processor plugin computes convolutions with channels last. An operator of an extension gets plain tensors,
for which the plugin would reorder them before it and after it. In the form with channels last, a Transpose stands on
each side, which the plugin takes as another view of its own layout: nothing is executed for it.
"""

from __future__ import annotations

import math

import numpy as np
from openvino import Node, Output
from openvino import opset13 as ops
from openvino.passes import AnyInput, Matcher, MatcherPass
from openvino.utils.node_factory import NodeFactory

from .graph import CONVOLUTIONS, OURS, STOCK, UNARY, extents_of, is_concatenated, only_consumer, scalar_of

# OpenVINO's processor plugin passes tensors through these operators without changing the layout.
TRANSPARENT = (
    *STOCK, OURS, *UNARY, "Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "PRelu", "Convert",
    "FakeQuantize", "BatchNormInference", "MaxPool", "AvgPool", "Concat",
)  # fmt: skip
MOST_NEIGHBOURS = 256  # that are looked at on each side of an operator
MOST_SWEEPS = 16


class Views(MatcherPass):
    """Removes the Transposes between two operators with channels last, if only activations are between them.

    The plugin would execute them: it knows no layout there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.several: set[str] = set()  # see only_consumer
        pattern = AnyInput(lambda output: output.get_node().get_type_name() == OURS)
        self.register_matcher(Matcher(pattern, "tconv_cl_views"), self.change)

    def change(self, matcher: Matcher) -> bool:
        node = matcher.get_match_root()
        view = node.input_value(0).get_node()
        if not node.get_attributes()["channels_last"] or view.get_type_name() != "Transpose":
            return False
        between, before = [], view.input_value(0).get_node()
        while before.get_type_name() in UNARY and before.get_input_size() == 1 and self.is_private(before):
            between.append(before)
            before = before.input_value(0).get_node()
        ours = before.get_type_name() == "Transpose" and before.input_value(0).get_node().get_type_name() == OURS
        if not between or not ours or not self.is_private(before):
            return False
        between[-1].input(0).replace_source_output(before.input_value(0))
        for unary in reversed(between):
            unary.constructor_validate_and_infer_types()
        node.input(0).replace_source_output(between[0].output(0))
        return True

    def is_private(self, node: Node) -> bool:
        return only_consumer(node, self.several) is not None


class _Graph:
    """The neighbours of nodes, each asked for once."""

    def __init__(self) -> None:
        self._before: dict[str, list[Node]] = {}
        self._after: dict[str, list[Node]] = {}

    def before(self, node: Node) -> list[Node]:
        """Producers of the node's inputs; for a convolution, of its data only."""
        known, name = self._before, node.get_name()
        if name not in known:
            data_only = node.get_type_name() in (OURS, *STOCK)
            inputs = [node.input_value(0)] if data_only else node.input_values()
            known[name] = [value.get_node() for value in inputs]
        return known[name]

    def after(self, node: Node) -> list[Node]:
        known, name = self._after, node.get_name()
        if name not in known:
            targets = (target for output in node.outputs() for target in output.get_target_inputs())
            known[name] = [target.get_node() for target in targets]
        return known[name]


class Port:
    """The data of an operator, or its output: the cost of reordering it, and its neighbours, seen through operators
    that take any layout. Of a large graph, only the nearest are looked at."""

    def __init__(self, node: Node, graph: _Graph, *, before: bool) -> None:
        shape = node.get_input_partial_shape(0) if before else node.get_output_partial_shape(0)
        extents = extents_of(shape)
        both_are_one = extents[1] == 1 or math.prod(extents[2:]) == 1  # both layouts have the same bytes
        self.size = 0.0 if both_are_one else float(math.prod(extents))
        self.ours: set[str] = set()
        self.convolution = False
        seen, open_ends, left = {node.get_name()}, [node], MOST_NEIGHBOURS
        while open_ends and left > 0:
            end = open_ends.pop()
            found = graph.before(end) if before else graph.after(end)
            for near in found[:left]:
                kind = near.get_type_name()
                if kind in CONVOLUTIONS:
                    self.convolution = True
                elif kind == OURS:
                    self.ours.add(near.get_name())
                elif kind in TRANSPARENT and near.get_name() not in seen:
                    seen.add(near.get_name())
                    open_ends.append(near)
            left -= len(found)

    def cost(self, last: bool) -> float:
        """What reordering it costs, apart from operators of this kind."""
        if self.convolution:
            return 0 if last else self.size
        return self.size if last and not self.ours else 0


def channels_last(nodes: list[Node]) -> list[Node]:
    """The operators for which channels last leaves the fewest bytes to be reordered, all of them together.

    OpenVINO's plugin computes convolutions with channels last; other tensors are plain. The search changes one operator
    at a time while that helps, from all plain and from all changed.
    """
    nodes = [node for node in nodes if node.get_input_partial_shape(0).rank.is_static]
    nodes = [node for node in nodes if not node.get_attributes()["channels_last"] and not is_concatenated(node)]
    graph = _Graph()
    ports = {node.get_name(): (Port(node, graph, before=True), Port(node, graph, before=False)) for node in nodes}
    # Whose data come from an operator, by that one. With a convolution in between, both reorder by themselves.
    readers: dict[str, list[str]] = {}
    for name, (data, _) in ports.items():
        for other in data.ours if not data.convolution else ():
            readers.setdefault(other, []).append(name)

    def between(name: str, last: dict[str, bool]) -> float:
        """What reordering the data of an operator costs, after operators of this kind."""
        data = ports[name][0]
        differ = sum(last.get(other, False) != last[name] for other in data.ours) if not data.convolution else 0
        return data.size * differ

    def around(name: str, last: dict[str, bool]) -> float:
        """The costs that depend on an operator's layout."""
        own = sum(port.cost(last[name]) for port in ports[name]) + between(name, last)
        return own + sum(between(reader, last) for reader in readers.get(name, ()) if reader != name)

    def cost(last: dict[str, bool]) -> float:
        return sum(sum(port.cost(last[name]) for port in ports[name]) + between(name, last) for name in ports)

    def improved(last: dict[str, bool]) -> dict[str, bool]:
        for _ in range(MOST_SWEEPS):
            better = False
            for name in ports:
                before = around(name, last)
                last[name] = not last[name]
                if around(name, last) < before:
                    better = True
                else:
                    last[name] = not last[name]
            if not better:
                break
        return last

    best = min((improved(dict.fromkeys(ports, start)) for start in (False, True)), key=cost)
    return [node for node in nodes if best[node.get_name()]]


def to_channels_last(node: Node, factory: NodeFactory) -> None:
    inputs, attributes = node.input_values(), {**node.get_attributes(), "channels_last": True}
    for i in [0, 2 + attributes["scale"] + attributes["bias"]] if attributes["residual"] else [0]:
        inputs[i] = to_last(inputs[i])
    made = factory.create(OURS, inputs, attributes)
    made.set_friendly_name(node.get_friendly_name())
    widening = _widening(node)
    if widening:
        widening[0].input(0).replace_source_output(made.output(0))
        for step in widening:
            step.constructor_validate_and_infer_types()
    before, end = (widening[-1], widening[-1]) if widening else (node, made)
    consumers = before.output(0).get_target_inputs()
    result = to_first(end)
    for consumer in consumers:
        consumer.replace_source_output(result.output(0))
    names = before.output(0).get_names()
    before.output(0).set_names(set())
    result.output(0).set_names(names)


def to_last(value: Output) -> Output:
    rank = value.get_partial_shape().rank.get_length()
    return ops.transpose(value, ops.constant(np.array([0, *range(2, rank), 1]))).output(0)


def to_first(node: Node) -> Node:
    return ops.transpose(node, ops.constant(np.array(first_order(node.get_output_partial_shape(0).rank.get_length()))))


def first_order(rank: int) -> list[int]:
    """The order of axes that turns channels last into channels first."""
    return [0, rank - 1, *range(1, rank - 1)]


def _widening(node: Node) -> list[Node]:
    """The steps from bytes to floats behind an operator: the Transpose comes after them, as the plugin looks for them
    directly behind bytes. The convolution that follows is then computed with integers."""
    steps: list[Node] = []
    while node.get_attributes().get("requantize", True) and (after := only_consumer(node)) is not None:
        kinds = ("Subtract", "Multiply") if steps else ("Convert",)
        if after.get_type_name() not in kinds or (steps and scalar_of(after.input_value(1)) is None):
            break
        steps.append(after)
        node = after
    return steps
