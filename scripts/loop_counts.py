#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the machine code of kernels for NVIDIA, without a GPU.

For some layers of the suite in f16, in both data formats: what selection launches is compiled for one card by clang and
ptxas, and by libNVVM and ptxas. Printed are the instructions of the hottest loop for each mma, its loads of two bytes,
the instructions before the first copy into local memory, its stores of 16 bytes, the registers, and the KiB that a
stage reads from the second-level cache. Fails if a count is above its limit, or if outputs with channels last are not
stored 16 bytes at a time. A count is not a time.

For a card with wgmma: the same of the tiles that use it, by way of PTX for sm_90 that is changed for sm_90a, as the
library does it, with and without shared taps. Limits are the instructions beside each wgmma, those before the first
copy, and no spill in the loop.

For the depthwise layers with whole vectors of channels, in f16 and bf16, channels last: the loads of data and weights
and the stores of outputs by their bytes. Fails unless an access moves 16 bytes. Tensors that are not aligned are read
element by element by code of their own, which these counts leave out.
"""

import argparse
import csv
import itertools
import os
import re
import sys
import tempfile

import offline_gate as gate

COMPILERS = {"clang": gate.clang_ptx, "libNVVM": gate.libnvvm_ptx}
DEVICE = "NVIDIA mma"  # of all counts but those of wgmma
LAYERS = ("B24", "B25", "B43", "B10", "B07", "B67", "B11")
# What the kernels reach today. B67 and B11 have sorted positions, and of B11 some sub-groups multiply nothing.
# B07 has so few tiles that selection takes small ones, with fewer products for each load.
MOST_PER_MMA = {
    "clang": {"B07": 7.2, "B10": 3.1, "B24": 3.1, "B25": 2.7, "B43": 2.7, "B67": 2.7, "B11": 2.9},
    "libNVVM": {"B07": 7.2, "B10": 3.1, "B24": 3.1, "B25": 2.75, "B43": 2.7, "B67": 2.85, "B11": 2.85},
}
# If the data are not copied, because a second launch would cost more. Of B07, whose tiles are small; 7.7 of others.
MOST_PER_MMA_OF_PLAIN_DATA = {"B07": 9.7}
MOST_BEFORE_COPY = 305
# Phases of B10 have different numbers of taps. Of B11, libNVVM's code for data that are not aligned may come first.
MOST_BEFORE_COPY_OF = {"B10": 345, "B11": 390}
MOST_BEFORE_COPY_OF_PLAIN_DATA = 310
MOST_BEFORE_COPY_OF_WGMMA = 325  # 128 x 128 x 16 by libNVVM has the most
MOST_BEFORE_COPY_OF_WIDE_IMAGES = 415  # shared taps of B38, with up to 18 addresses of inputs; 379 by libNVVM
# Layers on tiles of wgmma, the smallest tile last: it has the fewest products in a stage.
WGMMA_TILES = (
    ("B25", "mt=128 nt=256 shared=0"),
    ("B29", "mt=256 nt=128 kt=32 shared=0"),
    ("B67", "mt=128 nt=128 kt=32 shared=0"),
    ("B02", "mt=64 nt=128 kt=32 shared=0"),
    ("B25", "mt=128 nt=128 kt=32 shared=32"),
    ("B38", "mt=128 nt=256 shared=192"),
    ("B25", "mt=128 nt=128 kt=16 shared=0"),
)
MOST_BESIDE_WGMMA = 50
LANES = 8  # channels of 16 bytes


def read_suite():
    with open(os.path.join(gate.ROOT, "bench/suite.csv"), encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def taps_of_phases(row):
    """The mean number of taps of a phase."""
    taps = 1.0
    for kernel, stride in zip(row["kernel"].split("x"), row["strides"].split("x")):
        taps *= int(kernel) / int(stride)
    return taps


def has_vectors(row):
    """Whether a layer is depthwise, and vectors of channels divide its channels."""
    return row["in_channels"] == row["out_channels"] == row["groups"] and int(row["groups"]) % LANES == 0


def compiled(tools, make_ptx, target, launch):
    """ptxas's log, and the instructions of the launch's kernel."""
    with tempfile.TemporaryDirectory() as folder:
        log, cubin = gate.compile_source(tools, make_ptx, target, launch, folder)
        code = gate.nvidia_code(tools, cubin)
    return log, code[launch["kernel"]]


def accesses(lines, name):
    """Of loads (LDG) or stores (STG), how many move 2, 4, 8 and 16 bytes."""
    counts = dict.fromkeys((2, 4, 8, 16), 0)
    for line in lines:
        found = re.search(r"\b%s((?:\.\w+)*)" % name, line)
        if found:
            sizes = [size for word, size in ((".128", 16), (".64", 8), (".U16", 2)) if word in found.group(1)]
            counts[sizes[0] if sizes else 4] += 1
    return counts


def count_depthwise(tools, make_ptx, target, layer):
    launch = layer["launches"][-1]
    lines = compiled(tools, make_ptx, target, launch)[1]
    option = dict(re.findall(r"-D(\w+)=(\S+)", launch["options"]))
    loop = gate.hottest_loop(lines, *gate.NVIDIA_CODE)[1]
    loads, stores = accesses(loop, "LDG"), accesses(lines, "STG")
    taps = max(1, int(option.get("TAPS_X", 0)))
    vectors = taps * (1 + int(option.get("OUTPUTS", 1)))  # of weights and of data
    # Of unaligned tensors there are at most so many loads of two bytes.
    wide = loads[16] >= vectors and loads[4] == loads[8] == 0 and loads[2] <= vectors * LANES
    wide = wide and stores[16] > 0 and stores[4] == stores[8] == 0
    return {"loads": loads, "stores": stores, "vectors": vectors, "bytes": 16 if wide else 2}


def count(tools, make_ptx, target, layer, taps):
    launch = next(launch for launch in layer["launches"] if launch["kernel"] == "tconv_matrix")
    log, lines = compiled(tools, make_ptx, target, launch)
    instructions, loop = gate.hottest_loop(lines, *gate.NVIDIA_CODE)
    registers = re.search(r"'tconv_matrix'.*?Used (\d+) registers", log, re.S)
    first_copy = next((i for i, line in enumerate(instructions) if "LDGSTS" in line), None)
    option = dict(re.findall(r"-D(\w+)=(\S+)", launch["options"]))
    reads = taps if option["TAPS_INSIDE"] == "1" else 1  # of an input, one of them from the second-level cache
    return {
        "tile": "%(MT)s x %(NT)s x %(KT)s" % option,
        "halo": option.get("HALO", "no"),
        "spills": sum(bool(re.search(r"\b(LDL|STL)\b", line)) for line in loop),
        "copied": "COPY" in option,
        "split": option["SPLIT"] == "1",
        "all": len(loop),
        "mma": sum("MMA" in line for line in loop),
        "short": sum(bool(re.search(r"\bLD[\w.]*\.[SU]16\b", line)) for line in loop),
        "before": first_copy,
        "stores": accesses(lines, "STG")[16],
        "registers": int(registers.group(1)),
        "kib": int(option["KT"]) * 4 * (int(option["MT"]) + int(option["NT"]) / reads) / 1024,
    }


def count_wgmma(tools, programs, suite):
    """Prints the table of wgmma's tiles, and returns what is wrong."""
    wrong, layers = [], []
    print(
        "\ncompiler layer tile              shared taps  instructions  wgmma  beside each  before the first copy"
        "  registers  spills of the loop"
    )
    for key, tile in WGMMA_TILES:
        algorithm = "matrix_group %s slices=1 wm=64 copy=0 parts=1 wn=%s" % (tile, tile.split()[1][3:])
        listed = gate.listing(programs, "f16", "NXC", "NVIDIA wgmma", "--algorithm", algorithm)
        layers.append(next(layer for layer in listed if layer["layer"] == key))
    for layer, (compiler, make_ptx) in itertools.product(layers, COMPILERS.items()):
        key = layer["layer"]
        c = count(tools, make_ptx, "sm_90a", layer, taps_of_phases(suite[key]))
        beside = c["all"] / c["mma"] - 1
        form = "%-8s %-5s %-17s %11s %13d %6d %12.1f %22d %10d %19d"
        cells = [compiler, key, c["tile"], c["halo"], c["all"], c["mma"], beside]
        print(form % (*cells, c["before"], c["registers"], c["spills"]))
        most_before = MOST_BEFORE_COPY_OF_WIDE_IMAGES if c["halo"] == "192" else MOST_BEFORE_COPY_OF_WGMMA
        for what, n, most in (
            ("instructions beside each wgmma", beside, MOST_BESIDE_WGMMA),
            ("instructions before the first copy", c["before"], most_before),
            ("spills of the loop", c["spills"], 0),
        ):
            if n > most:
                wrong.append("%s by %s, %s: %.1f %s, at most %g" % (key, compiler, c["tile"], n, what, most))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    gate.add_programs_argument(parser)
    parser.add_argument("--target", default="sm_90")
    gate.add_compiler_arguments(parser)
    arguments = parser.parse_args()
    tools = gate.find_tools(arguments)
    missing = (
        gate.missing_tools(tools, "NVIDIA")
        + gate.missing_tools(tools, "libNVVM")
        + ([] if tools.nvdisasm else ["nvdisasm"])
    )
    if missing:
        print("FAILED: no " + " and ".join(missing))
        return 1
    wrong = []
    print(
        "compiler layer format  tile              copied  instructions  mma  each  2-byte loads  before the first copy"
        "  16-byte stores  registers  KiB of a stage"
    )
    suite = read_suite()
    for data_format in ("NXC", "NCX"):
        layers = [
            layer for layer in gate.listing(arguments.programs, "f16", data_format, DEVICE) if layer["layer"] in LAYERS
        ]
        wrong += [
            "%s in %s is not listed" % (key, data_format)
            for key in LAYERS
            if key not in [layer["layer"] for layer in layers]
        ]
        for layer, (compiler, make_ptx) in itertools.product(layers, COMPILERS.items()):
            c = count(tools, make_ptx, arguments.target, layer, taps_of_phases(suite[layer["layer"]]))
            each = c["all"] / c["mma"]
            cells = [compiler, layer["layer"], data_format, c["tile"], "yes" if c["copied"] else "no"]
            cells += [
                c["all"],
                c["mma"],
                each,
                *(c[name] for name in ("short", "before", "stores", "registers", "kib")),
            ]
            print("%-8s %-5s %-7s %-17s %-7s %12d %4d %5.2f %13d %22s %15d %10d %15.1f" % tuple(cells))
            plain = data_format == "NCX" and not c["copied"]
            most_per_mma = (
                MOST_PER_MMA_OF_PLAIN_DATA.get(layer["layer"], 7.7) if plain else MOST_PER_MMA[compiler][layer["layer"]]
            )
            most_before = MOST_BEFORE_COPY_OF.get(layer["layer"], MOST_BEFORE_COPY)
            if plain:
                most_before = MOST_BEFORE_COPY_OF_PLAIN_DATA
            limits = (
                ("instructions for each mma", each, most_per_mma),
                ("loads of two bytes", c["short"], c["mma"] if plain else 0),
                ("instructions before the first copy", c["before"], most_before),
            )
            wrong += [
                "%s by %s %s: %.2f %s, at most %g" % (layer["layer"], compiler, data_format, n, what, most)
                for what, n, most in limits
                if n > most
            ]
            # Sums of parts of the channels (split) are stored by another launch.
            if data_format == "NXC" and c["stores"] == 0 and not c["split"]:
                wrong.append("%s by %s %s: no store of 16 bytes" % (layer["layer"], compiler, data_format))
    print("\ncompiler layer type  vectors  loads of 16 bytes  of 4 and 8  of 2  stores of 16 bytes  of 4 and 8  of 2")
    for kind in ("f16", "bf16"):
        layers = [
            layer
            for layer in gate.listing(arguments.programs, kind, "NXC", DEVICE)
            if has_vectors(suite[layer["layer"]])
        ]
        wrong += [] if layers else ["no depthwise layer in %s is listed" % kind]
        for layer, (compiler, make_ptx) in itertools.product(layers, COMPILERS.items()):
            c = count_depthwise(tools, make_ptx, arguments.target, layer)
            loads, stores = c["loads"], c["stores"]
            cells = [compiler, layer["layer"], kind, c["vectors"]]
            for bytes_of in (loads, stores):
                cells += [bytes_of[16], bytes_of[4] + bytes_of[8], bytes_of[2]]
            form = "%-8s %-5s %-5s %7d %18d %11d %5d %19d %11d %5d   %s depthwise, bytes per access: %d"
            print(form % (*cells, kind, c["bytes"]))
            if c["bytes"] != 16:
                wrong.append(
                    "%s by %s, %s, channels last: %d bytes per access, 16 are wanted"
                    % (layer["layer"], compiler, kind, c["bytes"])
                )
    wrong += count_wgmma(tools, arguments.programs, suite)
    for text in wrong:
        print("FAILED: " + text)
    print("%d failures" % len(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
