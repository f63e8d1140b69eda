# SPDX-License-Identifier: Apache-2.0
"""torch.ops.tconv_cl.conv_transpose: a custom operator of PyTorch, with gradients, and what computes in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn import functional
from torch.utils.flop_counter import conv_flop_count, register_flop_formula

from .tensors import SHUFFLED, TRANSPOSED, UPSAMPLED, Call, Slopes, compute_or, has_wide_padding, memory_format
from .tensors import output_shape
from .vmap import batched

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


def own(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    call: Call,
    scale: Tensor | None = None,
    slopes: Slopes | None = None,
) -> Tensor:
    """Computes by torch's own operators. `scale` and `slopes` are as `convolve` takes them."""
    added = bias if scale is None else None
    if call.form != TRANSPOSED:
        output = convolved(_enlarged(data, call), weight, added, call)
    else:
        lists = (call.stride, call.padding, call.output_padding, call.groups, call.dilation)
        function = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)
        output = function[weight.dim() - 3](data, weight, added, *lists)
    if scale is not None:
        ones = [1] * (weight.dim() - 2)
        output = output * scale.view(-1, *ones) + bias.view(-1, *ones)
    if call.form == SHUFFLED:
        output = functional.pixel_shuffle(output, call.stride[0])
    return activated(output, call.activation) if slopes is None else snakebeta(output, *slopes)


CONVOLVE = (functional.conv1d, functional.conv2d, functional.conv3d)


def activated(output: Tensor, activation: Sequence[Any]) -> Tensor:
    """torch's computation of an activation of the library's, with its numbers."""
    name, *numbers = activation
    return ACTIVATIONS[name](output, *numbers)


def snakebeta(output: Tensor, slope: Tensor, slope2: Tensor) -> Tensor:
    """torch's computation of this activation, which has two numbers for each channel."""
    ones = [1] * (output.dim() - 2)
    return output + torch.sin(output * slope.view(-1, *ones)).pow(2) / slope2.view(-1, *ones)


def _padding(call: Call) -> tuple[int, ...]:
    """The pads that torch's convolution of a call has; zeros: `_padded` pads the data."""
    return call.padding if call.padding == call.padding_end and min(call.padding) >= 0 else (0,) * len(call.padding)


def _enlarged(data: Tensor, call: Call) -> Tensor:
    if call.form != UPSAMPLED:
        return data
    return functional.interpolate(data, scale_factor=[float(factor) for factor in call.stride], mode="nearest")


def _padded(enlarged: Tensor, call: Call) -> Tensor:
    """With those pads that torch's convolution of a call does not have."""
    if _padding(call) is call.padding:
        return enlarged
    pads = [number for ends in zip(call.padding, call.padding_end) for number in ends[::-1]][::-1]
    return functional.pad(enlarged, pads)


def convolved(enlarged: Tensor, weight: Tensor, bias: Tensor | None, call: Call) -> Tensor:
    """The convolution of a call by torch's own operators, of data that are enlarged, before pixel shuffle."""
    data = _padded(enlarged, call)
    return CONVOLVE[weight.dim() - 3](data, weight, bias, 1, _padding(call), call.dilation, call.groups)


def _schema(stride: str, last: str) -> str:
    """The arguments of an operator, whose first and third list have these names."""
    return (
        f"(Tensor data, Tensor weight, Tensor? bias, SymInt[] {stride}, SymInt[] padding, SymInt[] {last}, "
        "SymInt groups, SymInt[] dilation, str activation='none', float[] numbers=[], int? device=None, "
        "str fallback='warn', str? search=None, str math='exact') -> Tensor"
    )


# Registered for tensors of every device; at run time torch computes those that are not the processor's.
@torch.library.custom_op(
    "tconv_cl::conv_transpose", mutates_args=(), schema=_schema(stride="stride", last="output_padding")
)
def operator(
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
    math: str = "exact",
) -> Tensor:
    """activation(torch.convolution(..., transposed=True)): data [N, CI, X...], weight [CI, CO/groups, K...]."""
    lists = (tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation))
    return _computed(data, weight, bias, Call(*lists, groups, (activation, *numbers), device, fallback, search, math))


def _computed(data: Tensor, weight: Tensor, bias: Tensor | None, call: Call) -> Tensor:
    return compute_or(
        lambda: own(data, weight, bias, call).contiguous(memory_format=memory_format(data)), data, weight, bias, call
    )


@operator.register_fake
def _(data, weight, bias, stride, padding, output_padding, groups, dilation, *_) -> Tensor:
    call = Call(tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation), groups)
    if has_wide_padding(call):
        raise RuntimeError("output padding must be smaller than either stride or dilation")  # torch's sentence
    return _described(data, weight, bias, call)


def _described(data: Tensor, weight: Tensor, bias: Tensor | None, call: Call) -> Tensor:
    """An output without values."""
    shape = output_shape(data, weight, call)
    nothing = (data.numel() == 0, weight.numel() == 0, *(extent <= 0 for extent in shape))
    if any(map(statically_known_true, nothing)):
        return own(data, weight, bias, call)  # which raises PyTorch's error, or returns the empty output
    return torch.empty(shape, dtype=data.dtype, device=data.device, memory_format=memory_format(data))


HOW = ("device", "fallback", "search", "math")  # the last arguments of the operators


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    data, weight, bias, *ctx.attributes, ctx.activation, ctx.numbers = inputs[: -len(HOW)]
    ctx.how = dict(zip(HOW, inputs[-len(HOW) :]))
    ctx.save_for_backward(data, weight, bias)


