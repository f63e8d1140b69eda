#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the kernels for GPUs ask memory for, warp by warp: runs small layers under Oclgrind with the plug-in of
warp_requests.cpp.

Prints a table with a row for each algorithm, element type, data format, layer and kernel:

  local       passes of a request for local memory over the fewest possible, the instruction of the main loop with
              most; 2 is a 2-way bank conflict
  elsewhere   the same outside of the main loop
  sectors     sectors of 32 bytes that loads of the main loop touch over the fewest possible
  stores      share of the bytes in the written sectors that a request writes

Of --gate's algorithms it fails on more than 2 for `local`, on more than 1.25 for `sectors` where rows of data have 128
bytes or more (shorter rows that begin inside a sector take one more each), and on less than 0.9 for `stores` where rows
of outputs fill whole sectors. Other limits follow the name: --gate gather_group:sectors=2:stores=0.5
"""

import argparse
import collections
import concurrent.futures
import csv
import os
import subprocess
import sys
import tempfile

# Oclgrind cannot run what LLVM notes about restricted pointers of inlined functions.
OPTIONS = "-Drestrict= -fno-inline"
BYTES = {"f32": 4, "f16": 2}
SECTOR = 32
LIMITS = {"local": 2.0, "elsewhere": float("inf"), "sectors": 1.25, "stores": 0.9}

Job = collections.namedtuple("Job", "algorithm type format layer")
Request = collections.namedtuple("Request", "kernel store local loop requests bytes touched fewest")


def algorithms_of(tool):
    text = subprocess.run([tool, "bench", "--algorithm", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.split()[0].endswith("_group")]


def read_requests(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            kernel, kind, memory, where, *numbers = line.split("\t")[:8]
            yield Request(kernel, kind == "store", memory == "local", where == "loop", *map(int, numbers))


def run(job, arguments):
    """The kernels of one layer with what they ask for, none if the algorithm refuses it; or a text: what failed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "requests")
        command = ["oclgrind", "--plugins", os.path.abspath(arguments.plugin), "--build-options", OPTIONS]
        command += [arguments.tool, "check", "--suite", arguments.suite, "--ids", job.layer["id"]]
        command += ["--type", job.type, "--data-format", job.format, "--algorithm", job.algorithm]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=dict(os.environ, TCONV_CL_CACHE="off", WARP_REQUESTS=path, WARP_LANES=str(arguments.lanes)),
        )
        if "does not take this problem" in done.stdout:
            return {}
        if done.returncode != 0 or "plugin failed" in done.stdout:
            return "%s %s: %s" % (job.algorithm, job.layer["id"], done.stdout[-1000:])
        kernels = collections.defaultdict(list)
        if os.path.exists(path):
            for request in read_requests(path):
                kernels[request.kernel].append(request)
    # Packing happens once for a filter.
    return {name: requests for name, requests in kernels.items() if not name.endswith(("_pack", "_clear"))}


def ratio(requests):
    fewest = sum(request.fewest for request in requests)
    return sum(request.touched for request in requests) / fewest if fewest else None


def measure(requests):
    local = [request for request in requests if request.local]
    loads = [request for request in requests if not request.local and not request.store and request.loop]
    stores = [request for request in requests if not request.local and request.store]
    written = sum(request.touched for request in stores) * SECTOR
    return {
        "local": max((ratio([request]) for request in local if request.loop), default=None),
        "elsewhere": max((ratio([request]) for request in local if not request.loop), default=None),
        "sectors": ratio(loads),
        "stores": sum(request.bytes for request in stores) / written if written else None,
    }


def last(layer, column):
    return int(layer[column].split("x")[-1])


def applies(name, job):
    """Whether a limit is meant for such a layer."""
    layer = job.layer
    data, channels_last = last(layer, "input"), job.format == "NXC"
    outputs = (
        (data - 1) * last(layer, "strides")
        - last(layer, "pads_begin")
        - last(layer, "pads_end")
        + last(layer, "dilations") * (last(layer, "kernel") - 1)
        + 1
        + last(layer, "output_padding")
    )
    if name == "sectors":
        return data * BYTES[job.type] * (int(layer["in_channels"]) if channels_last else 1) >= 4 * SECTOR
    if name == "stores":
        return (int(layer["out_channels"]) if channels_last else outputs) * BYTES[job.type] % SECTOR == 0
    return True


def read_gates(texts):
    gates = {}
    for text in texts:
        algorithm, *limits = text.split(":")
        gates[algorithm] = {**LIMITS, **{name: float(value) for name, value in (limit.split("=") for limit in limits)}}
        if len(gates[algorithm]) != len(LIMITS):
            sys.exit("--gate %s: the limits are %s" % (text, ", ".join(LIMITS)))
    return gates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/tconv-cl")
    parser.add_argument("--plugin", default="build/device_tests/warp_requests.so")
    parser.add_argument("--suite", default="device_tests/oclgrind/small_layers.csv")
    parser.add_argument("--ids", default="", help="only these layers, with commas between")
    parser.add_argument("--algorithms", default="", help="with commas between; default: all that end in _group")
    parser.add_argument("--kinds", default="f32:NCX,f32:NXC,f16:NCX,f16:NXC", help="element types and data formats")
    parser.add_argument("--lanes", type=int, default=32, help="of a warp")
    parser.add_argument(
        "--gate", action="append", default=[], metavar="ALGORITHM[:LIMIT=NUMBER...]", help="may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    gates = read_gates(arguments.gate)
    with open(arguments.suite, encoding="utf-8", newline="") as file:
        layers = [
            layer for layer in csv.DictReader(file) if not arguments.ids or layer["id"] in arguments.ids.split(",")
        ]
    known = algorithms_of(arguments.tool)
    names = arguments.algorithms.split(",") if arguments.algorithms else known
    for name in [name for name in (*names, *gates) if name not in known]:
        sys.exit("there is no algorithm %s for GPUs: %s" % (name, ", ".join(known)))
    jobs = [
        Job(name, *kind.split(":"), layer) for name in names for kind in arguments.kinds.split(",") for layer in layers
    ]
    form = "%-14s %-4s %-4s %-5s %-22s %7s %9s %8s %7s %s"
    print(form % ("algorithm", "type", "form", "layer", "kernel", "local", "elsewhere", "sectors", "stores", ""))
    rows, wrong = 0, 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for job, kernels in zip(jobs, pool.map(lambda job: run(job, arguments), jobs)):
            if isinstance(kernels, str):
                sys.exit(kernels)
            for kernel, requests in kernels.items():
                values, above = measure(requests), []
                for name, limit in gates.get(job.algorithm, {}).items():
                    value = values[name]
                    if value is None or not applies(name, job):
                        continue
                    sign = -1 if name == "stores" else 1
                    if sign * value > sign * limit:
                        above.append(name)
                cells = ["" if values[name] is None else "%.2f" % values[name] for name in LIMITS]
                failure = "FAILED: " + ", ".join(above) if above else ""
                print(
                    form % (job.algorithm, job.type, job.format, job.layer["id"], kernel, *cells, failure), flush=True
                )
                rows += 1
                wrong += bool(above)
    print("%d passed, %d failed" % (rows - wrong, wrong))
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
