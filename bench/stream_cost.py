#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a push of a stream costs, against a plain call on the same columns: HiFi-GAN's four upsamplers.

Both are calls of the C library with packed weights, interleaved; a line for each layer and length of chunk. The plain
call's layer has no pads, so that both take the same multiply-adds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from ctypes import byref

import numpy as np

import tconv_cl
from tconv_cl import _library as c
from tconv_cl._device import Layer, Request, Resolved, number_of, opened
from tconv_cl._request import Tensor, attributes_of

LAYERS = ((512, 256, 16, 8), (256, 128, 16, 8), (128, 64, 4, 2), (64, 32, 4, 2))
F32 = 1  # TCONV_F32
RUNS = 40


def plain(weights: np.ndarray, stride: int, data: np.ndarray) -> Callable[[], None]:
    attributes = attributes_of(strides=stride)
    request = Request(attributes, Tensor(data.shape, F32), Tensor(weights.shape, F32), False, False, False)
    resolved, layer = Resolved(request), Layer([opened(number_of(None))], c.FILTER_WATCHED)
    output = np.empty(resolved.output.shape, np.float32)
    tensors = c.host_tensors(data.ctypes.data, weights.ctypes.data, output.ctypes.data, filter_version=1)

    def call() -> None:
        assert output.size  # which the tensors point to
        c.call("tconv_layer_run", layer.handle, byref(resolved.problem), byref(resolved.options), tensors, None)

    return call


def push(stream: tconv_cl.Stream, data: np.ndarray) -> Callable[[], None]:
    stream.push(data)  # what it returns may be shorter than what later pushes do
    output = np.empty_like(stream.push(data))
    weights = stream._arrays.filter
    tensors = c.host_tensors(data.ctypes.data, weights.ctypes.data, output.ctypes.data, filter_version=1)

    def call() -> None:
        assert output.size
        c.call("tconv_stream_push", stream._handle, data.shape[2], tensors, None)

    return call


def main() -> None:
    rng = np.random.default_rng(1)
    for inputs, outputs, taps, stride in LAYERS:
        weights = rng.standard_normal((inputs, outputs, taps)).astype(np.float32)
        stream = tconv_cl.Stream(weights, strides=stride)
        for columns in (1, 10, 100):
            data = rng.standard_normal((1, inputs, columns)).astype(np.float32)
            stream.reset()
            calls = (push(stream, data), plain(weights, stride, data))
            times: tuple[list[float], list[float]] = ([], [])
            for i in range(RUNS + 3):
                for call, own in zip(calls, times):
                    start = time.perf_counter()
                    call()
                    if i >= 3:
                        own.append(1e6 * (time.perf_counter() - start))
            mine, other = (statistics.median(own) for own in times)
            print(
                f"{inputs} -> {outputs}, kernel {taps}, stride {stride}, {columns:3} columns: push {mine:7.1f} us, "
                f"plain call {other:7.1f} us, ratio {mine / other:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
