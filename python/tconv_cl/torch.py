# SPDX-License-Identifier: Apache-2.0
"""PyTorch: its transposed convolutions, as an operator, as functions, in modules and in TorchScript models."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode

from ._convolution import ConvTranspose
from ._device import Kept
from ._types import BF16, dtype_of

__all__ = [
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Sequential",
    "Statistics",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convert",
    "dispatch",
    "revert",
    "statistics",
]

SAMPLE = 16384  # elements of large weights that are looked at at each call
LAYERS = 8  # sets of attributes that are kept for each weight
SENTENCES = 256  # that are remembered, in order to say each only once
BITS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by rank

# What the library calls an activation, and how torch computes it with the library's numbers.
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
}

# Modules of exactly these classes as the library's activations.
MODULES: dict[type[nn.Module], Callable[[Any], tuple]] = {
    nn.ReLU: lambda module: ("relu",),
    nn.ReLU6: lambda module: ("relu6",),
    nn.LeakyReLU: lambda module: ("leaky_relu", module.negative_slope),
    nn.Hardtanh: lambda module: ("clamp", module.min_val, module.max_val),
    nn.Sigmoid: lambda module: ("sigmoid",),
    nn.Tanh: lambda module: ("tanh",),
    nn.GELU: lambda module: ("gelu" if module.approximate == "none" else "gelu_tanh",),
    nn.SiLU: lambda module: ("silu",),
    nn.ELU: lambda module: ("elu", module.alpha),
}


class Statistics(NamedTuple):
    """Since the process began: transposed convolutions computed by tconv-cl, and by torch's own; weights packed."""

    computed: int
    fallbacks: int
    packed: int


class _State:
    """What all threads share: counters, what was said, and the weights by where they lie."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.computed = self.fallbacks = self.packed = 0
        self.said = Kept(SENTENCES)
        self.weights: dict[tuple, _Weights] = {}
        self.forked = False
        self.parent: _State | None = None

    def fell_back(self, weight: Tensor, reason: str) -> None:
        """Counts, and says why, once for each layer."""
        with self.lock:
            self.fallbacks += 1
        sentence = (
            "tconv_cl: PyTorch's own operator computes a transposed convolution with "
            f"{str(weight.dtype).removeprefix('torch.')} weights {list(weight.shape)}: {reason}"
        )
        self.said.get(sentence, lambda: logging.getLogger("tconv_cl").warning(sentence))


_state = _State()


def _after_fork() -> None:
    """A lock may be held by a thread that the child has not, and OpenCL, once used, does not work in a child."""
    global _state
    parent, _state = _state, _State()
    _state.forked = parent.forked or parent.computed != 0
    _state.parent = parent  # never given back: that is the parent's to do


os.register_at_fork(after_in_child=_after_fork)


def statistics() -> Statistics:
    """What was computed by whom, in all threads."""
    with _state.lock:
        return Statistics(_state.computed, _state.fallbacks, _state.packed)


# ---- from torch's tensors to the library ----


def _array(tensor: Tensor) -> np.ndarray:
    """The tensor's own memory as NumPy sees it."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(dtype_of(BF16))
    return tensor.numpy()


