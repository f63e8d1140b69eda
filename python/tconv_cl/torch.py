# SPDX-License-Identifier: Apache-2.0
"""Computes PyTorch's transposed convolutions: as an operator, as functions, in modules and in TorchScript models."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode

from ._adapter import check_options
from ._explanation import Explanation, Layer, fused_note
from ._library import RequestTypeError
from ._names import RUNTIME, suggesting
from ._torch import tensors
from ._torch.call import QUANTIZED, Axes, check_out, convolve, is_unobserved, one_for_each_axis, refuse_gradients
from ._torch.chain import convolve_shuffle, upsample_convolve
from ._torch.classes import own_class, subclass_of
from ._torch.fusion import FORWARDS, MODULES, NORMS, activation_of, affine, fused_with, is_activation, is_fused
from ._torch.fusion import is_norm_of, is_plain, left_behind, slopes_behind, statistics_of, takes_others
from ._torch.graphs import restore, rewrite, set_how
from ._torch.operator import HOW
from ._torch.pairs import PADS, is_convolution, is_upsampling, kind_of, reason_of, shuffle_reason_of
from ._torch.streams import CausalConv1d, Streaming, streaming
from ._torch.tensors import Call, Statistics, compute_or, memory_format, output_shape, statistics
from ._torch.traced import Options, Traced, enlarges, found_in

__all__ = [
    "CausalConv1d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Explanation",
    "Layer",
    "Sequential",
    "Statistics",
    "Streaming",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_transpose_cat",
    "convert",
    "dispatch",
    "explain",
    "refresh",
    "revert",
    "statistics",
    "streaming",
]


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """torch.nn.functional.conv_transpose1d: input [N, CI, L] or [CI, L], weight [CI, CO/groups, K]."""
    return convolve(1, input, weight, bias, stride, padding, output_padding, groups, dilation, out=out)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """torch.nn.functional.conv_transpose2d: input [N, CI, H, W] or [CI, H, W], weight [CI, CO/groups, KH, KW]."""
    return convolve(2, input, weight, bias, stride, padding, output_padding, groups, dilation, out=out)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """torch.nn.functional.conv_transpose3d: input [N, CI, D, H, W] or [CI, D, H, W], weight [CI, CO/groups, K...]."""
    return convolve(3, input, weight, bias, stride, padding, output_padding, groups, dilation, out=out)


torch.fx.wrap("convolve")  # torch.fx records it whole, as it does with torch's own modules
for _function in (convolve, upsample_convolve, convolve_shuffle):
    _function.__module__ = __name__  # the name that saved graphs import


# ---- modules ----


SCRIPTED = "tconv_cl: torch.jit.script does not know converted modules: tconv_cl.torch.revert(model) before it"


def _refuse_script(module: nn.Module) -> nn.Module:
    """torch.jit.script calls it, as `__prepare_scriptable__`, before it compiles a module."""
    raise RuntimeError(SCRIPTED)


class _Layer(Options):
    """The forward of the three classes below. A Sequential fuses the modules `norm` and `activation` into it. `out` is
    as that of the functions."""

    __prepare_scriptable__ = _refuse_script

    def forward(
        self,
        input: Tensor,
        output_size: list[int] | None = None,
        activation: tuple = ("none",),
        norm: nn.Module | None = None,
        out: Tensor | None = None,
        slopes: tensors.Slopes | None = None,
    ) -> Tensor:
        if (type(input) is not Tensor or "qconfig" in self.__dict__) and self._is_quantized(input):
            raise RuntimeError(QUANTIZED)
        axes, output_padding = len(self.kernel_size), self.output_padding
        if output_size is not None:
            output_padding = self._output_padding(
                input, output_size, self.stride, self.padding, self.kernel_size, axes, self.dilation
            )
        own = self._parameters  # faster than self.weight, which torch finds by a function in Python
        weight = own["weight"] if "weight" in own else self.weight
        bias = own["bias"] if "bias" in own else self.bias
        scale, bias = (None, bias) if norm is None else affine(statistics_of(norm), bias)
        return convolve(
            axes,
            input,
            weight,
            bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
            activation,
            self.tconv_cl_device,
            self.tconv_cl_fallback,
            self.tconv_cl_search,
            scale,
            out,
            self.tconv_cl_math,
            slopes,
        )

    def _is_quantized(self, input: Any) -> bool:
        """Whether torch.ao.quantization has this module, by modules (it sets `qconfig`) or by its tracer."""
        if self.__dict__.get("qconfig") is not None:
            return True
        return isinstance(input, fx.Proxy) and type(input.tracer).__name__ == "QuantizationTracer"


class ConvTranspose1d(_Layer, nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d, computed by tconv-cl."""


