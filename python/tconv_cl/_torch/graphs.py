# SPDX-License-Identifier: Apache-2.0
"""A pass on graphs of torch.fx: a convolution with the nearest upsampling before it or the pixel shuffle behind it, and
what follows, become one call.

It takes what torch.fx.symbolic_trace, torch.export and the backends of torch.compile see: modules, functions, and
operators of aten."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional

from .._explanation import Layer, fused_note
from .chain import ACTIVATION, CONVOLUTION, NORM, PADDING, SHUFFLE, UPSAMPLING
from .chain import call_of, convolve_shuffle, upsample_convolve
from .fusion import MOST, MODULES, NORMS, is_activation, is_plain
from .operator import CONVOLVE
from .pairs import PADS, Concat, each, is_upsampling, reason_of, shuffle_reason_of

aten = torch.ops.aten


class Found(NamedTuple):
    """A part of a pair in a graph: a module by its target, or what the part's function takes."""

    node: fx.Node
    input: Any
    part: Any  # a str: a module's target

    def value(self, graph: fx.GraphModule) -> Any:
        return graph.get_submodule(self.part) if isinstance(self.part, str) else self.part


# The parts of the functions that a pass puts into graphs.
NUMBERS = {
    upsample_convolve: (UPSAMPLING, PADDING, CONVOLUTION, NORM, ACTIVATION),
    convolve_shuffle: (CONVOLUTION, NORM, ACTIVATION, SHUFFLE, ACTIVATION),
}

Reader = Callable[[fx.Node, fx.GraphModule], "Found | None"]


def _bound(node: fx.Node, names: str, **defaults: Any) -> dict[str, Any] | None:
    """A call's arguments by their names; None: others are there."""
    known = names.split()
    if len(node.args) > len(known) or not node.kwargs.keys() <= set(known):
        return None
    return {**dict.fromkeys(known), **defaults, **dict(zip(known, node.args)), **node.kwargs}


def _module(node: fx.Node, graph: fx.GraphModule) -> nn.Module | None:
    return graph.get_submodule(node.target) if node.op == "call_module" else None


def _one_input(node: fx.Node) -> bool:
    return len(node.args) == 1 and not node.kwargs


_NEAREST = {
    getattr(aten, f"{name}{axes}d"): mode
    for name, mode in (("upsample_nearest", "nearest"), ("_upsample_nearest_exact", "nearest-exact"))
    for axes in (1, 2, 3)
}
_OTHERS = {
    getattr(aten, f"upsample_{mode}"): mode.rstrip("123d")
    for mode in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")
}
_PADS = {
    getattr(aten, f"{name}{axes}d").default: mode
    for name, mode in (("reflection_pad", "reflect"), ("replication_pad", "replicate"))
    for axes in (1, 2, 3)
}
_AXES = {function: axes for axes, function in enumerate(CONVOLVE, 1)} | {
    getattr(getattr(aten, f"conv{axes}d"), overload): axes for axes in (1, 2, 3) for overload in ("default", "padding")
}


def read_upsampling(node: fx.Node, graph: fx.GraphModule) -> Found | None:
    module = _module(node, graph)
    if module is not None:
        return Found(node, node.args[0], node.target) if is_upsampling(module) and _one_input(node) else None
    if node.op != "call_function":
        return None
    if node.target is functional.interpolate:
        names = "input size scale_factor mode align_corners recompute_scale_factor antialias"
        of = _bound(node, names, mode="nearest")
        if of is None or of["align_corners"] is not None or of["antialias"]:
            return None
        return Found(node, of["input"], (of["size"], of["scale_factor"], of["mode"]))
    packet = getattr(node.target, "overloadpacket", None)
    if packet in _OTHERS:
        return Found(node, node.args[0], (None, None, _OTHERS[packet]))
    mode = _NEAREST.get(packet)
    if mode is None or len(node.args) < 2 or node.kwargs:
        return None
    input, size, *scales = node.args
    if node.target._overloadname == "vec":
        return Found(node, input, (size, scales[0] if scales else None, mode))
    if node.target._overloadname != "default" or any(scale is not None for scale in scales):
        return None  # sizes and factors, which may differ
    return Found(node, input, (size, None, mode))


