# SPDX-License-Identifier: Apache-2.0
"""Computes transposed convolutions of OpenVINO models: loads the extension, and puts its operator into models.

docs/openvino.md says how it is installed and what it does.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino
from openvino import Node, Output, PartialShape, Type
from openvino import opset13 as ops
from openvino.passes import AnyInput, Manager, Matcher, MatcherPass
from openvino.utils.node_factory import NodeFactory

from ._adapter import check_device, check_options, follow_devices

__all__ = ["Statistics", "add_extension", "convert", "library", "statistics"]

STOCK = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
OURS = "TransposedConvolution"
CONVOLUTIONS = ("Convolution", "GroupConvolution")
UNARY = (
    "Relu", "Clamp", "Sigmoid", "Tanh", "Gelu", "Swish", "Elu", "HSwish", "HSigmoid", "Mish", "SoftPlus", "Exp", "Abs",
    "Sqrt",
)  # fmt: skip
# OpenVINO's processor plugin passes tensors through these operators without changing the layout.
TRANSPARENT = (
    *STOCK, OURS, *UNARY, "Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "PRelu", "Convert",
    "FakeQuantize", "BatchNormInference", "MaxPool", "AvgPool", "Concat",
)  # fmt: skip
UNKNOWN_EXTENT = 64  # to compare sizes with
AGAIN = "install tconv_cl_openvino or with --config-settings=cmake.define.TCONV_OPENVINO=ON, as docs/openvino.md says"


def _load() -> ctypes.CDLL:
    """Loads the extension's library, unless OpenVINO is another release, in which the library would crash."""
    folder = Path(__file__).parent
    file = folder / "openvino_release.txt"
    if not file.exists():
        raise ImportError(f"tconv_cl was installed without its extension for OpenVINO: {AGAIN}")
    built, running = file.read_text().strip(), openvino.get_version().split("-")[0]
    if built != running:
        raise ImportError(f"the extension of tconv_cl was built for OpenVINO {built}, and this is {running}: {AGAIN}")
    return ctypes.CDLL(str(folder / "libtconv_cl_openvino.so"))


_library = _load()
follow_devices(_library, "tconv_cl_openvino")


class Statistics(NamedTuple):
    """Counts of this process so far: evaluations by tconv-cl and by OpenVINO's own operators, plans, packed filters."""

    evaluations: int
    fallbacks: int
    plans: int
    packs: int


def library() -> str:
    """The path of the extension's library, for OpenVINO's tools and programs in C++."""
    return str(Path(__file__).with_name("libtconv_cl_openvino.so"))


def add_extension(core: openvino.Core) -> None:
    """Makes `core` replace the transposed convolutions of IR and ONNX files that it reads from now on.

    Raises:
        tconv_cl.RequestError, which is a ValueError: a variable of the environment has a wrong value.
    """
    check_device(_library.tconv_cl_openvino_open, None)
    core.add_extension(library())


def statistics() -> Statistics:
    """The counts so far. The difference of two tells who computed between them."""
    values = (ctypes.c_uint64 * len(Statistics._fields))()
    _library.tconv_cl_openvino_statistics(values, ctypes.c_size_t(len(values)))
    return Statistics(*values)


