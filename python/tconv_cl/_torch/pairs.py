# SPDX-License-Identifier: Apache-2.0
"""Which nearest upsamplings tconv-cl computes together with the convolution behind them, which convolutions with the
pixel shuffle behind them, and why not the others.

The parts of such a pair are modules, or tuples of what torch.nn.functional's functions take; tuples stand in graphs:

    ============  ===================================================  =====================================
    part          a module of                                          a tuple of
    ============  ===================================================  =====================================
    upsampling    Upsample, UpsamplingNearest2d                        size, scale_factor, mode
    pads          ZeroPad, ReflectionPad, ReplicationPad, CircularPad  pads in torch's order, mode
    concat        (in place of pads)                                   a `Concat`
    convolution   Conv1d, 2d, 3d                                       weight, bias, stride, padding,
                                                                       dilation, groups
    norm          BatchNorm1d, 2d, 3d                                  mean, variance, weight, bias, eps
    activation    a class of `fusion.MODULES`                          the library's name, numbers
    shuffle       PixelShuffle                                         upscale_factor
    ============  ===================================================  =====================================
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, Union

from torch import Tensor, nn
from torch.nn.utils import parametrize

from .._gain import gain_of, taps_of
from .fusion import FORWARDS, is_plain

Part = Union[nn.Module, Sequence[Any]]

NEAREST = ("nearest", "nearest-exact")
MOST_FACTOR = 64  # with larger factors and extents, torch's index of the nearest element, in float32, is off by one
MOST_EXTENT = 1 << 22
LEAST_GAIN = 1.2  # how many times fewer multiply-adds pay for larger weights
LEAST_CONCAT_GAIN = 1.25  # the same with a concatenation between, whose other tensor is convolved apart

UPSAMPLINGS = (nn.Upsample, nn.UpsamplingNearest2d)
CONVOLUTIONS: dict[type[nn.Module], int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
PADS: dict[type[nn.Module], str] = {
    getattr(nn, f"{name}Pad{axes}d"): mode
    for name, mode in (
        ("Zero", "constant"),
        ("Reflection", "reflect"),
        ("Replication", "replicate"),
        ("Circular", "circular"),
    )
    for axes in (1, 2, 3)
}
FORWARDS.update({cls: cls.forward for cls in (*UPSAMPLINGS, *CONVOLUTIONS, *PADS, nn.PixelShuffle)})


class Pair(NamedTuple):
    """What a pair computes, with one number for each axis; all of it can be hashed."""

    size: tuple[int, ...] | None
    scale_factor: tuple[float, ...] | None
    mode: str
    pads: tuple[int, ...]  # in torch's order: begin and end of the last axis first
    pad_mode: str
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # the convolution's zeros at begin and end
    dilation: tuple[int, ...]
    groups: int


class Concat(NamedTuple):
    """torch.cat of the enlarged data and another tensor."""

    other: Any
    place: int  # of the enlarged data: 0 or 1
    dim: int

    def ordered(self, enlarged: Any, other: Any) -> list[Any]:
        """What belongs to the two tensors, in their order."""
        return [enlarged, other] if self.place == 0 else [other, enlarged]


class Plan(NamedTuple):
    """How the library computes a pair for data of some extents."""

    factors: tuple[int, ...]
    begin: tuple[int, ...]  # zeros around the enlarged data; where negative, these are cut
    end: tuple[int, ...]
    around: tuple[int, ...]  # pads of the data before, in torch's order; none: ()
    around_mode: str
    macs: int  # of one image and one channel of input and output


def kind_of(module: nn.Module) -> type[nn.Module]:
    """The class of a module, below the one that torch.nn.utils.parametrize made on top of it."""
    return type(module).__base__ if parametrize.is_parametrized(module) else type(module)


def is_upsampling(module: nn.Module) -> bool:
    return isinstance(module, nn.Upsample)


def is_convolution(module: nn.Module) -> bool:
    """Whether calling it only calls torch's own forward; its weights may be parametrised."""
    kind = kind_of(module)
    return kind in CONVOLUTIONS and is_plain(module, kind) and "qconfig" not in vars(module)