def read_pads(node: fx.Node, graph: fx.GraphModule) -> Found | None:
    module = _module(node, graph)
    if module is not None:
        return Found(node, node.args[0], node.target) if type(module) in PADS and _one_input(node) else None
    if node.op != "call_function":
        return None
    if node.target in (functional.pad, torch._C._nn.pad, aten.pad.default):
        of = _bound(node, "input pad mode value", mode="constant")
        if of is None or of["value"] not in (None, 0) or not _constants(of["pad"]):
            return None
        return Found(node, of["input"], (tuple(of["pad"]), of["mode"]))
    if node.target is aten.constant_pad_nd.default:
        of = _bound(node, "input pad value", value=0)
        return Found(node, of["input"], (tuple(of["pad"]), "constant")) if of is not None and of["value"] == 0 else None
    mode = _PADS.get(node.target)
    if mode is None or len(node.args) != 2 or not _constants(node.args[1]):
        return None
    return Found(node, node.args[0], (tuple(node.args[1]), mode))


_CONCATS = (torch.cat, torch.concat, torch.concatenate, aten.cat.default)


def read_concat(node: fx.Node, enlarged: fx.Node) -> Found | None:
    """A concatenation of the enlarged data and one other tensor."""
    of = _bound(node, "tensors dim", dim=0) if node.op == "call_function" and node.target in _CONCATS else None
    tensors = () if of is None else of["tensors"]
    if not isinstance(tensors, (list, tuple)) or len(tensors) != 2 or list(tensors).count(enlarged) != 1:
        return None
    if not isinstance(of["dim"], int) or of["dim"] in (0, 2):
        return None
    place = list(tensors).index(enlarged)
    return Found(node, enlarged, Concat(tensors[1 - place], place, of["dim"]))


def read_convolution(node: fx.Node, graph: fx.GraphModule) -> Found | None:
    module = _module(node, graph)
    if module is not None:
        plain = isinstance(module, nn.modules.conv._ConvNd) and not module.transposed and _one_input(node)
        return Found(node, node.args[0], node.target) if plain else None
    if node.op != "call_function":
        return None
    if node.target is aten.convolution.default:
        of = _bound(node, "input weight bias stride padding dilation transposed output_padding groups")
        if of is None or of["transposed"] or not _constants(of["stride"]):
            return None
        axes = len(of["stride"])
    elif node.target in _AXES:
        axes = _AXES[node.target]
        of = _bound(node, "input weight bias stride padding dilation groups", stride=1, padding=0, dilation=1, groups=1)
    else:
        return None
    if of is None or not _constants(of["stride"]):
        return None
    of["stride"] = each(of["stride"], axes)  # so that the part tells how many axes it has
    part = tuple(of[name] for name in ("weight", "bias", "stride", "padding", "dilation", "groups"))
    return Found(node, of["input"], part) if _constants(part[2:]) else None


def read_shuffle(node: fx.Node, graph: fx.GraphModule) -> Found | None:
    module = _module(node, graph)
    if module is not None:
        return Found(node, node.args[0], node.target) if type(module) is nn.PixelShuffle and _one_input(node) else None
    if node.op != "call_function" or node.target not in (functional.pixel_shuffle, aten.pixel_shuffle.default):
        return None
    of = _bound(node, "input upscale_factor")
    known = of is not None and isinstance(of["upscale_factor"], int)
    return Found(node, of["input"], (of["upscale_factor"],)) if known else None


def read_norm(node: fx.Node, graph: fx.GraphModule) -> Found | None:
    module = _module(node, graph)
    if module is not None:
        known = type(module) in NORMS and not module.training and is_plain(module) and _one_input(node)
        return Found(node, node.args[0], node.target) if known else None
    if node.op != "call_function":
        return None
    if node.target is functional.batch_norm:
        of = _bound(node, "input mean variance weight bias training momentum eps", training=False, eps=1e-5)
    elif node.target is aten.batch_norm.default:
        of = _bound(node, "input weight bias mean variance training momentum eps cudnn")
    else:
        return None
    if of is None or of["training"] is not False or of["mean"] is None or of["variance"] is None:
        return None
    return Found(node, of["input"], tuple(of[name] for name in ("mean", "variance", "weight", "bias", "eps")))