def convert(
    model: openvino.Model,
    device: int | str | None = None,
    *,
    search: str | None = None,
    least_macs: int | None = None,
    fuse_concat: bool = True,
) -> int:
    """Replaces the transposed convolutions of `model`, in the bodies of its branches too, and returns how many changed.

    Factors and addends that follow with one constant for each channel, a tensor of the output's shape that is added,
    and an activation that the library has, become part of the operator. What the library refuses stays as it is, and a
    line on stderr says why. `device` is a number as `tconv_cl.devices()` lists them, "gpu", "cpu", "accelerator" or a
    part of a name; None: the library's default. `search` is how the algorithm of each shape is chosen, as that of
    tconv_cl.conv_transpose: "model", "records", "measure" or "renew"; None: as TCONV_CL_SEARCH says, else "records".
    OpenVINO's own operators stay where they have fewer multiply-adds than `least_macs`; None: two million where the
    device is a CPU, because to launch a kernel takes as long, else 0. With `fuse_concat`, an operator whose output is
    only concatenated with other tensors along the channels writes it into its place, and copies the others.

    Raises:
        tconv_cl.Error: there is no such device.
        tconv_cl.RequestError, which is a ValueError: an argument or a variable of the environment has a wrong value.
    """
    check_options(search, least_macs)
    check_device(_library.tconv_cl_openvino_open, device)
    replace = _Replace("" if device is None else str(device), search or "", -1 if least_macs is None else least_macs)
    _run(replace, model)
    # A replaced operator counts as a consumer of its inputs as long as a reference to it exists.
    nodes = _found(model)
    while nodes:
        _to_bytes(nodes.pop(0), replace.factory)
    nodes = _channels_last(_found(model))
    while nodes:
        _to_channels_last(nodes.pop(0), replace.factory)
    if fuse_concat:
        _run(_Concat(replace.factory), model)
    _run(_Views(), model)
    return replace.count


def _found(model: openvino.Model) -> list[Node]:
    """Our operators, also those in the bodies of branches."""
    find = _Find()
    _run(find, model)
    nodes, find.nodes = find.nodes, []
    return nodes


def _run(step: MatcherPass, model: openvino.Model) -> None:
    manager = Manager()
    manager.register_pass(step)
    manager.run_passes(model)


class _Replace(MatcherPass):
    def __init__(self, device: str, search: str, least_macs: int) -> None:
        super().__init__()
        self.count = 0
        self.choices = {"device": device, "search": search, "least_macs": least_macs}
        self.factory = NodeFactory()
        self.factory.add_extension(library())
        pattern = AnyInput(lambda output: output.get_node().get_type_name() in (*STOCK, OURS))
        self.register_matcher(Matcher(pattern, "tconv_cl"), self.replace)

    def replace(self, matcher: Matcher) -> bool:
        node = matcher.get_match_root()
        attributes = node.get_attributes()
        if node.get_type_name() in STOCK:
            # The extension decides: its factory returns OpenVINO's own node if the library refuses it.
            made = self.factory.create(node.get_type_name(), node.input_values(), {**attributes, **self.choices})
            if made.get_type_name() != OURS:
                return False
            attributes = made.get_attributes()
        last, inputs, fused = _fuse(node, attributes)
        if node.get_type_name() == OURS and last == node:
            return False
        made = self.factory.create(OURS, inputs, {**attributes, **fused})
        made.set_friendly_name(last.get_friendly_name())
        names = last.output(0).get_names()
        last.output(0).replace(made.output(0))
        made.output(0).set_names(names)
        self.count += 1
        return True


# ---- layouts
#
# OpenVINO's processor plugin computes convolutions with channels last. An operator of an extension gets plain tensors,
# for which the plugin would reorder them before it and after it. In the form with channels last, a Transpose stands on
# each side, which the plugin takes as another view of its own layout: nothing is executed for it.


class _Find(MatcherPass):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        pattern = AnyInput(lambda output: output.get_node().get_type_name() == OURS)
        self.register_matcher(Matcher(pattern, "tconv_cl_find"), self.note)

    def note(self, matcher: Matcher) -> bool:
        self.nodes.append(matcher.get_match_root())
        return False


class _Views(MatcherPass):
    """Removes the Transposes between two operators with channels last, if only activations are between them.

    The plugin would execute them: it knows no layout there.
    """

    def __init__(self) -> None:
        super().__init__()
        pattern = AnyInput(lambda output: output.get_node().get_type_name() == OURS)
        self.register_matcher(Matcher(pattern, "tconv_cl_views"), self.change)

    def change(self, matcher: Matcher) -> bool:
        node = matcher.get_match_root()
        view = node.input_value(0).get_node()
        if not node.get_attributes()["channels_last"] or not _is_view(view):
            return False
        between, before = [], view.input_value(0).get_node()
        while before.get_type_name() in UNARY and before.get_input_size() == 1 and _only_consumer(before) is not None:
            between.append(before)
            before = before.input_value(0).get_node()
        ours = before.get_type_name() == "Transpose" and before.input_value(0).get_node().get_type_name() == OURS
        if not between or not ours or _only_consumer(before) is None:
            return False
        between[-1].input(0).replace_source_output(before.input_value(0))
        for unary in reversed(between):
            unary.constructor_validate_and_infer_types()
        node.input(0).replace_source_output(between[0].output(0))
        return True