def pair_of(upsampling: Part, pads: Part | None, convolution: Part, axes: int) -> Pair | str:
    """What the parts compute, or why they cannot be taken together, whatever the data."""
    if isinstance(upsampling, nn.Module):
        if upsampling.align_corners is not None:
            return f"align_corners is {upsampling.align_corners}"
        size, scale_factor, mode = upsampling.size, upsampling.scale_factor, upsampling.mode
    else:
        size, scale_factor, mode = upsampling
    if mode not in NEAREST:
        return f"its mode is {mode}: only nearest and nearest-exact make a convolution of fewer weights"
    values, pad_mode = (0,) * (2 * axes), "constant"
    if isinstance(pads, nn.Module):
        values, pad_mode = tuple(pads.padding), PADS[type(pads)]
    elif pads is not None:
        values, pad_mode = tuple(pads[0]), pads[1]
    if isinstance(convolution, nn.Module):
        stride, padding, dilation = convolution.stride, convolution.padding, convolution.dilation
        kernel, groups = tuple(convolution.kernel_size), convolution.groups
        if convolution.padding_mode != "zeros":
            if any(values):
                return f"{pad_mode} pads and the convolution's {convolution.padding_mode} pads"
            # torch's order, computed when the module was made
            values, pad_mode = tuple(convolution._reversed_padding_repeated_twice), convolution.padding_mode
            padding = 0
    else:
        weight, _, stride, padding, dilation, groups = convolution
        kernel = tuple(weight.shape[2:]) if isinstance(weight, Tensor) else None
    stride, dilation = each(stride, axes), each(dilation, axes)
    if isinstance(padding, str):
        if kernel is None or padding not in ("same", "valid"):
            return f"padding is {padding!r}"
        spans = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel)]
        zeros = tuple((span // 2, span - span // 2) for span in spans)
    else:
        zeros = tuple((p, p) for p in each(padding, axes))
    if len(values) % 2 or len(values) > 2 * axes:
        return f"it pads {len(values) // 2} axes"
    values += (0,) * (2 * axes - len(values))
    return Pair(
        None if size is None else each(size, axes),
        None if scale_factor is None else each(scale_factor, axes),
        mode,
        values,
        pad_mode if any(values) else "constant",
        stride,
        zeros,
        dilation,
        groups,
    )


def each(value: Any, axes: int) -> tuple[Any, ...]:
    """One value for each axis."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes
    return values * axes if len(values) == 1 else values


def plan_of(pair: Pair, kernel: tuple[int, ...], extents: tuple[int, ...] | None) -> Plan | str:
    """How the library computes a pair, or why it should not. `extents` of the data may be unknown: then a size counts
    as one that can be taken, and the plan is none for a call."""
    axes = len(kernel)
    if len(pair.stride) != axes or len(pair.dilation) != axes or len(pair.padding) != axes:
        return f"the convolution has {axes} axes, its attributes others"
    if any(stride != 1 for stride in pair.stride):
        return f"the convolution's stride is {list(pair.stride)}, not 1"
    factors = _factors(pair, extents, axes)
    if isinstance(factors, str):
        return factors
    if all(k == 1 for k in kernel):
        return "behind an upsampling, a kernel of 1 gains nothing"
    for d, s, k in zip(pair.dilation, factors, kernel):
        if d > s > 1 and k > 1:
            return f"the convolution's dilation {d} is above the factor {s}"
    begin, end, around = [], [], []
    for a, (s, zeros) in enumerate(zip(factors, pair.padding)):
        ends = pair.pads[2 * (axes - 1 - a) : 2 * (axes - a)]
        if pair.pad_mode != "constant" and any(zeros):
            return f"the convolution pads with zeros behind {pair.pad_mode} pads"
        if min(*ends, *zeros) < 0:
            return "a pad is negative"
        if pair.pad_mode == "reflect" and max(ends) >= s:
            return f"reflect pads of {max(ends)} reach beyond a factor of {s}"
        if pair.pad_mode == "constant":
            begin.append(ends[0] + zeros[0])
            end.append(ends[1] + zeros[1])
            continue
        small = [-(-pad // s) for pad in ends]  # of the data before they are enlarged; what is too much is cut
        begin.append(ends[0] - s * small[0])
        end.append(ends[1] - s * small[1])
        around = small + around
    if extents is not None and gain_of(kernel, pair.dilation, factors) < LEAST_GAIN:
        return "it saves too few multiply-adds"
    outputs = [
        s * x + sum(pair.pads[2 * (axes - 1 - a) : 2 * (axes - a)]) + sum(zeros) - d * (k - 1)
        for a, (s, x, zeros, d, k) in enumerate(zip(factors, extents or kernel, pair.padding, pair.dilation, kernel))
    ]
    mode = "circular" if pair.pad_mode == "circular" else "replicate"
    macs = int(prod(outputs) * taps_of(kernel, pair.dilation, factors))
    return Plan(tuple(factors), tuple(begin), tuple(end), tuple(around), mode, macs)


def _factors(pair: Pair, extents: tuple[int, ...] | None, axes: int) -> list[int] | str:
    """The factors of a pair, or why they are none."""
    if pair.size is None and pair.scale_factor is None:
        return "it has neither size nor scale_factor"
    factors = None
    if pair.scale_factor is not None:
        scales = pair.scale_factor
        if len(scales) != axes:
            return f"scale_factor has {len(scales)} numbers, the convolution {axes} axes"
        if extents is None and not all(isinstance(s, (int, float)) for s in scales):
            return [MOST_FACTOR] * axes  # computed at run time
        if any(not 1 <= s <= MOST_FACTOR or s != int(s) for s in scales):
            return f"its scale factor is {', '.join(f'{s:g}' for s in scales)}: it must be a whole number, 1 to 64"
        factors = [int(s) for s in scales]
    if pair.size is not None:
        if len(pair.size) != axes:
            return f"size has {len(pair.size)} numbers, the convolution {axes} axes"
        if extents is None:
            return factors or [MOST_FACTOR] * axes
        if any(x < 1 or y < 1 or y % x for x, y in zip(extents, pair.size)):
            return f"its size {list(pair.size)} is not a multiple of the data's {list(extents)}"
        if factors is not None and factors != [y // x for x, y in zip(extents, pair.size)]:
            return "its size and its scale factor differ"
        factors = [y // x for x, y in zip(extents, pair.size)]
        if max(factors) > MOST_FACTOR:
            return f"its factor is {max(factors)}: it must be at most {MOST_FACTOR}"
    if all(s == 1 for s in factors):
        return "its factors are 1"
    if extents is not None and (min(extents) < 1 or max(s * x for s, x in zip(factors, extents)) > MOST_EXTENT):
        return "its extents are too large"
    return factors


kept_plan = functools.lru_cache(maxsize=4096)(plan_of)

# ---- convolution and pixel shuffle ----


def factor_of(shuffle: Part) -> int:
    return shuffle.upscale_factor if isinstance(shuffle, nn.Module) else shuffle[0]


def shuffle_plan_of(pair: Pair, weight: tuple[int, ...], factor: int, extents: tuple[int, ...] | None) -> Plan | str:
    """How the library computes a convolution and a pixel shuffle, or why it should not."""
    kernel = weight[2:]
    if len(kernel) != 2:
        return f"the convolution has {len(kernel)} axes: PixelShuffle takes two"
    if pair.stride != (1, 1):
        return f"the convolution's stride is {list(pair.stride)}, not 1"
    if pair.pad_mode != "constant":
        return f"the convolution has {pair.pad_mode} pads"
    if not isinstance(factor, int) or factor < 2:
        return f"its factor is {factor}"
    if any(d > 1 and k > 1 for d, k in zip(pair.dilation, kernel)):
        return f"the convolution's dilation is {list(pair.dilation)}, not 1"
    if weight[0] % (pair.groups * factor * factor):
        return f"{weight[0]} channels in {pair.groups} groups are not phases of whole groups"
    begin, end = (tuple(zeros[i] for zeros in pair.padding) for i in range(2))
    numbers = zip(extents or kernel, kernel, begin, end)
    outputs = [x + b + e - k + 1 for x, k, b, e in numbers]
    if extents is not None and min(outputs) < 1:
        return "there is no output"
    return Plan((factor, factor), begin, end, (), "", prod(outputs) * prod(kernel))


kept_shuffle_plan = functools.lru_cache(maxsize=4096)(shuffle_plan_of)


def shuffle_pair_of(convolution: Part) -> Pair | str:
    """What the convolution before a pixel shuffle computes."""
    return pair_of((None, 1, "nearest"), None, convolution, 2)


def shuffle_reason_of(convolution: Part, shuffle: Part, weight: tuple[int, ...] | None) -> str | None:
    """Why a convolution and a pixel shuffle can never be taken together; None: they can."""
    if isinstance(convolution, nn.Module):
        if not is_convolution(convolution):
            return f"the {type(convolution).__name__} has hooks, a forward of its own, or is quantized"
        weight = tuple(convolution.weight.shape)
    if isinstance(shuffle, nn.Module) and not is_plain(shuffle):
        return f"the {type(shuffle).__name__} has hooks or a forward of its own"
    if weight is None:
        return None  # seen at run time
    if len(weight) != 4:
        return f"the convolution has {len(weight) - 2} axes: PixelShuffle takes two"
    pair = shuffle_pair_of(convolution)
    plan = pair if isinstance(pair, str) else shuffle_plan_of(pair, weight, factor_of(shuffle), None)
    return plan if isinstance(plan, str) else None


# ---- reasons ----


def reason_of(upsampling: Part, pads: Part | None, convolution: Part, kernel: tuple[int, ...] | None) -> str | None:
    """Why a pair can never be taken, whatever the data; None: it can."""
    for part, known in ((upsampling, UPSAMPLINGS), (pads, PADS), (convolution, CONVOLUTIONS)):
        if not isinstance(part, nn.Module):
            continue
        name = type(part).__name__
        if part is convolution:
            if kind_of(part) not in known:
                return f"what follows it is a {name}, not a torch.nn.Conv1d, 2d or 3d"
            if not is_convolution(part):
                return f"the {name} has hooks, a forward of its own, or is quantized"
        elif type(part) not in known or not is_plain(part):
            return f"the {name} has hooks or a forward of its own"
    axes = CONVOLUTIONS[kind_of(convolution)] if isinstance(convolution, nn.Module) else len(kernel or ()) or None
    if axes is None:
        return None  # seen at run time
    pair = pair_of(upsampling, pads, convolution, axes)
    if isinstance(pair, str):
        return pair
    plan = plan_of(pair, tuple(convolution.kernel_size) if kernel is None else kernel, None)
    return plan if isinstance(plan, str) else None
