# SPDX-License-Identifier: Apache-2.0
"""Computes a nearest upsampling, a convolution and what follows as one layer, or one after the other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from .call import compute_call
from .fusion import NORMS, activation_of, affine, fits, is_activation, is_alone, is_plain, statistics_of
from .operator import activated, upsampled_call
from .pairs import PADS, UPSAMPLINGS, Part, Plan, is_convolution, kept_plan, pair_of, plan_of
from .tensors import least_macs

CONVOLVE = (functional.conv1d, functional.conv2d, functional.conv3d)


def upsample_convolve(
    input: Tensor,
    upsampling: Part,
    pads: Part | None,
    convolution: Part,
    norm: Part | None = None,
    activation: Part | None = None,
    device: int | None = None,
    fallback: str = "warn",
    search: str | None = None,
    math: str = "exact",
) -> Tensor:
    """The output of the last part. The parts are as `pairs` explains them; a module that has changed since they were
    found is called."""
    if isinstance(input, fx.Proxy):  # a graph is traced again, when it is loaded for example
        arguments = (input, upsampling, pads, convolution, norm, activation, device, fallback, search, math)
        return input.tracer.create_proxy("call_function", upsample_convolve, arguments, {})
    taken = _taken(input, upsampling, pads, convolution, device, fallback)
    if taken is None:
        parts = (upsampling, pads, convolution, norm, activation)
        return one_by_one(input, parts)
    plan, weight, bias, dilation, groups = taken
    scale, name = None, ("none",)
    if (norm is not None or activation is not None) and is_alone(input):
        own = _statistics(norm, weight.dim() - 2)
        if own is not None and not torch.is_autocast_enabled("cpu") and fits(own, weight, bias, weight.shape[0]):
            (scale, bias), norm = affine(own, bias), None
        known = None if norm is not None or activation is None else _activation(activation)
        if known is not None:
            name, activation = known, None
    if plan.around:
        input = functional.pad(input, plan.around, mode=plan.around_mode)
    call = upsampled_call(
        plan.factors, plan.begin, plan.end, groups, dilation, name[0], name[1:], device, fallback, search, math
    )
    axes = weight.dim() - 2
    output = compute_call(axes, f"conv{axes}d", input, weight, bias, call, scale)
    return one_by_one(output, (norm, activation), first=3)


def _taken(
    input: Tensor, upsampling: Part, pads: Part | None, convolution: Part, device: int | None, fallback: str
) -> tuple[Plan, Tensor, Tensor | None, tuple[int, ...], int] | None:
    """How the library computes the pair; None: torch does."""
    if isinstance(convolution, nn.Module):
        if not is_convolution(convolution):
            return None
        weight, bias = convolution.weight, convolution.bias
    else:
        weight, bias = convolution[:2]
    for part, known in ((upsampling, UPSAMPLINGS), (pads, PADS)):
        if isinstance(part, nn.Module) and not (type(part) in known and is_plain(part)):
            return None
    axes = weight.dim() - 2
    if input.dim() != axes + 2 or not input.is_floating_point() or input.is_quantized:
        return None
    pair = pair_of(upsampling, pads, convolution, axes)
    if isinstance(pair, str):
        return None
    find = plan_of if torch.compiler.is_compiling() else kept_plan
    plan = find(pair, tuple(weight.shape[2:]), tuple(input.shape[2:]))
    if isinstance(plan, str):
        return None
    if fallback != "error" and not torch.compiler.is_compiling():
        macs = plan.macs * input.shape[0] * weight.shape[0] * weight.shape[1]
        if macs < least_macs(device):
            return None
    return plan, weight, bias, pair.dilation, pair.groups


def _statistics(norm: Part | None, axes: int) -> tuple | None:
    if not isinstance(norm, nn.Module):
        return None if norm is None else tuple(norm)
    known = NORMS.get(type(norm)) == axes and not norm.training and is_plain(norm)
    return statistics_of(norm) if known else None


def _activation(activation: Part) -> tuple | None:
    if not isinstance(activation, nn.Module):
        return tuple(activation)
    return activation_of(activation) if is_activation(activation) else None


def one_by_one(input: Tensor, parts: tuple[Part | None, ...], first: int = 0) -> Tensor:
    """The output of the last part, by torch's own operators."""
    for number, part in enumerate(parts, first):
        if isinstance(part, nn.Module):
            input = part(input)
        elif part is not None:
            input = FUNCTIONS[number](input, *part)
    return input


def _convolved(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    return CONVOLVE[weight.dim() - 3](input, weight, bias, stride, padding, dilation, groups)


def _normalized(input: Tensor, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Tensor:
    return functional.batch_norm(input, mean, variance, weight, bias, False, 0.0, eps)


# What a tuple in the place of each part means.
FUNCTIONS = (
    lambda input, size, scale_factor, mode: functional.interpolate(input, size, scale_factor, mode),
    lambda input, pads, mode: functional.pad(input, pads, mode),
    _convolved,
    _normalized,
    lambda input, *activation: activated(input, activation),
)
