# SPDX-License-Identifier: Apache-2.0
"""Quantized models: an operator between FakeQuantizes computes with bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from openvino import Node, Output, Type
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

from .graph import OURS, can_hold, constant, is_concatenated, only_consumer, scalar_of, values_of


class _Levels(NamedTuple):
    """A FakeQuantize with one range for the whole tensor: x becomes the level q = round(x / input_step + input_zero)
    from 0 on, and q becomes (q - output_zero) * output_step."""

    count: int
    input_range: tuple[float, float]
    input_step: float
    input_zero: float
    output_step: float
    output_zero: float


class _Bytes(NamedTuple):
    """A tensor of u8; q stands for (q - zero_point) * step."""

    output: Output
    step: float
    zero_point: int


def to_bytes(node: Node, factory: NodeFactory) -> None:
    """Makes an operator compute with integers, if data and weights are quantized and a FakeQuantize follows."""
    attributes, inputs, after = node.get_attributes(), node.input_values(), only_consumer(node)
    if attributes["residual"] or attributes["requantize"] or attributes["channels_last"] or after is None:
        return
    if attributes["form"] != "transposed":  # sums of weights need not fit into bytes
        return
    if is_concatenated(node):
        return
    if node.get_output_element_type(0) != Type.f32 or after.input_value(0).get_node() != node:
        return
    data, weights, levels = _data(inputs[0]), _weights(inputs[1], grouped=attributes["grouped"]), _levels(after)
    fused = [name for name in ("scale", "bias") if attributes[name]]
    numbers = dict(zip(fused, (values_of(value) for value in inputs[2:])))
    if data is None or weights is None or levels is None or any(values is None for values in numbers.values()):
        return
    integers, steps = weights
    zero_point, step = _whole(levels.input_zero), levels.input_step
    largest = max(data.zero_point, 255 - data.zero_point) * 128 * (integers.size // len(steps))
    if levels.count != 256 or zero_point is None or largest > 0x7FFFFFFF:
        return
    scale = numbers.get("scale", 1) * (data.step * steps / step)
    bias = numbers.get("bias", np.zeros(1)) / step
    if attributes["activation"] == "clamp":
        bounds = np.clip(np.array([attributes["a"], attributes["b"]]) / step, -3e38, 3e38)
        attributes["a"], attributes["b"] = (float(bound) for bound in bounds)
    if attributes["activation"] not in ("none", "relu", "leaky_relu", "clamp"):
        return
    if not can_hold(Type.f32, scale) or not can_hold(Type.f32, bias):
        return
    attributes.update(scale=True, bias=bool(bias.any()), requantize=True, output_type="u8")
    attributes.update(data_zero_point=data.zero_point, output_zero_point=zero_point)
    added = [constant(scale, Type.f32)] + [constant(bias, Type.f32)] * attributes["bias"]
    rest = inputs[2 + len(fused) :]
    made = factory.create(OURS, [data.output, constant(integers, Type.i8), *added, *rest], attributes)
    made.set_friendly_name(node.get_friendly_name())
    wide = ops.convert(made, np.float32)
    if levels.output_zero != 0:
        wide = ops.subtract(wide, np.array(levels.output_zero, np.float32))
    result = ops.multiply(wide, np.array(levels.output_step, np.float32))
    result.set_friendly_name(after.get_friendly_name())
    names = after.output(0).get_names()
    after.output(0).replace(result.output(0))
    result.output(0).set_names(names)


def _levels(node: Node) -> _Levels | None:
    if node.get_type_name() != "FakeQuantize":
        return None
    numbers = [scalar_of(value) for value in node.input_values()[1:]]
    if any(number is None for number in numbers):
        return None
    low, high, output_low, output_high = numbers
    count = node.get_attributes()["levels"]
    if not (low < high and output_low < output_high and 2 <= count <= 256):
        return None
    step, output_step = (high - low) / (count - 1), (output_high - output_low) / (count - 1)
    return _Levels(count, (low, high), step, -low / step, output_step, -output_low / output_step)


def _whole(zero: float) -> int | None:
    """A zero point as a byte, after rounding errors of the range in f32. None if it is not one."""
    nearest = round(zero)
    return nearest if 0 <= nearest <= 255 and abs(zero - nearest) < 1e-3 else None


def _data(output: Output) -> _Bytes | None:
    """Data with at most 256 levels as u8: from a FakeQuantize, or from widened u8."""
    node = output.get_node()
    levels = _levels(node)
    if levels is not None:
        zero_point = _whole(levels.output_zero)
        if zero_point is None:
            return None
        bounds = (*levels.input_range, 0, levels.count - 1)
        numbers = (np.array(bound, np.float32) for bound in bounds)
        quantized = ops.fake_quantize(node.input_value(0), *numbers, levels.count)
        return _Bytes(ops.convert(quantized, np.uint8).output(0), levels.output_step, zero_point)
    found = _widened(node)
    if found is None or found[0].get_element_type() != Type.u8:
        return None
    step, zero = (None if values is None or values.size != 1 else values.item() for values in found[1:])
    zero_point = None if zero is None else _whole(zero)
    return None if step is None or zero_point is None else _Bytes(found[0], step, zero_point)


def _widened(node: Node) -> tuple[Output, np.ndarray | None, np.ndarray | None] | None:
    """Integers, step and zero of Multiply(Subtract(Convert(integers), zero), step); without the Subtract zero is 0."""
    if node.get_type_name() != "Multiply":
        return None
    inner, zero = node.input_value(0).get_node(), np.zeros(1)
    if inner.get_type_name() == "Subtract":
        inner, zero = inner.input_value(0).get_node(), values_of(inner.input_value(1))
    if inner.get_type_name() != "Convert":
        return None
    return inner.input_value(0), values_of(node.input_value(1)), zero


def _weights(output: Output, *, grouped: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Constant weights as i8 around 0, and a step for each output channel. None for other weights."""
    shape, node = output.get_partial_shape(), output.get_node()
    if shape.is_dynamic:
        return None
    if node.get_type_name() == "Reshape":
        node = node.input_value(0).get_node()
    found = _quantized_weights(node)
    if found is None:
        return None
    integers, steps = found
    whole_shape = list(integers.shape) == list(node.get_output_shape(0)) and _broadcasts(integers.shape, steps)
    if not whole_shape or integers.size == 0:
        return None
    steps = np.broadcast_to(steps, integers.shape).reshape(shape.to_shape())
    integers = integers.reshape(shape.to_shape())
    axes = tuple(axis for axis in range(steps.ndim) if axis not in ((0, 2) if grouped else (1,)))
    least = steps.min(axis=axes)
    whole = np.round(integers)
    if (least != steps.max(axis=axes)).any() or not (least > 0).all() or np.abs(integers - whole).max() > 1e-3:
        return None
    return (whole, least.reshape(-1)) if whole.min() >= -128 and whole.max() <= 127 else None


