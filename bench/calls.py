#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of a small layer through NumPy: 8 channels to 8, 6 x 6, kernel 3 x 3, float32, on the default device.

    python bench/calls.py                        of the package that is installed
    python bench/calls.py BEFORE AFTER           of the packages in these folders, side by side

Each package runs in processes of its own, in turn. Prints the medians of all calls, in microseconds. bench/calls.c has
the same in C."""

import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 5
CALLS = 4000  # of each kind, in a round


def times_of(call):
    for _ in range(CALLS // 20):
        call()
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - begin))
    return times


def measure():
    """The times of each kind of call, by its name."""
    import numpy as np

    import tconv_cl

    draw = np.random.default_rng(0)
    data = draw.standard_normal((1, 8, 6, 6)).astype(np.float32)
    filter = draw.standard_normal((8, 8, 3, 3)).astype(np.float32)
    out, bias = np.empty((1, 8, 8, 8), np.float32), np.ones(8, np.float32)
    layer, biased = tconv_cl.ConvTranspose(filter), tconv_cl.ConvTranspose(filter, bias, activation="relu")
    return {
        "conv_transpose": times_of(lambda: tconv_cl.conv_transpose(data, filter)),
        "conv_transpose, out=": times_of(lambda: tconv_cl.conv_transpose(data, filter, out=out)),
        "conv_transpose, bias, four options": times_of(
            lambda: tconv_cl.conv_transpose(
                data, filter, bias, strides=(1, 1), pads_begin=1, pads_end=[1, 1], activation="relu"
            )
        ),
        "ConvTranspose": times_of(lambda: layer(data)),
        "ConvTranspose, bias and activation": times_of(lambda: biased(data)),
    }


def main():
    if sys.argv[1:] == ["--one"]:
        print(json.dumps(measure()))
        return
    folders = sys.argv[1:] or [None]
    times = [{} for _ in folders]
    for _ in range(ROUNDS):
        for folder, its in zip(folders, times):
            environment = dict(os.environ)
            if folder is not None:
                environment["PYTHONPATH"] = os.path.abspath(folder)
            command = [sys.executable, __file__, "--one"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            for name, more in json.loads(done.stdout).items():
                its.setdefault(name, []).extend(more)
    names = ["installed" if folder is None else folder for folder in folders]
    print(f"| us | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for name in times[0]:
        print(f"| {name} | {' | '.join(f'{statistics.median(its[name]):.1f}' for its in times)} |")


if __name__ == "__main__":
    main()