class _Port:
    """The data of an operator, or its output: the cost of reordering it, and its neighbours, seen through operators
    that take any layout."""

    def __init__(self, node: Node, *, before: bool) -> None:
        shape = node.get_input_partial_shape(0) if before else node.get_output_partial_shape(0)
        extents = _extents(shape)
        both_are_one = extents[1] == 1 or np.prod(extents[2:]) == 1  # both layouts have the same bytes
        self.size = 0.0 if both_are_one else float(np.prod(extents, dtype=np.float64))
        self.ours: set[str] = set()
        self.convolution = False
        seen, open_ends = {node.get_name()}, [node]
        while open_ends:
            end = open_ends.pop()
            if before:
                inputs = end.input_values()[: 1 if end == node or end.get_type_name() in STOCK else None]
                found = [value.get_node() for value in inputs]
            else:
                found = [target.get_node() for output in end.outputs() for target in output.get_target_inputs()]
            for near in found:
                kind = near.get_type_name()
                if kind in CONVOLUTIONS:
                    self.convolution = True
                elif kind == OURS:
                    self.ours.add(near.get_name())
                elif kind in TRANSPARENT and near.get_name() not in seen:
                    seen.add(near.get_name())
                    open_ends.append(near)


def _extents(shape: PartialShape) -> list[int]:
    return [UNKNOWN_EXTENT if extent.is_dynamic else extent.get_length() for extent in shape]


def _channels_last(nodes: list[Node]) -> list[Node]:
    """The operators for which channels last leaves the fewest bytes to be reordered, all of them together.

    OpenVINO's plugin computes convolutions with channels last; other tensors are plain. The search changes one operator
    at a time while that helps, from all plain and from all changed.
    """
    nodes = [node for node in nodes if node.get_input_partial_shape(0).rank.is_static]
    nodes = [node for node in nodes if not node.get_attributes()["channels_last"] and not _is_concatenated(node)]
    ports = {node.get_name(): (_Port(node, before=True), _Port(node, before=False)) for node in nodes}

    def cost(last: dict[str, bool]) -> float:
        total = 0.0
        for name, (data, output) in ports.items():
            for port in (data, output):
                if port.convolution:
                    total += 0 if last[name] else port.size
                elif not port.ours:
                    total += port.size if last[name] else 0
            if not data.convolution:  # otherwise both reorder by themselves
                total += sum(data.size for other in data.ours if last.get(other, False) != last[name])
        return total

    def improved(last: dict[str, bool]) -> dict[str, bool]:
        least, better = cost(last), True
        while better:
            better = False
            for name in ports:
                changed = {**last, name: not last[name]}
                now = cost(changed)
                if now < least:
                    last, least, better = changed, now, True
        return last

    best = min((improved(dict.fromkeys(ports, start)) for start in (False, True)), key=cost)
    return [node for node in nodes if best[node.get_name()]]


def _is_view(node: Node) -> bool:
    """True for a Transpose beside one of our operators."""
    if node.get_type_name() != "Transpose":
        return False
    around = [node.input_value(0).get_node(), *(target.get_node() for target in node.output(0).get_target_inputs())]
    return any(near.get_type_name() == OURS and near.get_attributes()["channels_last"] for near in around)


