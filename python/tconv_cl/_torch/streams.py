# SPDX-License-Identifier: Apache-2.0
"""Generators of sound whose input arrives in chunks: their convolutions along time become streams."""

from __future__ import annotations

import copy
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from .._library import RequestError, RequestTypeError
from .._stream import Stream
from .call import is_unwatched
from .fusion import FORWARDS
from .snake import may_be_snake, slopes_of

# Modules whose output at a time depends on their input at this time alone.
_POINTWISE: tuple[type[nn.Module], ...] = (
    *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.AlphaDropout, nn.BatchNorm1d),
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish),
    *(nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.Tanhshrink, nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Hardshrink),
    *(nn.Softplus, nn.Softsign, nn.Softshrink, nn.Threshold),
)


class CausalConv1d(nn.Conv1d):
    """nn.Conv1d of stride 1 whose outputs depend on no later input: zeros are put before the input, none behind it."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, dilation=dilation, groups=groups, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(nn.functional.pad(input, (self.dilation[0] * (self.kernel_size[0] - 1), 0)))


_FORWARDS = (nn.Conv1d.forward, nn.ConvTranspose1d.forward, CausalConv1d.forward)


class _StreamLayer(nn.Module):
    """A convolution along time as a stream. `ending` is true in the last call, which returns also the rest; `called` in
    a forward of the model from the layer's call on."""

    def __init__(self, name: str, stream: Stream[Any]) -> None:
        super().__init__()
        self._name = name
        self._stream = stream
        self._fused: _Fused | None = None
        self._used: Stream[Any] | None = None  # since the begin
        self.ending = self.called = False

    def reset(self) -> None:
        if self._used is not None:
            self._used.reset()
        self._used = None
        self.ending = self.called = False

    def __deepcopy__(self, memo: Any) -> _StreamLayer:
        """Another one with the same weights, at its begin."""
        other = _StreamLayer(self._name, self._stream.share())
        if self._fused is not None:
            other._fused = _Fused(self._fused.stream.share(), copy.deepcopy(self._fused.module, memo))
        return other

    def computes(self, following: nn.Module) -> bool:
        """Whether `with_activation` computes the module that follows."""
        fused = self._fused
        return fused is not None and following is fused.module and is_unwatched(following) and is_unwatched(self)

    def with_activation(self, input: Tensor) -> Tensor:
        assert self._fused is not None
        return self._push(self._fused.stream, input)

    def forward(self, input: Tensor) -> Tensor:
        return self._push(self._stream, input)

    def _push(self, stream: Stream[Any], input: Tensor) -> Tensor:
        if input.device.type != "cpu" or input.dim() != 3:
            raise RequestError(
                f"{self._name}: its input is on {input.device} and has {input.dim()} axes: streams take tensors "
                "[N, C, L] of the processor"
            )
        if self.called:
            raise RequestError(
                f"{self._name} is called twice in one forward of the model, but a stream has one input: give the model "
                "a module for each call"
            )
        if self._used not in (None, stream):
            raise RequestError(
                f"{self._name} is called by its Sequential for one chunk and by other code for another: call it in one "
                "way, or reset the stream"
            )
        self._used = stream
        parts = [stream.push(input.detach().contiguous())]
        self.called = True
        if self.ending:
            parts.append(stream.flush())
        return _tensor(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2))

    def extra_repr(self) -> str:
        behind = "" if self._fused is None else f", with {type(self._fused.module).__name__}"
        return f"{self._name}, {self._stream!r}{behind}"


class _Fused(NamedTuple):
    """A stream that also computes the module behind a layer in an nn.Sequential."""

    stream: Stream[Any]
    module: nn.Module


def _forward(self: nn.Sequential, input: Tensor) -> Tensor:
    """The forward of an nn.Sequential with streams that compute the module behind them. It is the object's, not another
    class's: subclasses of nn.Sequential keep what else they have."""
    modules, at = list(self), 0
    while at < len(modules):
        layer, following = modules[at], modules[at + 1 : at + 2]
        at += 1
        if isinstance(layer, _StreamLayer) and following and layer.computes(following[0]):
            input, at = layer.with_activation(input), at + 1
        else:
            input = layer(input)
    return input