class ConvTranspose2d(_Layer, nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d, computed by tconv-cl."""


class ConvTranspose3d(_Layer, nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d, computed by tconv-cl."""


class Sequential(Options, nn.Sequential):
    """torch.nn.Sequential; a nearest upsampling and the convolution behind it are one layer. Where no gradient is asked
    for, a layer computes what follows it, too: a batch normalization in inference, and an activation. `out` is as that
    of the functions."""

    __prepare_scriptable__ = _refuse_script

    def forward(self, input: Tensor, out: Tensor | None = None) -> Tensor:
        out = out if isinstance(out, Tensor) else None  # torch.fx passes a proxy
        if out is not None:
            refuse_gradients("Sequential", out, input, *self.parameters())
        modules, at = list(self), 0
        while at < len(modules):
            module, taken = modules[at], {}
            if isinstance(module, nn.Upsample) and type(input) is Tensor:
                parts, following = _pair_at(modules, at)
                if following > at:
                    input, at = upsample_convolve(input, *parts, **self._how()), following
                    continue
            elif type(input) is Tensor and any(type(one) is nn.PixelShuffle for one in modules[at + 1 : at + 4]):
                parts, following = _shuffle_at(modules, at)
                if following > at:
                    input, at = convolve_shuffle(input, *parts, **self._how()), following
                    continue
            at += 1
            if isinstance(module, _Layer) and is_fused(modules[at : at + 1]) and takes_others(module, input):
                if is_norm_of(module, modules[at], input) and not torch.is_autocast_enabled("cpu"):
                    taken["norm"] = modules[at]
                    at += 1
                if at < len(modules) and is_activation(modules[at]):
                    taken["activation"] = activation_of(modules[at])
                    at += 1
                elif at < len(modules) and input.dim() == 3 and not torch.is_autocast_enabled("cpu"):
                    slopes = slopes_behind(module, modules[at])
                    if not isinstance(slopes, str):
                        taken["activation"], taken["slopes"] = ("snakebeta",), slopes
                        at += 1
            if isinstance(module, _Layer) and at == len(modules) and out is not None:
                taken["out"] = out
            input = module(input, **taken)
        if out is not None and input is not out:
            check_out(out, input, input.shape)
            out.copy_(input)
        return input if out is None else out


def _pair_at(modules: list[nn.Module], at: int) -> tuple[tuple[nn.Module | None, ...], int]:
    """A nearest upsampling, pads, convolution, norm and activation from this place on, and the place behind them; the
    same place: there is no such pair."""
    upsampling, *others = modules[at : at + 5]
    pads = others.pop(0) if others and type(others[0]) in PADS else None
    if not others or not is_convolution(others[0]):
        return (), at
    convolution, *others = others
    norm = others.pop(0) if others and type(others[0]) in NORMS else None
    activation = others.pop(0) if others and type(others[0]) in MODULES else None
    parts = (upsampling, pads, convolution, norm, activation)
    return parts, at + sum(part is not None for part in parts)


def _shuffle_at(modules: list[nn.Module], at: int) -> tuple[tuple[nn.Module | None, ...], int]:
    """The same for a convolution from this place on: norm, activation, pixel shuffle, activation."""
    if not is_convolution(modules[at]):
        return (), at
    parts: list[nn.Module | None] = [modules[at]]
    others = modules[at + 1 : at + 5]
    for known in (NORMS, MODULES, (nn.PixelShuffle,), MODULES):
        parts.append(others.pop(0) if others and type(others[0]) in known else None)
    if parts[3] is None:
        return (), at
    return tuple(parts), at + sum(part is not None for part in parts)


class Enlarging(Traced):
    """The class of modules whose own forward enlarges data, above their own class."""

    __prepare_scriptable__ = _refuse_script


LAYERS = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
FORWARDS.update({cls: cls.forward for cls in (*LAYERS, Sequential)})


def conv_transpose_cat(parts: Sequence[Tensor | tuple[nn.Module, Tensor]]) -> Tensor:
    """Concatenates tensors and outputs of modules along the channels: conv_transpose_cat([skip, (up, x)]) is
    torch.cat([skip, up(x)], 1).

    If no gradients are asked for, a converted ConvTranspose writes its output into its part of the result; so does a
    converted Sequential of one, a batch normalization and an activation. All else is computed and copied, as by
    torch.cat: other modules, calls with gradients, and what a compiler or a transformation sees.
    """
    shapes: list[tuple[int, ...] | None] = [None]
    if not torch.is_grad_enabled() and is_unobserved():
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else _written(*part) for part in parts]
    inputs = [part if isinstance(part, Tensor) else part[1] for part in parts]
    like = next((input for input, part in zip(inputs, parts) if input is not part), None)
    if None in shapes or like is None or not _fit(shapes, inputs, like):
        return torch.cat([part if isinstance(part, Tensor) else part[0](part[1]) for part in parts], 1)
    channels = [shape[1] for shape in shapes]
    shape = (shapes[0][0], sum(channels), *shapes[0][2:])
    joined = torch.empty(shape, dtype=like.dtype, memory_format=memory_format(like))
    tensors.ask_for_large_pages(joined)
    for part, place in zip(parts, joined.split(channels, 1)):
        if isinstance(part, Tensor):
            place.copy_(part)
        else:
            part[0](part[1], out=place)
    return joined