def _sample(weight: Tensor) -> Tensor:
    """The bits of all elements, of large weights those of some, spread evenly, in the order in which they lie.

    torch counts changes of a tensor (`_version`), but not those through `.data` or a NumPy array on the same memory.
    """
    dense = weight.detach().permute(sorted(range(weight.dim()), key=lambda axis: -weight.stride(axis)))
    counted = not weight.is_inference()  # of inference tensors nothing is counted: all elements are looked at
    step = max(1, weight.numel() // SAMPLE) | 1 if counted else 1  # odd: extents mostly are not
    return dense.reshape(-1).view(BITS[weight.dtype])[::step]


class _Weights:
    """Weights as they were when they were packed, and the layers that are made of them."""

    def __init__(self, weight: Tensor) -> None:
        self.owner = StorageWeakRef(weight.untyped_storage())
        self.version = None if weight.is_inference() else weight._version
        self.sample = _sample(weight).clone()
        self.array = _array(weight.clone(memory_format=torch.contiguous_format))
        self.layers = Kept(LAYERS)

    def are(self, weight: Tensor) -> bool:
        version = None if weight.is_inference() else weight._version
        return version == self.version and torch.equal(_sample(weight), self.sample)


def _weights(weight: Tensor) -> _Weights:
    """What is kept of this tensor, made anew where it changed. It goes with the tensor's memory, at the next change."""
    place = (weight.data_ptr(), tuple(weight.shape), weight.stride(), weight.dtype)
    with _state.lock:
        kept = _state.weights.get(place)
    if kept is not None and kept.are(weight):
        return kept
    made = _Weights(weight)
    with _state.lock:
        gone = [place for place, kept in _state.weights.items() if kept.owner.expired()]
        released = [_state.weights.pop(place) for place in gone]
        released.append(_state.weights.get(place))
        _state.weights[place] = made
    del released  # without the lock: giving objects back may take a while
    return made


class _Call(NamedTuple):
    """The attributes of a call, in torch's meaning; lists have one number for each axis."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    activation: tuple = ("none",)
    device: int | None = None


def _refusal(data: Tensor, weight: Tensor, bias: Tensor | None) -> str | None:
    """Why the library is not even asked."""
    for name, tensor in (("data", data), ("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        if type(tensor) not in (Tensor, nn.Parameter):
            return f"{name} is a {type(tensor).__name__}"
        if tensor.layout != torch.strided:
            return f"{name} has the layout {tensor.layout}"
        if tensor.device.type != "cpu":
            return f"{name} is on the device {tensor.device}"
        if tensor.dtype not in BITS:
            return f"{name} has elements of type {tensor.dtype}"
        if tensor.dtype != data.dtype:
            return f"data has elements of type {data.dtype}, {name} of {tensor.dtype}"
    if _state.forked:
        return "OpenCL was used before this process was forked; processes that are spawned can use it"
    if data.dim() != weight.dim():
        return f"data has {data.dim()} axes, weight {weight.dim()}"
    return None


def _layer(weights: _Weights, call: _Call, last: bool) -> ConvTranspose:
    def make() -> ConvTranspose:
        with _state.lock:
            _state.packed += 1
        return ConvTranspose(
            weights.array,
            strides=call.stride,
            pads_begin=call.padding,
            pads_end=call.padding,
            output_padding=call.output_padding,
            dilations=call.dilation,
            groups=call.groups,
            activation=call.activation,
            data_format="NXC" if last else "NCX",
            device=call.device,
        )

    return weights.layers.get((call, last), make)


def _format(data: Tensor) -> torch.memory_format:
    """The memory format of the output: that of the data."""
    last = CHANNELS_LAST.get(data.dim())
    if last is None or data.is_contiguous() or not data.is_contiguous(memory_format=last):
        return torch.contiguous_format
    return last


def _output_shape(data: Tensor, weight: Tensor, call: _Call) -> list[int]:
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


def _compute(data: Tensor, weight: Tensor, bias: Tensor | None, call: _Call, own: Callable[[], Tensor]) -> Tensor:
    """The output, by the library or, where that refuses, by `own`, which is torch's operator."""
    reason = _refusal(data, weight, bias)
    if reason is None:
        try:
            output = _run(data, weight, bias, call)
        except (ValueError, RuntimeError, MemoryError) as error:  # tconv_cl.Error is a RuntimeError
            reason = str(error)
    if reason is not None:
        _state.fell_back(weight, reason)
        return own()
    with _state.lock:
        _state.computed += 1
    return output


def _run(data: Tensor, weight: Tensor, bias: Tensor | None, call: _Call) -> Tensor:
    layer_of = _weights(weight.resolve_neg())
    form = _format(data)
    last = form != torch.contiguous_format
    data = data.resolve_neg().contiguous(memory_format=form)
    output = torch.empty(_output_shape(data, weight, call), dtype=data.dtype, memory_format=form)
    order = (0, *range(2, data.dim()), 1) if last else range(data.dim())
    _layer(layer_of, call, last)(
        _array(data.permute(*order)),
        bias=None if bias is None else _array(bias.resolve_neg().contiguous()),
        out=_array(output.permute(*order)),
    )
    return output


def _own(data: Tensor, weight: Tensor, bias: Tensor | None, call: _Call) -> Tensor:
    """By torch's own operators."""
    sums = torch.convolution(
        data, weight, bias, call.stride, call.padding, call.dilation, True, call.output_padding, call.groups
    )
    name, *numbers = call.activation
    return ACTIVATIONS[name](sums, *numbers)


# ---- the operator ----


# For tensors of every device: those that are not the processor's are left to torch when it runs.
@torch.library.custom_op(
    "tconv_cl::conv_transpose",
    mutates_args=(),
    schema="(Tensor data, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] output_padding, "
    "SymInt groups, SymInt[] dilation, str activation='none', float[] numbers=[], int? device=None) -> Tensor",
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
) -> Tensor:
    """activation(torch.convolution(..., transposed=True)): data [N, CI, X...], weight [CI, CO/groups, K...]."""
    call = _Call(
        tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation), groups, (activation, *numbers), device
    )

    return _compute(
        data, weight, bias, call, lambda: _own(data, weight, bias, call).contiguous(memory_format=_format(data))
    )


