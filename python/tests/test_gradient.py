# SPDX-License-Identifier: Apache-2.0
"""The gradient of an ordinary convolution with respect to its data, against the definition in float64 or integers."""

import numpy as np
import pyopencl.array
import pytest
import tconv_cl

KINDS = ("f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def spread(shape, w, dy, strides, dilations, begin, groups):
    """Each output's gradient goes back, by each tap, to the element that the tap took; channels first."""
    wide = np.float64 if dy.dtype.kind == "f" else np.int64
    w, dy = w.astype(wide), dy.astype(wide)
    axes, inner, outer = len(shape) - 2, w.shape[1], w.shape[0] // groups
    dx = np.zeros(shape, wide)
    for at in np.ndindex(*dy.shape[2:]):
        for k in np.ndindex(*w.shape[2:]):
            x = tuple(at[a] * strides[a] + k[a] * dilations[a] - begin[a] for a in range(axes))
            if all(0 <= x[a] < shape[a + 2] for a in range(axes)):
                for g in range(groups):
                    rows = slice(g * outer, (g + 1) * outer)
                    part = dy[(slice(None), rows, *at)] @ w[(rows, slice(None), *k)]
                    dx[(slice(None), slice(g * inner, (g + 1) * inner), *x)] += part
    return dx


def extents_of(x, kernel, strides, dilations, begin, end):
    return [
        (n + b + e - d * (k - 1) - 1) // s + 1 for n, k, s, d, b, e in zip(x, kernel, strides, dilations, begin, end)
    ]


@pytest.mark.parametrize("seed", range(22))
def test_definition(seed):
    random = np.random.default_rng(seed)
    axes, groups, kind = 1 + seed % 3, int(random.integers(1, 4)), np.dtype(KINDS[seed % len(KINDS)])
    inner, outer = (int(n) for n in random.integers(1, 4, 2))
    last, xio = bool(seed & 1), bool(seed & 2)
    kernel, strides, dilations = (tuple(int(n) for n in random.integers(1, 4, axes)) for _ in range(3))
    begin, end = (tuple(int(n) for n in random.integers(0, 3, axes)) for _ in range(2))
    x = tuple(int(n) for n in random.integers(7, 11, axes))
    shape = (2, groups * inner, *x)
    y = extents_of(x, kernel, strides, dilations, begin, end)
    least = 0 if kind.kind == "u" else -3
    w = random.integers(least, 4, (groups * outer, inner, *kernel)).astype(kind)
    dy = random.integers(least, 4, (2, groups * outer, *y)).astype(kind)
    wanted = spread(shape, w, dy, strides, dilations, begin, groups)
    dx = tconv_cl.conv_input_gradient(
        (2, *x, groups * inner) if last else shape,
        np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))) if xio else w,
        np.ascontiguousarray(np.moveaxis(dy, 1, -1)) if last else dy,
        strides=strides, dilations=dilations, pads_begin=begin, pads_end=end, groups=groups,
        data_format="NXC" if last else "NCX", filter_format="XIO" if xio else "OIX",
    )  # fmt: skip
    assert dx.dtype == kind
    np.testing.assert_array_equal(np.moveaxis(dx, -1, 1) if last else dx, wanted.astype(kind))


def test_real_numbers_accumulate_in_out():
    random = np.random.default_rng(3)
    w, dy = (random.standard_normal(shape).astype(np.float32) for shape in ((6, 2, 3, 2), (1, 6, 4, 5)))
    shape, options = (1, 4, 8, 11), dict(strides=2, pads_begin=(1, 0), pads_end=(0, 0), groups=2)
    wanted = spread(shape, w, dy, (2, 2), (1, 1), (1, 0), 2)
    out = np.ones(shape, np.float32)
    assert tconv_cl.conv_input_gradient(shape, w, dy, **options, out=out, beta=1) is out
    np.testing.assert_allclose(out, wanted + 1, rtol=1e-5, atol=1e-5)
    other = random.standard_normal(shape).astype(np.float32)
    dx = tconv_cl.conv_input_gradient(shape, w, dy, **options, residual=other)
    np.testing.assert_allclose(dx, wanted + other, rtol=1e-5, atol=1e-5)