def _fit(shapes: Sequence[tuple[int, ...]], inputs: Sequence[Tensor], like: Tensor) -> bool:
    """Whether tensors of these shapes can be concatenated, all of the same kind."""
    if any(len(shape) != like.dim() for shape in shapes):
        return False
    batch, _, *extents = shapes[0]
    return all([shape[0], *shape[2:]] == [batch, *extents] for shape in shapes) and all(
        (type(input), input.dtype, input.device, input.layout) == (Tensor, like.dtype, like.device, like.layout)
        for input in inputs
    )


def _written(module: nn.Module, input: Tensor) -> tuple[int, ...] | None:
    """The shape of the output, if the module writes it into `out` and nothing can observe that."""
    modules = list(module) if type(module) is Sequential and is_plain(module) else [module]
    layer, others = (modules or [module])[0], modules[1:]
    if (
        not isinstance(layer, _Layer)
        or not takes_others(layer, input)
        or not all(is_norm_of(layer, other, input) or is_activation(other) for other in others)
        or input.dim() != layer.weight.dim()
        or not input.is_cpu
        or input.dtype != layer.weight.dtype
        or torch.is_autocast_enabled("cpu")
    ):
        return None
    lists = (layer.stride, layer.padding, layer.output_padding, layer.dilation)
    shape = output_shape(input, layer.weight, Call(*lists, layer.groups))
    return tuple(shape) if min(shape) > 0 else None


# torch.fx writes annotations into its graphs; with those that are strings, a graph could not be pickled.
Sequential.forward.__annotations__ = {"input": Tensor, "out": Optional[Tensor], "return": Tensor}


CONVERTED: dict[type[nn.Module], type[nn.Module]] = {
    nn.ConvTranspose1d: ConvTranspose1d,
    nn.ConvTranspose2d: ConvTranspose2d,
    nn.ConvTranspose3d: ConvTranspose3d,
    nn.Sequential: Sequential,
}
REVERTED = {new: old for old, new in CONVERTED.items()}
STOCK = {cls: cls.forward for cls in CONVERTED}  # a class with another one is left alone
SCRIPT = "convert cannot change it: call the model in a `with tconv_cl.torch.dispatch():`"