@_operator.register_fake
def _(data, weight, bias, stride, padding, output_padding, groups, dilation, *_) -> Tensor:
    call = _Call(tuple(stride), tuple(padding), tuple(output_padding), tuple(dilation), groups)
    return torch.empty(
        _output_shape(data, weight, call), dtype=data.dtype, device=data.device, memory_format=_format(data)
    )


def _setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
    data, weight, bias, *ctx.attributes, ctx.activation, ctx.numbers, ctx.device = inputs
    ctx.save_for_backward(data, weight, bias)


def _backward(ctx: Any, gradient: Tensor) -> tuple:
    """torch's own: a convolution with respect to data, a correlation with respect to weight, neither transposed."""
    data, weight, bias = ctx.saved_tensors
    stride, padding, output_padding, groups, dilation = ctx.attributes
    if ctx.activation != "none":  # the sums were not kept: they are computed once more
        sums = _operator(data, weight, bias, *ctx.attributes, device=ctx.device)
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
    return *gradients, *[None] * 8


_operator.register_autograd(_backward, setup_context=_setup_context)


# ---- functions with the signatures of torch.nn.functional ----

Axes = int | Sequence[int]


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
) -> Tensor:
    if data.dim() not in (axes + 1, axes + 2) or weight.dim() != axes + 2:
        raise RuntimeError(
            f"conv_transpose{axes}d takes data of {axes + 1} or {axes + 2} axes and a weight of {axes + 2}, "
            f"not {list(data.shape)} and {list(weight.shape)}"
        )
    kind = data.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):  # as it casts for torch's own
        wanted = torch.get_autocast_dtype(kind)
        data, weight, bias = (
            tensor.to(wanted) if tensor is not None and _is_cast(tensor) else tensor for tensor in (data, weight, bias)
        )
    batched = data.dim() == axes + 2
    if not batched:
        data = data.unsqueeze(0)
    lists = [tuple(_list(axes, value)) for value in (stride, padding, output_padding, dilation)]
    reason = _transform()
    if reason is None:
        stride, padding, output_padding, dilation = lists
        name, *numbers = activation
        output = _operator(
            data, weight, bias, stride, padding, output_padding, groups, dilation, name, numbers, device
        )
    else:
        if not torch.compiler.is_compiling():
            _state.fell_back(weight, reason)
        output = _own(data, weight, bias, _Call(*lists, groups, activation))
    return output if batched else output.squeeze(0)


def _transform() -> str | None:
    """What an operator of one's own cannot take part in: its derivatives would be missing, in part without an error."""
    if torch._C._are_functorch_transforms_active():
        return "it is transformed by torch.func"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives are on"
    return None


torch.fx.wrap("_function")  # torch.fx records it whole, as it does with torch's own modules


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype != torch.float64


