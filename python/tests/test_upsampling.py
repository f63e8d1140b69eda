# SPDX-License-Identifier: Apache-2.0
"""Nearest upsampling and a convolution as one layer, against the two steps in float64."""

import numpy as np
import pytest
import tconv_cl


def two_steps(x, w, scale, begin, end, dilation, groups, last, xio):
    """The definition: enlarge, pad, convolve."""
    if last:
        x = np.moveaxis(x, -1, 1)
    if xio:
        w = np.moveaxis(w, (-1, -2), (0, 1))
    axes = x.ndim - 2
    x, w = x.astype(np.float64), w.astype(np.float64)
    for a in range(axes):
        x = np.repeat(x, scale[a], axis=a + 2)
    x = np.pad(x, [(0, 0), (0, 0), *zip(begin, end)])
    extents = [x.shape[a + 2] - dilation[a] * (w.shape[a + 2] - 1) for a in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *extents))
    inner, outer = w.shape[1], w.shape[0] // groups
    for k in np.ndindex(*w.shape[2:]):
        part = x[
            (
                slice(None),
                slice(None),
                *(slice(k[a] * dilation[a], k[a] * dilation[a] + extents[a]) for a in range(axes)),
            )
        ]
        for g in range(groups):
            rows = slice(g * outer, (g + 1) * outer)
            weights = w[(rows, slice(None), *k)]
            y[:, rows] += np.einsum("oi,ni...->no...", weights, part[:, g * inner : (g + 1) * inner])
    return np.moveaxis(y, 1, -1) if last else y


@pytest.mark.parametrize("seed", range(20))
def test_two_steps(seed):
    random = np.random.default_rng(seed)
    axes, groups = int(random.integers(1, 4)), int(random.integers(1, 3))
    inner, outer = random.integers(1, 5, 2)
    last, xio = random.integers(0, 2, 2).astype(bool)
    kernel, scale, dilation = (tuple(int(n) for n in random.integers(1, most, axes)) for most in (4, 4, 3))
    dilation = tuple(d if s == 1 else min(d, s) for d, s in zip(dilation, scale))
    begin, end = (tuple(int(random.integers(0, d * (k - 1) + 1)) for k, d in zip(kernel, dilation)) for _ in range(2))
    extents = tuple(int(n) for n in random.integers(4, 8, axes))
    x = random.integers(-3, 4, (2, groups * inner, *extents)).astype(np.float32)
    w = random.integers(-3, 4, (groups * outer, inner, *kernel)).astype(np.float32)
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    if xio:
        w = np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2)))
    y = tconv_cl.upsample_conv(
        x, w, scale=scale, pads_begin=begin, pads_end=end, dilations=dilation, groups=groups,
        data_format="NXC" if last else "NCX", filter_format="XIO" if xio else "OIX",
    )  # fmt: skip
    np.testing.assert_array_equal(y, two_steps(x, w, scale, begin, end, dilation, groups, last, xio))


def test_bias_residual_and_activation():
    x, w = np.ones((1, 2, 3), np.float32), np.ones((1, 2, 3), np.float32)
    y = tconv_cl.upsample_conv(
        x, w, np.array([-7], np.float32), pads_begin=1, pads_end=1, residual=np.ones((1, 1, 6), np.float32),
        activation=("leaky_relu", 0.5),
    )  # fmt: skip
    np.testing.assert_array_equal(y, [[[-1, 0, 0, 0, 0, -1]]])


def test_factor_1_is_a_convolution():
    x, w = np.arange(5, dtype=np.float32).reshape(1, 1, 5), np.array([[[1, 0, -1]]], np.float32)
    np.testing.assert_array_equal(tconv_cl.upsample_conv(x, w, scale=1), [[[-2, -2, -2]]])


def test_same_padding_keeps_the_enlarged_extents():
    x, w = np.ones((1, 1, 4, 5), np.float32), np.ones((2, 1, 3, 5), np.float32)
    assert tconv_cl.upsample_conv(x, w, scale=(2, 3), auto_pad="same_upper").shape == (1, 2, 8, 15)


def test_refusals():
    x, w = np.ones((1, 4, 3), np.float32), np.ones((6, 4, 3), np.float32)
    with pytest.raises(tconv_cl.RequestError, match="wants 4 input channels of a group"):
        tconv_cl.upsample_conv(x, w, groups=2)
    with pytest.raises(tconv_cl.RequestError, match="need not fit an integer type"):
        tconv_cl.upsample_conv(x.astype(np.int8), w.astype(np.int8))
    with pytest.raises(tconv_cl.RequestError, match="strides"):
        tconv_cl.upsample_conv(x, w, scale=0)


@pytest.mark.parametrize("name", ["stride", "strides", "scale_factor", "factor"])
def test_other_names_of_the_factors(name):
    x, w = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 3), np.float32)
    with pytest.raises(TypeError, match=rf"'{name}'; write scale=2$"):
        tconv_cl.upsample_conv(x, w, **{name: 2})


def test_negative_pads_cut():
    """As 3 x 3 taps behind pads that repeat the border: the border of the small data is repeated before."""
    random = np.random.default_rng(1)
    x, w = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((1, 2, 3, 4), (3, 2, 3, 3)))
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], mode="edge")
    enlarged = np.pad(x.repeat(2, 2).repeat(2, 3), [(0, 0), (0, 0), (1, 1), (1, 1)], mode="reflect")
    y = tconv_cl.upsample_conv(wide, w, scale=2, pads_begin=-1, pads_end=-1)
    np.testing.assert_array_equal(y, two_steps(enlarged, w, (1, 1), (0, 0), (0, 0), (1, 1), 1, False, False))
    with pytest.raises(tconv_cl.RequestError, match="pads_end is -2 at spatial axis 1: it must be at least -1"):
        tconv_cl.upsample_conv(wide, w, scale=2, pads_end=(-1, -2))