def _to_channels_last(node: Node, factory: NodeFactory) -> None:
    inputs, attributes = node.input_values(), {**node.get_attributes(), "channels_last": True}
    for i in [0, 2 + attributes["scale"] + attributes["bias"]] if attributes["residual"] else [0]:
        inputs[i] = _to_last(inputs[i])
    made = factory.create(OURS, inputs, attributes)
    made.set_friendly_name(node.get_friendly_name())
    widening = _widening(node)
    if widening:
        widening[0].input(0).replace_source_output(made.output(0))
        for step in widening:
            step.constructor_validate_and_infer_types()
    before, end = (widening[-1], widening[-1]) if widening else (node, made)
    consumers = before.output(0).get_target_inputs()
    result = _to_first(end)
    for consumer in consumers:
        consumer.replace_source_output(result.output(0))
    names = before.output(0).get_names()
    before.output(0).set_names(set())
    result.output(0).set_names(names)


def _to_last(value: Output) -> Output:
    rank = value.get_partial_shape().rank.get_length()
    return ops.transpose(value, ops.constant(np.array([0, *range(2, rank), 1]))).output(0)


def _to_first(node: Node) -> Node:
    return ops.transpose(node, ops.constant(np.array(_first(node.get_output_partial_shape(0).rank.get_length()))))


def _first(rank: int) -> list[int]:
    """The order of axes that turns channels last into channels first."""
    return [0, rank - 1, *range(1, rank - 1)]


def _widening(node: Node) -> list[Node]:
    """The steps from bytes to floats behind an operator: the Transpose comes after them, as the plugin looks for them
    directly behind bytes. The convolution that follows is then computed with integers."""
    steps: list[Node] = []
    while node.get_attributes().get("requantize", True) and (after := _only_consumer(node)) is not None:
        kinds = ("Subtract", "Multiply") if steps else ("Convert",)
        if after.get_type_name() not in kinds or (steps and _scalar(after.input_value(1)) is None):
            break
        steps.append(after)
        node = after
    return steps


# ---- concatenation


class _Concat(MatcherPass):
    """Makes a Concat along the channels a part of one of our operators before it: that with the largest output.

    Its output is written where it belongs, and the other tensors are copied beside it.
    """

    def __init__(self, factory: NodeFactory) -> None:
        super().__init__()
        self.factory = factory
        pattern = AnyInput(lambda output: output.get_node().get_type_name() == "Concat")
        self.register_matcher(Matcher(pattern, "tconv_cl_concat"), self.change)

    def change(self, matcher: Matcher) -> bool:
        concat = matcher.get_match_root()
        parts = concat.input_values()
        ranks = [part.get_partial_shape().rank for part in parts]
        if any(rank.is_dynamic for rank in ranks) or concat.get_attributes()["axis"] % ranks[0].get_length() != 1:
            return False
        found = {place: ours for place, part in enumerate(parts) if (ours := _concatenable(part)) is not None}
        if not found:
            return False
        place = max(found, key=lambda i: np.prod(_extents(parts[i].get_partial_shape()), dtype=np.float64))
        attributes, inputs = found[place].get_attributes(), found[place].input_values()
        last = attributes["channels_last"]
        neighbours = [_to_last(part) if last else part for i, part in enumerate(parts) if i != place]
        optional = [*(attributes[name] for name in ("scale", "bias", "residual")), attributes["activation"] == "prelu"]
        end = 2 + sum(optional)
        attributes.update(concat_before=place, concat_after=len(parts) - 1 - place)
        made = self.factory.create(OURS, inputs[:end] + neighbours + inputs[end:], attributes)
        made.set_friendly_name(concat.get_friendly_name())
        result = _to_first(made) if last else made
        names = concat.output(0).get_names()
        concat.output(0).replace(result.output(0))
        result.output(0).set_names(names)
        return True


def _concatenable(part: Output) -> Node | None:
    """Our operator that computes `part` for one consumer only. None if it is another one, or need not be fused."""
    node = part.get_node()
    last = node.get_type_name() == "Transpose"
    if _only_consumer(node) is None:
        return None
    if last:
        order, ours = _values(node.input_value(1)), node.input_value(0).get_node()
        if order is None or order.tolist() != _first(order.size) or _only_consumer(ours) is None:
            return None
        node = ours
    if node.get_type_name() != OURS or node.get_attributes()["channels_last"] != last or _is_concatenated(node):
        return None
    batch = part.get_partial_shape()[0]
    # OpenVINO's plugin concatenates plain tensors of one image without a copy.
    return node if last or batch.is_dynamic or batch.get_length() != 1 else None


