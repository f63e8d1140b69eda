# SPDX-License-Identifier: Apache-2.0
"""Computes PyTorch's transposed convolutions: as an operator, as functions, in modules and in TorchScript models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode

from ._adapter import check_options
from ._library import RequestTypeError
from ._torch import tensors
from ._torch.call import QUANTIZED, Axes, check_out, convolve, is_unobserved, one_for_each_axis, refuse_gradients
from ._torch.fusion import FORWARDS, activation_of, affine, is_activation, is_fused, is_norm_of, is_plain, takes_others
from ._torch.operator import output_shape
from ._torch.tensors import Call, Statistics, compute_or, memory_format, statistics

__all__ = [
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Sequential",
    "Statistics",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_transpose_cat",
    "convert",
    "dispatch",
    "refresh",
    "revert",
    "statistics",
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
convolve.__module__ = __name__  # the name that saved graphs import


# ---- modules ----


SCRIPTED = "tconv_cl: torch.jit.script does not know converted modules: tconv_cl.torch.revert(model) before it"


def _refuse_script(module: nn.Module) -> nn.Module:
    """torch.jit.script calls it, as `__prepare_scriptable__`, before it compiles a module."""
    raise RuntimeError(SCRIPTED)


class _Layer(nn.Module):
    """The forward of the three classes below. A Sequential fuses the modules `norm` and `activation` into it. `out` is
    as that of the functions."""

    tconv_cl_device: int | None = None
    tconv_cl_fallback = "warn"
    tconv_cl_search: str | None = None
    __prepare_scriptable__ = _refuse_script

    def forward(
        self,
        input: Tensor,
        output_size: list[int] | None = None,
        activation: tuple = ("none",),
        norm: nn.Module | None = None,
        out: Tensor | None = None,
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
        scale, bias = (None, bias) if norm is None else affine(norm, bias)
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


class Sequential(nn.Sequential):
    """torch.nn.Sequential; where no gradient is asked for, a layer computes what follows it, too: a batch normalization
    in inference, and an activation. `out` is as that of the functions."""

    __prepare_scriptable__ = _refuse_script

    def forward(self, input: Tensor, out: Tensor | None = None) -> Tensor:
        out = out if isinstance(out, Tensor) else None  # torch.fx passes a proxy
        if out is not None:
            refuse_gradients("Sequential", out, input, *self.parameters())
        modules, at = list(self), 0
        while at < len(modules):
            module, taken = modules[at], {}
            at += 1
            if isinstance(module, _Layer) and is_fused(modules[at : at + 1]) and takes_others(module, input):
                if is_norm_of(module, modules[at], input) and not torch.is_autocast_enabled("cpu"):
                    taken["norm"] = modules[at]
                    at += 1
                if at < len(modules) and is_activation(modules[at]):
                    taken["activation"] = activation_of(modules[at])
                    at += 1
            if isinstance(module, _Layer) and at == len(modules) and out is not None:
                taken["out"] = out
            input = module(input, **taken)
        if out is not None and input is not out:
            check_out(out, input, input.shape)
            out.copy_(input)
        return input if out is None else out


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
    if type(module) is Sequential and is_plain(module):
        layer, *others = module
    else:
        layer, others = module, []
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


# A torch class with a replaced forward is left alone.
STOCK = {cls: cls.forward for cls in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Sequential)}

CONVERTED: dict[type[nn.Module], type[nn.Module]] = {
    nn.ConvTranspose1d: ConvTranspose1d,
    nn.ConvTranspose2d: ConvTranspose2d,
    nn.ConvTranspose3d: ConvTranspose3d,
    nn.Sequential: Sequential,
}


STOCK_NAMES = {cls.__name__ for cls in LAYERS}
SCRIPT = "which convert cannot change: call the model in a `with tconv_cl.torch.dispatch():`"


def convert(
    module: nn.Module, device: int | str | None = None, *, fallback: str = "warn", search: str | None = None
) -> int:
    """Makes tconv-cl compute the ConvTranspose1d, 2d and 3d in `module`, itself included. Returns how many there were.

    The modules stay, with their weights, hooks and names; only their class changes. Subclasses of torch's classes are
    left alone, except those that torch.nn.utils.parametrize makes. Modules converted before get the new device.

    Args:
        device: a number as tconv_cl.devices lists them, "gpu", "cpu", "accelerator" or a part of a name; None: the
            library's default.
        fallback: what happens if the library refuses: "warn": torch's own operator computes, and the logger
            `tconv_cl` says why; "error": RuntimeError.
        search: how the algorithm of each shape is chosen, as that of tconv_cl.conv_transpose; None: as TCONV_CL_SEARCH
            says, else "records".

    Raises:
        tconv_cl.Error: there is no such device.
        tconv_cl.RequestError: `fallback` or `search` is unknown, or `module` is a TorchScript module.
    """
    if isinstance(module, torch.jit.ScriptModule):
        raise RequestTypeError(f"module is a {type(module).__name__}, {SCRIPT}")
    check_options(search, fallback=fallback)
    number = tensors.device_number(device)
    count = 0
    for name, one in module.named_modules():
        if isinstance(one, torch.jit.ScriptModule) and one.original_name in STOCK_NAMES:
            tensors.logger.warning(f"tconv_cl: {name} is a {type(one).__name__}, {SCRIPT}")
        if "forward" not in vars(one):
            _change_class(one, {old: new for old, new in CONVERTED.items() if old.forward is STOCK[old]})
        if isinstance(one, _Layer):
            one.tconv_cl_device, one.tconv_cl_fallback, one.tconv_cl_search = number, fallback, search
            count += 1
    return count


def revert(module: nn.Module) -> int:
    """Undoes convert. Returns how many transposed convolutions are torch's own again."""
    count = 0
    for one in module.modules():
        if isinstance(one, _Layer):
            vars(one).pop("tconv_cl_device", None)
            vars(one).pop("tconv_cl_fallback", None)
            vars(one).pop("tconv_cl_search", None)
            count += 1
        _change_class(one, {new: old for old, new in CONVERTED.items()})
    return count


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


