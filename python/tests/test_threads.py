# SPDX-License-Identifier: Apache-2.0
"""Many threads at once: the same results, no memory left behind, and other threads run while one waits."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl.array
import pytest

import tconv_cl

THREADS, CALLS = 8, 1000
RANDOM = np.random.default_rng(5)
DATA = [RANDOM.integers(-8, 8, (1, 3, extent)).astype(np.float32) for extent in range(4, 9)]
FILTER = RANDOM.integers(-8, 8, (3, 2, 3)).astype(np.float32)
WANTED = [tconv_cl.conv_transpose(data, FILTER, strides=2) for data in DATA]


def resident_bytes():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_threads(call, count):
    def work(seed):
        for i in range(count):
            which = (seed + i) % len(DATA)
            np.testing.assert_array_equal(call(which), WANTED[which])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


@pytest.mark.parametrize("way", ["numpy", "layer", "pyopencl"])
def test_many_calls(way, queue):
    layer = tconv_cl.ConvTranspose(FILTER, strides=2)
    filter, *data = [pyopencl.array.to_device(queue, array) for array in (FILTER, *DATA)]
    calls = {
        "numpy": lambda which: tconv_cl.conv_transpose(DATA[which], FILTER, strides=2),
        "layer": lambda which: layer(DATA[which]),
        "pyopencl": lambda which: tconv_cl.conv_transpose(data[which], filter, strides=2).get(),
    }
    in_threads(calls[way], CALLS // 4)
    before = resident_bytes()
    in_threads(calls[way], CALLS)
    assert resident_bytes() - before < 8 << 20


def test_plans_made_side_by_side():
    tconv_cl.clear_cache()
    in_threads(lambda which: tconv_cl.conv_transpose(DATA[which], FILTER, strides=2), 10)
    assert tconv_cl.cache_info().plans == len(DATA)


def test_others_run_meanwhile():
    data, filter = np.ones((1, 32, 96, 96), np.float32), np.ones((32, 32, 5, 5), np.float32)
    tconv_cl.conv_transpose(data, filter, algorithm="reference")
    call = threading.Thread(target=tconv_cl.conv_transpose, args=(data, filter), kwargs={"algorithm": "reference"})
    turns = 0
    call.start()
    while call.is_alive():
        turns += 1
        call.join(0.001)
    assert turns > 20