class Streaming(nn.Module):
    """A model whose input arrives in chunks; `streaming` makes it. Its `model` has the streams.

    Called with the next chunk [N, C, L] of the input, L being any number, it returns the columns of the output that no
    later input changes. `flush` returns the rest, `reset` starts anew. `share` makes another one with the same weights,
    for another input at the same time. All that pushes and the flush return, one after the other, has the same bits
    for all chunks. After an exception behind its first stream, it must be reset.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._shape: tuple[int, int] | None = None
        self._type: torch.dtype | None = None
        self._flushed = self._failed = False

    def _layers(self) -> list[_StreamLayer]:
        return [module for module in self.model.modules() if isinstance(module, _StreamLayer)]

    def _compute(self, input: Tensor, ending: bool) -> Tensor:
        """A forward of the model. If it fails when some streams have taken their input, they are no longer alike."""
        if self._failed:
            raise RequestError("the last chunk failed when some layers had taken it: reset the stream")
        layers = self._layers()
        for layer in layers:
            layer.ending, layer.called = ending, False
        try:
            output: Tensor = self.model(input)
        except BaseException:
            self._failed = any(layer.called for layer in layers)
            raise
        return output

    @torch.no_grad()
    def forward(self, input: Tensor) -> Tensor:
        if self._flushed:
            raise RequestError("the stream was flushed: reset it before the next chunk")
        output = self._compute(input, False)
        self._shape, self._type = (int(input.shape[0]), int(input.shape[1])), input.dtype
        return output

    push = forward

    @torch.no_grad()
    def flush(self) -> Tensor:
        if self._shape is None or self._flushed:
            raise RequestError("there is nothing to flush: no chunk was pushed since the begin or the last flush")
        output = self._compute(torch.zeros((*self._shape, 0), dtype=self._type), True)
        self._flushed = True
        return output

    def reset(self) -> None:
        for layer in self._layers():
            layer.reset()
        self._shape, self._flushed, self._failed = None, False, False

    def share(self) -> Streaming:
        return Streaming(copy.deepcopy(self.model))


def _tensor(array: np.ndarray) -> Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _sets_weight(hook: Any) -> bool:
    """Whether a hook before a forward is one of torch.nn.utils that compute the weight from others."""
    return isinstance(hook, (WeightNorm, SpectralNorm))


def _weights(module: Any) -> tuple[Any, Any]:
    with torch.no_grad():
        for hook in module._forward_pre_hooks.values():
            hook(module, None)  # as `_check_calls` found
        bias = module.bias
        return module.weight.detach().contiguous(), None if bias is None else bias.detach().contiguous()


class _Convolution(NamedTuple):
    """What a stream is made of."""

    weight: Any
    bias: Any
    channels: int  # of the output
    options: dict[str, Any]

    def stream(self, **more: Any) -> Stream[Any]:
        return Stream(self.weight, self.bias, **self.options, **more)


def _transposed(module: nn.ConvTranspose1d) -> _Convolution:
    weight, bias = _weights(module)
    options: dict[str, Any] = {
        "strides": module.stride[0],
        "dilations": module.dilation[0],
        "pads_begin": module.padding[0],
        "pads_end": module.padding[0],
        "output_padding": module.output_padding[0],
    }
    if module.groups > 1:
        options["groups"] = module.groups
    return _Convolution(weight, bias, weight.shape[1] * module.groups, options)


def _causal(module: nn.Conv1d) -> _Convolution:
    weight, bias = _weights(module)
    options: dict[str, Any] = {
        "upsample": 1,
        "dilations": module.dilation[0],
        "pads_begin": module.dilation[0] * (module.kernel_size[0] - 1),
        "groups": module.groups,
    }
    return _Convolution(weight, bias, weight.shape[0], options)


def _convolution_in(name: str, module: nn.Module) -> nn.Conv1d:
    """The convolution that a module of a causal class is or has."""
    found = [own for own in module.modules() if isinstance(own, nn.Conv1d)]
    if len(found) != 1:
        raise RequestError(f"{name}, a {type(module).__name__}, has {len(found)} Conv1d: a causal class must have one")
    return found[0]


def _check_calls(name: str, module: nn.Module, own_forward: bool) -> None:
    """Refuses a module whose call does more than its class's convolution: a stream would leave that out."""
    if not own_forward and (type(module).forward not in (*_FORWARDS, *FORWARDS.values()) or "forward" in vars(module)):
        raise RequestError(
            f"{name}, a {type(module).__name__}, has a forward of its own, which a stream would leave out: put what it "
            "adds into a module of its own"
        )
    before = [hook for hook in module._forward_pre_hooks.values() if not _sets_weight(hook)]
    if before or module._forward_hooks:
        raise RequestError(f"{name}, a {type(module).__name__}, has hooks, which a stream would leave out: remove them")


