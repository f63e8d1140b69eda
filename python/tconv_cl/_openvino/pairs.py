# SPDX-License-Identifier: Apache-2.0
"""Two operators of OpenVINO's that are one layer of the library: a nearest upsampling before a convolution."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from openvino import Node, Output

from .graph import CONVOLUTIONS, constant, is_constant, only_consumer, values_of

# The modes in which OpenVINO's Interpolate reads element floor(i / factor), whatever the factor.
REPEATING = {
    ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"), ("pytorch_half_pixel", "round_prefer_ceil"),
    ("asymmetric", "floor"), ("asymmetric", "simple"),
    ("tf_half_pixel_for_nn", "floor"), ("tf_half_pixel_for_nn", "simple"),
}  # fmt: skip
VERSIONS = ("opset4", "opset11")


class Pair(NamedTuple):
    """A layer in place of two operators."""

    inputs: list[Output]
    attributes: dict[str, Any]


class _Left(Exception):
    """Why a pair stays as it is."""


def pair_of(node: Node) -> Pair | str | None:
    """The layer in place of `node`, which is a convolution, and of the operator beside it. A sentence if these stay as
    they are; None if there is no such operator."""
    if node.get_type_name() not in CONVOLUTIONS:
        return None
    before = node.input_value(0).get_node()
    try:
        if before.get_type_name() == "Interpolate" and before.get_attributes()["mode"] == "nearest":
            return _upsampling(before, node)
    except _Left as left:
        return str(left)
    return None


def fold_reshapes(node: Node) -> None:
    """Makes constants of reshaped constants that are combined with `node`. OpenVINO's reader of ONNX reshapes a bias by
    the rank of the convolution's output, which then has two readers."""
    for target in node.output(0).get_target_inputs():
        for beside in target.get_node().inputs():
            value = beside.get_source_output()
            if value.get_node().get_type_name() == "Reshape" and (values := values_of(value)) is not None:
                beside.replace_source_output(constant(values, value.get_element_type()))


def _upsampling(before: Node, node: Node) -> Pair:
    attributes, of_data = node.get_attributes(), before.get_attributes()
    if before.get_type_info().version_id not in VERSIONS:
        raise _Left("of the operators Interpolate, only those of opset 4 and 11 are taken")
    mode = of_data["coordinate_transformation_mode"], of_data["nearest_mode"]
    if mode not in REPEATING:
        raise _Left(f"with {' and '.join(mode)}, Interpolate does not repeat each element as often as the others")
    if of_data["antialias"] or any(of_data["pads_begin"]) or any(of_data["pads_end"]):
        raise _Left("its Interpolate has pads or antialias")
    if only_consumer(before) is None:
        raise _Left("something else reads the enlarged data, too")
    if any(stride != 1 for stride in attributes["strides"]):
        raise _Left("the convolution's stride is not 1")
    if not is_constant(node.input_value(1)):
        raise _Left("the convolution's filter is not a constant")
    factors, sizes = _factors(before)
    kernel = list(node.input_value(1).get_shape())[-len(factors) :]
    _check_gain(kernel, attributes["dilations"], factors)
    changed = {
        "form": "upsample",
        "grouped": node.get_type_name() == "GroupConvolution",
        "strides": factors,
        **{name: attributes[name] for name in ("dilations", "pads_begin", "pads_end", "auto_pad")},
        "output_padding": [0] * len(factors),
        "coordinate_transformation_mode": mode[0],
        "nearest_mode": mode[1],
    }
    return Pair([before.input_value(0), node.input_value(1), *sizes], changed)


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
    of_both = math.prod(kernel)
    of_layer = math.prod(
        k if s == 1 else (d * (k - 1) + s) / s for k, d, s in zip(kernel, dilations, factors)
    )
    if of_both < LEAST_GAIN * of_layer:
        raise _Left("sums of its weights hardly save multiply-adds")


LEAST_GAIN = 1.0
