# SPDX-License-Identifier: Apache-2.0
"""Computes transposed convolutions of OpenVINO models: loads the extension, and puts its operator into models.

docs/openvino.md says how it is installed and what it does.
"""

from __future__ import annotations

import ctypes
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import openvino
from openvino import Node
from openvino.passes import AnyInput, Matcher, MatcherPass
from openvino.utils.node_factory import NodeFactory

from ._adapter import check_device, check_options, follow_devices
from ._explanation import Explanation, Layer
from ._library import RequestTypeError
from ._names import RUNTIME, suggesting
from ._openvino.concatenation import Concat
from ._openvino.fusion import fuse
from ._openvino.graph import CONVOLUTIONS, OURS, OURS_OR_PAIR, STOCK, run
from ._openvino.integers import to_bytes
from ._openvino.layouts import Views, channels_last, to_channels_last
from ._openvino.pairs import Pair, fold_reshapes, pair_of, with_residual

__all__ = ["Explanation", "Layer", "Statistics", "add_extension", "convert", "explain", "library", "statistics"]

LEFT = "convert was not called, least_macs is larger, or it was refused (see stderr)"
FORMS = {"upsample": "upsampling", "shuffle": "pixel shuffle", "shuffle_dcr": "pixel shuffle"}
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


class Core(openvino.Core):
    """The class of a core with the extension: what it reads is converted."""

    def read_model(self, *args: Any, **kwargs: Any) -> openvino.Model:
        return convert(super().read_model(*args, **kwargs))

    def compile_model(
        self,
        model: openvino.Model | str | bytes | PathLike[str],
        device_name: str | None = None,
        config: dict[str, Any] | None = None,
        *,
        weights: Any = None,
    ) -> openvino.CompiledModel:
        if not isinstance(model, openvino.Model):  # OpenVINO would read it in C++
            is_text = weights is not None and isinstance(model, str)
            model, weights = self.read_model(model.encode() if is_text else model, weights), None
        return super().compile_model(model, device_name, config, weights=weights)


def add_extension(core: openvino.Core) -> None:
    """Makes `core` convert the models that it reads from now on, from files and from memory, as `convert` does without
    options. `core` stays the same object; its class becomes a subclass of its own.

    The extension itself replaces transposed convolutions of IR and ONNX files when they are read, of any size. Models
    that `core` does not read, as those of openvino.convert_model, are for `convert`.

    Raises:
        tconv_cl.RequestError, which is a ValueError: a variable of the environment has a wrong value.
    """
    check_device(_library.tconv_cl_openvino_open, None)
    core.add_extension(library())
    own = type(core)
    if not issubclass(own, Core) and issubclass(own, openvino.Core):
        core.__class__ = Core if own is openvino.Core else type(own.__name__, (Core, own), {})


def statistics() -> Statistics:
    """The counts so far. The difference of two tells who computed between them."""
    values = (ctypes.c_uint64 * len(Statistics._fields))()
    _library.tconv_cl_openvino_statistics(values, ctypes.c_size_t(len(values)))
    return Statistics(*values)


@suggesting(maker="", table=RUNTIME)
def convert(
    model: openvino.Model,
    device: int | str | None = None,
    *,
    search: str | None = None,
    math: str = "exact",
    least_macs: int | None = None,
    fuse_concat: bool = True,
) -> openvino.Model:
    """Replaces the transposed convolutions of `model`, and its convolutions with nearest upsampling before (also with a
    Concat between) or pixel shuffle behind them, in the bodies of its branches too. Returns `model`.

    The model is changed in place; `explain` tells what became of each. Factors and addends that follow with one
    constant for each channel, a tensor of the output's shape that is added, and an activation that the library has,
    become part of the operator. What the library refuses stays as it is, and a line on stderr says why.

    Args:
        device: a number as `tconv_cl.devices()` lists them, "gpu", "cpu", "accelerator" or a part of a device's name;
            None: the library's default.
        search: how the algorithm of each shape is chosen, as that of tconv_cl.conv_transpose: "model", "records",
            "measure" or "renew"; None: as TCONV_CL_SEARCH says, else "records".
        math: "exact", or "fast": also algorithms with fewer multiplications and a larger error; docs/semantics.md has
            the bound.
        least_macs: a layer with fewer multiply-adds keeps OpenVINO's own operators. None: four million on a CPU,
            where those are faster for smaller layers; 0 on other devices.
        fuse_concat: the layer writes its output into the concatenated tensor, if the output is only concatenated along
            the channels. Only the other tensors are copied.

    Raises:
        tconv_cl.Error: there is no such device.
        tconv_cl.RequestError, which is a ValueError: an argument or a variable of the environment has a wrong value.
    """
    _change(model, device, search, math, least_macs, fuse_concat)
    return model


