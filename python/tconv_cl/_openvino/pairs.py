# SPDX-License-Identifier: Apache-2.0
"""Operators of OpenVINO's that together are one layer of the library: a nearest upsampling before a convolution, or a
pixel shuffle behind it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from openvino import Node, Output, Type
from openvino.utils.node_factory import NodeFactory

from .._gain import gain_of
from .fusion import fuse
from .graph import CONVOLUTIONS, constant, is_constant, only_consumer, values_of

# The modes in which OpenVINO's Interpolate reads element floor(i / factor), whatever the factor.
REPEATING = {
    ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"), ("pytorch_half_pixel", "round_prefer_ceil"),
    ("asymmetric", "floor"), ("asymmetric", "simple"),
    ("tf_half_pixel_for_nn", "floor"), ("tf_half_pixel_for_nn", "simple"),
}  # fmt: skip
VERSIONS = ("opset4", "opset11")
# Of a shuffle, channels behind it and spatial axes: with fewer, OpenVINO's own operators are as fast or faster, unless
# each channel has its own filter.
LEAST_CHANNELS, LEAST_AXES = 32, 2
MOST_TERMS = 4096  # products of an output before a shuffle; with 2304 the layer took 0.92 of the time, with 13824 1.12
OF_CONVOLUTION = ("strides", "dilations", "pads_begin", "pads_end", "auto_pad")
ANOTHER_READER = "something else reads the enlarged data, too"
LEAST_GAIN = 1.25  # multiply-adds of the two operators for one of the layer's; with fewer, OpenVINO's own are as fast


class Beside(NamedTuple):
    """A tensor that is concatenated with the enlarged data, and its part of the convolution's filter."""

    data: Output
    filter: np.ndarray
    attributes: dict[str, Any]

    def convolution(self, factor: np.ndarray) -> Output:
        """OpenVINO's own convolution of it, times a factor for each channel."""
        weights = self.filter * factor.reshape(-1, *[1] * (self.filter.ndim - 1))
        inputs = [self.data, constant(weights, self.data.get_element_type())]
        return NodeFactory("opset1").create("Convolution", inputs, self.attributes).output(0)


class Pair(NamedTuple):
    """A layer in place of operators, the last of which is `last`. With `beside`, a convolution of that is its
    residual."""

    last: Node
    inputs: list[Output]
    attributes: dict[str, Any]
    beside: Beside | None = None


class _Left(Exception):
    """Why a pair stays as it is."""


def pair_of(node: Node) -> Pair | str | None:
    """The layer in place of `node`, which is a convolution, and of the operators beside it. A sentence if these stay as
    they are; None if there are no such operators."""
    if node.get_type_name() not in CONVOLUTIONS:
        return None
    before = node.input_value(0).get_node()
    try:
        if _enlarges(before):
            return _upsampling(before, node)
        enlarged = [at for at, value in enumerate(before.input_values()) if _enlarges(value.get_node())]
        if before.get_type_name() == "Concat" and enlarged:
            return _concatenated(before, enlarged[0], node)
        return _shuffled(node)
    except _Left as left:
        return str(left)


def _enlarges(node: Node) -> bool:
    return node.get_type_name() == "Interpolate" and node.get_attributes()["mode"] == "nearest"


def _layer(node: Node, form: str, factors: list[int]) -> dict[str, Any]:
    """The attributes of a layer in place of a convolution, which raises if it has others than the library takes."""
    attributes = node.get_attributes()
    if any(stride != 1 for stride in attributes["strides"]):
        raise _Left("the convolution's stride is not 1")
    if not is_constant(node.input_value(1)):
        raise _Left("the convolution's filter is not a constant")
    return {
        "form": form,
        "grouped": node.get_type_name() == "GroupConvolution",
        "strides": factors,
        **{name: attributes[name] for name in OF_CONVOLUTION[1:]},
        "output_padding": [0] * len(factors),
    }


def fold_reshapes(node: Node) -> None:
    """Makes constants of reshaped constants that are combined with `node`. OpenVINO's reader of ONNX reshapes a bias by
    the rank of the convolution's output, which then has two readers."""
    readers = node.output(0).get_target_inputs()
    for target in readers if len(readers) > 1 else ():
        for beside in target.get_node().inputs():
            value = beside.get_source_output()
            if value.get_node().get_type_name() == "Reshape" and (values := values_of(value)) is not None:
                beside.replace_source_output(constant(values, value.get_element_type()))