def test_bytes_with_a_filter_of_another_type():
    w, dy = np.array([[[-100, 100]]], np.int8), np.array([[[200, 255]]], np.uint8)
    dx = tconv_cl.conv_input_gradient((1, 1, 5), w, dy, strides=2, output_type="i32")
    np.testing.assert_array_equal(dx, [[[-20000, 20000, -25500, 25500, 0]]])


@pytest.mark.parametrize("mode, begin", [("same_upper", 0), ("SAME_LOWER", 1), ("valid", 0)])
def test_padding_by_name(mode, begin):
    """TensorFlow's SAME: 6 with stride 2 and 3 taps are 3 outputs, with one pad at one end."""
    w, dy = np.array([[[1, 10, 100]]], np.int32), np.array([[[1, 2, 3][: 2 if mode == "valid" else 3]]], np.int32)
    dx = tconv_cl.conv_input_gradient((1, 1, 6), w, dy, strides=2, auto_pad=mode)
    np.testing.assert_array_equal(dx, spread((1, 1, 6), w, dy, (2,), (1,), (begin,), 1))


def test_pyopencl_arrays(queue):
    w, dy = (pyopencl.array.to_device(queue, np.array([[v]], np.float32)) for v in ([1, 10, 100], [1, 2]))
    dx = tconv_cl.conv_input_gradient((1, 1, 6), w, dy, strides=3, pads_end=0)
    np.testing.assert_array_equal(dx.get(), [[[1, 10, 100, 2, 20, 200]]])


def test_refusals():
    w, dy = np.ones((4, 2, 3), np.float32), np.ones((1, 4, 3), np.float32)
    cases = [
        ((1, 2, 9), {"strides": 2}, r"grad_output has shape \[1, 4, 3\].*gives \[1, 4, 4\]: they differ at axis 2"),
        ((2, 2, 5), {}, "they differ at axis 0"),
        ((1, 3, 5), {}, r"input_shape has 3 channels \(axis 1\), but the filter has 2 input channels \(axis 1\)$"),
        ((1, 2, 5), {"groups": 2}, "input channels .axis 1. for each of 2 groups"),
        ((1, 2, 5, 5), {}, "input_shape has rank 4, filter 3 and grad_output 3"),
        ((1, 2, 5), {"strides": 0}, "strides is 0 at spatial axis 0: it must be at least 1"),
        ((1, 2, 5), {"pads_end": -1}, "pads_end is -1 at spatial axis 0: it must be at least 0"),
        ((1, 2, 5), {"dilations": (1, 1)}, "dilations has 2 values"),
        ((1, 2, 5), {"groups": 0}, "groups is 0"),
    ]
    for shape, options, sentence in cases:
        with pytest.raises(tconv_cl.RequestError, match=sentence):
            tconv_cl.conv_input_gradient(shape, w, dy, **options)


def test_names_of_other_systems():
    w, dy = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 3), np.float32)
    written = "'input_size': write input_shape=.*; 'weight': write filter=.*; 'stride': write strides=2; "
    with pytest.raises(TypeError, match=written + "'padding': write pads_begin=1, pads_end=1"):
        tconv_cl.conv_input_gradient(grad_output=dy, input_size=(1, 1, 5), weight=w, stride=2, padding=1)
    with pytest.raises(TypeError, match="'input_sizes': .*'filters': .*'out_backprop': write grad_output=.*'padding'"):
        tconv_cl.conv_input_gradient(input_sizes=(1, 1, 5), filters=w, out_backprop=dy, padding="SAME")
    with pytest.raises(TypeError, match=r"'grad_output'; write grad_output=..., an argument of conv_input_gradient"):
        tconv_cl.conv_transpose(dy, w, grad_output=dy)
