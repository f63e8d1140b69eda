# SPDX-License-Identifier: Apache-2.0
"""What the first calls of a server cost: a decoder of four layers gets 20 images of different extents, each for the
first time. Prints seconds of all processors and how many programs were compiled.

usage: first_calls.py             makes its layers and computes
       first_calls.py --prepare   prepares the layers for all extents before it computes"""

import sys
import time

import numpy as np

import tconv_cl

CHANNELS = (64, 64, 32, 16, 3)
LEAST, MOST = 8, 40  # extents of the decoder's input

layers = [
    tconv_cl.ConvTranspose(np.ones((before, after, 4, 4), np.float32), strides=2, pads_begin=1, pads_end=1)
    for before, after in zip(CHANNELS, CHANNELS[1:])
]


def decode(height, width):
    image = np.ones((1, CHANNELS[0], height, width), np.float32)
    for layer in layers:
        image = layer(image)
    return image


if "--prepare" in sys.argv[1:]:
    begin = time.process_time()
    programs = tconv_cl.prepare_model(lambda: decode(LEAST, LEAST), lambda: decode(MOST, MOST))
    print(f"prepared {programs} programs in {time.process_time() - begin:.2f} s")

random = np.random.default_rng(1)
seconds = []
with tconv_cl.trace() as events:
    for _ in range(20):
        begin = time.process_time()
        decode(*random.integers(LEAST, MOST + 1, 2))
        seconds.append(time.process_time() - begin)
compiled = sum(event.kind == "program" and event.source == "compiler" for event in events)
print(f"20 first calls: {sum(seconds):.2f} s, the longest {max(seconds):.2f} s, {compiled} programs compiled")
