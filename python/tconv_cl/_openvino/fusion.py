# SPDX-License-Identifier: Apache-2.0
"""What follows an operator and can be computed by it: factors, addends, a residual, an activation."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from openvino import Node, Output, Type

from .graph import can_hold, constant, is_concatenated, only_consumer, per_channel, scalar_of, slopes_of, values_of

MOST_FACTORS = 64  # nodes behind an operator: each is one pass over the channels


def fuse(node: Node, inputs: list[Output], attributes: dict[str, Any]) -> tuple[Node, list[Output], dict[str, Any]]:
    """Finds the nodes after `node`, which becomes an operator with these inputs and attributes, that can be fused: the
    last node, and the fused operator's inputs and attributes."""
    if is_concatenated(node):
        return node, inputs, {}
    shape = node.get_output_partial_shape(0)
    fused = [name for name in ("scale", "bias") if attributes[name]]
    known = shape.rank.is_static and shape[1].is_static and not attributes.get("channels_last", False)
    stored = attributes["residual"] or attributes["requantize"]
    if not known or stored or attributes["activation"] != "none":
        return node, inputs, {}
    channels = shape[1].get_length()
    spread = _spread(attributes)
    before = dict(zip(fused, (values_of(value) for value in inputs[2:])))
    if any(values is None for values in before.values()):
        return node, inputs, {}
    scale, bias = before.get("scale", np.ones(1)), before.get("bias", np.zeros(1))
    last, scale, bias = _follow(node, channels, scale, bias, spread)
    added, changed = [], {"scale": bool((scale != 1).any()), "bias": bool(bias.any())}
    element = node.get_output_element_type(0)
    added += [constant(values, element) for name, values in (("scale", scale), ("bias", bias)) if changed[name]]
    residual = _residual(last)
    if residual is not None:
        added.append(residual)
        changed["residual"] = True
        last = only_consumer(last)
    activation = _gate(last) or _activation(last, channels)
    if activation is not None:
        last, slopes, its = activation
        added += [constant(spread(each), element) for each in slopes]
        changed.update(its)
    return last, inputs[:2] + added + inputs[2 + len(fused) :], changed


def _spread(attributes: dict[str, Any]) -> Callable[[Any], Any]:
    """How numbers for each channel of the output become those for each channel before a shuffle."""
    form, phases = attributes.get("form", "transposed"), math.prod(attributes.get("strides", ()))
    if form not in ("shuffle", "shuffle_dcr"):
        return lambda values: values
    repeat = np.repeat if form == "shuffle" else np.tile
    return lambda values: repeat(values, phases) if np.size(values) > 1 else values


def _follow(
    node: Node, channels: int, scale: np.ndarray, bias: np.ndarray, spread: Callable[[Any], Any]
) -> tuple[Node, np.ndarray, np.ndarray]:
    """The last of the nodes after `node` that together are one factor and one addend for each channel, and these
    two."""
    for _ in range(MOST_FACTORS):
        after = only_consumer(node)
        affine = None if after is None else _affine(after, node, channels)
        if after is None or affine is None:
            break
        factor, addend = (spread(each) for each in affine)
        with np.errstate(all="ignore"):  # infinities and NaN are not fused
            now = scale * factor, bias * factor + addend
        if not all(can_hold(node.get_output_element_type(0), values) for values in now):
            break
        (scale, bias), node = now, after
    return node, scale, bias


def _affine(node: Node, data: Node, channels: int) -> tuple[Any, Any] | None:
    """Factor and addend, one number or one for each channel, if `node` computes data * factor + addend, else None."""
    kind = node.get_type_name()
    first = node.input_value(0).get_node() == data
    if kind in ("Add", "Subtract", "Multiply", "Divide"):
        other = per_channel(node.input_value(1 if first else 0), channels, data)
        if other is None or node.get_attributes()["auto_broadcast"] != "numpy" or (kind == "Divide" and not first):
            return None
        with np.errstate(all="ignore"):
            return {
                "Add": (1, other),
                "Subtract": (1, -other) if first else (-1, other),
                "Multiply": (other, 0),
                "Divide": (1 / other, 0),
            }[kind]
    if kind == "BatchNormInference" and first:
        constants = [values_of(value) for value in node.input_values()[1:]]
        if any(values is None for values in constants):
            return None
        gamma, beta, mean, variance = constants
        with np.errstate(all="ignore"):
            factor = gamma / np.sqrt(variance + node.get_attributes()["epsilon"])
        return factor, beta - mean * factor
    return None


