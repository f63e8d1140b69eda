# SPDX-License-Identifier: Apache-2.0
"""Modules whose own forward enlarges data: torch's compiler finds the graph of a call, and the pass takes its pairs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch import fx, nn
from torch.autograd import forward_ad

from .._explanation import Layer
from .call import is_unobserved
from .graphs import rewrite
from .operator import HOW
from .pairs import is_upsampling
from .tensors import logger

SHUFFLES = {"pixel_shuffle", "PixelShuffle"}
NAMES = SHUFFLES | {"interpolate", "upsample", "upsample_nearest", "Upsample", "UpsamplingNearest2d"}
OTHER_MODES = {"linear", "bilinear", "bicubic", "trilinear", "area"}
BEFORE = "its forward enlarges data: pairs are looked for in its first call without gradients"

_running = threading.local()  # `module`: whose forward runs


class Options(nn.Module):
    """What `convert` was told, as attributes of a converted module."""

    tconv_cl_device: int | None = None
    tconv_cl_fallback = "warn"
    tconv_cl_search: str | None = None
    tconv_cl_math = "exact"

    def _how(self) -> dict[str, Any]:
        return {name: getattr(self, f"tconv_cl_{name}") for name in HOW}


class Traced(Options):
    """A module with a forward of its own. What it finds in its calls is in `tconv_cl_found`, by name."""

    @staticmethod
    def forward_of(own: type[nn.Module]) -> Callable[..., Any]:
        """The forward of the class made of `own`."""

        @functools.wraps(own.forward)
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not _is_traced(args, kwargs):
                return own.forward(self, *args, **kwargs)
            function = _compiled(own, tuple(self._how().items()))
            before, _running.module = getattr(_running, "module", None), self
            try:
                return function(self, *args, **kwargs)
            except torch._dynamo.exc.TorchDynamoException as error:
                _failed(own, error)
            finally:
                _running.module = before
            return own.forward(self, *args, **kwargs)

        return forward


def _is_traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether nobody else observes the operators of a call, and no gradients are asked for."""
    if torch.is_grad_enabled() or not is_unobserved() or forward_ad._current_level >= 0:
        return False
    return not any(isinstance(value, fx.Proxy) for value in (*args, *kwargs.values()))


@functools.cache
def _compiled(own: type[nn.Module], how: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """One for all modules of a class: torch's compiler keeps the graphs of a function."""
    backend = functools.partial(_graph, how=dict(how))
    try:
        return torch.compile(own.forward, backend=backend, dynamic=True)
    except RuntimeError as error:  # this Python has no compiler
        _failed(own, error)
        return own.forward


def _graph(graph: fx.GraphModule, inputs: list[Any], how: dict[str, Any]) -> Callable[..., Any]:
    """torch.compile's backend."""
    layers = rewrite(graph, how)

    def run(*arguments: Any) -> Any:
        module = getattr(_running, "module", None)
        if module is not None:
            found = vars(module).setdefault("tconv_cl_found", {})  # empty: the call enlarged nothing
            for layer in layers:
                if found.get(layer.name) != layer:
                    found[layer.name] = layer
        return graph.forward(*arguments)

    return run


def _failed(own: type[nn.Module], error: Exception) -> None:
    first = str(error).strip().split("\n")[0]
    logger.warning(f"tconv_cl: PyTorch computes {own.__name__}: its compiler does not take the forward: {first}")


def found_in(module: Traced) -> list[Layer]:
    """The layers of a module's own forward, with names below the module."""
    if "tconv_cl_found" not in vars(module):
        return [Layer("forward", type(module).__name__, False, BEFORE, True)]
    return list(vars(module)["tconv_cl_found"].values())


def enlarges(module: nn.Module) -> bool:
    """Whether a module's own forward may enlarge data by nearest neighbours or pixel shuffle, and convolve them."""
    cls = type(module)
    code = getattr(cls.forward, "__code__", None)
    own = not cls.__module__.startswith(("torch.nn.", "torch.fx.", "torch.jit."))
    if (
        not own
        or code is None
        or "forward" in vars(module)
        or isinstance(module, (fx.GraphModule, torch.jit.ScriptModule))
    ):
        return False
    names, constants = _words(code)
    called = any(map(_may_be_taken, _children(module)))
    if not names & NAMES and not called:
        return False
    if (
        not called
        and not names & SHUFFLES
        and constants & OTHER_MODES
        and not any(word.startswith("nearest") for word in constants)
    ):
        return False
    return any(isinstance(one, nn.modules.conv._ConvNd) for one in module.modules())


def _may_be_taken(module: nn.Module) -> bool:
    return isinstance(module, nn.PixelShuffle) or (is_upsampling(module) and str(module.mode).startswith("nearest"))


def _children(module: nn.Module) -> list[nn.Module]:
    """The modules that a forward calls itself: those in lists and dictionaries, too."""
    found = []
    for child in module.children():
        found += _children(child) if type(child) in (nn.ModuleList, nn.ModuleDict) else [child]
    return found


def _words(code: CodeType) -> tuple[set[str], set[str]]:
    """The names and the texts in a function's code, and in the functions within it."""
    names, constants = set(code.co_names), {value for value in code.co_consts if isinstance(value, str)}
    for value in code.co_consts:
        if isinstance(value, CodeType):
            inner = _words(value)
            names, constants = names | inner[0], constants | inner[1]
    return names, constants
