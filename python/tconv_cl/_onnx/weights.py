# SPDX-License-Identifier: Apache-2.0
"""The weights of the transposed convolution that is a convolution and a nearest upsampling before it, or a pixel
shuffle behind it.

Filters of convolutions are [CO, CI/G, K...], those of transposed convolutions [CI, CO/G, K...].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def with_upsampling(filter: Array, factors: Sequence[int], dilations: Sequence[int], groups: int) -> Array:
    """The sums of weights, added in f64 and rounded once to the filter's type. Along an axis with factor 1 there are no
    sums: the taps keep their dilation."""
    sums = filter.astype(np.float64)
    for axis, (s, d) in enumerate(zip(factors, dilations), 2):
        sums = np.moveaxis(np.tensordot(_summands(filter.shape[axis], s, d), sums, (1, axis)), 0, axis)
    return rounded(_transposed(sums, groups), filter.dtype)


def _summands(kernel: int, factor: int, dilation: int) -> Array:
    """Which weights are added up for each tap: input x meets weight k for the output y with y + k*d - pad = s*x + r,
    0 <= r < s, which is the tap r + d*(K-1-k) of output s*x."""
    d = 1 if factor == 1 else dilation
    matrix = np.zeros((d * (kernel - 1) + factor, kernel))
    for k, r in itertools.product(range(kernel), range(factor)):
        matrix[r + d * (kernel - 1 - k), k] = 1
    return matrix


def with_shuffle(filter: Array, factor: int, dcr: bool, groups: int) -> Array:
    """The same weights, those of each phase `factor` taps apart."""
    r, kernel = factor, filter.shape[2:]
    channels, inputs = filter.shape[0] // r**2, filter.shape[1]
    phases = filter.reshape(r * r, channels, inputs, *kernel)
    if not dcr:
        phases = filter.reshape(channels, r * r, inputs, *kernel).swapaxes(0, 1)
    taps = np.zeros((channels, inputs, *(r * k for k in kernel)), filter.dtype)
    for y, x in itertools.product(range(r), repeat=2):
        taps[:, :, y::r, x::r] = phases[y * r + x][:, :, ::-1, ::-1]
    return _transposed(taps, groups)


def bias_of_phases(bias: Array, factor: int, dcr: bool) -> Array:
    """A convolution's bias as [CO, r, r]: that of each phase of a shuffled channel."""
    phases = bias.reshape(factor**2, -1).T if dcr else bias.reshape(-1, factor**2)
    return phases.reshape(-1, factor, factor)


def _transposed(taps: Array, groups: int) -> Array:
    outputs, inputs = taps.shape[:2]
    apart = taps.reshape(groups, outputs // groups, inputs, *taps.shape[2:]).swapaxes(1, 2)
    return np.ascontiguousarray(apart.reshape(groups * inputs, outputs // groups, *taps.shape[2:]))


def rounded(values: Array, dtype: np.dtype[Any]) -> Array:
    """f64 values in another type, rounded once; infinite where they leave its range."""
    with np.errstate(over="ignore"):
        if dtype.name == "bfloat16":  # converted by way of f32: an inexact f32 is made odd, so that it is no tie
            near = values.astype(np.float32)
            bits = near.view(np.uint32)
            bits -= np.abs(near.astype(np.float64)) > np.abs(values)
            bits |= near.astype(np.float64) != values
            return near.astype(dtype)
        return values.astype(dtype)