def _streamed(name: str, module: nn.Module, causal: tuple[type[nn.Module], ...]) -> _Convolution | None:
    """What a module becomes a stream of; None: it does not. Of the `causal` classes the first is CausalConv1d."""
    if isinstance(module, nn.ConvTranspose1d):
        _check_calls(name, module, False)
        return _transposed(module)
    is_causal = isinstance(module, causal)
    if not is_causal and not isinstance(module, nn.Conv1d):
        return None
    _check_calls(name, module, isinstance(module, causal[1:]))
    convolution = _convolution_in(name, module)
    if convolution is not module:
        _check_calls(name, convolution, False)
    if convolution.stride[0] != 1:
        raise RequestError(f"{name} is a Conv1d of stride {convolution.stride[0]}: streams have stride 1")
    plain = convolution.kernel_size[0] == 1 and convolution.padding in ((0,), "same", "valid")
    if not is_causal and not plain:
        raise RequestError(
            f"{name} is a Conv1d with {convolution.kernel_size[0]} taps and padding {convolution.padding}, which also "
            "reads later inputs: make it a tconv_cl.torch.CausalConv1d, or give its class in `causal`"
        )
    if convolution.padding_mode != "zeros":
        raise RequestError(f"{name} has padding_mode {convolution.padding_mode!r}: streams have zeros")
    return _causal(convolution)


def streaming(
    model: nn.Module,
    *,
    causal: Sequence[type[nn.Module]] = (),
    pointwise: Sequence[type[nn.Module]] = (),
    device: int | str | None = None,
    columns: int = 0,
) -> Streaming:
    """A copy of a generator of sound whose input arrives in chunks; `model` stays as it is.

    Its ConvTranspose1d, its CausalConv1d and its Conv1d of one tap become streams with the weights that they have now.
    The outputs of a ConvTranspose1d with padding p come p columns late; nothing else is late. In an nn.Sequential, a
    stream also computes BigVGAN's Snake or SnakeBeta behind it, with its present parameters. All other computations of
    the model must be pointwise in time, in eval mode: activations, sums, factors.

    Args:
        causal: further classes of causal convolutions: each is, or has, one Conv1d of stride 1, and computes it with
            `dilation * (kernel_size - 1)` zeros before the input.
        pointwise: further classes of modules whose output at a time depends on their input at this time alone.
        device, columns: as for tconv_cl.Stream.

    Raises:
        RequestError: a module of the model is none of these; the sentence names it.

    Examples:
        >>> generator = streaming(model)
        >>> sound = torch.cat([*(generator(chunk) for chunk in mel.split(8, dim=2)), generator.flush()], dim=2)
    """
    if not isinstance(model, nn.Module):
        raise RequestTypeError(f"model is a {type(model).__name__}: it must be a torch.nn.Module")
    classes = (CausalConv1d, *causal)
    memo: dict[int, Any] = {}
    convolutions: dict[int, _Convolution] = {}
    pairs: list[tuple[nn.Module, nn.Module, nn.Module]] = []  # a Sequential, a convolution, what may be Snake behind it

    def take(name: str, module: nn.Module) -> None:
        made = _streamed(name or type(module).__name__, module, classes)
        if made is not None:
            # copy.deepcopy takes it for the copy of the module
            memo[id(module)] = _StreamLayer(name or type(module).__name__, made.stream(device=device, columns=columns))
            convolutions[id(module)] = made
            return
        children = list(module.named_children())
        if (
            not children
            and not isinstance(module, (*_POINTWISE, *pointwise))
            and type(module).__module__.startswith("torch.")
        ):
            raise RequestError(
                f"{name or 'the model'} is a {type(module).__name__}, which may mix columns: streams are for "
                "ConvTranspose1d, CausalConv1d and modules that are pointwise in time; if it is, give its class in "
                "`pointwise`"
            )
        for own, child in children:
            take(f"{name}.{own}" if name else own, child)
        if isinstance(module, nn.Sequential) and type(module).forward in (nn.Sequential.forward, *FORWARDS.values()):
            own_modules = [] if "forward" in vars(module) else list(module)
            for convolution, following in zip(own_modules, own_modules[1:]):
                if id(convolution) in convolutions and may_be_snake(type(following)):
                    pairs.append((module, convolution, following))

    take("", model)
    if id(model) in memo:
        return Streaming(memo[id(model)])
    copied = copy.deepcopy(model, memo).eval()
    # Of the copies, because a forward may read whether its module is in training.
    for sequential, convolution, following in pairs:
        layer, known, behind = memo[id(convolution)], convolutions[id(convolution)], memo[id(following)]
        slopes = "it is behind another layer" if layer._fused else slopes_of(behind, known.weight, known.channels)
        if not isinstance(slopes, str):
            numbers = {"activation": "snakebeta", "slope": slopes[0], "slope2": slopes[1]}
            layer._fused = _Fused(known.stream(device=device, columns=columns, **numbers), behind)
            memo[id(sequential)].forward = types.MethodType(_forward, memo[id(sequential)])
    return Streaming(copied)
