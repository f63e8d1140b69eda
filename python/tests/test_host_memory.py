# SPDX-License-Identifier: Apache-2.0
"""On devices that share the host's memory, kernels work in the memory of NumPy arrays, wherever it lies."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tconv_cl
from tconv_cl._device import number_of

DATA, FILTER = np.random.default_rng(5).random((2, 3, 9, 7), np.float32), np.ones((3, 4, 3, 3), np.float32)

COPIES = """
import ctypes, sys
import numpy as np
import tconv_cl
counter = ctypes.CDLL(sys.argv[1])
data, filter = np.ones((1, 8, 9, 7), np.float32), np.ones((8, 8, 3, 3), np.float32)
out = np.empty((1, 8, 11, 9), np.float32)
layer = tconv_cl.ConvTranspose(filter)
counts = []
for call in (lambda: tconv_cl.conv_transpose(data, filter, out=out), lambda: layer(data, out=out), lambda: layer(data),
             lambda: tconv_cl.conv_transpose(data, filter, memory_limit=4000)):
    before = counter.copies_counted()
    call()
    counts.append(counter.copies_counted() - before)
for dtype in ("f4", "f2", "i1"):  # slices that begin at an odd number of elements
    wide, joined = np.ones((1, 11, 9, 7), dtype), np.zeros((1, 13, 11, 9), dtype)
    before = counter.copies_counted()
    tconv_cl.conv_transpose(wide[:, 1:9], filter.astype(dtype), out=joined[:, 3:11])
    counts.append(counter.copies_counted() - before)
    assert joined[0, 3:11, 4, 4].tolist() == [72] * 8 and not joined[:, :3].any() and not joined[:, 11:].any()
print(*counts[:3], counts[3] > 0, *counts[4:])  # slabs are copied, which shows that copies are counted
"""


def at_offset(array, elements):
    """The same numbers, so many elements behind an address that is a multiple of 64."""
    memory = np.empty(array.size + 32, array.dtype)
    first = -memory.ctypes.data % 64 // array.itemsize + elements
    view = memory[first : first + array.size].reshape(array.shape)
    view[...] = array
    return view


def test_nothing_is_copied(tmp_path):
    if tconv_cl.devices()[number_of(None)].kind != "cpu":
        pytest.skip("the default device has its own memory")
    source = Path(__file__).resolve().parents[2] / "adapters" / "count_copies.c"
    counter = tmp_path / "count_copies.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", counter, source, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(counter)}
    done = subprocess.run([sys.executable, "-c", COPIES, counter], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "0", "0", "True", "0", "0", "0"], done.stderr


@pytest.mark.parametrize("elements", [0, 1, 2, 6, 14])
def test_arrays_lie_anywhere(elements):
    wanted = tconv_cl.conv_transpose(DATA.copy(), FILTER)
    out = at_offset(np.full_like(wanted, np.nan), elements)
    tconv_cl.conv_transpose(at_offset(DATA, elements), at_offset(FILTER, elements), out=out)
    assert (out == wanted).all()


def test_unaligned_elements_are_copied():
    memory = np.zeros(DATA.nbytes + 1, np.uint8)
    unaligned = memory[1:].view(np.float32).reshape(DATA.shape)
    unaligned[...] = DATA
    assert not unaligned.flags.aligned
    assert (tconv_cl.conv_transpose(unaligned, FILTER) == tconv_cl.conv_transpose(DATA, FILTER)).all()


def test_one_array_as_two():
    residual = np.zeros((2, 3, 9, 7), np.float32) + DATA
    one = np.ones((3, 3, 1, 1), np.float32)
    wanted = tconv_cl.conv_transpose(DATA, one, residual=residual)
    assert (tconv_cl.conv_transpose(DATA, one, residual=DATA) == wanted).all()


@pytest.mark.parametrize("elements", [0, 1])
def test_out_is_read_where_it_is(elements):
    out = at_offset(tconv_cl.conv_transpose(DATA, FILTER), elements)
    wanted = 3 * out
    tconv_cl.conv_transpose(DATA, FILTER, out=out, beta=2)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (1, 3, 64, 65)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1"])
def test_new_arrays_begin_with_a_cache_line(shape, dtype):
    out = tconv_cl.conv_transpose(np.ones(shape, dtype), np.ones((3, 2, 2, 2), dtype))
    assert out.ctypes.data % 64 == 0 and out.flags.c_contiguous and out.flags.writeable and out.flags.aligned
    assert out.shape == (shape[0], 2, shape[2] + 1, shape[3] + 1) and out.dtype == dtype
