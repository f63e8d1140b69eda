#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the first call of a model costs: the 76 layers of HiFi-GAN V1's generator, with nothing compiled before.

    python bench/first_call.py                  each layer called once, one after the other
    python bench/first_call.py --stream         as causal streams, whose first push has all frames
    python bench/first_call.py --by-layer       a line for each layer that had something compiled

The layers are 4 upsamplers and 72 convolutions of stride 1 in f32, with what follows them in the model: bias, leaky
ReLU or residual. The folders of compiled programs, the library's and PoCL's, are new ones. Prints how many programs
were compiled, and seconds of the whole call."""

from __future__ import annotations

import argparse
import collections
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

UPSAMPLERS = ((512, 256, 16, 8), (256, 128, 16, 8), (128, 64, 4, 2), (64, 32, 4, 2))  # of config_v1.json


class Layer(NamedTuple):
    name: str
    data: tuple[int, ...]
    filter: tuple[int, ...]
    options: dict[str, Any]
    residual: bool
    upsampler: bool


def layers(frames: int, causal: bool) -> Iterator[Layer]:
    leaky = {"activation": ("leaky_relu", 0.1)}
    columns = frames
    for inputs, channels, taps, stride in UPSAMPLERS:
        pads = (0, taps - stride) if causal else ((taps - stride) // 2,) * 2
        options = {"strides": stride, "pads_begin": pads[0], "pads_end": pads[1]}
        name = f"upsampler {inputs} -> {channels}, kernel {taps}"
        yield Layer(name, (1, inputs, columns), (inputs, channels, taps), options, False, True)
        columns *= stride
        for kernel in (3, 7, 11):
            for dilation, second in ((d, s) for d in (1, 3, 5) for s in (False, True)):
                own = 1 if second else dilation
                pad = own * (kernel - 1)
                pads = (pad, 0) if causal else (pad // 2,) * 2
                options = {"dilations": own, "pads_begin": pads[0], "pads_end": pads[1]}
                if not second:
                    options.update(leaky)
                name = f"{channels} channels, kernel {kernel}, dilation {own}"
                yield Layer(name, (1, channels, columns), (channels, channels, kernel), options, second, False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=50, help="the length of the input (50)")
    parser.add_argument("--stream", action="store_true", help="layers are causal streams")
    parser.add_argument("--by-layer", action="store_true", help="a line for each layer that had something compiled")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCONV_CL_CACHE_DIR"] = os.path.join(folder, "programs")
        os.environ["POCL_CACHE_DIR"] = os.path.join(folder, "pocl")
        os.makedirs(os.environ["POCL_CACHE_DIR"])
        measure(arguments)


def call(layer: Layer, stream: bool) -> None:
    import tconv_cl

    data, filter = np.zeros(layer.data, np.float32), np.zeros(layer.filter, np.float32)
    bias = np.zeros(layer.filter[1 if layer.upsampler else 0], np.float32)
    residual = {"residual": np.zeros(layer.data, np.float32)} if layer.residual else {}
    if stream:
        upsample = {} if layer.upsampler else {"upsample": 1}
        tconv_cl.Stream(filter, bias, **upsample, **layer.options).push(data, **residual)
    elif layer.upsampler:
        tconv_cl.conv_transpose(data, filter, bias, **layer.options)
    else:
        tconv_cl.upsample_conv(data, filter, bias, scale=1, **layer.options, **residual)


def processor_seconds() -> float:
    """Of all threads, and of the linkers that PoCL starts."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(arguments: argparse.Namespace) -> None:
    import tconv_cl

    files: collections.Counter[str] = collections.Counter()
    begin, processor = time.perf_counter(), processor_seconds()
    for layer in layers(arguments.frames, arguments.stream):
        start, used = time.perf_counter(), processor_seconds()
        with tconv_cl.trace() as events:
            call(layer, arguments.stream)
        seconds, used = time.perf_counter() - start, processor_seconds() - used
        compiled = [event for event in events if event.kind == "program" and event.source == "compiler"]
        files.update(str(event.name) for event in compiled)
        if arguments.by_layer and compiled:
            plans = sorted({f"{event.algorithm} {event.tile}" for event in events if event.kind == "plan"})
            print(f"{layer.name}: {len(compiled)} programs, {seconds:.2f} s, of processors {used:.2f} s; {plans}")
    seconds, processor = time.perf_counter() - begin, processor_seconds() - processor
    print(f"{sum(files.values())} programs, {seconds:.1f} s, of processors {processor:.1f} s: {dict(files)}")


if __name__ == "__main__":
    main()
