#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors larger than what is kept in memory: runs `tconv-cl run` on two of them, checks 10,000 positions of each
output against the definition, and tells time and peak memory. Needs NumPy and 12 GB of disk.

  volume   the 3-D example of GroupConvolutionBackpropData's page: 0.9 GB in, 2.9 GB out
  plane    one channel, 46400 x 11600 to 46400 x 46400: more than 2^31 outputs, 2.2 GB in, 8.6 GB out
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

CASES = {
    "volume": dict(data=(1, 20, 224, 224, 224), filter=(4, 5, 2, 3, 3, 3), strides=(2, 2, 2), pads=(1, 1, 1)),
    "plane": dict(data=(1, 1, 46400, 11600), filter=(1, 1, 4, 4), strides=(1, 4), pads=(0, 0), end=(3, 0)),
}


def make(path, shape, seed):
    """A file of numbers in [-1, 1), written bit by bit."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    flat, random = array.reshape(-1), np.random.default_rng(seed)
    for begin in range(0, flat.size, 1 << 24):
        part = flat[begin : begin + (1 << 24)]
        part[:] = random.random(part.size, dtype=np.float32) * 2 - 1
    array.flush()


def expected(data, weights, case, position):
    """One output in f64, and the sum of its products' magnitudes."""
    groups = weights.shape[0] if weights.ndim == data.ndim + 1 else 1
    w = weights if groups > 1 else weights[None]
    n, channel, *at = position
    group, co = divmod(channel, w.shape[2])
    taps = []
    for axis, y in enumerate(at):
        stride, pad = case["strides"][axis], case["pads"][axis]
        reach = []
        for k in range(w.shape[3 + axis]):
            x, rest = divmod(y + pad - k, stride)
            if rest == 0 and 0 <= x < data.shape[2 + axis]:
                reach.append((x, k))
        taps.append(reach)
    value = magnitude = 0.0
    terms = 0
    for combination in itertools.product(*taps):
        x, k = zip(*combination)
        for ci in range(w.shape[1]):
            product = float(data[(n, group * w.shape[1] + ci, *x)]) * float(w[(group, ci, co, *k)])
            value += product
            magnitude += abs(product)
            terms += 1
    return value, magnitude, terms


def measure(command):
    """What a command printed as JSON, and its peak memory in MiB (of that program alone, not of this one before it)."""
    process, peak = subprocess.Popen(command, stdout=subprocess.PIPE), 0
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
        peak = max([peak, *(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))])
        time.sleep(0.02)
    if process.returncode != 0:
        sys.exit(process.returncode)
    return json.loads(process.stdout.read()), peak


def run(name, tool, folder, positions, more):
    case = CASES[name]
    files = {what: folder / f"{name}.{what}.npy" for what in ("data", "filter", "output")}
    make(files["data"], case["data"], 1)
    make(files["filter"], case["filter"], 2)
    command = [tool, "run", "--data", files["data"], "--filter", files["filter"], "--output", files["output"]]
    lists = {"strides": case["strides"], "pads-begin": case["pads"], "pads-end": case.get("end", case["pads"])}
    for option, values in lists.items():
        command += [f"--{option}", ",".join(map(str, values))]
    command += ["--json", "-", *more]
    start = time.monotonic()
    told, peak = measure(list(map(str, command)))
    seconds = time.monotonic() - start
    data, weights, output = (np.load(files[what], mmap_mode="r") for what in ("data", "filter", "output"))
    random, worst = np.random.default_rng(3), 0.0
    for i in range(positions):
        position = [int(random.integers(0, extent)) for extent in output.shape]
        if i < 2:
            position = [0] * output.ndim if i == 0 else [extent - 1 for extent in output.shape]
        value, magnitude, terms = expected(data, weights, case, position)
        bound = (terms + 1) * 2.0**-24 * magnitude
        error = abs(float(output[tuple(position)]) - value)
        if error > bound:
            sys.exit(f"{name}: output {position} is {output[tuple(position)]}, but should be {value} within {bound}")
        worst = max(worst, error / bound if bound > 0 else 0)
    size = {what: path.stat().st_size / 1e9 for what, path in files.items()}
    print(
        f"{name}: {size['data']:.1f} GB in, {size['output']:.1f} GB out, {told['algorithm']}, {told['slabs']} slabs, "
        f"{seconds:.1f} s, peak memory {peak:.0f} MiB, {positions} positions right "
        f"(largest error {worst:.2f} of its bound)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="which; default: all")
    parser.add_argument("--tool", default="build/tconv-cl")
    parser.add_argument("--folder", help="where the files go for a while; default: a temporary folder")
    parser.add_argument("--positions", type=int, default=10000)
    parser.add_argument("--more", default="", help='more options for tconv-cl run, for example "--device 0,1"')
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        for name in arguments.cases or CASES:
            run(name, os.path.abspath(arguments.tool), folder, arguments.positions, arguments.more.split())
            for path in folder.iterdir():
                path.unlink()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