def _list(axes: int, value: Axes) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
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
) -> Tensor:
    """torch.nn.functional.conv_transpose1d: input [N, CI, L] or [CI, L], weight [CI, CO/groups, K]."""
    return _function(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Tensor:
    """torch.nn.functional.conv_transpose2d: input [N, CI, H, W] or [CI, H, W], weight [CI, CO/groups, KH, KW]."""
    return _function(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Tensor:
    """torch.nn.functional.conv_transpose3d: input [N, CI, D, H, W] or [CI, D, H, W], weight [CI, CO/groups, K...]."""
    return _function(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# ---- modules ----


class _Layer(nn.Module):
    """The forward of the three classes below; `activation` is what a Sequential takes into it."""

    tconv_cl_device: int | None = None

    def forward(self, input: Tensor, output_size: list[int] | None = None, activation: tuple = ("none",)) -> Tensor:
        axes = len(self.kernel_size)
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, axes, self.dilation
        )
        return _function(
            axes,
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
            activation,
            self.tconv_cl_device,
        )


class ConvTranspose1d(_Layer, nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d, computed by tconv-cl."""


class ConvTranspose2d(_Layer, nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d, computed by tconv-cl."""


class ConvTranspose3d(_Layer, nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d, computed by tconv-cl."""


class Sequential(nn.Sequential):
    """torch.nn.Sequential; where no gradient is asked for, an activation is computed with the layer in front of it."""

    def forward(self, input: Tensor) -> Tensor:
        modules = list(self)
        while modules:
            module = modules.pop(0)
            if modules and _are_one(module, modules[0]):
                input = module(input, activation=MODULES[type(modules[0])](modules.pop(0)))
            else:
                input = module(input)
        return input


def _are_one(layer: nn.Module, activation: nn.Module) -> bool:
    """Whether they may be computed together, and nobody sees what is between them."""
    return (
        isinstance(layer, _Layer)
        and type(activation) in MODULES
        and not torch.is_grad_enabled()
        and not torch.jit.is_tracing()  # what is traced must not depend on whether gradients are asked for
        and not (layer._forward_hooks or activation._forward_hooks or activation._forward_pre_hooks)
    )


CONVERTED: dict[type[nn.Module], type[nn.Module]] = {
    nn.ConvTranspose1d: ConvTranspose1d,
    nn.ConvTranspose2d: ConvTranspose2d,
    nn.ConvTranspose3d: ConvTranspose3d,
    nn.Sequential: Sequential,
}


def convert(module: nn.Module, device: int | None = None) -> int:
    """Has tconv-cl compute the ConvTranspose1d, 2d and 3d in `module`, itself included; returns how many there were.

    The modules stay, with their weights, hooks and names: only their class changes. Subclasses of torch's classes are
    left alone, but for those that torch.nn.utils.parametrize makes. What was converted before gets the new device.

    Args:
        device: a number as tconv_cl.devices lists them; None: the library's default.
    """
    count = 0
    for one in module.modules():
        if "forward" not in vars(one):
            _change_class(one, CONVERTED)
        if isinstance(one, _Layer):
            one.tconv_cl_device = device
            count += 1
    return count


def revert(module: nn.Module) -> int:
    """Takes back what convert did; returns how many transposed convolutions are torch's own again."""
    count = 0
    for one in module.modules():
        if isinstance(one, _Layer):
            vars(one).pop("tconv_cl_device", None)
            count += 1
        _change_class(one, {new: old for old, new in CONVERTED.items()})
    return count


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

    Args:
        device: a number as tconv_cl.devices lists them; None: the library's default.
    """

    def __init__(self, device: int | None = None) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in COMPOSED:
            with self:
                return func.decompose(*args, **kwargs)
        if func not in TRANSPOSED or not args[6]:
            return func(*args, **kwargs)
        data, weight, bias, stride, padding, dilation, _, output_padding, groups = args[:9]
        axes = weight.dim() - 2
        lists = (tuple(_list(axes, value)) for value in (stride, padding, output_padding, dilation))
        call = _Call(*lists, groups, device=self.device)
        return _compute(data, weight, bias, call, lambda: func(*args, **kwargs))
