# SPDX-License-Identifier: Apache-2.0
"""Arrays that are not contiguous: views are used where they lie, and only elements of `out` are written."""

import numpy as np
import pyopencl.array
import pytest
import tconv_cl
from tconv_cl import _host
from tconv_cl._arrays import Arrays

DATA = np.arange(2 * 4 * 5 * 6, dtype=np.float32).reshape(2, 4, 5, 6) % 7
FILTER = np.arange(4 * 3 * 2 * 2, dtype=np.float32).reshape(4, 3, 2, 2) % 5
WANTED = tconv_cl.conv_transpose(DATA, FILTER, strides=2)  # (2, 3, 10, 12)

VIEWS = {
    "a part of the channels": lambda array: array[:, 2:-3],
    "a part of each row": lambda array: array[..., 1:-1],
    "each second column": lambda array: array[..., ::2],
    "another order of the axes": lambda array: np.moveaxis(array, 1, -1),
    "rows backwards": lambda array: array[:, :, ::-1],
    "columns backwards": lambda array: array[..., ::-3],
}


def whole_of(shape, view):
    """The shape of the array whose view has this shape."""
    if view == "a part of the channels":
        return (shape[0], shape[1] + 5, *shape[2:])
    if view == "a part of each row":
        return (*shape[:3], shape[3] + 2)
    if view == "each second column":
        return (*shape[:3], 2 * shape[3])
    if view == "another order of the axes":
        return (shape[0], shape[3], *shape[1:3])
    return (*shape[:3], 3 * shape[3]) if view == "columns backwards" else shape


def made(array, view):
    """A view with the elements of an array, in an array of NaN."""
    whole = np.full(whole_of(array.shape, view), np.nan, array.dtype)
    VIEWS[view](whole)[...] = array
    return whole, VIEWS[view](whole)


@pytest.mark.parametrize("view", VIEWS)
def test_data(view):
    _, data = made(DATA, view)
    assert data.shape == DATA.shape and not data.flags.c_contiguous
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, FILTER, strides=2), WANTED)
    layer = tconv_cl.ConvTranspose(FILTER, strides=2)
    np.testing.assert_array_equal(layer(data), WANTED)
    np.testing.assert_array_equal(layer(DATA), WANTED)  # another plan


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("beta", [0, 2])
@pytest.mark.parametrize("memory_limit", [None, 4000])
def test_out(view, beta, memory_limit):
    before = np.ones(WANTED.shape, np.float32)
    whole, out = made(before, view)
    unused = np.isnan(whole)
    options = {"strides": 2, "beta": beta, "memory_limit": memory_limit}
    assert tconv_cl.conv_transpose(DATA, FILTER, out=out, **options) is out
    np.testing.assert_array_equal(out, WANTED + beta)
    assert (np.isnan(whole) == unused).all()


def test_a_concatenated_tensor():
    """Data and output are channels of one array, last: their elements lie between each other."""
    joined = np.full((2, 5, 6, 10), np.nan, np.float32)
    joined[..., :4] = np.moveaxis(DATA, 1, -1)
    wanted = tconv_cl.conv_transpose(joined[..., :4].copy(), FILTER[..., :1, :1], groups=1, data_format="NXC")
    out = joined[..., 5:8]
    tconv_cl.conv_transpose(joined[..., :4], FILTER[..., :1, :1], groups=1, data_format="NXC", out=out)
    np.testing.assert_array_equal(out, wanted)
    assert np.isnan(joined[..., 4]).all() and np.isnan(joined[..., 8:]).all()
    with pytest.raises(ValueError, match="out shares memory with data"):
        tconv_cl.conv_transpose(joined[..., :4], FILTER[..., :1, :1], groups=1, data_format="NXC", out=joined[..., 3:6])


def test_residuals():
    row = np.arange(12, dtype=np.float32)
    channel = np.arange(3, dtype=np.float32).reshape(3, 1, 1)
    for residual in (row, channel, np.float32(3)):
        views = np.broadcast_to(residual, WANTED.shape)
        got = tconv_cl.conv_transpose(DATA, FILTER, strides=2, residual=views)
        np.testing.assert_array_equal(got, WANTED + views)
    whole, out = made(WANTED, "another order of the axes")
    got = tconv_cl.conv_transpose(DATA, FILTER, strides=2, residual=out)
    np.testing.assert_array_equal(got, 2 * WANTED)


