# SPDX-License-Identifier: Apache-2.0
"""Which nearest upsamplings and convolutions, and which convolutions and pixel shuffles, of an ONNX model are one
ConvTranspose, and why the others are not. The conditions are those of the provider for ONNX Runtime
(adapters/onnxruntime/pair.c, trial.c); besides, a ConvTranspose has no negative pads and one bias for each channel."""

from __future__ import annotations

from math import ceil, floor, prod
from typing import Any, NamedTuple, NoReturn

import numpy as np
from onnx import NodeProto

from .._gain import taps_of
from .graph import Scope, attributes_of, input_of, is_operator
from .weights import Array, bias_of_phases, with_shuffle, with_upsampling

MOST_FACTOR = 1 << 20
MOST_AXES = 6
MOST_OUT = 16  # output channels for each input channel
MOST_GROWTH, MOST_BYTES = 16, 1 << 26  # of sums of weights, if both are exceeded; bytes also of a bias that is added
TYPES = ("float32", "float16", "float64", "bfloat16")
HALVES = ("float16", "bfloat16")

HALF = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil")
# The modes in which element u is the element floor(u / factor), with any factor, and with 2.
REPEATING = {(half, rounding) for half in HALF for rounding in NEAREST}
REPEATING |= {("asymmetric", "floor"), ("tf_half_pixel_for_nn", "floor")}
REPEATING_BY_2 = {("asymmetric", "round_prefer_floor"), *(("align_corners", rounding) for rounding in NEAREST)}
RESIZE_OF_ATTRIBUTES = 11  # the version of Resize since which attributes say the mode


class Left(Exception):
    """Why a pair stays as it is."""


def _leave(reason: str) -> NoReturn:
    raise Left(reason)


class Layer(NamedTuple):
    """A ConvTranspose in place of two nodes. Lists have one number for each spatial axis."""

    first: NodeProto
    last: NodeProto
    data: str
    filter: str
    values: Array  # of the filter
    bias: str
    form: tuple[Any, ...]  # with the filter's name: what its weights depend on
    groups: int
    strides: list[int]
    kernel: list[int]
    dilations: list[int]
    begin: list[int]
    end: list[int]
    macs_of_output: tuple[float, float]  # of an output far from borders and an input channel, before and after
    macs: tuple[int, int] | None = None  # of one image; None: its extents are not known
    output: list[int] | None = None  # extents
    phases: Array | None = None  # the bias of a shuffle, [CO, r, r]; [CO, 1, 1] if all phases have the same

    @property
    def convolution(self) -> NodeProto:
        return self.last if self.form[0] == "upsample" else self.first

    @property
    def beside(self) -> NodeProto:
        """The node that enlarges or shuffles."""
        return self.first if self.form[0] == "upsample" else self.last

    def weights(self) -> Array:
        """The filter of the ConvTranspose."""
        filter = self.values
        if self.form[0] != "upsample":
            return with_shuffle(filter, self.strides[0], self.form[0] == "DCR", self.groups)
        weights = with_upsampling(filter, self.strides, self.form[2], self.groups)
        if not np.isfinite(weights).all() and np.isfinite(filter).all():
            _leave(f"a sum of its weights leaves the range of {filter.dtype}")
        return weights


class Choice(NamedTuple):
    """What the caller wants; as the options of the command."""

    shuffle: bool = True
    add_bias: bool = False