def _change_class(module: nn.Module, classes: dict[type[nn.Module], type[nn.Module]]) -> None:
    cls = type(module)
    if parametrize.is_parametrized(module):  # a class that torch made on top of the module's own
        new = classes.get(cls.__base__)
        if new is not None:
            names = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
            module.__class__ = type(cls.__name__, (new,), names)
    elif cls in classes:
        module.__class__ = classes[cls]


# ---- TorchScript, and whatever else calls torch's operator ----


# What every transposed convolution becomes, and what of PyTorch's reaches a mode before it did, in inference mode.
TRANSPOSED = (torch.ops.aten.convolution.default, torch.ops.aten._convolution.default)
COMPOSED = (
    torch.ops.aten.conv_transpose1d.default,
    torch.ops.aten.conv_transpose2d.input,
    torch.ops.aten.conv_transpose3d.input,
    torch.ops.aten._convolution.deprecated,
)


class dispatch(TorchDispatchMode):
    """A context in which this thread's transposed convolutions are computed by tconv-cl, TorchScript's too.

        with tconv_cl.torch.dispatch():
            output = scripted_model(data)

    Args: as those of convert.
    """

    def __init__(self, device: int | str | None = None, *, fallback: str = "warn", search: str | None = None) -> None:
        super().__init__()
        check_options(search, fallback=fallback)
        self.device, self.fallback, self.search = tensors.device_number(device), fallback, search

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in COMPOSED:
            with self:
                return func.decompose(*args, **kwargs)
        if func not in TRANSPOSED or not args[6]:
            return func(*args, **kwargs)
        data, weight, bias, stride, padding, dilation, _, output_padding, groups = args[:9]
        axes = weight.dim() - 2
        lists = (one_for_each_axis(axes, value) for value in (stride, padding, output_padding, dilation))
        call = Call(*lists, groups, device=self.device, fallback=self.fallback, search=self.search)
        return compute_or(lambda: func(*args, **kwargs), data, weight, bias, call)