def _activations() -> dict[Any, tuple[str, str, dict[str, Any]]]:
    """Functions that are activations: the library's name, and their numbers with the values if they are not given."""
    plain = {name: (name, "", {}) for name in ("relu", "relu6", "sigmoid", "tanh", "silu", "hardswish", "mish")}
    plain["leaky_relu"] = ("leaky_relu", "negative_slope", {"negative_slope": 0.01})
    plain["hardtanh"] = ("clamp", "min_val max_val", {"min_val": -1.0, "max_val": 1.0})
    plain["gelu"] = ("gelu", "approximate", {"approximate": "none"})
    table: dict[Any, Any] = {"relu": plain["relu"], "sigmoid": plain["sigmoid"], "tanh": plain["tanh"]}
    for name, row in plain.items():
        for holder in (functional, torch, torch._C._nn):
            if hasattr(holder, name):
                table[getattr(holder, name)] = row
        if hasattr(aten, name):
            table[getattr(aten, name).default] = row
    table[functional.elu] = ("elu", "alpha", {"alpha": 1.0})
    return table


_ACTIVATIONS = _activations()


def read_activation(node: fx.Node, graph: fx.GraphModule) -> Found | None:
    module = _module(node, graph)
    if module is not None:
        known = type(module) in MODULES and is_activation(module) and _one_input(node)
        return Found(node, node.args[0], node.target) if known else None
    row = _ACTIVATIONS.get(node.target) if node.op in ("call_function", "call_method") else None
    if row is None:
        return None
    name, numbers, defaults = row
    of = _bound(node, f"input {numbers} inplace", **defaults)
    if of is None or isinstance(of["inplace"], fx.Node):
        return None
    values = tuple(of[number] for number in numbers.split())
    if name == "gelu":
        return Found(node, of["input"], ("gelu_tanh" if values == ("tanh",) else "gelu",))
    if not all(isinstance(value, (int, float)) and abs(value) <= MOST for value in values):
        return None
    return Found(node, of["input"], (name, *map(float, values)))


def _constants(value: Any) -> bool:
    """Whether no part of an argument is computed in the graph."""
    return not _nodes_in(value)