@pytest.mark.parametrize("view", VIEWS)
def test_filters(view, queue):
    """They are packed where they lie, but for negative strides, and again when they change."""
    whole, filter = made(FILTER, view)
    taken = _host.in_place(Arrays(DATA, filter)).filter
    assert (taken is filter) == ("backwards" not in view)
    layer = tconv_cl.ConvTranspose(filter, strides=2)
    for _ in range(2):
        np.testing.assert_array_equal(tconv_cl.conv_transpose(DATA, filter, strides=2), WANTED)
        np.testing.assert_array_equal(layer(DATA), WANTED)
    if taken is not filter:
        return
    filter[0, 0, 0, 0] += 1
    wanted = tconv_cl.conv_transpose(DATA, filter.copy(), strides=2)
    assert not np.array_equal(wanted, WANTED)
    np.testing.assert_array_equal(layer(DATA), wanted)
    weights = pyopencl.array.to_device(queue, whole)
    weights = weights.transpose((0, 2, 3, 1)) if "order" in view else VIEWS[view](weights)
    data = pyopencl.array.to_device(queue, DATA)
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, weights, strides=2).get(), wanted)


def test_an_out_that_overlaps_itself():
    memory = np.zeros(400, np.float32)
    out = np.lib.stride_tricks.as_strided(memory, WANTED.shape, (4, 8, 40, 4))
    with pytest.raises(ValueError, match="output_steps is .* outputs do not overlap"):
        tconv_cl.conv_transpose(DATA, FILTER, strides=2, out=out)
    assert not memory.any()


def test_windows_of_views():
    _, data = made(DATA, "a part of the channels")
    begin, end = tconv_cl.window_input(DATA.shape, FILTER.shape, (3, 7), strides=2)
    whole, out = made(WANTED, "each second column")
    options = {"strides": 2, "output_rows": (3, 7), "data_rows": 5}
    tconv_cl.conv_transpose(data[:, :, begin:end], FILTER, out=out[:, :, 3:7], **options)
    np.testing.assert_array_equal(out, WANTED)
    assert np.isnan(whole[..., 1::2]).all()


def test_unaligned_arrays():
    bytes_ = np.zeros(DATA.nbytes * 2 + 1, np.uint8)
    data = bytes_[1:].view(np.float32).reshape(2, 4, 5, 12)[..., ::2]
    data[...] = DATA
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, FILTER, strides=2), WANTED)


@pytest.mark.parametrize("first", [0, -4, 720])
def test_out_whose_elements_share_places(first):
    rest = {0: (480, 48, 4), -4: (-4, -4, -4), 720: (240, 24, 2)}[first]
    memory = np.zeros(2000, np.float32)
    out = np.lib.stride_tricks.as_strided(memory[1000:], WANTED.shape, (first, *rest))
    with pytest.raises(tconv_cl.RequestError, match="its elements share places"):
        tconv_cl.conv_transpose(DATA, FILTER, strides=2, out=out)
    assert not memory.any()


@pytest.mark.parametrize("view", ["a part of the channels", "a part of each row", "each second column"])
def test_of_pyopencl(queue, view):
    whole, _ = made(DATA, view)
    data = VIEWS[view](pyopencl.array.to_device(queue, whole))
    filter = pyopencl.array.to_device(queue, FILTER)
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, filter, strides=2).get(), WANTED)
    before, _ = made(np.ones_like(WANTED), view)
    target = pyopencl.array.to_device(queue, before)
    out = VIEWS[view](target)
    tconv_cl.conv_transpose(data, filter, strides=2, out=out)
    VIEWS[view](before)[...] = WANTED
    np.testing.assert_array_equal(target.get(), before)


def test_a_view_over_the_filter_of_pyopencl(queue):
    """The filter between the elements of `out`, in one buffer."""
    before, _ = made(np.ones_like(WANTED), "each second column")
    target = pyopencl.array.to_device(queue, before)
    out = VIEWS["each second column"](target)
    data = pyopencl.array.to_device(queue, DATA)
    filter = target.ravel()[: FILTER.size].reshape(FILTER.shape)
    assert filter.base_data is target.base_data
    with pytest.raises(ValueError, match="out shares memory with filter"):
        tconv_cl.conv_transpose(data, filter, strides=2, out=out)
    np.testing.assert_array_equal(target.get(), before)


def test_negative_strides_of_pyopencl(queue):
    data = pyopencl.array.to_device(queue, DATA)
    filter = pyopencl.array.to_device(queue, FILTER)
    try:
        backwards = data[:, :, ::-1]
    except (NotImplementedError, ValueError, RuntimeError):
        pytest.skip("this pyopencl has no such views")
    if all(stride > 0 for stride in backwards.strides):
        pytest.skip("this pyopencl copies such views")
    with pytest.raises(ValueError, match="data has strides of"):
        tconv_cl.conv_transpose(backwards, filter, strides=2)
