# SPDX-License-Identifier: Apache-2.0
"""Data with a spatial extent of 0: the output has the formula's extents, and each element is the epilogue of 0."""

import numpy as np
import pytest

import tconv_cl

FILTER = np.ones((4, 3, 3, 3), np.float32)
BIAS = np.arange(3, dtype=np.float32)
SHAPES = {
    (1, 4, 0, 5): (1, 3, 1, 11),
    (2, 4, 3, 0): (2, 3, 7, 1),
    (1, 4, 0, 0): (1, 3, 1, 1),
    (0, 4, 0, 5): (0, 3, 1, 11),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_output_is_the_bias(shape, compute):
    data = np.zeros(shape, np.float32)
    wanted = np.broadcast_to(BIAS[:, None, None], SHAPES[shape])
    assert tconv_cl.output_shape(shape, FILTER.shape, strides=2) == SHAPES[shape]
    np.testing.assert_array_equal(compute(data, FILTER, BIAS, strides=2), wanted)
    np.testing.assert_array_equal(tconv_cl.ConvTranspose(FILTER, BIAS, strides=2)(data), wanted)
    out = np.full(SHAPES[shape], np.nan, np.float32)
    assert tconv_cl.conv_transpose(data, FILTER, BIAS, strides=2, out=out) is out
    np.testing.assert_array_equal(out, wanted)


def test_windows_take_no_rows():
    data = np.zeros((1, 4, 0, 5), np.float32)
    options = dict(strides=2, output_shape=[9, 11])
    assert tconv_cl.window_input(data.shape, FILTER.shape, (2, 7), **options) == (0, 0)
    output = tconv_cl.conv_transpose(data, FILTER, BIAS, **options, output_rows=(2, 7), data_rows=0)
    np.testing.assert_array_equal(output, np.broadcast_to(BIAS[:, None, None], (1, 3, 5, 11)))


def test_no_output_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="extent -1 at spatial axis 0: input 0"):
        tconv_cl.conv_transpose(np.zeros((1, 4, 0, 5), np.float32), FILTER[:, :, :1, :1], strides=2)


def test_the_message_names_the_algorithm():
    with pytest.raises(ValueError, match="packed_vector .* spatial extent of 0"):
        tconv_cl.conv_transpose(np.zeros((1, 4, 0, 5), np.float32), FILTER, strides=2, algorithm="packed_vector")
