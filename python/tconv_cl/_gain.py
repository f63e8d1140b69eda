# SPDX-License-Identifier: Apache-2.0
"""What a layer saves that computes a nearest upsampling and the convolution behind it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def taps_of(kernel: Sequence[int], dilations: Sequence[int], factors: Sequence[int]) -> float:
    """Multiply-adds of the layer for one output and one channel of the data: there are as many as sums of weights."""
    # a list, as torch.compile traces it
    return prod([k if s == 1 else (d * (k - 1) + s) / s for k, d, s in zip(kernel, dilations, factors)])


def gain_of(
    kernel: Sequence[int], dilations: Sequence[int], factors: Sequence[int], enlarged: int = 1, others: int = 0
) -> float:
    """Multiply-adds of the two operators for one of the layer's. With a concatenation between, so many channels are
    enlarged, and `others` are convolved as they are."""
    taps, all_taps = taps_of(kernel, dilations, factors), prod(kernel)
    return all_taps * (enlarged + others) / (taps * enlarged + all_taps * others)
