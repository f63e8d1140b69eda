# SPDX-License-Identifier: Apache-2.0
"""Computes a convolution with the nearest upsampling before it or the pixel shuffle behind it, and what follows, as one
layer, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from .._gain import gain_of
from .call import compute_call
from .fusion import NORMS, activation_of, affine, fits, is_activation, is_alone, is_plain, statistics_of
from .operator import ACTIVATIONS, CONVOLVE, activated, convolution_call, convolved
from .operator import own as stock
from .pairs import LEAST_CONCAT_GAIN, PADS, UPSAMPLINGS, Concat, Part, Plan, factor_of, is_convolution, kept_plan
from .pairs import kept_shuffle_plan, pair_of, plan_of, shuffle_pair_of, shuffle_plan_of
from .tensors import SHUFFLED, UPSAMPLED, compute_or, dense, least_macs, memory_format, refusal

MOST_TERMS = 2048  # products of an output before a pixel shuffle

# What a part is; `call_of` has its function if it is a tuple.
UPSAMPLING, PADDING, CONVOLUTION, NORM, ACTIVATION, SHUFFLE = range(6)
Numbered = Sequence[tuple[int, Union[Part, None]]]


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
    how = (device, fallback, search, math)
    if isinstance(input, fx.Proxy):  # a graph is traced again, when it is loaded for example
        arguments = (input, upsampling, pads, convolution, norm, activation, *how)
        return input.tracer.create_proxy("call_function", upsample_convolve, arguments, {})
    before: Numbered = ((UPSAMPLING, upsampling), (PADDING, pads), (CONVOLUTION, convolution))
    parts: Numbered = (*before, (NORM, norm), (ACTIVATION, activation))
    if isinstance(pads, Concat):
        output = _concat_layer(input, upsampling, pads, convolution, norm, activation, how)
        return one_by_one(input, parts) if output is None else output
    taken = _taken(input, upsampling, pads, convolution, device, fallback)
    if taken is None:
        return one_by_one(input, parts)
    statistics = _norm_taken(input, norm, taken)
    left = norm if statistics is None else None
    return _layer(UPSAMPLED, input, taken, statistics, left, activation, (), how)


def convolve_shuffle(
    input: Tensor,
    convolution: Part,
    norm: Part | None,
    before: Part | None,
    shuffle: Part,
    activation: Part | None = None,
    device: int | None = None,
    fallback: str = "warn",
    search: str | None = None,
    math: str = "exact",
) -> Tensor:
    """The same of a convolution and pixel shuffle; an activation is `before` the shuffle or behind it."""
    how = (device, fallback, search, math)
    if isinstance(input, fx.Proxy):
        arguments = (input, convolution, norm, before, shuffle, activation, *how)
        return input.tracer.create_proxy("call_function", convolve_shuffle, arguments, {})
    parts: Numbered = ((CONVOLUTION, convolution), (NORM, norm), (ACTIVATION, before), (SHUFFLE, shuffle))
    taken = _shuffle_taken(input, convolution, shuffle, device, fallback)
    statistics = None if taken is None else _norm_taken(input, norm, taken)
    # What is between must be computed within the layer, or commute with the shuffle.
    if taken is None or (norm is not None and statistics is None):
        return one_by_one(input, (*parts, (ACTIVATION, activation)))
    if before is None:
        return _layer(SHUFFLED, input, taken, statistics, None, activation, (), how)
    return _layer(SHUFFLED, input, taken, statistics, None, before, ((ACTIVATION, activation),), how)


class _Taken(NamedTuple):
    """How the library computes a pair."""

    plan: Plan
    weight: Tensor
    bias: Tensor | None
    dilation: tuple[int, ...]
    groups: int


def _layer(
    form: str,
    input: Tensor,
    taken: _Taken,
    statistics: tuple | None,
    norm: Part | None,
    activation: Part | None,
    behind: Numbered,
    how: tuple[Any, ...],
) -> Tensor:
    """Computes a pair, with the norm of these statistics in it, and an activation if nobody can see the difference;
    then a norm that is left, and what is behind."""
    plan, weight, bias, dilation, groups = taken
    scale = None
    if statistics is not None:
        scale, bias = affine(statistics, bias)
    (name, *numbers), left = _activation_taken(input, norm, activation)
    if plan.around:
        input = functional.pad(input, plan.around, mode=plan.around_mode)
    lists = (plan.factors, plan.begin, plan.end)
    call = convolution_call(form, *lists, groups, dilation, name, numbers, *how)
    axes = weight.dim() - 2
    output = compute_call(axes, f"conv{axes}d", input, weight, bias, call, scale)
    return one_by_one(output, (*left, *behind))


def _concat_layer(
    input: Tensor,
    upsampling: Part,
    concat: Concat,
    convolution: Part,
    norm: Part | None,
    activation: Part | None,
    how: tuple[Any, ...],
) -> Tensor | None:
    """Computes the enlarged data's part of the convolution, with torch's convolution of the other tensor as residual;
    None: torch computes all."""
    other, _, dim = concat
    if not (is_alone(input) and is_alone(other)) or torch.is_autocast_enabled("cpu") or dim not in (1, 1 - input.dim()):
        return None
    taken = _taken(input, upsampling, None, convolution, *how[:2])
    if taken is None or taken.plan.around or taken.groups != 1:
        return None
    plan, weight, bias, dilation, groups = taken
    if refusal(input, weight, bias) is not None or other.dtype != input.dtype or not other.is_cpu:
        return None
    if input.dtype not in (torch.float32, torch.float64):
        return None  # the residual would be rounded
    enlarged = [input.shape[0], other.shape[1], *(s * x for s, x in zip(plan.factors, input.shape[2:]))]
    channels = [input.shape[1], other.shape[1]]
    if list(other.shape) != enlarged or weight.shape[1] != sum(channels) or min(plan.begin + plan.end) < 0:
        return None
    if memory_format(input) != memory_format(other):
        return None  # torch.cat would choose one
    if gain_of(weight.shape[2:], dilation, plan.factors, *channels) < LEAST_CONCAT_GAIN:
        return None
    own, others = concat.ordered(*weight.detach().split(concat.ordered(*channels), 1))
    others, scale = dense(others), None
    statistics = _norm_taken(input, norm, taken)
    if statistics is not None:
        scale, bias = affine(statistics, bias)
        others = others * scale.view(-1, *[1] * (weight.dim() - 1))
    (name, *numbers), left = _activation_taken(input, norm if statistics is None else None, activation)
    call = convolution_call(UPSAMPLED, plan.factors, plan.begin, plan.end, groups, dilation, name, numbers, *how)
    residual = convolved(other, others, None, call)

    def by_torch() -> Tensor:
        sums = stock(input, own, bias, call._replace(activation=("none",)), scale)
        return activated(sums + residual, call.activation)

    return one_by_one(compute_or(by_torch, input, own, bias, call, scale, residual=residual), left)


def _norm_taken(input: Tensor, norm: Part | None, taken: _Taken) -> tuple | None:
    """The statistics of a norm that is computed within the layer; None: there is none, or it is not."""
    if norm is None:
        return None
    own = _statistics(norm, taken.weight.dim() - 2)
    can = (
        own is not None
        and is_alone(input)
        and not torch.is_autocast_enabled("cpu")
        and fits(own, taken.weight, taken.bias, taken.weight.shape[0])
    )
    return own if can else None


def _taken(
    input: Tensor, upsampling: Part, pads: Part | None, convolution: Part, device: int | None, fallback: str
) -> _Taken | None:
    """How the library computes the pair; None: torch does."""
    weights = _weights(convolution)
    if weights is None:
        return None
    weight, bias = weights
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
    if _is_small(plan, input, weight, device, fallback):
        return None
    return _Taken(plan, weight, bias, pair.dilation, pair.groups)


def _shuffle_taken(input: Tensor, convolution: Part, shuffle: Part, device: int | None, fallback: str) -> _Taken | None:
    weights = _weights(convolution)
    if weights is None or (
        isinstance(shuffle, nn.Module) and not (type(shuffle) is nn.PixelShuffle and is_plain(shuffle))
    ):
        return None
    weight, bias = weights
    if input.dim() != 4 or weight.dim() != 4 or not input.is_floating_point() or input.is_quantized:
        return None
    pair = shuffle_pair_of(convolution)
    if isinstance(pair, str):
        return None
    find = shuffle_plan_of if torch.compiler.is_compiling() else kept_shuffle_plan
    plan = find(pair, tuple(weight.shape), factor_of(shuffle), tuple(input.shape[2:]))
    if isinstance(plan, str) or _is_small(plan, input, weight, device, fallback):
        return None
    if fallback != "error" and (memory_format(input) != torch.contiguous_format or weight[0].numel() > MOST_TERMS):
        return None  # measured: with channels last, or so many products of an output, torch's two steps are faster
    return _Taken(plan, weight, bias, pair.dilation, pair.groups)


def _weights(convolution: Part) -> tuple[Tensor, Tensor | None] | None:
    if not isinstance(convolution, nn.Module):
        return convolution[0], convolution[1]
    return (convolution.weight, convolution.bias) if is_convolution(convolution) else None


def _is_small(plan: Plan, input: Tensor, weight: Tensor, device: int | None, fallback: str) -> bool:
    """Whether torch's own operators are faster, because a kernel's launch takes as long."""
    if fallback == "error" or torch.compiler.is_compiling():
        return False
    return plan.macs * input.shape[0] * weight.shape[0] * weight.shape[1] < least_macs(device)


def _statistics(norm: Part | None, axes: int) -> tuple | None:
    if not isinstance(norm, nn.Module):
        return None if norm is None else tuple(norm)
    known = NORMS.get(type(norm)) == axes and not norm.training and is_plain(norm)
    return statistics_of(norm) if known else None


def _activation_taken(input: Tensor, norm: Part | None, activation: Part | None) -> tuple[tuple, Numbered]:
    """The activation that is computed within the layer, and what is left: the norm, and an activation behind it, or one
    that is not computed within because somebody could see the difference."""
    known = None if norm is not None or activation is None or not is_alone(input) else _activation(activation)
    return known or ("none",), ((NORM, norm), (ACTIVATION, activation if known is None else None))


def _activation(activation: Part) -> tuple | None:
    if not isinstance(activation, nn.Module):
        return tuple(activation)
    return activation_of(activation) if is_activation(activation) else None


def one_by_one(input: Tensor, parts: Numbered) -> Tensor:
    """The output of the last part, by torch's own operators."""
    for number, part in parts:
        if isinstance(part, nn.Module):
            input = part(input)
        elif isinstance(part, Concat):
            input = torch.cat(part.ordered(input, part.other), part.dim)
        elif part is not None:
            function, arguments, options = call_of(number, part)
            input = function(input, *arguments, **options)
    return input


def call_of(number: int, part: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """torch's function for a part that is a tuple, and its arguments behind the first."""
    if number == CONVOLUTION:
        return CONVOLVE[len(part[2]) - 1], tuple(part), {}
    if number == NORM:
        return functional.batch_norm, tuple(part[:4]), {"eps": part[4]}
    if number == ACTIVATION:
        name, *numbers = part
        if name == "gelu_tanh":
            return functional.gelu, (), {"approximate": "tanh"}
        return ACTIVATIONS[name], tuple(numbers), {}
    function = {UPSAMPLING: functional.interpolate, PADDING: functional.pad, SHUFFLE: functional.pixel_shuffle}[number]
    return function, tuple(part), {}
