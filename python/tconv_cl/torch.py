# SPDX-License-Identifier: Apache-2.0
"""Computes PyTorch's transposed convolutions: as an operator, as functions, in modules and in TorchScript models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import torch
from torch import Tensor, fx, nn
from torch._C import _are_functorch_transforms_active, _is_torch_function_mode_enabled, _is_tracing
from torch._C import _len_torch_dispatch_stack
from torch.autograd import _profiler_enabled, forward_ad
from torch.nn import functional
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import conv_flop_count, register_flop_formula

from . import _tensors
from ._library import RequestTypeError
from ._tensors import Call, Statistics, compute_or, fell_back, has_wide_padding, memory_format, statistics
from ._vmap import batched

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

# The library's name of each activation, and torch's computation with the library's numbers.
ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "none": lambda x: x,
    "relu": torch.relu,
    "relu6": functional.relu6,
    "leaky_relu": functional.leaky_relu,
    "clamp": torch.clamp,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "elu": functional.elu,
    "hardswish": functional.hardswish,
    "mish": functional.mish,
}

MOST = torch.finfo(torch.float32).max
GELUS = {"none": "gelu", "tanh": "gelu_tanh"}  # by the module's `approximate`

# Modules of exactly these classes as the library's activations.
MODULES: dict[type[nn.Module], Callable[[Any], tuple]] = {
    nn.ReLU: lambda module: ("relu",),
    nn.ReLU6: lambda module: ("relu6",),
    nn.LeakyReLU: lambda module: ("leaky_relu", float(module.negative_slope)),
    nn.Hardtanh: lambda module: ("clamp", float(module.min_val), float(module.max_val)),
    nn.Sigmoid: lambda module: ("sigmoid",),
    nn.Tanh: lambda module: ("tanh",),
    nn.GELU: lambda module: (GELUS[module.approximate],),
    nn.SiLU: lambda module: ("silu",),
    nn.ELU: lambda module: ("elu", float(module.alpha)),
    nn.Hardswish: lambda module: ("hardswish",),
    nn.Mish: lambda module: ("mish",),
}


def _output_shape(data: Tensor, weight: Tensor, call: Call) -> list[int]:
    return [
        data.shape[0],
        weight.shape[1] * call.groups,
        *(
            (x - 1) * s - 2 * p + d * (k - 1) + o + 1
            for x, k, s, p, o, d in zip(
                data.shape[2:], weight.shape[2:], call.stride, call.padding, call.output_padding, call.dilation
            )
        ),
    ]


def _own(data: Tensor, weight: Tensor, bias: Tensor | None, call: Call, scale: Tensor | None = None) -> Tensor:
    """Computes by torch's own operators. `scale` is [CO], a factor of the sums before the bias."""
    function = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)[weight.dim() - 3]
    added = bias if scale is None else None
    output = function(data, weight, added, call.stride, call.padding, call.output_padding, call.groups, call.dilation)
    if scale is not None:
        ones = [1] * (weight.dim() - 2)
        output = output * scale.view(-1, *ones) + bias.view(-1, *ones)
    name, *numbers = call.activation
    return ACTIVATIONS[name](output, *numbers)


# ---- the operator ----


# Registered for tensors of every device; at run time torch computes those that are not the processor's.
@torch.library.custom_op(
    "tconv_cl::conv_transpose",
    mutates_args=(),
    schema="(Tensor data, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] output_padding, "
    "SymInt groups, SymInt[] dilation, str activation='none', float[] numbers=[], int? device=None, "
    "str fallback='warn', str? search=None) -> Tensor",
)
def _operator(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    activation: str = "none",
    numbers: Sequence[float] = (),
    device: int | None = None,
    fallback: str = "warn",
    search: str | None = None,
) -> Tensor:
    """activation(torch.convolution(..., transposed=True)): data [N, CI, X...], weight [CI, CO/groups, K...]."""
    lists = (tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation))
    call = Call(*lists, groups, (activation, *numbers), device, fallback, search)

    return compute_or(
        lambda: _own(data, weight, bias, call).contiguous(memory_format=memory_format(data)), data, weight, bias, call
    )


