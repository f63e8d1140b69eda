# SPDX-License-Identifier: Apache-2.0
"""Every element type, against the definition."""

import numpy as np
import pytest
import reference

import tconv_cl
from tconv_cl import _library, _types

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
# Unit roundoff of the output, and of the sum: what is not f64 is added up in f32.
FLOATS = {"float64": (2**-53, 2**-53), "float32": (0, 2**-24), "float16": (2**-11, 2**-24), "bfloat16": (2**-8, 2**-24)}


def dtype_named(name):
    if name == "bfloat16":
        return pytest.importorskip("ml_dtypes", reason="bfloat16 needs the package ml_dtypes").bfloat16
    return np.dtype(name)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap(name, compute):
    random, limits = np.random.default_rng(1), np.iinfo(name)
    data = random.integers(limits.min, limits.max, (2, 3, 5, 4), name, endpoint=True)
    filter = random.integers(limits.min, limits.max, (3, 4, 3, 2), name, endpoint=True)
    exact = reference.conv_transpose(data, filter, stride=2, pad=1)
    wanted = ((exact - limits.min) % 2**limits.bits + limits.min).astype(name)
    output = compute(data, filter, strides=2, pads_begin=1, pads_end=1)
    assert output.dtype == wanted.dtype
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name, compute):
    if name == "float64" and not all(device.double_arithmetic for device in tconv_cl.devices()):
        pytest.skip("a device has no double precision")
    random, dtype = np.random.default_rng(2), dtype_named(name)
    data = random.standard_normal((2, 3, 5, 4)).astype(dtype)
    filter = random.standard_normal((3, 4, 3, 2)).astype(dtype)
    output = compute(data, filter, strides=2, pads_begin=1, pads_end=1)
    assert output.dtype == dtype
    wanted = reference.conv_transpose(data, filter, stride=2, pad=1)
    magnitude = reference.conv_transpose(np.abs(data), np.abs(filter), stride=2, pad=1)
    last, sums = FLOATS[name]
    terms = 3 * 2 * 1 + 1  # channels, at most 2 x 1 taps of a 3 x 2 kernel with stride 2, and one more
    bound = (last + 1.01 * terms * sums) * magnitude
    assert np.all(np.abs(output.astype(np.float64) - wanted) <= bound)


@pytest.mark.parametrize("wanted", ["f32", np.float32, np.dtype("float32")])
def test_wider_output(wanted, compute):
    data, filter = np.full((1, 1, 2), 2**-14, np.float16), np.full((1, 1, 1), 2**-14, np.float16)
    output = compute(data, filter, output_type=wanted)
    assert output.dtype == np.float32
    np.testing.assert_array_equal(output, np.full((1, 1, 2), 2**-28, np.float32))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_light_weights(name, compute):
    """A filter of half the size gives the bits of the same weights in float32."""
    random = np.random.default_rng(3)
    data = random.standard_normal((2, 3, 5, 4)).astype(np.float32)
    filter = random.standard_normal((3, 4, 3, 2)).astype(dtype_named(name))
    output = compute(data, filter, strides=2)
    assert output.dtype == np.float32
    np.testing.assert_array_equal(output, compute(data, filter.astype(np.float32), strides=2))
    bias = random.standard_normal(4).astype(np.float32)
    layer = tconv_cl.ConvTranspose(filter, bias)
    np.testing.assert_array_equal(layer(data), tconv_cl.conv_transpose(data, filter.astype(np.float32), bias))
    with pytest.raises(tconv_cl.RequestError, match="data of f32 also go with a filter of f16 or bf16"):
        compute(data.astype(np.float64), filter)


def test_mixed_bytes(compute):
    data, filter = np.array([[[200, 100]]], np.uint8), np.array([[[-100]]], np.int8)
    np.testing.assert_array_equal(compute(data, filter, output_type=np.int32), [[[-20000, -10000]]])


@pytest.mark.parametrize("dtype", [">f4", "bool", "complex64"])
def test_types_that_there_are_not(dtype):
    array = np.ones((1, 1, 2), dtype)
    with pytest.raises(ValueError, match="data has elements of type .*float32"):
        tconv_cl.conv_transpose(array, array)


def test_every_type_of_the_library_has_one_of_numpy():
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs the package ml_dtypes")
    numbers = [number for number in range(100) if _library.library.tconv_type_name(number) != b"?"]
    assert len(numbers) == len({_types.dtype_of(number) for number in numbers}) == len(INTEGERS) + len(FLOATS)