def _nodes_in(value: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(value, lambda node: found.append(node) or node)
    return found


# ---- the pass ----


def rewrite(graph: fx.GraphModule, how: dict[str, Any]) -> list[Layer]:
    """Replaces all pairs that can be taken, in place. Returns all nearest upsamplings, with the reasons of those that
    are left. `how` has the last arguments of `upsample_convolve`."""
    layers, changed = [], False
    for node in list(graph.graph.nodes):
        upsampling, shuffle = read_upsampling(node, graph), read_shuffle(node, graph)
        if upsampling is not None:
            function, (parts, reason) = upsample_convolve, _behind(upsampling, graph)
            named = parts[2] or upsampling
        elif shuffle is not None:
            function, (parts, reason) = convolve_shuffle, _ahead(shuffle, graph)
            named = parts[0] or shuffle
        else:
            continue
        name = _new_name(_name_of(named.node), layers)
        pair = (upsampling, parts[2]) if upsampling is not None else (parts[0], shuffle)
        kind = " and ".join(_called(part.node, graph) for part in pair if part is not None)
        if reason is None:
            change = _changes_between(parts)
            if change is not None and upsampling is not None:  # without what follows
                parts[3:], change = [None, None], _changes_between(parts[:3])
            reason = None if change is None else f"{change} is between them, and may change the data"
        if reason is not None:
            layers.append(Layer(name, kind, False, reason, True))
            continue
        fused = [
            _called(part.node, graph)
            for number, part in zip(NUMBERS[function], parts)
            if part is not None and (number in (NORM, ACTIVATION) or isinstance(part.part, Concat))
        ]
        _replace(graph, function, parts, how)
        layers.append(Layer(name, kind, True, fused_note(fused), True))
        changed = True
    if changed:
        graph.graph.lint()
        graph.recompile()
    return layers


def _behind(upsampling: Found, graph: fx.GraphModule) -> tuple[list[Found | None], str | None]:
    """The parts of `upsample_convolve`, or why there is no convolution that can be taken."""
    node, pads = upsampling.node, None
    while True:
        nothing = [upsampling, pads, None, None, None]
        if len(node.users) != 1:
            return nothing, f"its output is used {len(node.users)} times"
        user = next(iter(node.users))
        convolution = read_convolution(user, graph)
        found = convolution or ((read_pads(user, graph) or read_concat(user, node)) if pads is None else None)
        if found is None:
            return nothing, f"what follows it is {_called(user, graph)}, not a convolution"
        if found.input is not node or _nodes_in((user.args, user.kwargs)).count(node) != 1:
            return nothing, "the convolution takes it as its weight"
        if convolution is not None:
            break
        pads, node = found, user
    parts = [upsampling, pads, convolution, *_following(convolution.node, (read_norm, read_activation), graph)]
    values = [None if part is None else part.value(graph) for part in parts[:3]]
    weight = _weight_of(convolution, graph)
    if isinstance(values[1], Concat):
        values[1] = None
        groups = values[2].groups if isinstance(values[2], nn.Module) else values[2][5]
        if groups != 1:
            return parts, "a concatenation is between them, and the convolution has groups"
    return parts, reason_of(*values, None if weight is None else weight[2:])


def _ahead(shuffle: Found, graph: fx.GraphModule) -> tuple[list[Found | None], str | None]:
    """The parts of `convolve_shuffle`, or why there is no convolution that can be taken."""
    parts: list[Found | None] = [None, None, None, shuffle, None]
    node = shuffle.input
    for at, read in ((2, read_activation), (1, read_norm), (0, read_convolution)):
        found = read(node, graph) if isinstance(node, fx.Node) else None
        if found is None and at == 0:
            what = _called(node, graph) if isinstance(node, fx.Node) else "a constant"
            return [None, None, None, shuffle, None], f"what is before it is {what}, not a convolution"
        if found is None:
            continue
        if len(found.node.users) != 1:
            return [None, None, None, shuffle, None], f"the output before it is used {len(found.node.users)} times"
        parts[at], node = found, found.input
    if parts[2] is None:
        (parts[4],) = _following(shuffle.node, (read_activation,), graph)
    return parts, shuffle_reason_of(parts[0].value(graph), shuffle.value(graph), _weight_of(parts[0], graph))


def _weight_of(convolution: Found, graph: fx.GraphModule) -> tuple[int, ...] | None:
    """The shape of the weight of a convolution that is a function, if it is known before the graph runs."""
    node = None if isinstance(convolution.part, str) else convolution.part[0]
    if not isinstance(node, fx.Node):
        return None
    value = node.meta.get("val", node.meta.get("example_value"))
    if node.op == "get_attr":
        value = python.attrgetter(node.target)(graph)
    shape = tuple(getattr(value, "shape", ()))
    return shape if len(shape) > 2 and all(type(extent) is int for extent in shape) else None


def _following(node: fx.Node, readers: Sequence[Reader], graph: fx.GraphModule) -> list[Found | None]:
    """What is behind a node, in this order, that nobody else sees."""
    found: list[Found | None] = []
    for read in readers:
        user = next(iter(node.users)) if len(node.users) == 1 else None
        part = None if user is None else read(user, graph)
        if part is not None and (part.input is not node or _nodes_in((user.args, user.kwargs)).count(node) != 1):
            part = None
        found.append(part)
        node = node if part is None else part.node
    return found


def _changes_between(parts: Sequence[Found | None]) -> str | None:
    """A call between the parts that may change a tensor in place: the new call reads all of them at the last part."""
    own = [part.node for part in parts if part is not None]
    node = own[0]
    while node is not own[-1]:
        node = node.next
        if node not in own and _may_change(node):
            return str(node.target)
    return None


def _may_change(node: fx.Node) -> bool:
    if node.op in ("placeholder", "get_attr", "output"):
        return False
    if node.op == "call_module":
        return True  # whatever its forward does
    if isinstance(node.target, torch._ops.OpOverload):
        return bool(node.target._schema.is_mutable)
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "_")
    if node.kwargs.get("inplace") or "out" in node.kwargs or any(value is True for value in node.args):
        return True
    module = getattr(node.target, "__module__", "") or ""
    known = node.op == "call_method" or module.split(".")[0] in ("torch", "_operator", "math", "builtins")
    in_place = name.endswith("_") and not name.endswith("__")
    return not known or in_place or name in ("setitem", "set_item") or (module == "_operator" and name.startswith("i"))