@_operator.register_fake
def _(data, weight, bias, stride, padding, output_padding, groups, dilation, *_) -> Tensor:
    call = Call(tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation), groups)
    if has_wide_padding(call):
        raise RuntimeError("output padding must be smaller than either stride or dilation")  # torch's sentence
    return torch.empty(
        _output_shape(data, weight, call), dtype=data.dtype, device=data.device, memory_format=memory_format(data)
    )


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    data, weight, bias, *ctx.attributes, ctx.activation, ctx.numbers, ctx.device, ctx.fallback, ctx.search = inputs
    ctx.save_for_backward(data, weight, bias)


def _backward(ctx: Any, gradient: Tensor) -> tuple:
    """torch's own: a convolution with respect to data, a correlation with respect to weight, neither transposed."""
    data, weight, bias = ctx.saved_tensors
    stride, padding, output_padding, groups, dilation = ctx.attributes
    if ctx.activation != "none":  # the sums were not kept: compute them again
        how = {"device": ctx.device, "fallback": ctx.fallback, "search": ctx.search}
        sums = _operator(data, weight, bias, *ctx.attributes, **how)
        _, pull = torch.func.vjp(lambda x: ACTIVATIONS[ctx.activation](x, *ctx.numbers), sums)
        (gradient,) = pull(gradient)
    if data.numel() == 0 and data.shape[0] != 0:  # torch's own refuses it: outputs are only the bias
        sums = None if bias is None else gradient.sum([0, *range(2, gradient.dim())])
        return torch.zeros_like(data), torch.zeros_like(weight), sums, *[None] * 10
    gradients = torch.ops.aten.convolution_backward(
        gradient,
        data,
        weight,
        None if bias is None else bias.shape,
        stride,
        padding,
        dilation,
        True,
        output_padding,
        groups,
        [ctx.needs_input_grad[0], ctx.needs_input_grad[1], bias is not None and ctx.needs_input_grad[2]],
    )
    return *gradients, *[None] * 10


_operator.register_autograd(_backward, setup_context=_setup_context)


@_operator.register_vmap
def _(info, in_dims, data, weight, bias, stride, padding, output_padding, groups, *rest) -> tuple[Tensor, int]:
    lists = (stride, padding, output_padding)
    return batched(_operator, info.batch_size, in_dims[:3], (data, weight, bias), lists, groups, rest), 0


@register_flop_formula(torch.ops.tconv_cl.conv_transpose)
def _(data: Sequence[int], weight: Sequence[int], *_: Any, out_shape: Sequence[int], **__: Any) -> int:
    """Counts floating-point operations as torch does for its own operator."""
    return conv_flop_count(list(data), list(weight), list(out_shape), transposed=True)


# ---- functions with the signatures of torch.nn.functional, and `out`: a tensor, or a part of one, that is written ----

Axes = Union[int, Sequence[int]]