def _is_concatenated(node: Node) -> bool:
    attributes = node.get_attributes()
    return attributes.get("concat_before", 0) + attributes.get("concat_after", 0) > 0


# ---- integers


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


def _to_bytes(node: Node, factory: NodeFactory) -> None:
    """Makes an operator compute with integers, if data and weights are quantized and a FakeQuantize follows."""
    attributes, inputs, after = node.get_attributes(), node.input_values(), _only_consumer(node)
    if attributes["residual"] or attributes["requantize"] or attributes["channels_last"] or after is None:
        return
    if _is_concatenated(node):
        return
    if node.get_output_element_type(0) != Type.f32 or after.input_value(0).get_node() != node:
        return
    data, weights, levels = _data(inputs[0]), _weights(inputs[1], grouped=attributes["grouped"]), _levels(after)
    fused = [name for name in ("scale", "bias") if attributes[name]]
    numbers = dict(zip(fused, (_values(value) for value in inputs[2:])))
    if data is None or weights is None or levels is None or any(values is None for values in numbers.values()):
        return
    integers, steps = weights
    zero_point, step = _whole(levels.input_zero), levels.input_step
    largest = max(data.zero_point, 255 - data.zero_point) * 128 * (integers.size // len(steps))
    if levels.count != 256 or zero_point is None or largest > 0x7FFFFFFF:
        return
    scale = numbers.get("scale", 1) * (data.step * steps / step)
    bias = np.broadcast_to(numbers.get("bias", 0) / step, steps.shape)
    if attributes["activation"] == "clamp":
        bounds = np.clip(np.array([attributes["a"], attributes["b"]]) / step, -3e38, 3e38)
        attributes["a"], attributes["b"] = (float(bound) for bound in bounds)
    if attributes["activation"] not in ("none", "relu", "leaky_relu", "clamp"):
        return
    if not _can_hold(Type.f32, scale) or not _can_hold(Type.f32, bias):
        return
    attributes.update(scale=True, bias=bool(bias.any()), requantize=True, output_type="u8")
    attributes.update(data_zero_point=data.zero_point, output_zero_point=zero_point)
    added = [_constant(scale, Type.f32)] + [_constant(bias, Type.f32)] * attributes["bias"]
    rest = inputs[2 + len(fused) :]
    made = factory.create(OURS, [data.output, _constant(integers, Type.i8), *added, *rest], attributes)
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
    numbers = [_scalar(value) for value in node.input_values()[1:]]
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
        inner, zero = inner.input_value(0).get_node(), _values(inner.input_value(1))
    if inner.get_type_name() != "Convert":
        return None
    return inner.input_value(0), _values(node.input_value(1)), zero


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
    try:
        integers, steps = (
            np.broadcast_to(values, node.get_output_shape(0)).reshape(shape.to_shape()) for values in found
        )
    except ValueError:
        return None
    axes = tuple(axis for axis in range(steps.ndim) if axis not in ((0, 2) if grouped else (1,)))
    least = steps.min(axis=axes)
    whole = np.round(integers)
    if (least != steps.max(axis=axes)).any() or not (least > 0).all() or np.abs(integers - whole).max() > 1e-3:
        return None
    return (whole, least.reshape(-1)) if whole.min() >= -128 and whole.max() <= 127 else None


def _quantized_weights(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """Integers around 0, and steps that broadcast to the shape of the node's output."""
    if node.get_type_name() == "FakeQuantize":
        values = [_values(value) for value in node.input_values()]
        if any(value is None for value in values):
            return None
        weights, low, high, output_low, output_high = values
        top = node.get_attributes()["levels"] - 1
        if not ((low < high).all() and (output_low < output_high).all()):
            return None
        level = np.round((np.clip(weights, low, high) - low) / (high - low) * top)
        steps = (output_high - output_low) / top
        return level + output_low / steps, steps
    found = _widened(node)
    if found is None:
        return None
    integers, steps, zero = _values(found[0]), found[1], found[2]
    known = integers is not None and steps is not None and zero is not None
    return (integers - zero, steps) if known and found[0].get_element_type() in (Type.i8, Type.u8) else None


# ---- what is fused


def _fuse(node: Node, attributes: dict[str, Any]) -> tuple[Node, list[Output], dict[str, Any]]:
    """Finds the nodes after `node` that can be fused: the last node, and the fused operator's inputs and attributes."""
    inputs = node.input_values()
    if _is_concatenated(node):
        return node, inputs, {}
    shape = node.get_output_partial_shape(0)
    fused = [name for name in ("scale", "bias") if attributes[name]]
    known = shape.rank.is_static and shape[1].is_static and not attributes.get("channels_last", False)
    stored = attributes["residual"] or attributes["requantize"]
    if not known or stored or attributes["activation"] != "none":
        return node, inputs, {}
    channels = shape[1].get_length()
    before = dict(zip(fused, (_values(value) for value in inputs[2:])))
    if any(values is None for values in before.values()):
        return node, inputs, {}
    scale, bias = before.get("scale", np.ones(channels)), before.get("bias", np.zeros(channels))
    last, scale, bias = _follow(node, channels, scale, bias)
    added, changed = [], {"scale": bool((scale != 1).any()), "bias": bool(bias.any())}
    element = node.get_output_element_type(0)
    added += [_constant(values, element) for name, values in (("scale", scale), ("bias", bias)) if changed[name]]
    residual = _residual(last)
    if residual is not None:
        added.append(residual)
        changed["residual"] = True
        last = _only_consumer(last)
    activation = _gate(last) or _activation(last, channels)
    if activation is not None:
        last, slopes, its = activation
        added += slopes
        changed.update(its)
    return last, inputs[:2] + added + inputs[2 + len(fused) :], changed


def _follow(node: Node, channels: int, scale: np.ndarray, bias: np.ndarray) -> tuple[Node, np.ndarray, np.ndarray]:
    """The last of the nodes after `node` that together are one factor and one addend for each channel, and these
    two."""
    while (after := _only_consumer(node)) is not None:
        affine = _affine(after, node, channels)
        if affine is None:
            break
        factor, addend = affine
        with np.errstate(all="ignore"):  # infinities and NaN are not fused
            now = scale * factor, bias * factor + addend
        if not all(_can_hold(node.get_output_element_type(0), values) for values in now):
            break
        (scale, bias), node = now, after
    return node, scale, bias


def _affine(node: Node, data: Node, channels: int) -> tuple[Any, Any] | None:
    """Factor and addend for each channel, if `node` computes data * factor + addend. None otherwise."""
    kind = node.get_type_name()
    first = node.input_value(0).get_node() == data
    if kind in ("Add", "Subtract", "Multiply", "Divide"):
        other = _per_channel(node.input_value(1 if first else 0), channels, data)
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
        constants = [_values(value) for value in node.input_values()[1:]]
        if any(values is None for values in constants):
            return None
        gamma, beta, mean, variance = constants
        with np.errstate(all="ignore"):
            factor = gamma / np.sqrt(variance + node.get_attributes()["epsilon"])
        return factor, beta - mean * factor
    return None


def _can_hold(element: Type, values: np.ndarray) -> bool:
    """True if the constant is finite and, in a type shorter than f32, needs no rounding."""
    if element not in (Type.f32, Type.f64):
        return bool((ops.constant(values, element).get_data(dtype=np.float64) == values).all())
    with np.errstate(over="ignore"):
        return bool(np.isfinite(values.astype(np.float32 if element == Type.f32 else np.float64)).all())


def _residual(data: Node) -> Output | None:
    """The tensor of the same shape that is added to `data`. None if something else follows."""
    node, shape = _only_consumer(data), data.get_output_partial_shape(0)
    if node is None or node.get_type_name() != "Add" or shape.is_dynamic:
        return None
    other = node.input_value(1 if node.input_value(0).get_node() == data else 0)
    same = other.get_partial_shape() == shape and other.get_element_type() == data.get_output_element_type(0)
    return other if same else None


def _gate(data: Node) -> tuple[Node, list[Output], dict[str, Any]] | None:
    """As _activation, for x * f(x) written as two operators that both read x."""
    gates = {"Sigmoid": "silu", "HSigmoid": "hardswish", "HardSigmoid": "hardswish", "SoftPlus": "mish"}
    consumers = [target.get_node() for target in data.output(0).get_target_inputs()]
    for gate, product in (consumers, consumers[::-1]) if len(consumers) == 2 else ():
        activation, last = gates.get(gate.get_type_name()), gate
        if activation == "mish":
            last = _only_consumer(gate)
        if activation is None or last is None or (activation == "mish" and last.get_type_name() != "Tanh"):
            continue
        if gate.get_type_name() == "HardSigmoid" and not np.allclose(
            [_scalar(value) or 0 for value in gate.input_values()[1:]], [1 / 6, 0.5], rtol=1e-6
        ):
            continue
        if product.get_type_name() == "Multiply" and _only_consumer(last) == product:
            return product, [], {"activation": activation}
    return None


def _activation(data: Node, channels: int) -> tuple[Node, list[Output], dict[str, Any]] | None:
    """The activation after `data`, its further inputs and its attributes. None if the library does not have it."""
    node = _only_consumer(data)
    if node is None or node.input_value(0).get_node() != data:
        return None
    found = _activation_of(node, data, channels)
    return None if found is None else (node, *found)


def _activation_of(node: Node, data: Node, channels: int) -> tuple[list[Output], dict[str, Any]] | None:
    kind, attributes = node.get_type_name(), node.get_attributes()
    simple = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "HSwish": "hardswish", "Mish": "mish"}
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
            return [_constant(slopes, data.get_output_element_type(0))], {"activation": "prelu"}
    return None


def _only_consumer(node: Node) -> Node | None:
    consumers = node.output(0).get_target_inputs()
    return next(iter(consumers)).get_node() if len(consumers) == 1 else None


def _values(output: Output) -> np.ndarray | None:
    """The constant's elements, also behind conversions of type and shape. None if it is not a constant."""
    node = output.get_node()
    if node.get_type_name() == "Constant":
        return node.get_data(dtype=np.float64)  # as numbers: those of bf16 have no type in NumPy
    if node.get_type_name() in ("Convert", "Reshape") and output.get_partial_shape().is_static:
        values = _values(node.input_value(0))
        if values is None:
            return None
        if node.get_type_name() == "Convert":  # as it rounds
            values = ops.constant(values, output.get_element_type()).get_data(dtype=np.float64)
        return values.reshape(list(output.get_shape()))
    return None


def _scalar(output: Output) -> float | None:
    values = _values(output)
    return float(values.reshape(())) if values is not None and values.size == 1 else None


def _per_channel(output: Output, channels: int, node: Node) -> np.ndarray | None:
    """One number for each channel, if broadcasting to the output of `node` means that."""
    values = _values(output)
    rank = node.get_output_partial_shape(0).rank.get_length()
    if values is None or values.ndim > rank or output.get_element_type() != node.get_output_element_type(0):
        return None
    shape = (1,) * (rank - values.ndim) + values.shape
    if values.size == 1:
        return np.broadcast_to(values.reshape(1), channels)
    return values.reshape(channels) if values.size == channels == shape[1] else None


def _slopes(output: Output, channels: int, node: Node) -> np.ndarray | None:
    """As _per_channel, for PRelu, whose single axis is the channels."""
    values = _values(output)
    same_type = output.get_element_type() == node.get_output_element_type(0)
    if values is not None and values.shape == (channels,) and same_type:
        return values
    return _per_channel(output, channels, node)


def _constant(values: np.ndarray, element: Type) -> Output:
    return ops.constant(np.ascontiguousarray(values), element).output(0)
