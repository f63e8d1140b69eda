# SPDX-License-Identifier: Apache-2.0
"""Random pairs, a nearest upsampling and a convolution or a convolution and a pixel shuffle, as the tests of all
runtimes draw them. About a third of them must stay two operators, because of an obstacle that the runtime names.

TCONV_CL_TEST_PAIRS: how many pairs each of the tests compares."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

COUNT = int(os.environ.get("TCONV_CL_TEST_PAIRS", "40"))
LEAST_GAIN = 1.25  # multiply-adds of the two operators for one of the layer's: with these each runtime takes a pair
ROUNDINGS = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-8, "float16": 2.0**-11}
UPSAMPLE, SHUFFLE, SHUFFLE_DCR = "upsample", "shuffle", "shuffle_dcr"


@dataclass
class Pair:
    """Lists have one number for each spatial axis; of pads, at each end."""

    form: str
    obstacle: str  # why it stays two operators; "": it is taken
    type: str
    batch: int
    groups: int
    inner: int  # channels of the data
    outer: int  # of the convolution
    extents: list[int]  # of the data
    factors: list[float]  # of the shuffle they are all the same
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begin: list[int]
    end: list[int]
    auto_pad: str  # "explicit", or whence the pads follow
    pad_mode: str
    bias: bool
    by_sizes: bool  # the enlarged extents are given, not the factors
    dynamic: bool  # the model does not know the data's extents
    channels_last: bool
    behind: str  # what follows the pair: nothing, "relu", or two readers: "twice"
    seed: int

    @property
    def axes(self) -> int:
        return len(self.kernel)

    @property
    def enlarged(self) -> list[int]:
        return [int(s * x) for s, x in zip(self.factors, self.extents)]

    def data(self) -> np.ndarray:
        return self._numbers(1, self.batch, self.inner, *self.extents)

    def weights(self) -> np.ndarray:
        return self._numbers(2, self.outer, self.inner // self.groups, *self.kernel)

    def biases(self) -> np.ndarray:
        return self._numbers(3, self.outer)

    def _numbers(self, which: int, *shape: int) -> np.ndarray:
        """In [-1, 1), exact in each type."""
        return np.random.default_rng([self.seed, which]).integers(-128, 128, shape).astype(np.float32) / 128

    def bound(self, magnitude: np.ndarray) -> np.ndarray:
        """How far the outputs of two implementations may be apart that add in f32, or in f64: `magnitude` is what the
        absolute values give. Sums of weights are rounded to the type."""
        terms = self.inner // self.groups * prod(self.kernel) + 3
        added = prod(map(int, self.factors)) if self.form == UPSAMPLE else 0
        wide = ROUNDINGS["float64" if self.type == "float64" else "float32"]
        own = 3 * ROUNDINGS[self.type] if self.type in ("bfloat16", "float16") else 0.0
        least = 2.0**-24 if self.type == "float16" else 0.0  # below the normal numbers
        return magnitude.astype(np.float64) * ((2 * terms + added) * wide + own) + least


def drawn(
    seed: int,
    obstacles: Mapping[str, Collection[str]],
    *,
    types: Sequence[str] = ("float32",),
    pad_modes: Sequence[str] = ("constant",),
    shuffle_axes: Sequence[int] = (2,),
    auto_pads: Sequence[str] = ("explicit",),
) -> Pair:
    """A pair of one of the forms that `obstacles` has, with what may keep a pair of the form from being taken."""
    draw = random.Random(seed)
    form = draw.choice([form for form in obstacles for _ in range(2 if form == UPSAMPLE else 1)])
    axes = draw.choice((1, 2, 2, 3) if form == UPSAMPLE else shuffle_axes)
    groups = 1 if form == SHUFFLE_DCR else draw.choice((1, 1, 2, 3))
    obstacle = draw.choice(list(obstacles[form])) if obstacles[form] and draw.random() < 0.35 else ""
    most = draw.choice((2, 2, 3, 4))
    if form == UPSAMPLE:
        while True:
            factors = [draw.choice((1, most)) for _ in range(axes)]
            factors[draw.randrange(axes)] = most
            kernel = [draw.choice((1, 2, 3, 3, 4, 5)) for _ in range(axes)]
            dilations = [draw.randint(1, 2) if s == 1 else draw.choice((1, 1, s)) for s in factors]
            if _gain(factors, kernel, dilations) >= LEAST_GAIN:
                break
    else:
        factors, dilations = [most] * axes, [1] * axes
        kernel = [draw.choice((1, 2, 3, 3, 4)) for _ in range(axes)]
    strides, longest = [1] * axes, factors.index(most)
    if obstacle == "kernel 1":
        kernel = [1] * axes
    elif obstacle == "stride":
        strides[draw.randrange(axes)] = 2
    elif obstacle == "dilation":
        kernel[longest] = max(kernel[longest], 2)
        dilations[longest] = most + 1 if form == UPSAMPLE else 2
    elif obstacle == "no factor":
        factors = [1] * axes
    elif obstacle == "fraction":
        factors[longest] = 1.5
    elif obstacle == "groups of DCR":
        groups = 2
    by_rule = max(strides) == max(dilations) == 1 and obstacle != "reflect"
    auto_pad = draw.choice(auto_pads) if by_rule else "explicit"
    begin, end = ([draw.choice((0, 0, 1, 1, 2, 3)) for _ in range(axes)] for _ in range(2))
    if auto_pad != "explicit":
        spans = [0 if auto_pad == "valid" else k - 1 for k in kernel]
        less, more = [span // 2 for span in spans], [span - span // 2 for span in spans]
        begin, end = (more, less) if auto_pad == "same_lower" else (less, more)
    pad_mode = draw.choice(pad_modes) if form == UPSAMPLE and auto_pad == "explicit" else "constant"
    if obstacle == "reflect":
        pad_mode, begin[longest] = "reflect", most
    elif pad_mode == "reflect":
        begin, end = ([min(p, int(s) - 1) for p, s in zip(pads, factors)] for pads in (begin, end))
    inside = max(1, groups) * draw.randint(1, 5)
    phases = 1 if form == UPSAMPLE else most**axes
    extents = [draw.randint(4, (20, 8, 5)[axes - 1]) for _ in range(axes)]
    for a, (s, k, d) in enumerate(zip(factors, kernel, dilations)):
        enlarges = form == UPSAMPLE
        while int(extents[a] * (s if enlarges else 1)) + begin[a] + end[a] < d * (k - 1) + 1:
            extents[a] += 1
    by_sizes = form == UPSAMPLE and draw.random() < 0.3
    return Pair(
        form, obstacle, draw.choice(types), draw.randint(1, 2), groups, inside, groups * draw.randint(1, 4) * phases,
        extents, factors, kernel, strides, dilations, begin, end, auto_pad, pad_mode, draw.random() < 0.5, by_sizes,
        not by_sizes and draw.random() < 0.3, draw.random() < 0.3, draw.choice(("", "", "relu", "twice")), seed,
    )  # fmt: skip


def _gain(factors: Sequence[int], kernel: Sequence[int], dilations: Sequence[int]) -> float:
    taps = [k if s == 1 else (d * (k - 1) + s) / s for s, k, d in zip(factors, kernel, dilations)]
    return prod(kernel) / prod(taps)
