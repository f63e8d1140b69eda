# SPDX-License-Identifier: Apache-2.0
"""Names of operators, and what nodes of a model are: consumers, constants, shapes."""

from __future__ import annotations

import numpy as np
from openvino import Model, Node, Output, PartialShape, Type
from openvino import opset13 as ops
from openvino.passes import Manager, MatcherPass

STOCK = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
CONVOLUTIONS = ("Convolution", "GroupConvolution")
OURS = "TransposedConvolution"
OURS_OR_PAIR = "TransposedConvolutionOrPair"  # only in factories: makes ours, or the pair if that should stay
UNARY = (
    "Relu", "Clamp", "Sigmoid", "Tanh", "Gelu", "Swish", "Elu", "HSwish", "HSigmoid", "Mish", "SoftPlus", "Exp", "Abs",
    "Sqrt",
)  # fmt: skip
UNKNOWN_EXTENT = 64  # to compare sizes with
MOST_STEPS = 8  # between a constant and its reader


def run(step: MatcherPass, model: Model) -> None:
    manager = Manager()
    manager.register_pass(step)
    manager.run_passes(model)


def only_consumer(node: Node, several: set[str] | None = None) -> Node | None:
    """`several` remembers nodes of several consumers, each of which may ask."""
    if several is not None and node.get_name() in several:
        return None
    consumers = node.output(0).get_target_inputs()
    if several is not None and len(consumers) > 1:
        several.add(node.get_name())
    return next(iter(consumers)).get_node() if len(consumers) == 1 else None


def values_of(output: Output) -> np.ndarray | None:
    """The constant's elements, also behind some conversions of type and shape. None if it is not a constant."""
    steps: list[Output] = []
    while (kind := output.get_node().get_type_name()) != "Constant":
        known = kind in ("Convert", "Reshape") and output.get_partial_shape().is_static
        if not known or len(steps) == MOST_STEPS:
            return None
        steps.append(output)
        output = output.get_node().input_value(0)
    values = output.get_node().get_data(dtype=np.float64)  # as numbers: those of bf16 have no type in NumPy
    for step in reversed(steps):
        if step.get_node().get_type_name() == "Convert":  # as it rounds
            values = ops.constant(values, step.get_element_type()).get_data(dtype=np.float64)
        values = values.reshape(list(step.get_shape()))
    return values


def is_constant(output: Output) -> bool:
    """True if values_of has the elements, which may be many."""
    for _ in range(MOST_STEPS + 1):
        if output.get_node().get_type_name() not in ("Convert", "Reshape"):
            break
        output = output.get_node().input_value(0)
    return output.get_node().get_type_name() == "Constant"


def scalar_of(output: Output) -> float | None:
    values = values_of(output)
    return float(values.reshape(())) if values is not None and values.size == 1 else None


def per_channel(output: Output, channels: int, node: Node) -> np.ndarray | None:
    """One number, or one for each channel, if broadcasting to the output of `node` means that.

    Channels are what the model claims, so one number is not repeated for them.
    """
    values = values_of(output)
    rank = node.get_output_partial_shape(0).rank.get_length()
    if values is None or values.ndim > rank or output.get_element_type() != node.get_output_element_type(0):
        return None
    shape = (1,) * (rank - values.ndim) + values.shape
    if values.size == 1:
        return values.reshape(1)
    return values.reshape(channels) if values.size == channels == shape[1] else None


def slopes_of(output: Output, channels: int, node: Node) -> np.ndarray | None:
    """As per_channel, for PRelu, whose single axis is the channels."""
    values = values_of(output)
    same_type = output.get_element_type() == node.get_output_element_type(0)
    if values is not None and values.shape == (channels,) and same_type:
        return values
    return per_channel(output, channels, node)


def constant(values: np.ndarray, element: Type) -> Output:
    return ops.constant(np.ascontiguousarray(values), element).output(0)


def extents_of(shape: PartialShape) -> list[int]:
    return [UNKNOWN_EXTENT if extent.is_dynamic else extent.get_length() for extent in shape]


def is_concatenated(node: Node) -> bool:
    attributes = node.get_attributes()
    return attributes.get("concat_before", 0) + attributes.get("concat_after", 0) > 0


def can_hold(element: Type, values: np.ndarray) -> bool:
    """True if the constant is finite and, in a type shorter than f32, needs no rounding."""
    if element not in (Type.f32, Type.f64):
        return bool((ops.constant(values, element).get_data(dtype=np.float64) == values).all())
    with np.errstate(over="ignore"):
        return bool(np.isfinite(values.astype(np.float32 if element == Type.f32 else np.float64)).all())