@suggesting(maker="", table=RUNTIME)
def convert(
    model: nn.Module,
    device: int | str | None = None,
    *,
    fallback: str = "warn",
    search: str | None = None,
    math: str = "exact",
) -> nn.Module:
    """Makes tconv-cl compute the ConvTranspose1d, 2d and 3d in `model`, itself included, and its convolutions with
    nearest upsampling before or pixel shuffle behind them. Returns `model`.

    The model is changed in place: the modules stay, with their weights, hooks and names; only their class changes. A
    subclass of torch's class becomes a subclass of tconv-cl's class and its own. What cannot be converted, such as a
    subclass with a forward of its own, stays as it is; the logger `tconv_cl` warns, and `explain` says why. Modules
    converted before get the new device.

    Such a pair of upsampling and convolution, or of convolution and pixel shuffle, is found in an nn.Sequential, in a
    graph of torch.fx (a GraphModule, which gets other nodes), and in the `forward` of any other module. In a `forward`
    it is found in the first call without gradients, which torch's compiler traces. The convolution keeps its class and
    its weights.

    Args:
        device: a number as tconv_cl.devices lists them, "gpu", "cpu", "accelerator" or a part of a name; None: the
            library's default.
        fallback: what happens if the library refuses: "warn": torch's own operator computes, and the logger
            `tconv_cl` says why; "error": RuntimeError.
        search: how the algorithm of each shape is chosen, as that of tconv_cl.conv_transpose; None: as TCONV_CL_SEARCH
            says, else "records".
        math: "exact", or "fast": also algorithms with fewer multiplications and a larger error.

    Raises:
        tconv_cl.Error: there is no such device.
        tconv_cl.RequestError: `fallback`, `search` or `math` is unknown, or `model` is a TorchScript module.
    """
    _refuse_others("model", model)
    check_options(search, fallback=fallback, math=math)
    number = tensors.device_number(device)
    how = dict(zip(HOW, (number, fallback, search, math)))
    for name, one in model.named_modules():
        if _is_layer(one):
            reason = _why_left(one)
            if reason is not None:
                module = f"{name or 'the model'}, a {type(one).__name__}"
                tensors.logger.warning(f"tconv_cl: {module}, is not converted: {reason}")
                continue
        if "forward" not in vars(one):
            _set_class(one, _converted(kind_of(one)) or _traced(one))
        if isinstance(one, Options):
            for option, value in how.items():
                setattr(one, f"tconv_cl_{option}", value)
        elif isinstance(one, fx.GraphModule):
            set_how(one, how)
            one.meta["tconv_cl"] = {
                **one.meta.get("tconv_cl", {}),
                **{layer.name: layer for layer in rewrite(one, how)},
            }
    return model


def _traced(module: nn.Module) -> type[nn.Module] | None:
    """The class of tconv-cl's for a module whose own forward enlarges data."""
    cls = type(module)
    return subclass_of(Enlarging, cls) if not isinstance(module, Options) and enlarges(module) else None


def revert(model: nn.Module) -> nn.Module:
    """Undoes convert: all modules and graphs are torch's own again. Returns `model`."""
    _refuse_others("model", model)
    for one in model.modules():
        if isinstance(one, Options):
            for name in (*(f"tconv_cl_{option}" for option in HOW), "tconv_cl_found"):
                vars(one).pop(name, None)
            cls = kind_of(one)
            _set_class(one, own_class(cls) or REVERTED.get(cls))
        elif isinstance(one, fx.GraphModule):
            restore(one)
            one.meta.pop("tconv_cl", None)
    return model


def explain(model: nn.Module) -> Explanation:
    """Which transposed convolutions of `model`, and which convolutions with nearest upsampling or pixel shuffle,
    tconv-cl computes, with which modules behind them; why not the others.

    Its text has a line for each layer. `converted` lists the layers that tconv-cl computes; `left` the others, with
    reasons. Convolutions with upsampling or pixel shuffle in a `forward` are known after its first call. Transposed
    convolutions that a `forward` computes by torch.nn.functional are not modules, and not listed.

    Examples:
        >>> print(explain(convert(nn.Sequential(nn.ConvTranspose1d(4, 3, 2), nn.ReLU()))))
        tconv-cl computes 1 of 1 transposed convolutions
          0, ConvTranspose1d, tconv-cl: with ReLU, if no gradient is asked for
    """
    _refuse_others("model", model)
    behind: dict[nn.Module, list[str]] = {}
    left: dict[nn.Module, str | None] = {}
    for one in model.modules():
        if isinstance(one, Sequential) and is_plain(one):
            for index, layer in enumerate(one):
                if isinstance(layer, _Layer):
                    following = list(one)[index + 1 :]
                    behind[layer] = [type(module).__name__ for module in fused_with(layer, following)]
                    left[layer] = left_behind(layer, following)
    layers: list[Layer] = []
    for name, one in model.named_modules():
        if isinstance(one, _Layer):
            fused = behind.get(one, [])
            notes = [note for note in (fused_note(fused), left.get(one)) if note]
            if "weight" not in one._parameters:
                notes.append("its weights are computed at each call, and packed again only if they changed")
            layers.append(Layer(name, type(one).__name__, True, "; ".join(notes)))
        elif _is_layer(one):
            reason = _why_left(one) or "convert was not called"
            layers.append(Layer(name, type(one).__name__, False, reason))
        else:
            prefix = f"{name}." if name else ""
            layers += [layer._replace(name=prefix + layer.name) for layer in _upsamplings(one)]
    return Explanation(layers)