def _function(
    axes: int,
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Axes,
    padding: Axes,
    output_padding: Axes,
    groups: int,
    dilation: Axes,
    activation: tuple = ("none",),
    device: int | None = None,
    fallback: str = "warn",
    search: str | None = None,
    scale: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    stride, padding = _list(axes, stride), _list(axes, padding)
    output_padding, dilation = _list(axes, output_padding), _list(axes, dilation)
    direct = _unobserved() and not (torch.is_grad_enabled() and _need_gradients(data, weight, bias))
    if (
        direct
        and out is None
        and forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cpu")
        and weight.dim() == axes + 2
    ):
        attributes = (stride, padding, output_padding, dilation, groups, activation, device, fallback, search)
        output = _tensors.again(attributes, data, weight, bias, scale)
        if output is not None:
            return output
    if data.is_quantized:
        raise RuntimeError(QUANTIZED)
    if torch.jit.is_tracing() and torch.onnx.is_in_onnx_export():
        raise RuntimeError(EXPORTED)
    if out is not None:
        _refuse_gradients(f"conv_transpose{axes}d", out, data, weight, bias)
    if data.dim() not in (axes + 1, axes + 2) or weight.dim() != axes + 2:
        raise RuntimeError(
            f"conv_transpose{axes}d takes data of {axes + 1} or {axes + 2} axes and a weight of {axes + 2}, "
            f"not {list(data.shape)} and {list(weight.shape)}"
        )
    kind = "cpu" if data.is_cpu else data.device.type
    known = kind == "cpu" or torch.amp.is_autocast_available(kind)
    if known and torch.is_autocast_enabled(kind):  # as it casts for torch's own
        wanted = torch.get_autocast_dtype(kind)
        data, weight, bias = (
            tensor.to(wanted) if tensor is not None and _is_cast(tensor) else tensor for tensor in (data, weight, bias)
        )
    batched = data.dim() == axes + 2
    if not batched:
        data = data.unsqueeze(0)
    target = out if out is None or batched else out.unsqueeze(0)
    call = Call(stride, padding, output_padding, dilation, groups, activation, device, fallback, search)
    if target is not None:
        _check_out(target, data, _output_shape(data, weight, call))
    reason = _transform(data)
    if reason is not None:
        if not torch.compiler.is_compiling():
            fell_back(weight, reason, fallback)
        output = _own(data, weight, bias, call, scale)
    elif direct:
        output = compute_or(lambda: _own(data, weight, bias, call, scale), data, weight, bias, call, scale, target)
    else:
        name, *numbers = activation
        output = _operator(
            data,
            weight,
            bias,
            call.stride,
            call.padding,
            call.output_padding,
            groups,
            call.dilation,
            name,
            numbers,
            device,
            fallback,
            search,
        )
    if target is not None:
        if output is not target:
            target.copy_(output)
        return out
    return output if batched else output.squeeze(0)


def _refuse_gradients(function: str, *tensors: Tensor | None) -> None:
    """Raises as torch's own functions do."""
    if torch.is_grad_enabled() and _need_gradients(*tensors):
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def _check_out(out: Tensor, data: Tensor, shape: Sequence[int]) -> None:
    if list(out.shape) != list(shape):
        raise RuntimeError(f"out has the shape {list(out.shape)}: the output has {list(shape)}")
    if out.dtype != data.dtype:
        raise RuntimeError(f"out has elements of type {out.dtype}: the output has {data.dtype}")


def _unobserved() -> bool:
    """Whether nothing follows single operators, so that ours need not go through torch's dispatcher, which takes longer
    than a small convolution: no compiler, tracer, mode, profiler or transform."""
    return not (
        torch.compiler.is_compiling()
        or _are_functorch_transforms_active()
        or _is_tracing()
        or _len_torch_dispatch_stack()
        or _is_torch_function_mode_enabled()
        or _profiler_enabled()
    )


def _need_gradients(*tensors: Tensor | None) -> bool:
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _transform(data: Tensor) -> str | None:
    """What an operator of one's own cannot take part in: its derivatives would be missing, in part without an error.
    torch composes complex convolutions of real ones, before it looks for an operator."""
    if data.is_complex():
        return f"data has elements of type {data.dtype}"
    if torch._C._are_functorch_transforms_active() and not _only_vmap():
        return "it is transformed by torch.func"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives are on"
    return None


def _only_vmap() -> bool:
    """Whether torch.vmap, for which the operator has a rule, is all of torch.func that is active."""
    if torch.compiler.is_compiling():
        return False
    stack = torch._C._functorch.get_interpreter_stack() or ()
    return all(transform.key() == torch._C._functorch.TransformType.Vmap for transform in stack)


torch.fx.wrap("_function")  # torch.fx records it whole, as it does with torch's own modules


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype != torch.float64


def _list(axes: int, value: Axes) -> tuple[int, ...]:
    if type(value) is tuple and len(value) == axes:  # a module's
        return value
    if isinstance(value, int):
        return (value,) * axes
    values = tuple(value)
    return values * axes if len(values) == 1 else values


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
    return _function(1, input, weight, bias, stride, padding, output_padding, groups, dilation, out=out)


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
    return _function(2, input, weight, bias, stride, padding, output_padding, groups, dilation, out=out)


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
    return _function(3, input, weight, bias, stride, padding, output_padding, groups, dilation, out=out)


# ---- modules ----


QUANTIZED = (
    "tconv_cl: torch.ao.quantization does not know converted modules: tconv_cl.torch.revert(model) before it prepares "
    "the model"
)
SCRIPTED = "tconv_cl: torch.jit.script does not know converted modules: tconv_cl.torch.revert(model) before it"
EXPORTED = (
    "tconv_cl: the ONNX exporter does not know tconv_cl's operator: tconv_cl.torch.revert(model) before it, and "
    "torch.nn.functional's functions in place of tconv_cl.torch's"
)


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
        scale, bias = (None, bias) if norm is None else _affine(norm, bias)
        return _function(
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


def _affine(norm: nn.Module, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """A batch normalization in inference as a factor of a sum, and the bias after it."""
    scale = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight
    shift = -norm.running_mean if bias is None else bias - norm.running_mean
    shift = shift * scale
    return scale, shift if norm.bias is None else shift + norm.bias


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
            _refuse_gradients("Sequential", out, input, *self.parameters())
        modules = list(self)
        while modules:
            module, taken = modules.pop(0), {}
            if isinstance(module, _Layer) and _is_fused(modules[:1]) and _takes_others(module, input):
                if _is_norm_of(module, modules[0], input) and not torch.is_autocast_enabled("cpu"):
                    taken["norm"] = modules.pop(0)
                if modules and _is_activation(modules[0]):
                    activation = modules.pop(0)
                    taken["activation"] = MODULES[type(activation)](activation)
            if isinstance(module, _Layer) and not modules and out is not None:
                taken["out"] = out
            input = module(input, **taken)
        if out is not None and input is not out:
            _check_out(out, input, input.shape)
            out.copy_(input)
        return input if out is None else out


def _is_fused(following: list[nn.Module]) -> bool:
    """Whether a layer could compute the module that follows it, if any. Compiled code fuses by itself."""
    return not torch.compiler.is_compiling() and any(type(module) in FUSED for module in following)


def _takes_others(layer: _Layer, input: Any) -> bool:
    """True if nothing can observe the result between a layer and the next module. Traces must not depend on whether
    gradients are on."""
    return (
        type(input) is Tensor
        and input.is_floating_point()  # activations of integers are other types
        and not torch.is_grad_enabled()
        and _unobserved()
        and _transform(input) is None
        and _is_plain(layer)
    )


def _is_activation(module: nn.Module) -> bool:
    if type(module) not in MODULES or not _is_plain(module):
        return False
    if type(module) is nn.GELU and module.approximate not in GELUS:
        return False
    # The library takes no larger ones, but for f64.
    return all(abs(number) <= MOST for number in MODULES[type(module)](module)[1:])


def _is_plain(module: nn.Module) -> bool:
    """Whether calling a module only calls its class's forward, as that was when tconv_cl.torch was imported: it has no
    hooks of its own or of all modules, and no method is replaced. torch.nn.utils.parametrize makes other classes."""
    own, every = vars(module), nn.modules.module
    return (
        type(module).forward is FORWARDS.get(type(module))
        and (nn.Module.__call__, nn.Module._call_impl) == CALLS
        and METHODS.isdisjoint(own)
        and own.get("_compiled_call_impl") is None
        and not (own["_forward_hooks"] or own["_forward_pre_hooks"])
        and not (own["_backward_hooks"] or own["_backward_pre_hooks"])
        and not (every._global_forward_hooks or every._global_forward_pre_hooks)
        and not (every._global_backward_hooks or every._global_backward_pre_hooks)
    )


METHODS = frozenset({"forward", "_call_impl", "_wrapped_call_impl", "_check_input_dim"})
NORMS = {nn.BatchNorm1d: 1, nn.BatchNorm2d: 2, nn.BatchNorm3d: 3}
FUSED = {*NORMS, *MODULES}
LAYERS = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
FORWARDS = {cls: cls.forward for cls in (*LAYERS, *NORMS, *MODULES, Sequential)}
CALLS = (nn.Module.__call__, nn.Module._call_impl)


def _is_norm_of(layer: _Layer, norm: nn.Module, input: Tensor) -> bool:
    """True for a batch normalization in inference with its own statistics, in the layer's type."""
    axes = len(layer.kernel_size)
    if NORMS.get(type(norm)) != axes or input.dim() != axes + 2 or norm.training or not _is_plain(norm):
        return False
    tensors = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    dtype = layer.weight.dtype
    return (
        norm.running_mean is not None
        and norm.running_var is not None
        and dtype in (torch.float32, torch.float64)
        and all(
            tensor is None or (tensor.shape == (layer.out_channels,) and tensor.dtype == dtype and tensor.is_cpu)
            for tensor in tensors
        )
    )


def conv_transpose_cat(parts: Sequence[Tensor | tuple[nn.Module, Tensor]]) -> Tensor:
    """Concatenates tensors and outputs of modules along the channels: conv_transpose_cat([skip, (up, x)]) is
    torch.cat([skip, up(x)], 1).

    If no gradients are asked for, a converted ConvTranspose writes its output into its part of the result; so does a
    converted Sequential of one, a batch normalization and an activation. All else is computed and copied, as by
    torch.cat: other modules, calls with gradients, and what a compiler or a transformation sees.
    """
    shapes: list[tuple[int, ...] | None] = [None]
    if not torch.is_grad_enabled() and _unobserved():
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else _written(*part) for part in parts]
    inputs = [part if isinstance(part, Tensor) else part[1] for part in parts]
    like = next((input for input, part in zip(inputs, parts) if input is not part), None)
    if None in shapes or like is None or not _fit(shapes, inputs, like):
        return torch.cat([part if isinstance(part, Tensor) else part[0](part[1]) for part in parts], 1)
    channels = [shape[1] for shape in shapes]
    shape = (shapes[0][0], sum(channels), *shapes[0][2:])
    joined = torch.empty(shape, dtype=like.dtype, memory_format=memory_format(like))
    _tensors.ask_for_large_pages(joined)
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
    if type(module) is Sequential and _is_plain(module):
        layer, *others = module
    else:
        layer, others = module, []
    if (
        not isinstance(layer, _Layer)
        or not _takes_others(layer, input)
        or not all(_is_norm_of(layer, other, input) or _is_activation(other) for other in others)
        or input.dim() != layer.weight.dim()
        or not input.is_cpu
        or input.dtype != layer.weight.dtype
        or torch.is_autocast_enabled("cpu")
    ):
        return None
    lists = (layer.stride, layer.padding, layer.output_padding, layer.dilation)
    shape = _output_shape(input, layer.weight, Call(*lists, layer.groups))
    return tuple(shape) if min(shape) > 0 else None


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
        tconv_cl.RequestError: there is no such search, or `module` is TorchScript's.
    """
    if isinstance(module, torch.jit.ScriptModule):
        raise RequestTypeError(f"module is a {type(module).__name__}, {SCRIPT}")
    number, fallback = _tensors.device_number(device), _tensors.fallback_of(fallback)
    search = _tensors.search_of(search)
    count = 0
    for name, one in module.named_modules():
        if isinstance(one, torch.jit.ScriptModule) and one.original_name in STOCK_NAMES:
            _tensors.logger.warning(f"tconv_cl: {name} is a {type(one).__name__}, {SCRIPT}")
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
        _tensors.refresh(weights)
        return
    for module in weights.modules():
        if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
            _tensors.refresh(module.weight)


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
        self.device, self.fallback = _tensors.device_number(device), _tensors.fallback_of(fallback)
        self.search = _tensors.search_of(search)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in COMPOSED:
            with self:
                return func.decompose(*args, **kwargs)
        if func not in TRANSPOSED or not args[6]:
            return func(*args, **kwargs)
        data, weight, bias, stride, padding, dilation, _, output_padding, groups = args[:9]
        axes = weight.dim() - 2
        lists = (_list(axes, value) for value in (stride, padding, output_padding, dilation))
        call = Call(*lists, groups, device=self.device, fallback=self.fallback, search=self.search)
        return compute_or(lambda: func(*args, **kwargs), data, weight, bias, call)
