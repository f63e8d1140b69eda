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

from .tensors import Call, compute_or, has_wide_padding, memory_format, output_shape
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


def own(data: Tensor, weight: Tensor, bias: Tensor | None, call: Call, scale: Tensor | None = None) -> Tensor:
    """Computes by torch's own operators. `scale` is as `convolve` takes it."""
    function = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)[weight.dim() - 3]
    added = bias if scale is None else None
    output = function(data, weight, added, call.stride, call.padding, call.output_padding, call.groups, call.dilation)
    if scale is not None:
        ones = [1] * (weight.dim() - 2)
        output = output * scale.view(-1, *ones) + bias.view(-1, *ones)
    name, *numbers = call.activation
    return ACTIVATIONS[name](output, *numbers)


# Registered for tensors of every device; at run time torch computes those that are not the processor's.
@torch.library.custom_op(
    "tconv_cl::conv_transpose",
    mutates_args=(),
    schema="(Tensor data, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] output_padding, "
    "SymInt groups, SymInt[] dilation, str activation='none', float[] numbers=[], int? device=None, "
    "str fallback='warn', str? search=None) -> Tensor",
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
) -> Tensor:
    """activation(torch.convolution(..., transposed=True)): data [N, CI, X...], weight [CI, CO/groups, K...]."""
    lists = (tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation))
    call = Call(*lists, groups, (activation, *numbers), device, fallback, search)

    return compute_or(
        lambda: own(data, weight, bias, call).contiguous(memory_format=memory_format(data)), data, weight, bias, call
    )


@operator.register_fake
def _(data, weight, bias, stride, padding, output_padding, groups, dilation, *_) -> Tensor:
    call = Call(tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation), groups)
    if has_wide_padding(call):
        raise RuntimeError("output padding must be smaller than either stride or dilation")  # torch's sentence
    shape = output_shape(data, weight, call)
    nothing = (data.numel() == 0, weight.numel() == 0, *(extent <= 0 for extent in shape))
    if any(map(statically_known_true, nothing)):
        return own(data, weight, bias, call)  # which raises PyTorch's error, or returns the empty output
    return torch.empty(shape, dtype=data.dtype, device=data.device, memory_format=memory_format(data))


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    data, weight, bias, *ctx.attributes, ctx.activation, ctx.numbers, ctx.device, ctx.fallback, ctx.search = inputs
    ctx.save_for_backward(data, weight, bias)


def _backward(ctx: Any, gradient: Tensor) -> tuple:
    """torch's own: a convolution with respect to data, a correlation with respect to weight, neither transposed."""
    data, weight, bias = ctx.saved_tensors
    stride, padding, output_padding, groups, dilation = ctx.attributes
    if ctx.activation != "none":  # the sums were not kept: compute them again
        how = {"device": ctx.device, "fallback": ctx.fallback, "search": ctx.search}
        sums = operator(data, weight, bias, *ctx.attributes, **how)
        _, pull = torch.func.vjp(lambda x: ACTIVATIONS[ctx.activation](x, *ctx.numbers), sums)
        (gradient,) = pull(gradient)
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


operator.register_autograd(_backward, setup_context=_setup_context)


@operator.register_vmap
def _(info, in_dims, data, weight, bias, stride, padding, output_padding, groups, *rest) -> tuple[Tensor, int]:
    lists = (stride, padding, output_padding)
    return batched(operator, info.batch_size, in_dims[:3], (data, weight, bias), lists, groups, rest), 0


@register_flop_formula(torch.ops.tconv_cl.conv_transpose)
def _(data: Sequence[int], weight: Sequence[int], *_: Any, out_shape: Sequence[int], **__: Any) -> int:
    """Counts floating-point operations as torch does for its own operator."""
    return conv_flop_count(list(data), list(weight), list(out_shape), transposed=True)