def _upsamplings(module: nn.Module) -> list[Layer]:
    """The nearest upsamplings that a module itself calls, with names below the module."""
    if isinstance(module, fx.GraphModule):
        return list(module.meta.get("tconv_cl", {}).values())
    if isinstance(module, Traced):
        return found_in(module)
    if isinstance(module, nn.Sequential) and type(module).forward in (nn.Sequential.forward, Sequential.forward):
        modules = list(module)
        return [
            _upsampling_in(module, modules, at, name)
            for at, name in enumerate(module._modules)
            if is_upsampling(modules[at]) or isinstance(modules[at], nn.PixelShuffle)
        ]
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
        return []
    reason = "a forward calls it: convert was not called, or cannot change that"
    return [
        Layer(name, type(one).__name__, False, reason, True)
        for name, one in module.named_children()
        if is_upsampling(one)
    ]


def _upsampling_in(sequential: nn.Sequential, modules: list[nn.Module], at: int, name: str) -> Layer:
    if isinstance(modules[at], nn.PixelShuffle):
        return _shuffle_in(sequential, modules, at, name)
    pads, following = None, modules[at + 1 : at + 3]
    if following and type(following[0]) in PADS:
        pads, *following = following
    if not following or not isinstance(following[0], nn.modules.conv._ConvNd):
        what = f"what follows it is a {type(following[0]).__name__}" if following else "nothing follows it"
        return Layer(name, type(modules[at]).__name__, False, f"{what}, not a convolution", True)
    kind = f"{type(modules[at]).__name__} and {type(following[0]).__name__}"
    reason = reason_of(modules[at], pads, following[0], None)
    if reason is None and type(sequential) is not Sequential:
        reason = "convert was not called, or cannot change its Sequential"
    if reason is not None:
        return Layer(name, kind, False, reason, True)
    parts, _ = _pair_at(modules, at)
    return Layer(name, kind, True, _with(parts[3:]), True)


def _shuffle_in(sequential: nn.Sequential, modules: list[nn.Module], at: int, name: str) -> Layer:
    for begin in range(max(0, at - 3), at):
        parts, _ = _shuffle_at(modules, begin)
        if parts and parts[3] is modules[at]:
            kind = f"{type(parts[0]).__name__} and {type(modules[at]).__name__}"
            reason = shuffle_reason_of(parts[0], modules[at], None)
            if reason is None and type(sequential) is not Sequential:
                reason = "convert was not called, or cannot change its Sequential"
            note = _with((*parts[1:3], parts[4])) if reason is None else reason
            return Layer(name, kind, reason is None, note, True)
    return Layer(name, type(modules[at]).__name__, False, "what is before it is not a convolution of torch's own", True)


def _with(parts: Sequence[nn.Module | None]) -> str:
    return fused_note([type(part).__name__ for part in parts if part is not None])


def _refuse_others(name: str, model: Any) -> None:
    if isinstance(model, torch.jit.ScriptModule):
        raise RequestTypeError(f"{name} is a {type(model).__name__}: {SCRIPT}")
    if not isinstance(model, nn.Module):
        raise RequestTypeError(f"{name} is a {type(model).__name__}: it must be a torch.nn.Module")


def _is_layer(module: nn.Module) -> bool:
    """Whether a module is a transposed convolution of torch's, by the name of its class: quantized ones, and those of
    TorchScript, have classes of their own."""
    if isinstance(module, torch.jit.ScriptModule):
        return module.original_name in {cls.__name__ for cls in LAYERS}
    names = {cls.__name__ for cls in type(module).__mro__ if cls.__module__.split(".")[0] in ("torch", "tconv_cl")}
    return not names.isdisjoint(cls.__name__ for cls in LAYERS)


def _why_left(module: nn.Module) -> str | None:
    """What prevents a transposed convolution from being converted."""
    if isinstance(module, torch.jit.ScriptModule):
        return SCRIPT
    if isinstance(module, _Layer):
        return None
    cls = kind_of(module)
    base = _stock_base(cls)
    if base not in CONVERTED:
        return f"it is of {cls.__module__}, and not a torch.nn.ConvTranspose1d, 2d or 3d"
    if isinstance(module, nn.modules.lazy.LazyModuleMixin):
        return "it has no weights yet: call the model before convert"
    if "forward" in vars(module):
        return "its forward was replaced"
    if _converted(cls) is None:
        function = f"tconv_cl.torch.conv_transpose{base.__name__[-2:]}"
        return f"its class has its own forward or call: use {function} there, or call the model in a dispatch()"
    return None


