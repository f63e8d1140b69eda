#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the tiles of matrix_group on a card of NVIDIA, through CUDA.

    scripts/nvidia_tiles.py compile --layers B07,B25    # on any machine: the offline gate's compilers
    scripts/nvidia_tiles.py time                        # on the card's machine, with Python's CuPy
    scripts/refit.py build/nvidia_tiles/f16-NXC.json:f16:NXC --device "NVIDIA mma"

The first command compiles what a layer launches, with libNVVM and ptxas, for each tile that it may have, and writes
machine code and arguments into the output folder. The second one runs that with random f16 numbers and writes files as
`tconv-cl tune --json` does. It takes little time on the card, because nothing is compiled there. Filters are packed
before; input channels are not divided. No result is compared. The table lies in global memory, not in constant memory.

To count what a kernel does:

    ncu --section MemoryWorkloadAnalysis_Tables scripts/nvidia_tiles.py time --once "B25 NXC mt=128 nt=128 wm=64 wn=64"
"""

import argparse
import hashlib
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent import futures

import offline_gate as gate

KERNELS = ("tconv_copy_points", "tconv_matrix")
TILE = "mt=%s nt=%s wm=%s wn=%s slices=%s kt=%s split=0 copy=%d parts=1"


def tiles():
    """The numbers of NVIDIA's tiles: src/algorithm/gpu/units.c."""
    units = gate.text_of(os.path.join(gate.ROOT, "src/algorithm/gpu/units.c"))
    table = re.search(r"nvidia_tiles\[\] = \{(.*?)\};", units, re.S).group(1)
    return re.findall(r"TILE\((\d+), (\d+), (\d+), (\d+), (\d+), (\d+)\)", table)


def candidates(programs, wanted):
    """For each layer, data format and tile its launches, if the layer takes the tile."""
    for data_format, tile, copy in itertools.product(("NXC", "NCX"), tiles(), (0, 1)):
        text = TILE % (*tile, copy)
        pattern = "matrix_group " + text.replace("split=0 ", "")
        for layer in gate.listing(programs, "f16", data_format, "NVIDIA mma", "--algorithm", pattern):
            if not wanted or layer["layer"] in wanted:
                launches = [one for one in layer["launches"] if one["kernel"] in KERNELS]
                yield {
                    "id": layer["layer"],
                    "format": data_format,
                    "tile": text,
                    "macs": layer["macs"],
                    "launches": launches,
                }


def compile_all(arguments):
    tools = gate.find_tools(arguments)
    missing = gate.missing_tools(tools, "libNVVM")
    if missing:
        return "missing: " + " and ".join(missing)
    os.makedirs(arguments.output, exist_ok=True)
    found = list(candidates(arguments.programs, arguments.layers.split(",") if arguments.layers else None))
    absent = set(arguments.layers.split(",") if arguments.layers else []) - {one["id"] for one in found}
    if absent or not found:
        return "matrix_group takes no layer %s" % ", ".join(sorted(absent))
    programs = {}
    for launch in itertools.chain(*(one["launches"] for one in found)):
        launch["options"] = launch["options"].replace("-DCONSTANT_TABLE=1", "-DCONSTANT_TABLE=0")
        launch["code"] = hashlib.sha256(launch["options"].encode()).hexdigest()[:16] + ".cubin"
        programs[launch["code"]] = launch

    def make(one):
        with tempfile.TemporaryDirectory() as folder:
            log, cubin = gate.compile_source(tools, gate.libnvvm_ptx, arguments.target, one, folder)
            shutil.copy(cubin, os.path.join(arguments.output, one["code"]))
        return one["code"], {kernel.name: kernel.registers for kernel in gate.kernels_of_log(log, {})}

    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        registers = dict(pool.map(make, programs.values()))
    for launch in itertools.chain(*(one["launches"] for one in found)):
        launch["registers"] = registers[launch["code"]][launch["kernel"]]
    with open(os.path.join(arguments.output, "launches.json"), "w", encoding="utf-8") as out:
        json.dump(found, out)
    print("%d candidates, %d programs: %s" % (len(found), len(programs), arguments.output))
    return None