def _replace(
    graph: fx.GraphModule, function: Callable[..., Any], parts: Sequence[Found | None], how: dict[str, Any]
) -> None:
    nodes = [part.node for part in parts if part is not None]
    with graph.graph.inserting_before(nodes[-1]):
        arguments = [
            graph.graph.get_attr(part.part) if part is not None and isinstance(part.part, str) else part and part.part
            for part in parts
        ]
        new = graph.graph.call_function(function, (_first(parts).input, *arguments), how)
    new.meta = dict(nodes[-1].meta)
    nodes[-1].replace_all_uses_with(new)
    for node in reversed(nodes):
        graph.graph.erase_node(node)


def _first(parts: Sequence[Found | None]) -> Found:
    return next(part for part in parts if part is not None)


def restore(graph: fx.GraphModule) -> None:
    """Undoes `rewrite`, by modules and torch.nn.functional's functions."""
    for node in list(_taken(graph)):
        value, *parts = node.args[:6]
        with graph.graph.inserting_before(node):
            for number, part in zip(NUMBERS[node.target], parts):
                if isinstance(part, fx.Node):
                    value = graph.graph.call_module(part.target, (value,))
                elif isinstance(part, Concat):
                    value = graph.graph.call_function(torch.cat, (part.ordered(value, part.other), part.dim))
                elif part is not None:
                    function, arguments, options = call_of(number, part)
                    value = graph.graph.call_function(function, (value, *arguments), options)
        node.replace_all_uses_with(value)
        graph.graph.erase_node(node)
        for part in parts:
            if isinstance(part, fx.Node) and not part.users:
                graph.graph.erase_node(part)
    graph.recompile()


def set_how(graph: fx.GraphModule, how: dict[str, Any]) -> None:
    """Gives the calls of an earlier pass other last arguments."""
    for node in _taken(graph):
        node.args, node.kwargs = node.args[:6], how
    graph.recompile()


def _taken(graph: fx.GraphModule) -> Iterator[fx.Node]:
    return (node for node in graph.graph.nodes if node.op == "call_function" and node.target in NUMBERS)


# ---- names ----


def _new_name(name: str, layers: list[Layer]) -> str:
    """A name that no layer has: a module may be called several times."""
    taken, number, made = {layer.name for layer in layers}, 1, name
    while made in taken:
        number += 1
        made = f"{name} ({number})"
    return made


def _name_of(node: fx.Node) -> str:
    """A module's name, also where a tracer has looked inside; else the node's."""
    if node.op == "call_module":
        return str(node.target)
    stack = node.meta.get("nn_module_stack") or {}
    path = str(next(reversed(stack.values()), ("",))[0])
    for begin in ("L['self'].", "L['fn']."):
        path = path.removeprefix(begin)
    return path if path and not path.startswith("L[") else node.name


def _called(node: fx.Node, graph: fx.GraphModule) -> str:
    if node.op == "call_module":
        return type(graph.get_submodule(node.target)).__name__
    if node.op == "output":
        return "the output"
    if node.op == "call_method":
        return str(node.target)
    target = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(target, "__name__", target))