def _upsampling(before: Node, node: Node) -> Pair:
    of_data = before.get_attributes()
    if before.get_type_info().version_id not in VERSIONS:
        raise _Left("of the operators Interpolate, only those of opset 4 and 11 are taken")
    mode = of_data["coordinate_transformation_mode"], of_data["nearest_mode"]
    if mode not in REPEATING:
        raise _Left(f"with {' and '.join(mode)}, Interpolate does not repeat each element as often as the others")
    if of_data["antialias"] or any(of_data["pads_begin"]) or any(of_data["pads_end"]):
        raise _Left("its Interpolate has pads or antialias")
    if only_consumer(before) is None:
        raise _Left(ANOTHER_READER)
    factors, sizes = _factors(before)
    attributes = _layer(node, "upsample", factors)
    attributes.update(coordinate_transformation_mode=mode[0], nearest_mode=mode[1])
    kernel = list(node.input_value(1).get_shape())[-len(factors) :]
    for k, d, s in zip(kernel, attributes["dilations"], factors):
        if d > s > 1 < k:
            raise _Left(f"the convolution's dilation {d} is above the factor {s}")
    _check_gain(kernel, attributes["dilations"], factors)
    return Pair(node, [before.input_value(0), node.input_value(1), *sizes], attributes)


def _concatenated(concat: Node, at: int, node: Node) -> Pair:
    """The pair of the input `at` of a Concat along the channels, which has one other."""
    pair = _upsampling(concat.input_value(at).get_node(), node)
    rank = node.get_output_partial_shape(0).rank.get_length()
    if concat.get_input_size() != 2 or concat.get_attributes()["axis"] not in (1, 1 - rank):
        raise _Left("its Concat does not join two inputs along the channels")
    if only_consumer(concat) is None:
        raise _Left(ANOTHER_READER)
    if pair.attributes["grouped"]:
        raise _Left("a Concat is between them, and the convolution has groups")
    channels, element = concat.input_value(at).get_partial_shape()[1], node.get_output_element_type(0)
    if channels.is_dynamic:
        raise _Left("a Concat is between them, and the number of enlarged channels is not known")
    if element not in (Type.f32, Type.f64):  # another type would round the residual
        raise _Left("a Concat is between them, and the type is neither f32 nor f64")
    own, (_, whole, *kernel) = channels.get_length(), node.input_value(1).get_shape()
    if gain_of(kernel, pair.attributes["dilations"], pair.attributes["strides"], own, whole - own) < LEAST_GAIN:
        raise _Left("a Concat is between them, and too few of its channels are enlarged")
    parts = np.split(values_of(node.input_value(1)), [own if at == 0 else whole - own], 1)
    attributes = {name: node.get_attributes()[name] for name in OF_CONVOLUTION}
    beside = Beside(concat.input_value(1 - at), parts[1 - at], attributes)
    return Pair(node, [pair.inputs[0], constant(parts[at], element), *pair.inputs[2:]], pair.attributes, beside)


def with_residual(beside: Beside, inputs: list[Output], fused: dict[str, Any]) -> tuple[list[Output], dict[str, Any]]:
    """The inputs and attributes of a layer, as `fuse` returns them, with the convolution of what is beside its data as
    residual, on which a residual that it has is added."""
    has_scale = bool(fused.get("scale"))
    added = beside.convolution(values_of(inputs[2]) if has_scale else np.ones(1))
    at = behind = 2 + has_scale + bool(fused.get("bias"))
    if fused.get("residual"):
        both = [added, inputs[at]]
        added, behind = NodeFactory("opset1").create("Add", both, {"auto_broadcast": "numpy"}).output(0), at + 1
    return [*inputs[:at], added, *inputs[behind:]], {**fused, "residual": True}


def _shuffled(node: Node) -> Pair | None:
    """Between the convolution and the shuffle may stand what can be fused, with numbers for its channels."""
    plain = {"scale": False, "bias": False, "residual": False, "requantize": False, "activation": "none"}
    last, inputs, fused = fuse(node, node.input_values(), plain)
    after = only_consumer(last)
    kind = "" if after is None else after.get_type_name()
    if after is None or kind not in ("DepthToSpace", "Reshape") or after.input_value(0).get_node() != last:
        return None
    if kind == "DepthToSpace":
        attributes = after.get_attributes()
        rank = after.get_output_partial_shape(0).rank
        if rank.is_dynamic:
            raise _Left("the rank of the data is not known")
        factors = [attributes["block_size"]] * (rank.get_length() - 2)
        dcr = attributes["mode"] == "blocks_first"
    else:
        found = _reshaped(after)
        if found is None:
            return None
        after, factors, dcr = found
    if all(factor == 1 for factor in factors):
        raise _Left("it shuffles nothing")
    if fused.get("residual"):
        raise _Left("a tensor is added before the shuffle")
    attributes = {**_layer(node, "shuffle_dcr" if dcr else "shuffle", factors), **fused}
    shape, axes = list(node.input_value(1).get_shape()), len(factors)
    if any(d > 1 < k for d, k in zip(attributes["dilations"], shape[-axes:])):
        raise _Left("the convolution's dilation is not 1")
    if attributes["grouped"] and (dcr or shape[1] % math.prod(factors) != 0):
        raise _Left("the shuffle takes an output's phases from several groups")
    channels = after.get_output_partial_shape(0)[1]
    many = channels.is_static and channels.get_length() >= LEAST_CHANNELS and len(factors) >= LEAST_AXES
    if not many and not (attributes["grouped"] and node.input_value(1).get_shape()[2] == 1):
        raise _Left(f"with one axis or fewer than {LEAST_CHANNELS} channels behind the shuffle it gains nothing")
    terms = math.prod(shape[2 if attributes["grouped"] else 1 :])
    if terms > MOST_TERMS:
        raise _Left(f"with {terms} products of an output the shuffle gains nothing")
    return Pair(after, inputs, attributes)