class _Convolution:
    """A Conv of stride 1 with a constant filter."""

    def __init__(self, node: NodeProto, scope: Scope) -> None:
        given = attributes_of(node)
        values = scope.constant(node.input[1])
        if values is None:
            replaced = scope.is_input(node.input[1])
            _leave(f"its filter is {'an input of the graph' if replaced else 'computed'}, not a constant")
        if values.dtype.name not in TYPES:
            _leave("only float, float16, double and bfloat16 are computed")
        self.filter, self.kernel, axes = values, list(values.shape[2:]), values.ndim - 2
        if not 1 <= axes <= MOST_AXES:
            _leave(f"its filter has {axes} spatial axes")

        def numbers(name: str, absent: list[int]) -> list[int]:
            listed = list(given.get(name, ())) or absent
            if len(listed) != len(absent):
                _leave(f"{name} has {len(listed)} numbers, not {len(absent)}")
            return listed

        if numbers("kernel_shape", self.kernel) != self.kernel:
            _leave("its kernel_shape is not that of its filter")
        if any(stride != 1 for stride in numbers("strides", [1] * axes)):
            _leave("the convolution has a stride")
        self.groups, self.dilations = given.get("group", 1), numbers("dilations", [1] * axes)
        if self.groups < 1 or values.shape[0] % self.groups or 0 in values.shape or min(self.dilations) < 1:
            _leave("its groups, dilations or filter are not those of a convolution")
        spans = [d * (k - 1) for d, k in zip(self.dilations, self.kernel)]
        auto_pad = given.get("auto_pad", "") or "NOTSET"
        small = [span // 2 for span in spans]
        large = [span - half for span, half in zip(spans, small)]
        pads = numbers("pads", [0] * (2 * axes))
        known = {
            "NOTSET": (pads[:axes], pads[axes:]),
            "VALID": ([0] * axes, [0] * axes),
            "SAME_UPPER": (small, large),
            "SAME_LOWER": (large, small),
        }
        if auto_pad not in known:
            _leave("auto_pad is none of ONNX's")
        self.begin, self.end = known[auto_pad]
        for axis, pad in enumerate([*self.begin, *self.end]):
            span = spans[axis % axes]
            if not 0 <= pad <= span:
                _leave(f"pads[{axis}] is {pad}: a ConvTranspose takes 0 to {span} with this kernel, not more")


def reason_or_layer(node: NodeProto, scope: Scope, choice: Choice) -> Layer | str | None:
    """The layer in place of `node`, a Conv, and the node before or behind it. A sentence if these stay as they are;
    None if there are none."""
    if not is_operator(node, "Conv") or len(node.input) < 2 or len(node.output) != 1:
        return None
    enlarger = scope.producer_of(node.input[0])
    shufflers = [reader for reader in scope.readers_of(node.output[0]) if is_operator(reader, "DepthToSpace")]
    enlarges = is_operator(enlarger, "Resize", "Upsample")
    reason = None
    if enlarger is not None and enlarges:
        try:
            return _with_upsampling(enlarger, node, scope)
        except Left as left:
            reason = str(left)
    if shufflers:
        try:
            return _with_shuffle(node, shufflers[0], scope, choice)
        except Left as left:
            reason = reason or str(left)
    if reason is None and not shufflers and enlarger_before(node, scope) is not None:
        reason = "a Concat is between it and what enlarges a part of its data"
    return reason


def enlarger_before(conv: NodeProto, scope: Scope) -> NodeProto | None:
    """The node that enlarges the data of a Conv, or by nearest neighbours a part of what is concatenated before it."""
    node = scope.producer_of(conv.input[0])
    if not is_operator(node, "Concat"):
        return node if is_operator(node, "Resize", "Upsample") else None
    before = [scope.producer_of(name) for name in node.input]
    enlarging = (one for one in before if is_operator(one, "Resize", "Upsample"))
    return next((one for one in enlarging if attributes_of(one).get("mode", "nearest") == "nearest"), None)


# ---- upsampling ----


def _with_upsampling(enlarger: NodeProto, conv: NodeProto, scope: Scope) -> Layer:
    if not scope.is_read_once(enlarger.output[0]):
        _leave("what it enlarges is an output of the graph, or another node needs it")
    data = input_of(enlarger, 0) or _leave("the data are missing")
    c = _Convolution(conv, scope)
    extents = scope.extents.get(data)
    if extents is not None and len(extents) != len(c.kernel) + 2:
        _leave(f"the data have rank {len(extents)}, its filter {len(c.kernel) + 2}")
    try:
        s = _factors(enlarger, len(c.kernel) + 2, extents, scope)
    except Left as left:
        raise Left(f"the node that enlarges its data: {left}") from None
    for axis, (d, factor) in enumerate(zip(c.dilations, s)):
        if d > factor > 1:
            _leave(f"dilations[{axis}] is {d}, but the factor is {factor}: sums of weights would have gaps")
    kernel = [k if f == 1 else d * (k - 1) + f for k, d, f in zip(c.kernel, c.dilations, s)]
    taps = taps_of(c.kernel, c.dilations, s)
    if taps >= prod(c.kernel):
        _leave(
            "as one layer it would take as many multiply-adds: its kernel is 1 where the data grow, or its dilation "
            "the factor"
        )
    growth = prod(kernel) / prod(c.kernel)
    if growth > MOST_GROWTH and prod(c.filter.shape[:2]) * prod(kernel) * c.filter.dtype.itemsize > MOST_BYTES:
        _leave(f"its sums of weights would take {growth:.0f} times as much memory as its filter")
    outputs, inputs = c.filter.shape[0] // c.groups, c.filter.shape[1]
    if outputs // MOST_OUT >= inputs:
        _leave(
            f"it has {outputs} output channels for {inputs} input channels: as two operators it is faster in ONNX "
            "Runtime"
        )
    spans = [d * (k - 1) for d, k in zip(c.dilations, c.kernel)]
    layer = Layer(
        first=enlarger,
        last=conv,
        data=data,
        filter=conv.input[1],
        values=c.filter,
        bias=input_of(conv, 2),
        form=("upsample", tuple(s), tuple(c.dilations), c.groups),
        groups=c.groups,
        strides=s,
        kernel=kernel,
        dilations=[d if f == 1 else 1 for d, f in zip(c.dilations, s)],
        begin=[span - pad for span, pad in zip(spans, c.begin)],
        end=[span - pad for span, pad in zip(spans, c.end)],
        macs_of_output=(prod(c.kernel), taps),
    )
    return _counted(layer, c, extents, enlarged=s)


def _factors(node: NodeProto, rank: int, extents: list[int | None] | None, scope: Scope) -> list[int]:
    """By how much each spatial axis grows."""
    given = attributes_of(node)
    axes = list(given.get("axes", ())) or list(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        _leave("its axes are not those of the data")
    axes = [axis % rank for axis in axes]
    if len(set(axes)) != len(axes):
        _leave("its axes are not those of the data")
    are_sizes = False
    values: Any
    if node.op_type == "Upsample" and scope.opset < 9:
        values = np.array(given.get("scales", ()))
    else:
        of_attributes = node.op_type == "Resize" and scope.opset >= RESIZE_OF_ATTRIBUTES
        are_sizes = of_attributes and input_of(node, 3) != ""
        values = scope.constant(input_of(node, 3 if are_sizes else 2 if of_attributes else 1))
        if values is None:
            _leave(f"its {'sizes' if are_sizes else 'scales'} are not constants")
    if values.shape != (len(axes),):
        _leave("it has not one number for each axis")
    factors = [1] * rank
    for axis, value in zip(axes, values.tolist()):
        if are_sizes:
            extent = extents[axis] if extents is not None else None
            if extent is None or extent < 1:
                _leave(f"its sizes are constants, but the data's extent at axis {axis} is not known")
            value /= extent
        if not 1 <= value <= MOST_FACTOR or value != floor(value) or (axis < 2 and value != 1):
            wanted = "a factor of 1" if axis < 2 else "an integer factor"
            _leave(f"axis {axis} does not grow by {wanted}, but by {value:.3f}")
        factors[axis] = int(value)
    if max(factors) == 1:
        _leave("it enlarges nothing")
    _check_modes(given, node, scope.opset, max(factors))
    return factors[2:]


def _check_modes(given: dict[str, Any], node: NodeProto, opset: int, most: int) -> None:
    if given.get("mode", "nearest") != "nearest":
        _leave(f"its mode is {given['mode']}, not nearest")
    if node.op_type == "Upsample" or opset < RESIZE_OF_ATTRIBUTES:
        return  # asymmetric, floor
    mode = (
        given.get("coordinate_transformation_mode", "half_pixel"),
        given.get("nearest_mode", "round_prefer_floor"),
    )
    if mode not in REPEATING and not (most == 2 and mode in REPEATING_BY_2):
        _leave(
            f"with coordinate_transformation_mode {mode[0]}, nearest_mode {mode[1]} and a factor of {most} it does not "
            "repeat each element"
        )
    if given.get("antialias", 0) or given.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        _leave("it has antialias or a keep_aspect_ratio_policy")


# ---- pixel shuffle ----


def _with_shuffle(conv: NodeProto, shuffler: NodeProto, scope: Scope, choice: Choice) -> Layer:
    if not choice.shuffle:
        _leave("shuffles are to stay (--no-shuffle)")
    given = attributes_of(shuffler)
    r = given.get("blocksize", 0)
    dcr = given.get("mode", "DCR") != "CRD"  # DepthToSpace has a mode since version 11; before, DCR
    if not scope.is_read_once(conv.output[0]):
        _leave("what is shuffled is an output of the graph, or another node needs it")
    c = _Convolution(conv, scope)
    if len(c.kernel) != 2 or r < 2:
        _leave(f"DepthToSpace by {r} of a tensor of rank {len(c.kernel) + 2}")
    for axis, d in enumerate(c.dilations):
        if d > 1:
            _leave(f"dilations[{axis}] is {d}: behind a pixel shuffle by {r} the taps would have gaps")
    if dcr and c.groups > 1:
        _leave(f"it has {c.groups} groups, and with mode DCR a channel takes phases from several")
    if c.filter.shape[0] % (c.groups * r * r):
        _leave(f"its {c.filter.shape[0]} output channels in {c.groups} groups are not whole channels of {r * r} phases")
    extents = scope.extents.get(conv.input[0])
    layer = Layer(
        first=conv,
        last=shuffler,
        data=conv.input[0],
        filter=conv.input[1],
        values=c.filter,
        bias="",
        form=("DCR" if dcr else "CRD", r, c.groups),
        groups=c.groups,
        strides=[r, r],
        kernel=[r * k for k in c.kernel],
        dilations=[1, 1],
        begin=[r * (k - 1 - pad) for k, pad in zip(c.kernel, c.begin)],
        end=[r * (k - 1 - pad) for k, pad in zip(c.kernel, c.end)],
        macs_of_output=(prod(c.kernel), prod(c.kernel)),
    )
    layer = _counted(layer, c, extents, enlarged=[1, 1])
    if not input_of(conv, 2):
        return layer
    bias = scope.constant(conv.input[2])
    if bias is None or bias.shape != c.filter.shape[:1]:
        _leave("its bias is not a constant for each channel")
    phases = bias_of_phases(bias, r, dcr)
    if (phases == phases[:, :1, :1]).all():
        return layer._replace(phases=phases[:, :1, :1])
    _check_bias(layer, c.filter, choice.add_bias)
    return layer._replace(phases=phases)


def _check_bias(layer: Layer, filter: Array, add_bias: bool) -> None:
    """Leaves a bias that differs between the phases of a channel, unless it is to become an Add."""
    if not add_bias:
        _leave(
            "its bias differs between the phases of a shuffled channel, and a ConvTranspose has one for each channel; "
            "--add-bias makes an Add of it"
        )
    if filter.dtype.name in HALVES:
        _leave(f"its bias differs between the phases of a channel, and an Add behind would round {filter.dtype} twice")
    if layer.output is None:
        _leave("its bias differs between the phases of a channel, and for an Add behind, extents are not known")
    size = filter.shape[0] // layer.strides[0] ** 2 * prod(layer.output) * filter.dtype.itemsize
    if size > MOST_BYTES:
        _leave(f"its bias differs between the phases of a channel, and for an Add behind would take {size} bytes")


# ---- multiply-adds ----


def _counted(layer: Layer, c: _Convolution, extents: list[int | None] | None, enlarged: list[int]) -> Layer:
    """With the output's extents and the multiply-adds of both forms, if the spatial extents of the data are known."""
    data = [extent for extent in (extents or [])[2:] if extent is not None]
    if len(data) != len(c.kernel):
        return layer
    grown = [s * x for s, x in zip(enlarged, data)]
    spans = [d * (k - 1) for d, k in zip(c.dilations, c.kernel)]
    outputs = [x + b + e - span for x, b, e, span in zip(grown, c.begin, c.end, spans)]
    if min(outputs) < 1:
        _leave("it has no output")
    before = prod(
        # output y takes input y + k*d - pad
        sum(_overlap(k * d - pad, 1, y, x) for k in range(kernel))
        for kernel, d, pad, y, x in zip(c.kernel, c.dilations, c.begin, outputs, grown)
    )
    shuffled = [y * s // factor for y, s, factor in zip(outputs, layer.strides, enlarged)]
    after = prod(
        # input x goes to output s*x + k*d - pad
        sum(_overlap(k * d - pad, s, x, y) for k in range(kernel))
        for kernel, d, pad, s, x, y in zip(layer.kernel, layer.dilations, layer.begin, layer.strides, data, shuffled)
    )
    outputs_of_one, inputs = c.filter.shape[:2]
    phases = prod(shuffled) // prod(outputs)
    macs = (before * outputs_of_one * inputs, after * outputs_of_one * inputs // phases)
    return layer._replace(output=shuffled, macs=macs)


def _overlap(shift: int, step: int, count: int, extent: int) -> int:
    """How many i of 0 <= i < count have 0 <= step*i + shift < extent."""
    low, high = max(0, ceil(-shift / step)), min(count - 1, (extent - 1 - shift) // step)
    return max(0, high - low + 1)