def _broadcasts(shape: tuple[int, ...], *arrays: np.ndarray) -> bool:
    """Whether together with these arrays, an array of this shape keeps it: several small ones could have a product of
    any size."""
    try:
        return np.broadcast_shapes(shape, *(array.shape for array in arrays)) == shape
    except ValueError:
        return False


def _quantized_weights(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """Integers around 0, and steps that broadcast to the shape of the node's output."""
    if node.get_type_name() == "FakeQuantize":
        values = [values_of(value) for value in node.input_values()]
        if any(value is None for value in values):
            return None
        weights, low, high, output_low, output_high = values
        if not _broadcasts(weights.shape, *values[1:]):
            return None
        top = node.get_attributes()["levels"] - 1
        if not ((low < high).all() and (output_low < output_high).all()):
            return None
        level = np.round((np.clip(weights, low, high) - low) / (high - low) * top)
        steps = (output_high - output_low) / top
        return level + output_low / steps, steps
    found = _widened(node)
    if found is None:
        return None
    integers, steps, zero = values_of(found[0]), found[1], found[2]
    known = integers is not None and steps is not None and zero is not None
    if not known or not _broadcasts(integers.shape, zero):
        return None
    return (integers - zero, steps) if found[0].get_element_type() in (Type.i8, Type.u8) else None