def _stock_base(cls: type[nn.Module]) -> type[nn.Module] | None:
    return next((base for base in CONVERTED if issubclass(cls, base)), None)


def _converted(cls: type[nn.Module]) -> type[nn.Module] | None:
    """The class of tconv-cl's for a class that computes as torch's own."""
    base = _stock_base(cls)
    if issubclass(cls, Options) or base is None or not (base.forward is cls.forward is STOCK[base]):
        return None
    if cls is base:
        return CONVERTED[base]
    if base is nn.Sequential or (cls.__call__, cls._call_impl) != (nn.Module.__call__, nn.Module._call_impl):
        return None  # a Sequential would only fuse more
    return subclass_of(CONVERTED[base], cls)


def _set_class(module: nn.Module, new: type[nn.Module] | None) -> None:
    if new is None:
        return
    cls = type(module)
    if parametrize.is_parametrized(module):
        names = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        new = type(cls.__name__, (new,), names)
    module.__class__ = new


def refresh(weights: nn.Module | Tensor) -> None:
    """Releases the packed weights of a module's transposed convolutions, or of one weight; the next call packs again.

    It only frees memory: every call hashes the weights, so that no change is missed.
    """
    if isinstance(weights, Tensor):
        tensors.refresh(weights)
        return
    for module in weights.modules():
        if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
            tensors.refresh(module.weight)


# ---- TorchScript, and whatever else calls torch's operator ----


# What every transposed convolution becomes, and what of PyTorch's reaches a mode before it did, in inference mode.
TRANSPOSED = (torch.ops.aten.convolution.default, torch.ops.aten._convolution.default)
COMPOSED = (
    torch.ops.aten.conv_transpose1d.default,
    torch.ops.aten.conv_transpose2d.input,
    torch.ops.aten.conv_transpose3d.input,
    torch.ops.aten._convolution.deprecated,
)


NOTHING = (
    "tconv_cl: a dispatch() ended without a transposed convolution. It works only in its own thread, and not inside "
    "compiled graphs"
)


class dispatch(TorchDispatchMode):
    """A context in which this thread's transposed convolutions are computed by tconv-cl, TorchScript's too.

        with tconv_cl.torch.dispatch():
            output = scripted_model(data)

    It does nothing in other threads: each makes its own. If it has seen no transposed convolution when it ends, the
    logger `tconv_cl` warns.

    Args: as those of convert.
    """

    @suggesting(maker="", table=RUNTIME, name="dispatch")
    def __init__(
        self,
        device: int | str | None = None,
        *,
        fallback: str = "warn",
        search: str | None = None,
        math: str = "exact",
    ) -> None:
        super().__init__()
        check_options(search, fallback=fallback, math=math)
        self.device, self.fallback, self.search = tensors.device_number(device), fallback, search
        self.math = math
        self._seen = 0  # transposed convolutions
        self._entered: dict[int, list[int]] = {}  # by thread: what had been seen when it entered

    def __enter__(self) -> dispatch:
        super().__enter__()
        self._entered.setdefault(threading.get_ident(), []).append(self._seen)
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        entered = self._entered.get(threading.get_ident())
        if not entered:
            raise RuntimeError("a dispatch() must end in the thread that entered it: each thread makes its own")
        seen = entered.pop()
        super().__exit__(kind, value, traceback)
        if kind is None and seen == self._seen:
            tensors.logger.warning(NOTHING)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in COMPOSED:
            super().__enter__()
            try:
                return func.decompose(*args, **kwargs)
            finally:
                super().__exit__(None, None, None)
        self._seen += func is torch.ops.tconv_cl.conv_transpose.default or (func in TRANSPOSED and args[6])
        if func not in TRANSPOSED or not args[6]:
            return func(*args, **kwargs)
        data, weight, bias, stride, padding, dilation, _, output_padding, groups = args[:9]
        axes = weight.dim() - 2
        lists = (one_for_each_axis(axes, value) for value in (stride, padding, output_padding, dilation))
        call = Call(*lists, groups, device=self.device, fallback=self.fallback, search=self.search, math=self.math)
        return compute_or(lambda: func(*args, **kwargs), data, weight, bias, call)
