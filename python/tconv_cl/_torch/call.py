# SPDX-License-Identifier: Apache-2.0
"""One call of a function or a module: what it refuses, and whether the library, the operator or PyTorch computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch
from torch import Tensor, nn
from torch._C import _are_functorch_transforms_active, _is_torch_function_mode_enabled, _is_tracing
from torch._C import _len_torch_dispatch_stack
from torch.autograd import _profiler_enabled, forward_ad

from . import tensors
from .operator import by_operator, own
from .tensors import TRANSPOSED, Call, Slopes, compute_or, fell_back, output_shape

Axes = Union[int, Sequence[int]]

QUANTIZED = (
    "tconv_cl: torch.ao.quantization does not know converted modules: tconv_cl.torch.revert(model) before it prepares "
    "the model"
)
EXPORTED = (
    "tconv_cl: the ONNX exporter does not know tconv_cl's operator: tconv_cl.torch.revert(model) before it, and "
    "torch.nn.functional's functions in place of tconv_cl.torch's"
)


def convolve(
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
    math: str = "exact",
    slopes: Slopes | None = None,
) -> Tensor:
    """A transposed convolution along so many axes. `scale` is [CO], a factor of the sums before the bias; `slopes` are
    those of the activation snakebeta."""
    stride, padding = one_for_each_axis(axes, stride), one_for_each_axis(axes, padding)
    output_padding, dilation = one_for_each_axis(axes, output_padding), one_for_each_axis(axes, dilation)
    call = Call(stride, padding, output_padding, dilation, groups, activation, device, fallback, search, math)
    return compute_call(axes, f"conv_transpose{axes}d", data, weight, bias, call, scale, out, slopes)


def compute_call(
    axes: int,
    function: str,
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    call: Call,
    scale: Tensor | None = None,
    out: Tensor | None = None,
    slopes: Slopes | None = None,
) -> Tensor:
    """The output of a call along so many axes, of torch's function of this name. `scale` and `slopes` are as `convolve`
    takes them."""
    direct = is_unobserved() and not (torch.is_grad_enabled() and _need_gradients(data, weight, bias))
    if (
        direct
        and out is None
        and forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cpu")
        and weight.dim() == axes + 2
    ):
        output = tensors.again(call, data, weight, bias, scale, slopes)
        if output is not None:
            return output
    if data.is_quantized:
        raise RuntimeError(QUANTIZED)
    if torch.jit.is_tracing() and torch.onnx.is_in_onnx_export():
        raise RuntimeError(EXPORTED)
    if out is not None:
        refuse_gradients(function, out, data, weight, bias)
    if data.dim() not in (axes + 1, axes + 2) or weight.dim() != axes + 2:
        raise RuntimeError(
            f"{function} takes data of {axes + 1} or {axes + 2} axes and a weight of {axes + 2}, "
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
    if target is not None:
        check_out(target, data, output_shape(data, weight, call))
    reason = transform_of(data, call.form)
    if reason is not None:
        if not torch.compiler.is_compiling():
            fell_back(weight, reason, call)
        output = own(data, weight, bias, call, scale, slopes)
    elif direct:

        def by_torch() -> Tensor:
            return own(data, weight, bias, call, scale, slopes)

        output = compute_or(by_torch, data, weight, bias, call, scale, target, slopes=slopes)
    else:
        output = by_operator(data, weight, bias, call)
    if target is not None:
        if output is not target:
            target.copy_(output)
        return out
    return output if batched else output.squeeze(0)


def refuse_gradients(function: str, *tensors: Tensor | None) -> None:
    """Raises as torch's own functions do."""
    if torch.is_grad_enabled() and _need_gradients(*tensors):
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def check_out(out: Tensor, data: Tensor, shape: Sequence[int]) -> None:
    if list(out.shape) != list(shape):
        raise RuntimeError(f"out has the shape {list(out.shape)}: the output has {list(shape)}")
    if out.dtype != data.dtype:
        raise RuntimeError(f"out has elements of type {out.dtype}: the output has {data.dtype}")


def is_unobserved() -> bool:
    """True if nothing observes individual operators (no compiler, tracer, mode, profiler or transform). Then the
    dispatcher, which costs more than a small convolution, can be bypassed."""
    return not (
        torch.compiler.is_compiling()
        or _are_functorch_transforms_active()
        or _is_tracing()
        or _len_torch_dispatch_stack()
        or _is_torch_function_mode_enabled()
        or _profiler_enabled()
    )


CALLS = (nn.Module.__call__, nn.Module._call_impl)
METHODS = frozenset({"forward", "_call_impl", "_wrapped_call_impl", "_check_input_dim"})


def is_unwatched(module: nn.Module) -> bool:
    """Whether calling a module only calls its class's forward: it has no hooks of its own or of all modules, and no
    method is replaced."""
    own, every = vars(module), nn.modules.module
    return (
        (nn.Module.__call__, nn.Module._call_impl) == CALLS
        and METHODS.isdisjoint(own)
        and own.get("_compiled_call_impl") is None
        and not (own["_forward_hooks"] or own["_forward_pre_hooks"])
        and not (own["_backward_hooks"] or own["_backward_pre_hooks"])
        and not (every._global_forward_hooks or every._global_forward_pre_hooks)
        and not (every._global_backward_hooks or every._global_backward_pre_hooks)
    )


def _need_gradients(*tensors: Tensor | None) -> bool:
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def transform_of(data: Tensor, form: str = TRANSPOSED) -> str | None:
    """Why a custom operator cannot handle this call, or None. Under these transforms its derivatives would be missing,
    sometimes silently. (torch splits complex convolutions before dispatch, so ours would never see them.)"""
    if data.is_complex():
        return f"data has elements of type {data.dtype}"
    if torch._C._are_functorch_transforms_active() and not (form == TRANSPOSED and _only_vmap()):
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


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype != torch.float64


def one_for_each_axis(axes: int, value: Axes) -> tuple[int, ...]:
    if type(value) is tuple and len(value) == axes:  # a module's
        return value
    if isinstance(value, int):
        return (value,) * axes
    values = tuple(value)
    return values * axes if len(values) == 1 else values