def _change(
    model: openvino.Model,
    device: int | str | None,
    search: str | None,
    math: str,
    least_macs: int | None,
    fuse_concat: bool,
) -> int:
    """Replaces operators, and returns how many."""
    if not isinstance(model, openvino.Model):
        raise RequestTypeError(f"model is a {type(model).__name__}: it must be an openvino.Model")
    check_options(search, least_macs, math=math)
    check_device(_library.tconv_cl_openvino_open, device)
    replace = _Replace(
        device="" if device is None else str(device),
        search=search or "",
        math=math,
        least_macs=-1 if least_macs is None else least_macs,
    )
    run(replace, model)
    # A replaced operator counts as a consumer of its inputs as long as a reference to it exists.
    nodes = _found(model, OURS)
    while nodes:
        to_bytes(nodes.pop(0), replace.factory)
    nodes = channels_last(_found(model, OURS))
    while nodes:
        to_channels_last(nodes.pop(0), replace.factory)
    if fuse_concat:
        run(Concat(replace.factory), model)
    run(Views(), model)
    return replace.count


def explain(model: openvino.Model) -> Explanation:
    """Which layers of `model` tconv-cl computes, and with what, in the bodies of its branches too: transposed
    convolutions, and convolutions with nearest upsampling before or pixel shuffle behind them.

    Its text has a line for each layer. `converted` lists the layers that tconv-cl computes; `left` the others, with
    reasons.
    """
    layers = []
    for node in _found(model, OURS, *STOCK, *CONVOLUTIONS):
        name, kind, attributes = node.get_friendly_name(), node.get_type_name(), node.get_attributes()
        if kind == OURS:
            fused = [] if attributes["form"] == "transposed" else [FORMS[attributes["form"]]]
            fused += [each for each in ("scale", "bias", "residual") if attributes[each]]
            fused += [attributes["activation"]] if attributes["activation"] != "none" else []
            fused += ["concatenation"] if attributes["concat_before"] or attributes["concat_after"] else []
            upsamples = attributes["form"] != "transposed"
            layers.append(Layer(name, kind, True, f"with {', '.join(fused)}" if fused else "", upsamples))
        elif kind in STOCK:
            layers.append(Layer(name, kind, False, LEFT))
        elif (pair := pair_of(node)) is not None:
            layers.append(Layer(name, kind, False, LEFT if isinstance(pair, Pair) else pair, True))
    return Explanation(layers)


def _found(model: openvino.Model, *kinds: str) -> list[Node]:
    """The operators of these types, also those in the bodies of branches."""
    find = _Find(kinds)
    run(find, model)
    nodes, find.nodes = find.nodes, []
    return nodes


class _Replace(MatcherPass):
    def __init__(self, **choices: str | int) -> None:
        super().__init__()
        self.count = 0
        self.choices = choices
        self.factory = NodeFactory()
        self.factory.add_extension(library())
        pattern = AnyInput(lambda output: output.get_node().get_type_name() in (*STOCK, *CONVOLUTIONS, OURS))
        self.register_matcher(Matcher(pattern, "tconv_cl"), self.replace)

    def replace(self, matcher: Matcher) -> bool:
        node = matcher.get_match_root()
        kind, inputs, attributes = node.get_type_name(), node.input_values(), node.get_attributes()
        name, first, beside = kind, node, None
        if kind in CONVOLUTIONS:
            fold_reshapes(node)
            pair = pair_of(node)
            if not isinstance(pair, Pair):
                return False
            name, (node, inputs, attributes, beside) = OURS_OR_PAIR, pair
        if kind != OURS:
            # The extension decides: its factory returns OpenVINO's own node if the library refuses it.
            made = self.factory.create(name, inputs, {**attributes, **self.choices})
            if made.get_type_name() != OURS:
                return False
            attributes = made.get_attributes()
        last, inputs, fused = fuse(node, inputs, attributes)
        if kind == OURS and last == first:
            return False
        if beside is not None:
            inputs, fused = with_residual(beside, inputs, fused)
        made = self.factory.create(OURS, inputs, {**attributes, **fused})
        made.set_friendly_name(last.get_friendly_name())
        names = last.output(0).get_names()
        last.output(0).replace(made.output(0))
        made.output(0).set_names(names)
        self.count += 1
        return True


class _Find(MatcherPass):
    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        pattern = AnyInput(lambda output: output.get_node().get_type_name() in kinds)
        self.register_matcher(Matcher(pattern, "tconv_cl_find"), self.note)

    def note(self, matcher: Matcher) -> bool:
        self.nodes.append(matcher.get_match_root())
        return False