def _residual(data: Node) -> Output | None:
    """The tensor of the same shape that is added to `data`. None if something else follows."""
    node, shape = only_consumer(data), data.get_output_partial_shape(0)
    if node is None or node.get_type_name() != "Add" or shape.is_dynamic:
        return None
    other = node.input_value(1 if node.input_value(0).get_node() == data else 0)
    same = other.get_partial_shape() == shape and other.get_element_type() == data.get_output_element_type(0)
    return other if same else None


def _gate(data: Node) -> tuple[Node, list[np.ndarray], dict[str, Any]] | None:
    """As _activation, for x * f(x) written as two operators that both read x."""
    gates = {"Sigmoid": "silu", "HSigmoid": "hardswish", "HardSigmoid": "hardswish", "SoftPlus": "mish"}
    consumers = [target.get_node() for target in data.output(0).get_target_inputs()]
    for gate, product in (consumers, consumers[::-1]) if len(consumers) == 2 else ():
        activation, last = gates.get(gate.get_type_name()), gate
        if activation == "mish":
            last = only_consumer(gate)
        if activation is None or last is None or (activation == "mish" and last.get_type_name() != "Tanh"):
            continue
        if gate.get_type_name() == "HardSigmoid" and not np.allclose(
            [scalar_of(value) or 0 for value in gate.input_values()[1:]], [1 / 6, 0.5], rtol=1e-6
        ):
            continue
        if product.get_type_name() == "Multiply" and only_consumer(last) == product:
            return product, [], {"activation": activation}
    return None


def _activation(data: Node, channels: int) -> tuple[Node, list[np.ndarray], dict[str, Any]] | None:
    """The activation after `data`, its slopes and its attributes. None if the library does not have it."""
    node = only_consumer(data)
    if node is None or node.input_value(0).get_node() != data:
        return None
    found = _activation_of(node, data, channels)
    return None if found is None else (node, *found)


def _activation_of(node: Node, data: Node, channels: int) -> tuple[list[np.ndarray], dict[str, Any]] | None:
    kind, attributes = node.get_type_name(), node.get_attributes()
    simple = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "HSwish": "hardswish", "Mish": "mish"}
    if kind in simple:
        return [], {"activation": simple[kind]}
    most = float(np.finfo(np.float32).max)  # OpenVINO may compute a model of f64 in f32
    if kind == "Clamp":
        low, high = float(attributes["min"]), float(attributes["max"])
        if low == 0 and high > (sys.float_info.max if data.get_output_element_type(0) == Type.f64 else most):
            return [], {"activation": "relu"}
        return ([], {"activation": "clamp", "a": low, "b": high}) if abs(low) <= most and abs(high) <= most else None
    if kind == "Elu" and abs(float(attributes["alpha"])) <= most:
        return [], {"activation": "elu", "a": float(attributes["alpha"])}
    if kind == "Gelu":
        mode = str(attributes.get("approximation_mode", "erf")).lower()
        return [], {"activation": "gelu_tanh" if mode == "tanh" else "gelu"}
    if kind == "Swish" and (node.get_input_size() == 1 or scalar_of(node.input_value(1)) == 1):
        return [], {"activation": "silu"}
    if kind == "PRelu":
        slope = scalar_of(node.input_value(1))
        if slope is not None:
            return ([], {"activation": "leaky_relu", "a": slope}) if abs(slope) <= most else None
        slopes = slopes_of(node.input_value(1), channels, data)
        if slopes is not None:
            return [slopes], {"activation": "prelu"}
    return None
