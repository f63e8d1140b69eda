# SPDX-License-Identifier: Apache-2.0
"""Which modules a transposed convolution computes with itself: a batch normalization in inference, an activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .call import is_unobserved, is_unwatched, transform_of
from .snake import is_called_snake, may_be_snake, slopes_of
from .tensors import Slopes

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

NORMS = {nn.BatchNorm1d: 1, nn.BatchNorm2d: 2, nn.BatchNorm3d: 3}
FUSED = {*NORMS, *MODULES}
FORWARDS = {cls: cls.forward for cls in (*NORMS, *MODULES)}  # tconv_cl.torch adds its classes


def statistics_of(norm: nn.Module) -> tuple:
    """What torch.nn.functional.batch_norm needs of a batch normalization in inference."""
    return norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.eps


def affine(norm: tuple, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """A batch normalization in inference, of `statistics_of`, as a factor of a sum, and the bias after it."""
    mean, variance, weight, added, eps = norm
    scale = torch.rsqrt(variance + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean if bias is None else bias - mean
    shift = shift * scale
    return scale, shift if added is None else shift + added


def is_fused(following: list[nn.Module]) -> bool:
    """Whether a layer could compute the module that follows it, if any. Compiled code fuses by itself."""
    return not torch.compiler.is_compiling() and any(
        type(module) in FUSED or may_be_snake(type(module)) for module in following
    )


def takes_others(layer: nn.Module, input: Any) -> bool:
    """True if nothing can observe the result between a layer and the next module. Traces must not depend on whether
    gradients are on."""
    return is_alone(input) and is_plain(layer)


def is_alone(input: Any) -> bool:
    """The same, if nothing watches the modules themselves."""
    return (
        type(input) is Tensor
        and input.is_floating_point()  # activations of integers are other types
        and not torch.is_grad_enabled()
        and is_unobserved()
        and transform_of(input) is None
    )


def is_activation(module: nn.Module) -> bool:
    if type(module) not in MODULES or not is_plain(module):
        return False
    if type(module) is nn.GELU and module.approximate not in GELUS:
        return False
    # The library takes no larger ones, but for f64.
    return all(abs(number) <= MOST for number in activation_of(module)[1:])


def fused_with(layer: nn.Module, following: list[nn.Module]) -> list[nn.Module]:
    """The modules behind a layer that it computes in inference."""
    norms = [module for module in following[:1] if is_norm_of(layer, module, layer.weight)]
    activations = [
        module
        for module in following[len(norms) : len(norms) + 1]
        if is_activation(module) or not isinstance(slopes_behind(layer, module), str)
    ]
    return norms + activations if is_plain(layer) else []


def slopes_behind(layer: nn.Module, module: nn.Module) -> Slopes | str:
    """The numbers of a Snake or SnakeBeta behind a layer, if this computes it; else why not."""
    return slopes_of(module, layer.weight, channels_of(layer))


def left_behind(layer: nn.Module, following: list[nn.Module]) -> str | None:
    """Why a layer does not compute the module behind it, and behind a norm, that is called Snake."""
    norms = len([module for module in following[:1] if type(module) in NORMS])
    for module in following[norms : norms + 1]:
        if is_called_snake(module):
            reason = slopes_behind(layer, module)
            if isinstance(reason, str):
                return f"not with {type(module).__name__}: {reason}"
    return None


def activation_of(module: nn.Module) -> tuple:
    """The library's activation, and its numbers, for a module that is one."""
    return MODULES[type(module)](module)


def is_plain(module: nn.Module, cls: type[nn.Module] | None = None) -> bool:
    """Whether calling a module only calls its class's forward, as that was when tconv_cl.torch was imported: it has no
    hooks of its own or of all modules, and no method is replaced. torch.nn.utils.parametrize makes other classes: `cls`
    is the class below one that may be."""
    return type(module).forward is FORWARDS.get(cls or type(module)) and is_unwatched(module)


def is_norm_of(layer: nn.Module, norm: nn.Module, input: Tensor) -> bool:
    """True for a batch normalization in inference with its own statistics, in the layer's type and for the channels
    that its weight has."""
    axes = NORMS.get(type(norm))
    if axes != len(layer.kernel_size) or input.dim() != axes + 2 or norm.training or not is_plain(norm):
        return False
    weight = layer.weight
    if weight.dim() != axes + 2:
        return False
    return fits(statistics_of(norm), weight, layer.bias, channels_of(layer))


def channels_of(layer: nn.Module) -> int:
    """The channels that the weight of a layer has: `out_channels` may say others."""
    weight = layer.weight
    return int(weight.shape[1] * layer.groups if layer.transposed else weight.shape[0])


def fits(norm: tuple, weight: Tensor, bias: Tensor | None, channels: int) -> bool:
    """Whether a layer with this weight and bias can compute a batch normalization of `statistics_of`."""
    mean, variance, scale, shift, _ = norm
    return (
        mean is not None
        and variance is not None
        and weight.dtype in (torch.float32, torch.float64)
        and all(
            tensor is None or (tensor.shape == (channels,) and tensor.dtype == weight.dtype and tensor.is_cpu)
            for tensor in (mean, variance, scale, shift, bias)
        )
    )
