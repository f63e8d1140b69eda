# SPDX-License-Identifier: Apache-2.0
"""Puts tconv-cl's operator into OpenVINO models of any frontend, with the bias and activation that follow it."""
import pathlib

import numpy as np
from openvino import opset13 as ops
from openvino.passes import AnyInput, Manager, Matcher, MatcherPass
from openvino.utils.node_factory import NodeFactory

STOCK = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
OURS = "TransposedConvolution"
LIBRARY = pathlib.Path(__file__).with_name("libtconv_cl_openvino.so")


def convert(model, library=LIBRARY, device=-1):
    """Replaces the transposed convolutions of `model`, also in the bodies of its branches, and returns how many.

    A following Add of one constant for each channel, and a following activation that the library has, become part of
    the operator. What the library refuses stays as it is, and a line on stderr says why. `device` is the number that
    `tconv-cl devices` prints; -1: the library's default. `library` is the extension's file."""
    replace = _Replace(library, device)
    manager = Manager()
    manager.register_pass(replace)
    manager.run_passes(model)
    return replace.count


class _Replace(MatcherPass):

    def __init__(self, library, device):
        super().__init__()
        self.count = 0
        self.device = device
        self.factory = NodeFactory()
        self.factory.add_extension(str(library))
        pattern = AnyInput(lambda output: output.get_node().get_type_name() in (*STOCK, OURS))
        self.register_matcher(Matcher(pattern, "tconv_cl"), self.replace)

    def replace(self, matcher):
        node = matcher.get_match_root()
        attributes = node.get_attributes()
        if node.get_type_name() in STOCK:
            # The extension decides: its factory gives OpenVINO's own node back where the library refuses it.
            attributes["device"] = self.device
            made = self.factory.create(node.get_type_name(), node.input_values(), attributes)
            if made.get_type_name() != OURS:
                return False
            attributes = made.get_attributes()
        elif attributes["bias"] or attributes["activation"] != "none":
            return False  # one that was here before
        last, inputs, fused = _fuse(node)
        if node.get_type_name() == OURS and not fused:
            return False
        inputs = node.input_values()[:2] + inputs + node.input_values()[2:]
        made = self.factory.create(OURS, inputs, {**attributes, **fused})
        made.set_friendly_name(last.get_friendly_name())
        names = last.output(0).get_names()
        last.output(0).replace(made.output(0))
        made.output(0).set_names(names)
        self.count += 1
        return True


def _fuse(node):
    """What follows `node` and can be fused: the last node of it, the inputs that it adds, the attributes."""
    inputs, attributes = [], {}
    shape = node.get_output_partial_shape(0)
    if shape.rank.is_dynamic or shape[1].is_dynamic:
        return node, inputs, attributes
    channels = shape[1].get_length()
    after = _only_consumer(node)
    if after is not None and after.get_type_name() == "Add":
        bias = _per_channel(_other(after, node), channels, node)
        if bias is not None:
            inputs.append(bias)
            attributes["bias"] = True
            node, after = after, _only_consumer(after)
    activation = None if after is None else _activation(after, node, channels)
    if activation is not None:
        slopes, fused = activation
        inputs += slopes
        attributes.update(fused)
        node = after
    return node, inputs, attributes


def _activation(node, data, channels):
    """The inputs and attributes of the activation that `node` is on `data`; None where the library has no such."""
    kind, attributes = node.get_type_name(), node.get_attributes()
    if node.input_value(0).get_node() != data:
        return None
    simple = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
    if kind in simple:
        return [], {"activation": simple[kind]}
    if kind == "Clamp":
        return [], {"activation": "clamp", "a": float(attributes["min"]), "b": float(attributes["max"])}
    if kind == "Elu":
        return [], {"activation": "elu", "a": float(attributes["alpha"])}
    if kind == "Gelu":
        mode = str(attributes.get("approximation_mode", "erf")).lower()
        return [], {"activation": "gelu_tanh" if mode == "tanh" else "gelu"}
    if kind == "Swish" and (node.get_input_size() == 1 or _scalar(node.input_value(1)) == 1):
        return [], {"activation": "silu"}
    if kind == "PRelu":
        slope = _scalar(node.input_value(1))
        if slope is not None:
            return [], {"activation": "leaky_relu", "a": slope}
        slopes = _slopes(node.input_value(1), channels, data)
        if slopes is not None:
            return [slopes], {"activation": "prelu"}
    return None


def _only_consumer(node):
    consumers = node.output(0).get_target_inputs()
    return next(iter(consumers)).get_node() if len(consumers) == 1 else None


def _other(add, node):
    return add.input_value(1 if add.input_value(0).get_node() == node else 0)


def _values(output):
    """The constant's elements, also behind conversions of its type and shape; None where it is no constant."""
    node = output.get_node()
    if node.get_type_name() == "Constant":
        return node.get_data()
    if node.get_type_name() in ("Convert", "Reshape") and output.get_partial_shape().is_static:
        values = _values(node.input_value(0))
        return None if values is None else values.reshape(list(output.get_shape()))
    return None


def _scalar(output):
    values = _values(output)
    return float(values.reshape(())) if values is not None and values.size == 1 else None


def _per_channel(output, channels, node):
    """One number for each channel, as a constant of one axis, where broadcasting means that."""
    values = _values(output)
    rank = node.get_output_partial_shape(0).rank.get_length()
    if values is None or values.ndim > rank or output.get_element_type() != node.get_output_element_type(0):
        return None
    shape = (1, ) * (rank - values.ndim) + values.shape
    if values.size == 1:
        values = np.broadcast_to(values.reshape(1), channels)
    elif values.size != channels or shape[1] != channels:
        return None
    return _constant(values, channels, output)


def _slopes(output, channels, node):
    """The same for PRelu, which takes one axis as the channels."""
    values = _values(output)
    same_type = output.get_element_type() == node.get_output_element_type(0)
    if values is not None and values.shape == (channels, ) and same_type:
        return _constant(values, channels, output)
    return _per_channel(output, channels, node)


def _constant(values, channels, like):
    return ops.constant(np.ascontiguousarray(values.reshape(channels)), like.get_element_type()).output(0)