class Card:
    """The tensors that all launches share, and the programs."""

    def __init__(self, folder, cupy, numpy):
        self.folder, self.cupy, self.numpy, self.modules = folder, cupy, numpy, {}
        self.stream = cupy.cuda.Stream(non_blocking=True)
        random = cupy.random.RandomState(1)

        def numbers(count):
            return (random.random_sample(count, dtype=cupy.float32) * 4 - 2).astype(cupy.float16)

        # Flags are zeros: no weight is infinite. Others are as many as the largest layer of the suite needs.
        self.data, self.filter, self.bias = numbers(200 * 10**6), numbers(50 * 10**6), numbers(1 << 20)
        self.flags, self.output = cupy.zeros(1 << 20, cupy.uint32), cupy.zeros(200 * 10**6, cupy.float16)
        cupy.cuda.runtime.deviceSynchronize()

    def prepared(self, launch):
        """A function that launches it."""
        if launch["code"] not in self.modules:
            self.modules[launch["code"]] = self.cupy.RawModule(path=os.path.join(self.folder, launch["code"]))
        kernel = self.modules[launch["code"]].get_function(launch["kernel"])
        copies = launch["kernel"] == KERNELS[0]
        tensors = iter(
            [self.data, self.output] if copies else [self.data, self.filter, self.flags, self.bias, self.output]
        )
        values = []
        for value in launch["args"]:
            if value is None:
                values.append(next(tensors))
            elif isinstance(value, dict):
                values.append(self.cupy.asarray(self.numpy.array(value["i64"], self.numpy.int64)))
            else:
                values.append(self.numpy.uint64(value))
        grid, block = (launch["global"][0] // launch["local"][0],), (launch["local"][0],)
        return lambda: kernel(grid, block, tuple(values))

    def once(self, one):
        for launch in one["launches"]:
            self.prepared(launch)()
        self.cupy.cuda.runtime.deviceSynchronize()

    def milliseconds(self, one):
        """The median of 3 graphs, each of some computations in a row."""
        runs = [self.prepared(launch) for launch in one["launches"]]
        self.cupy.cuda.runtime.deviceSynchronize()  # the tables are there

        def graph_of(count):
            with self.stream:
                self.stream.begin_capture()
                for _ in range(count):
                    for run in runs:
                        run()
                return self.stream.end_capture()

        def timed(graph, count):
            begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            begin.record(self.stream)
            graph.launch(self.stream)
            end.record(self.stream)
            end.synchronize()
            return self.cupy.cuda.get_elapsed_time(begin, end) / count

        first = graph_of(2)
        timed(first, 2)
        count = int(max(3, min(20, 0.6 / max(timed(first, 2), 1e-3))))
        graph = graph_of(count)
        return sorted(timed(graph, count) for _ in range(3))[1]


def time_all(arguments):
    try:
        import cupy
        import numpy
    except ImportError as error:
        return "it needs CuPy: %s" % error
    with open(os.path.join(arguments.output, "launches.json"), encoding="utf-8") as file:
        found = json.load(file)
    card = Card(arguments.output, cupy, numpy)
    units = cupy.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]
    if arguments.once:
        named = [one for one in found if ("%(id)s %(format)s %(tile)s" % one).startswith(arguments.once)]
        for one in named:
            card.once(one)
        return None if named else "no candidate begins with %s" % arguments.once
    timed, left, begin = {}, 0, time.time()
    for number, one in enumerate(found):
        if arguments.seconds and time.time() - begin > arguments.seconds:
            left = len(found) - number
            break
        row = {"algorithm": "matrix_group", "tile": one["tile"], "ms": card.milliseconds(one)}
        timed.setdefault(one["format"], {}).setdefault(one["id"], []).append(row)
        if sys.stderr.isatty():
            sys.stderr.write("\r%d of %d " % (number + 1, len(found)))
    for data_format, layers in timed.items():
        path = os.path.join(arguments.output, "f16-%s.json" % data_format)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(
                {
                    "device": {"compute_units": units},
                    "layers": [{"id": key, "timed": times} for key, times in layers.items()],
                },
                out,
            )
        print("%s: %d layers" % (path, len(layers)))
    if left:
        print("%d of %d candidates are left" % (left, len(found)))
    return 3 if left else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compile", "time"))
    parser.add_argument("--layers", default="", metavar="B07,...", help="compile only these layers of the suite")
    parser.add_argument(
        "--output",
        default=os.path.join(gate.ROOT, "build/nvidia_tiles"),
        metavar="FOLDER",
        help="default build/nvidia_tiles",
    )
    parser.add_argument(
        "--once", metavar="TEXT", help="launch once what begins with this layer, format and tile, and time nothing"
    )
    parser.add_argument(
        "--seconds", type=float, default=0, help="time no more candidates after so many, and end with 3; default: all"
    )
    parser.add_argument("--target", default="sm_90")
    gate.add_programs_argument(parser)
    gate.add_compiler_arguments(parser)
    arguments = parser.parse_args()
    return compile_all(arguments) if arguments.what == "compile" else time_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
