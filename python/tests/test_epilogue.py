# SPDX-License-Identifier: Apache-2.0
"""What becomes of the sums: every part of the epilogue, by NumPy and by pyopencl."""

import math

import numpy as np
import pytest
import reference

import tconv_cl

RANDOM = np.random.default_rng(3)
DATA = RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32)
FILTER = RANDOM.standard_normal((3, 4, 3, 3)).astype(np.float32)
SUM = reference.conv_transpose(DATA, FILTER, stride=2)
CHANNELS = RANDOM.standard_normal((3, 4)).astype(np.float32)  # for bias, scale and slope
TENSOR = RANDOM.standard_normal(SUM.shape).astype(np.float32)


def by_channel(values):
    return values.astype(np.float64)[:, None, None]


def test_the_whole_formula(compute):
    bias, scale, slope = CHANNELS
    out = RANDOM.standard_normal(SUM.shape).astype(np.float32)
    options = {"alpha": 0.5, "beta": -2, "residual": TENSOR, "scale": scale, "activation": "prelu", "slope": slope}
    wanted = 0.5 * SUM * by_channel(scale) + by_channel(bias) - 2.0 * out + TENSOR
    wanted = np.where(wanted < 0, by_channel(slope) * wanted, wanted)
    output = compute(DATA, FILTER, bias, strides=2, out=out, **options)
    np.testing.assert_allclose(output, wanted, rtol=2e-5, atol=2e-5)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    ("leaky_relu", 0.25): lambda x: np.where(x < 0, 0.25 * x, x),
    ("clamp", -0.5, 1.5): lambda x: np.clip(x, -0.5, 1.5),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    ("elu", 0.5): lambda x: np.where(x < 0, 0.5 * (np.exp(x) - 1), x),
}


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_activation(activation, compute):
    output = compute(DATA, FILTER, strides=2, activation=activation)
    np.testing.assert_allclose(output, ACTIVATIONS[activation](SUM), rtol=1e-4, atol=1e-5)


def test_snake(compute):
    slope = np.abs(CHANNELS[2]) + 0.5
    wanted = SUM + np.sin(by_channel(slope) * SUM) ** 2 / by_channel(slope)
    output = compute(DATA, FILTER, strides=2, activation="snake", slope=slope)
    np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-5)


def test_snakebeta(compute):
    slope, slope2 = (np.abs(CHANNELS[i]) + 0.5 for i in (2, 1))
    wanted = SUM + np.sin(by_channel(slope) * SUM) ** 2 / by_channel(slope2)
    output = compute(DATA, FILTER, strides=2, activation="snakebeta", slope=slope, slope2=slope2)
    np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-5)


def test_requantize(compute):
    data = RANDOM.integers(0, 256, (1, 3, 6), np.uint8)
    filter = RANDOM.integers(-128, 128, (3, 4, 3), np.int8)
    scale = np.full(4, 2.0**-9, np.float32)
    bias = np.array([0, 1, -1.5, 20], np.float32)
    exact = reference.conv_transpose(data.astype(np.int32) - 128, filter.astype(np.int32) - 3).astype(np.float64)
    wanted = np.clip(np.rint(exact * 2.0**-9 + bias[:, None]) + 7, -128, 127)
    output = compute(
        data,
        filter,
        bias,
        scale=scale,
        requantize=True,
        data_zero_point=128,
        filter_zero_point=3,
        output_zero_point=7,
        output_type=np.int8,
    )
    assert output.dtype == np.int8
    np.testing.assert_array_equal(output, wanted)


def test_out_is_returned():
    out = np.empty(SUM.shape, np.float32)
    assert tconv_cl.conv_transpose(DATA, FILTER, strides=2, out=out) is out
    np.testing.assert_allclose(out, SUM, rtol=2e-5, atol=2e-5)


def test_a_layer_with_another_bias():
    layer = tconv_cl.ConvTranspose(FILTER, CHANNELS[0], strides=2)
    wanted = tconv_cl.conv_transpose(DATA, FILTER, CHANNELS[1], strides=2)
    np.testing.assert_array_equal(layer(DATA, bias=CHANNELS[1]), wanted)
    np.testing.assert_array_equal(layer(DATA), tconv_cl.conv_transpose(DATA, FILTER, CHANNELS[0], strides=2))


def test_the_same_in_slabs():
    bias, scale, _ = CHANNELS
    options = {"strides": 2, "scale": scale, "residual": TENSOR, "activation": "relu"}
    whole = tconv_cl.conv_transpose(DATA, FILTER, bias, **options)
    slabs = tconv_cl.conv_transpose(DATA, FILTER, bias, memory_limit=4096, **options)
    np.testing.assert_allclose(slabs, whole, rtol=2e-5, atol=2e-5)