def _backward(ctx: Any, gradient: Tensor) -> tuple:
    """torch's own: a convolution with respect to data, a correlation with respect to weight, neither transposed."""
    data, weight, bias = ctx.saved_tensors
    stride, padding, output_padding, groups, dilation = ctx.attributes
    if ctx.activation != "none":  # the sums were not kept: compute them again
        gradient = _before_activation(ctx, operator, gradient)
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
    return *gradients, *[None] * (7 + len(HOW))


def _before_activation(ctx: Any, function: Callable[..., Tensor], gradient: Tensor) -> Tensor:
    """The gradient with respect to the sums, which were not kept: they are computed again."""
    sums = function(*ctx.saved_tensors, *ctx.attributes, **ctx.how)
    _, pull = torch.func.vjp(lambda x: ACTIVATIONS[ctx.activation](x, *ctx.numbers), sums)
    (gradient,) = pull(gradient)
    return gradient


operator.register_autograd(_backward, setup_context=_setup_context)


@operator.register_vmap
def _(info, in_dims, data, weight, bias, stride, padding, output_padding, groups, *rest) -> tuple[Tensor, int]:
    lists = (stride, padding, output_padding)
    return batched(operator, info.batch_size, in_dims[:3], (data, weight, bias), lists, groups, rest), 0


@register_flop_formula(torch.ops.tconv_cl.conv_transpose)
def _(data: Sequence[int], weight: Sequence[int], *_: Any, out_shape: Sequence[int], **__: Any) -> int:
    """Counts floating-point operations as torch does for its own operator."""
    return conv_flop_count(list(data), list(weight), list(out_shape), transposed=True)


# ---- convolutions with an upsampling before, or a pixel shuffle behind ----


def convolution_call(
    form: str,
    factors: Sequence[int],
    padding: Sequence[int],
    padding_end: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    activation: str = "none",
    numbers: Sequence[float] = (),
    *how: Any,
) -> Call:
    """The call that the operator of a form computes."""
    lists = (tuple(factors), tuple(padding), (0,) * len(factors), tuple(dilation))
    return Call(*lists, groups, (activation, *numbers), *how, form=form, padding_end=tuple(padding_end))


def _convolution_operator(name: str, form: str) -> Callable[..., Tensor]:
    """A custom operator: data [N, CI, X...], weight [CO, CI/groups, K...], as of a convolution."""

    @torch.library.custom_op(f"tconv_cl::{name}", mutates_args=(), schema=_schema(stride="factors", last="padding_end"))
    def made(data: Tensor, weight: Tensor, bias: Tensor | None, *attributes: Any) -> Tensor:
        return _computed(data, weight, bias, convolution_call(form, *attributes))

    def described(data: Tensor, weight: Tensor, bias: Tensor | None, *attributes: Any) -> Tensor:
        return _described(data, weight, bias, convolution_call(form, *attributes))

    def backward(ctx: Any, gradient: Tensor) -> tuple:
        """torch's own: the gradients of the convolution, on enlarged data that are made again."""
        data, weight, bias = ctx.saved_tensors
        call = convolution_call(form, *ctx.attributes)
        if ctx.activation != "none":
            gradient = _before_activation(ctx, made, gradient)
        if form == SHUFFLED:
            gradient = functional.pixel_unshuffle(gradient, call.stride[0])
        padding = _padding(call)
        large, pull = torch.func.vjp(lambda data: _padded(_enlarged(data, call), call), data)
        ones = [1] * len(padding)
        mask = [*ctx.needs_input_grad[:2], bias is not None and ctx.needs_input_grad[2]]
        size = None if bias is None else bias.shape
        of_data, *others = torch.ops.aten.convolution_backward(
            gradient, large, weight, size, ones, padding, call.dilation, False, [0] * len(ones), call.groups, mask
        )
        return None if of_data is None else pull(of_data)[0], *others, *[None] * (7 + len(HOW))

    def flops(data: Sequence[int], weight: Sequence[int], *others: Any, out_shape: Sequence[int], **_: Any) -> int:
        """Counts those of the convolution."""
        factors = others[1]
        convolved = list(out_shape)
        if form == SHUFFLED:
            convolved = [data[0], weight[0], *(y // r for y, r in zip(out_shape[2:], factors))]
        return conv_flop_count(list(data), list(weight), convolved, transposed=False)

    made.register_fake(described)
    made.register_autograd(backward, setup_context=_setup_context)
    register_flop_formula(getattr(torch.ops.tconv_cl, name))(flops)
    return made


OPERATORS = {
    UPSAMPLED: _convolution_operator("upsample_conv", UPSAMPLED),
    SHUFFLED: _convolution_operator("conv_pixel_shuffle", SHUFFLED),
}


def by_operator(data: Tensor, weight: Tensor, bias: Tensor | None, call: Call) -> Tensor:
    """The output of a call by its custom operator, which whatever observes operators sees."""
    name, *numbers = call.activation
    how = (name, numbers, call.device, call.fallback, call.search, call.math)
    if call.form != TRANSPOSED:
        lists = (call.stride, call.padding, call.padding_end)
        return OPERATORS[call.form](data, weight, bias, *lists, call.groups, call.dilation, *how)
    lists = (call.stride, call.padding, call.output_padding)
    return operator(data, weight, bias, *lists, call.groups, call.dilation, *how)
