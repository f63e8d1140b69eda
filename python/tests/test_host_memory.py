# SPDX-License-Identifier: Apache-2.0
"""On devices that share the host's memory, kernels work in the memory of NumPy arrays."""

import numpy as np
import pytest

import tconv_cl
from tconv_cl import _host
from tconv_cl._device import host_device, number_of

DATA, FILTER = np.random.default_rng(5).random((2, 3, 9, 7), np.float32), np.ones((3, 4, 3, 3), np.float32)


@pytest.fixture
def copies(monkeypatch):
    """How many bytes are written to and read from buffers."""
    if not host_device(number_of(None)).shares_memory:
        pytest.skip("the default device has its own memory")
    counts = {"clEnqueueWriteBuffer": 0, "clEnqueueReadBuffer": 0}
    for name in counts:
        call = getattr(_host.library, name)

        def counted(*arguments, name=name, call=call):
            counts[name] += 1
            return call(*arguments)

        monkeypatch.setattr(_host.library, name, counted)
    return counts


def at_offset(array, elements):
    """The same numbers, so many elements behind an address that is a multiple of 64."""
    memory = np.empty(array.size + 32, array.dtype)
    first = -memory.ctypes.data % 64 // array.itemsize + elements
    view = memory[first : first + array.size].reshape(array.shape)
    view[...] = array
    return view


@pytest.mark.parametrize("elements", [0, 2, 6, 14])
def test_nothing_is_copied(copies, elements):
    wanted = tconv_cl.conv_transpose(DATA.copy(), FILTER)
    before = dict(copies)
    out = at_offset(np.full_like(wanted, np.nan), elements)
    tconv_cl.conv_transpose(at_offset(DATA, elements), at_offset(FILTER, elements), out=out)
    assert copies == before and (out == wanted).all()


def test_what_is_not_aligned_is_copied(copies):
    wanted = tconv_cl.conv_transpose(DATA, FILTER)
    before = dict(copies)
    out = at_offset(np.full_like(wanted, np.nan), 1)
    tconv_cl.conv_transpose(at_offset(DATA, 1), FILTER, out=out)
    assert {name: copies[name] - before[name] for name in copies} == dict(clEnqueueWriteBuffer=1, clEnqueueReadBuffer=1)
    assert (out == wanted).all()


def test_no_two_buffers_lie_in_the_same_memory(copies):
    residual = np.zeros((2, 3, 9, 7), np.float32) + DATA
    one = np.ones((3, 3, 1, 1), np.float32)
    wanted = tconv_cl.conv_transpose(DATA, one, residual=residual)
    before = dict(copies)
    assert (tconv_cl.conv_transpose(DATA, one, residual=DATA) == wanted).all()
    assert copies["clEnqueueWriteBuffer"] - before["clEnqueueWriteBuffer"] == 2


def test_out_is_read_where_it_is(copies):
    out = at_offset(tconv_cl.conv_transpose(DATA, FILTER), 0)
    wanted = 3 * out
    before = dict(copies)
    tconv_cl.conv_transpose(DATA, FILTER, out=out, beta=2)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    assert copies == before