def _reshaped(first: Node) -> tuple[Node, list[int], bool] | None:
    """The last of Reshape, Transpose, Reshape that are a shuffle, its factors, and whether its order is DCR."""
    middle = only_consumer(first)
    last = None if middle is None or middle.get_type_name() != "Transpose" else only_consumer(middle)
    if last is None or last.get_type_name() != "Reshape":
        return None
    order = values_of(middle.input_value(1))
    if order is None or order.size < 4 or order.size % 2 != 0:
        return None
    axes = order.size // 2 - 1
    for dcr in (False, True):
        wanted = [0, axes + 1 if dcr else 1]
        for axis in range(axes):
            wanted += [axes + 2 + axis, axis + (1 if dcr else 2)]
        if order.reshape(-1).tolist() == wanted:
            break
    else:
        return None
    shapes = [node.get_output_partial_shape(0) for node in (first.input_value(0).get_node(), first, last)]
    if any(shape.is_dynamic for shape in shapes):
        raise _Left("a shuffle by Reshape and Transpose may follow, but extents are not known")
    whole, split, behind = (list(shape.to_shape()) for shape in shapes)
    factors, channels = (split[1 : axes + 1], split[axes + 1]) if dcr else (split[2 : axes + 2], split[1])
    shuffled = [whole[0], channels, *(r * z for r, z in zip(factors, whole[2:]))]
    return (last, factors, dcr) if split[axes + 2 :] == whole[2:] and behind == shuffled else None


def _factors(node: Node) -> tuple[list[int], list[Output]]:
    """How often Interpolate repeats elements along each spatial axis; and the sizes, if it has these."""
    data, enlarged = node.get_input_partial_shape(0), node.get_output_partial_shape(0)
    if data.rank.is_dynamic:
        raise _Left("the rank of the data is not known")
    rank = data.rank.get_length()
    old = node.get_type_info().version_id == "opset4"
    has_axes = node.get_input_size() == (4 if old else 3)
    axes = values_of(node.input_value(node.get_input_size() - 1)) if has_axes else np.arange(rank)
    if axes is None:
        raise _Left("the axes of its Interpolate are not constant")
    axes = [int(axis) % rank for axis in axes.reshape(-1)]
    factors = np.ones(rank)
    if node.get_attributes()["shape_calculation_mode"] == "scales":
        scales, sizes = values_of(node.input_value(2 if old else 1)), []
        if scales is None or scales.size != len(axes):
            raise _Left("the scales of its Interpolate are not constant")
        factors[axes] = scales.reshape(-1)
    else:
        sizes = [node.input_value(1)]
        if axes not in (list(range(2, rank)), list(range(rank))):
            raise _Left("the sizes of its Interpolate are those of some axes only")
        if any(shape[axis].is_dynamic for shape in (data, enlarged) for axis in range(2, rank)):
            raise _Left("its Interpolate has sizes, and extents are not known")
        for axis in axes:  # a batch that is not known may have a size
            if data[axis].is_static and enlarged[axis].is_static:
                factors[axis] = enlarged[axis].get_length() / max(data[axis].get_length(), 1)
            elif data[axis] != enlarged[axis]:
                raise _Left("its Interpolate has sizes, and extents are not known")
    if any(factor != int(factor) or factor < 1 for factor in factors) or any(factors[:2] != 1):
        raise _Left("its factors are not whole numbers, or it enlarges batch or channels")
    return [int(factor) for factor in factors[2:]], sizes


def _check_gain(kernel: list[int], dilations: list[int], factors: list[int]) -> None:
    """The layer multiplies by sums of weights. Leaves those to OpenVINO in which sums hardly save multiply-adds."""
    if all(extent == 1 for extent in kernel):
        raise _Left("the convolution's kernel is 1: it is faster than sums of weights")
    if gain_of(kernel, dilations, factors) < LEAST_GAIN:
        raise _Left("sums of its weights hardly save multiply-adds")
