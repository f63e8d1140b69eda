#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times tconv-cl side by side with other systems on this machine's CPU, in f32 or another element type.

    python3 -m venv peers && peers/bin/pip install -r bench/peers.txt
    peers/bin/python bench/compare.py --table compare.md --ratios ratios.svg --roofline roofline.svg
    peers/bin/python bench/compare.py --ids B07,B32 --json few.json
    peers/bin/python bench/compare.py --type u8 --least-channels 16 --json u8.json --table u8.md
    peers/bin/python bench/compare.py --suite bench/upsampling.csv --crop 20 --json up.json --table up.md

Every layer is timed by all in turn, several rounds, so that a busy moment of the machine hits everybody. Weights are
constant and outputs bound for all peers; times are from the application's view. Every result is compared with an f64
computation, ours by `tconv-cl bench`; a wrong one is told and does not count. A variant whose name begins with "plain"
reads and writes NC[D]HW. Data and output of the other variants are channels last, or in a format that the peer chose.
Of convolutions with nearest upsampling or pixel shuffle (bench/upsampling.csv), each system is timed with its own two
operators, and once more with the same trick: its transposed convolution, given the equivalent filter. The table has
both: the first says what a model gains, the second what the kernels do. Of ordinary convolutions
(bench/convolutions.csv) there is only the first.

A peer that is not installed is left out unless --peers names it, and a peer that refuses a layer is left out there.

The JSON file is written after every layer: an interrupted run goes on with --resume. bench/compare_report.py makes
table and pictures from it again. Environment variables reach all processes: OCL_ICD_VENDORS and --device choose what
tconv-cl runs on; POCL_AFFINITY is set by scripts/pocl_affinity.sh, because threads of PoCL may share a processor for
whole kernels without it.
"""

import argparse
import contextlib
import csv
import ctypes
import gc
import glob
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import compare_convolutions
import compare_report
from compare_opencl import OPENCL_PEERS
from compare_peers import CPU_PEERS, ELEMENTS, LAST, LISTS, aligned

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_SHARE = 0.02  # of weights that are not 0, so that sums of bytes stay in their type
PEERS = {**CPU_PEERS, **OPENCL_PEERS}
CEILINGS_EVERY = 4  # layers; they take four seconds, and the highest of all count
SLOW = 3  # times the time of the best peer: not timed in further rounds


def read_suite(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            for name in (*LISTS, *compare_convolutions.FACTORS):
                row[name] = [int(v) for v in (row.get(name) or "").split("x") if v]
            for name, absent in (("strides", 1), ("dilations", 1), ("pads_begin", 0), ("pads_end", 0)):
                row[name] = row[name] or [absent] * len(row["input"])
            row["output_padding"] = row["output_padding"] or [0] * len(row["input"])
            for name in ("batch", "in_channels", "out_channels", "groups"):
                row[name] = int(row[name])
            if row["upsample"] or row["pixel_shuffle"]:
                row = compare_convolutions.described(row)
            axes = zip(*(row[name] for name in LISTS))
            row["output"] = [(i - 1) * s - pb - pe + d * (k - 1) + 1 + op for i, k, s, d, pb, pe, op in axes]
            yield row


def output_shape(layer):
    return layer["batch"], layer["out_channels"], *layer["output"]


def lifted(layer):
    """A 1-D layer as the same 2-D one of height 1, which some peers are faster with."""
    first = dict.fromkeys([*LISTS, "output", "factors"], 1)
    first |= dict.fromkeys(["pads_begin", "pads_end", "output_padding"], 0)
    planar = dict(layer, **{name: [value] + layer[name] for name, value in first.items() if name in layer})
    if "convolution" in layer:
        planar["convolution"] = lifted(layer["convolution"])
    return planar


def tensors(layer, kind):
    """Data and filter (in, out of one group, kernel; of a convolution its own), with numbers so small that no product
    dominates."""
    rng = np.random.default_rng(1)

    def numbers(shape, is_filter):
        if kind in ("f32", "bf16"):
            values = rng.random(shape, np.float32) * 2 - 1
            return values if kind == "f32" else (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
        values = rng.integers(0 if kind == "u8" else -1, 2, shape).astype(np.float32)
        return values * (rng.random(shape, np.float32) < BYTES_SHARE) if is_filter else values

    shapes = (
        (layer["batch"], layer["in_channels"], *layer["input"]),
        compare_convolutions.filter_shape(layer)
        if "convolution" in layer
        else (layer["in_channels"], layer["out_channels"] // layer["groups"], *layer["kernel"]),
    )
    return [aligned(shape, numbers(shape, number == 1)) for number, shape in enumerate(shapes)]


def reference(layer, x, w):
    """The operation by its definition, in f64: every tap's products are added where the tap lands."""
    if "convolution" in layer:
        return compare_convolutions.reference(layer, x, w)
    g, n, ci, co = layer["groups"], layer["batch"], layer["in_channels"], layer["out_channels"]
    axes = list(zip(*(layer[name] for name in LISTS)))
    full = [(i - 1) * s + d * (k - 1) + 1 + op for i, k, s, d, _, _, op in axes]
    y = np.zeros((co, n, *full))
    columns = np.ascontiguousarray(x.astype(np.float64).swapaxes(0, 1)).reshape(g, ci // g, -1)
    taps = w.astype(np.float64).reshape(g, ci // g, co // g, -1)
    for t, at in enumerate(np.ndindex(*layer["kernel"])):
        where = tuple(slice(k * d, k * d + (i - 1) * s + 1, s) for k, (i, _, s, d, *_) in zip(at, axes))
        y[(slice(None), slice(None), *where)] += (taps[..., t].swapaxes(1, 2) @ columns).reshape(co, n, *layer["input"])
    crop = tuple(slice(pb, pb + o) for pb, o in zip(layer["pads_begin"], layer["output"]))
    return y[(slice(None), slice(None), *crop)].swapaxes(0, 1).astype(np.float32)


def milliseconds(run, seconds):
    """The median of as many runs as fit, behind one that does not count."""
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    fewest = 5 if first < 0.1 else 2 if first < 1 else 1
    times, begin = [], time.perf_counter()
    while len(times) < fewest or (time.perf_counter() - begin < seconds and len(times) < 200):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def largest_difference(a, b):
    # Item by item: the whole may be large.
    return float(np.max([np.abs(one - other).max() for one, other in zip(a, b)]))


def prepare(name, layer, wanted, threads, kind):
    """All variants of a peer for one layer: the (run, result) of those that are right, and what is known of each."""
    x, w = tensors(layer, kind)
    element = [ELEMENTS[kind]] if len(PEERS[name].types) > 1 else []
    y = aligned(output_shape(layer))
    largest = max(largest_difference(wanted, np.zeros(len(wanted))), 1e-30)
    ready, answer = [], []
    ways = [("", PEERS[name].compute, PEERS[name].variants, w)]
    if "convolution" in layer:
        ways = list(compare_convolutions.computations(PEERS[name], name, layer, w))
    for suffix, shape in {"": layer, " as 2-D": lifted(layer)}.items() if x.ndim == 3 else [("", layer)]:
        for form, compute, variants, weights in ways:
            kernel = shape["convolution"]["kernel"] if form == "stock" else shape["kernel"]
            reshaped = [
                a.reshape(*a.shape[:2], *extents)
                for a, extents in ((x, shape["input"]), (weights, kernel), (y, shape["output"]))
            ]
            for variant in variants:
                about = {"peer": name, "variant": variant + suffix, "plain": variant.startswith("plain")}
                about |= {"form": form} if form else {}
                answer.append(about)
                try:
                    y[...] = np.nan if kind == "f32" else 0
                    run, result = compute(variant, shape, *reshaped, threads, *(element if form != "stock" else []))
                    run()
                    error = largest_difference(result().reshape(wanted.shape), wanted) / largest
                    if error < ELEMENTS[kind].tolerance:
                        ready.append((run, result))
                    else:
                        about["wrong"] = f"{error:.2g}"
                except Exception as refusal:  # whatever the peer says, the layer goes on without it
                    about["refused"] = (str(refusal).strip() or type(refusal).__name__).split("\n")[0][:200]
    return ready, answer


def peer_process(name, pipe, threads, seconds, kind):
    """Answers 'prepare' with what is known of each variant, and 'time' with the times of the right ones it names."""
    os.dup2(2, 1)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # oneDNN has no other way; it reads this when it is loaded
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Freed memory is kept and used again, as the allocators do that such systems are served with; else large outputs
    # that a peer allocates in each call cost page faults.
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
    ready = []
    with contextlib.suppress(EOFError):  # that is how it ends
        while True:
            command, *about = pipe.recv()
            if command == "time":
                answer = [milliseconds(ready[number][0], seconds) for number in about[0]]
            else:
                layer, file = about
                ready = []  # the layer before
                ready, answer = prepare(name, layer, np.load(file, mmap_mode="r"), threads, kind)
            # What others need in their turn is given back.
            LAST.clear()
            gc.collect()
            if hasattr(libc, "malloc_trim"):
                libc.malloc_trim(0)
            pipe.send(answer)


def promising(variant, entry):
    """True if it may be the fastest and is timed again. A variant with NC[D]HW has rivals of this format only, one with
    the two operators rivals with these; ncnn's two operators count by themselves."""
    rivals = [
        v["times"][0]
        for v in entry["peers"]
        if "times" in v
        and "refused" not in v
        and v["plain"] >= variant["plain"]
        and v.get("form") == variant.get("form")
    ]
    return variant.get("form") == "stock" or "times" not in variant or variant["times"][0] < SLOW * min(rivals)


class Lost(Exception):
    """A peer that gives no answer."""


class Worker:
    """A process of its own for each peer: thread pools and crashes stay apart. After a crash it begins again."""

    def __init__(self, name, arguments):
        self.name, self.arguments, self.process, self.pipe = name, arguments, None, None

    def ask(self, *request):
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self.process = context.Process(
                target=peer_process,
                daemon=True,
                args=(self.name, other, self.arguments.threads, self.arguments.seconds, self.arguments.type),
            )
            self.process.start()
            other.close()
        try:
            self.pipe.send(request)
            if self.pipe.poll(self.arguments.timeout):
                return self.pipe.recv()
            reason = f"no answer within {self.arguments.timeout:g} s"
        except (EOFError, OSError):
            reason = "it crashed"
        self.process.kill()
        self.process.join()
        self.process = None
        raise Lost(reason)


def ours(arguments, layer, data_format, ceilings):
    """One run of the tool: its report, or an error."""
    command = [arguments.tool, "bench", "--suite", arguments.suite, "--ids", layer["id"], "--data-format", data_format]
    command += ["--math", arguments.math, "--type", arguments.type, "--quiet", "--json", "-"]
    if arguments.type == "u8":
        command += ["--filter-type", "i8", "--output-type", "u8"]
    if not ceilings:
        command.append("--no-ceilings")
    if arguments.device is not None:
        command += ["--device", str(arguments.device)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return {"layers": [{"error": f"no answer within {arguments.timeout:g} s"}]}
    if not done.stdout:
        return {"layers": [{"error": done.stderr.strip() or f"it ended with {done.returncode}"}]}
    return json.loads(done.stdout)


def raise_roofline(run, report):
    """Keeps the highest ceilings and the shortest launch of all reports that have them."""
    device = run.setdefault("device", report["device"])
    if any(device[key] != report["device"][key] for key in ("name", "platform", "driver")):  # memory may vary
        sys.exit("compare.py: the layers of the JSON file were timed on another device")
    if report["peak_gflops"] is None:
        return
    roofline = run.setdefault(
        "roofline", {name: report[name] for name in ("peak_gflops", "launch_us", "bandwidth_by_working_set")}
    )
    roofline["peak_gflops"] = max(roofline["peak_gflops"], report["peak_gflops"])
    roofline["launch_us"] = min(roofline["launch_us"], report["launch_us"])
    for known, size in zip(roofline["bandwidth_by_working_set"], report["bandwidth_by_working_set"]):
        known["gbs"] = max(known["gbs"], size["gbs"])


def seconds_of_others(workers):
    """CPU seconds that went to other processes, or to other guests of the machine, so far."""
    if not os.path.exists("/proc/stat"):
        return 0
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft, steal = map(int, file.readline().split()[1:9])
    ticks = user + nice + system + irq + soft + steal
    for worker in workers:
        if worker.process:
            with open(f"/proc/{worker.process.pid}/stat") as file:
                ticks -= sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def compare(run, layer, workers, arguments, ceilings):
    """All rounds of a layer."""
    entry = {
        "id": layer["id"],
        "layer": layer["layer"],
        "ours": {f: {"times": []} for f in ("NCX", "NXC")},
        "peers": [],
    }
    if "convolution" in layer:
        ordinary = compare_convolutions.is_plain(layer)
        entry["kind"] = "ordinary" if ordinary else layer["convolution"]["kind"]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "reference.npy")
        np.save(file, reference(layer, *tensors(layer, arguments.type)))
        for worker in workers:
            try:
                entry["peers"] += worker.ask("prepare", layer, file)
            except Lost as loss:
                entry["peers"].append({"peer": worker.name, "variant": "", "plain": True, "refused": str(loss)})
    start, others = time.monotonic(), seconds_of_others(workers)
    for number in range(arguments.rounds):
        for data_format, own in entry["ours"].items():
            first = number == 0 and data_format == "NCX"
            report = ours(arguments, layer, data_format, "roofline" not in run or (ceilings and first))
            result = report["layers"][0]
            if "device" in report:
                raise_roofline(run, report)
            if result["error"]:
                own["error"] = result["error"]
                continue
            own["times"].append(result["ms_median"])
            own["algorithm"] = result["algorithm"]
            entry["gflop"] = result["gflops"] * result["ms_median"] / 1e3
            entry["bytes"] = result["gbs"] * result["ms_median"] * 1e6
        for worker in workers:
            right = [v for v in entry["peers"] if v["peer"] == worker.name and "refused" not in v and "wrong" not in v]
            numbers = [i for i, v in enumerate(right) if promising(v, entry)]
            try:
                for i, value in zip(numbers, worker.ask("time", numbers) if numbers else []):
                    right[i].setdefault("times", []).append(value)
            except Lost as loss:
                for variant in right:
                    variant["refused"] = str(loss)
    others = seconds_of_others(workers) - others
    entry["others"] = round(max(0, others) / (time.monotonic() - start) / os.cpu_count(), 3)
    for one in (*entry["ours"].values(), *entry["peers"]):
        if one.get("times") and not one.get("error") and "refused" not in one:
            one["ms"] = statistics.median(one["times"])
    return entry


def write_json(run, path):
    """The whole file or none of it. One that is write-protected is refused, as open(path, "w") would."""
    text = json.dumps(run, indent=1)
    if os.path.exists(path):
        open(path, "r+b").close()
    part = os.path.join(os.path.dirname(path), f"part.{os.getpid()}")  # any name of `path` may be the longest
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)


def cropped(path, most, folder):
    """A copy of a suite whose layers have smaller data, if needed: the largest extent is halved until the layer has at
    most so many thousand million multiply-adds, those of the two operators."""
    with open(path, newline="") as file:
        rows = csv.DictReader(file)
        names, rows = rows.fieldnames, list(rows)
    for row, layer in zip(rows, read_suite(path)):
        if "convolution" not in layer:
            sys.exit(f"compare.py: --crop is for suites of convolutions, but {layer['id']} of {path} is none")
        given = layer["input"]
        while compare_convolutions.multiply_adds(layer) > most * 1e9 and max(layer["input"]) > 1:
            extents = layer["input"]
            largest = max(range(len(extents)), key=lambda axis: extents[axis])
            layer["input"] = [-(-x // 2) if axis == largest else x for axis, x in enumerate(extents)]
        if layer["input"] != given:
            row["input"] = "x".join(map(str, layer["input"]))
            row["layer"] += f", data of {row['input']}"
    crop = os.path.join(folder, os.path.basename(path))
    with open(crop, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return crop


def build_of(tool):
    """Tells builds apart: a digest of the tool and of the shared library beside it."""
    digest = hashlib.sha256()
    for path in [tool, *sorted(glob.glob(os.path.join(os.path.dirname(tool), "libtconv_cl.so*")))]:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def installed(arguments):
    """The versions of the peers. Those that --peers names must be there; of the default ones, one at least."""
    versions = {}
    for name in arguments.peers.split(",") if arguments.peers else CPU_PEERS:
        wrong = None
        if arguments.type not in PEERS[name].types:
            wrong = f"{name} does not compute {arguments.type}"
        else:
            try:
                versions[name] = PEERS[name].version()
            except (ImportError, OSError):  # that of a missing package is an ImportError
                wrong = f"{name} is not installed: {os.path.join(HERE, 'peers.txt')} says how"
        if wrong and arguments.peers:
            sys.exit(f"compare.py: {wrong}")
        if wrong:
            print(f"{wrong}; it is left out", file=sys.stderr)
    if not versions:
        sys.exit("compare.py: there is no system to compare with")
    return versions


def check_device(arguments, versions):
    """Ends the program if the tool would compute on another device than the peers, and nobody asked for that."""
    done = subprocess.run([arguments.tool, "devices", "--json", "-"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"compare.py: {done.stderr.strip()}")
    listed = json.loads(done.stdout)
    number = listed["default"] if arguments.device is None else arguments.device
    device = next((device for device in listed["devices"] if device["number"] == number), None)
    if device is None:
        sys.exit(f"compare.py: --device is {number}, but there is no such device")
    if arguments.device is None and device["kind"] != "CPU":
        sys.exit(
            f"compare.py: the tool's device is {device['name']}, a {device['kind']}, but the other systems compute on "
            "the CPU: name a device by --device"
        )
    others = [name for name in versions if name in OPENCL_PEERS]
    if others and number != 0:
        sys.exit(f"compare.py: {', '.join(others)} compute on device 0, but tconv-cl on device {number}: --device 0")


def begin(arguments):
    """The run so far: nothing, or with --resume what the JSON file has, if it was made in the same way."""
    versions = installed(arguments)
    check_device(arguments, versions)
    run = {
        "how": {
            "peers": versions,
            "threads": arguments.threads,
            "rounds": arguments.rounds,
            "seconds": arguments.seconds,
            "math": arguments.math,
            "type": arguments.type,
            "device": arguments.device,
            **({"crop": arguments.crop} if arguments.crop else {}),
            "build": build_of(shutil.which(arguments.tool)),
        },
        "layers": [],
    }
    if not arguments.resume or not os.path.exists(arguments.json):
        return run
    with open(arguments.json) as file:
        old = json.load(file)
    differing = [key for key in run["how"] if old["how"].get(key) != run["how"][key]]
    if differing:
        old_values, values = ({key: how.get(key) for key in differing} for how in (old["how"], run["how"]))
        sys.exit(
            f"compare.py: {arguments.json} cannot be resumed: it was made with {old_values}, now it would be {values}"
        )
    return old


def main():
    with contextlib.ExitStack() as stack:
        run_all(stack)


def run_all(stack):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/tconv-cl", help="the program to time; default: %(default)s")
    parser.add_argument(
        "--device",
        type=int,
        help="number of its device, as `tconv-cl devices` lists them; default: its own choice, which must be a CPU",
    )
    parser.add_argument("--suite", default=os.path.join(HERE, "suite.csv"), help="layers; default: %(default)s")
    parser.add_argument("--ids", help="only these, separated by commas")
    parser.add_argument(
        "--crop",
        type=float,
        metavar="N",
        help="of suites of convolutions: halve the data of a layer until its operators have at most N thousand million "
        "multiply-adds, for example 20",
    )
    parser.add_argument(
        "--type",
        choices=list(ELEMENTS),
        default="f32",
        help="element type; u8: with a filter of i8; default: %(default)s",
    )
    parser.add_argument(
        "--least-channels",
        type=int,
        default=1,
        metavar="N",
        help="only layers with so many input and output channels in a group; default: %(default)s",
    )
    parser.add_argument(
        "--peers",
        help=f"default: those of {', '.join(CPU_PEERS)} that are installed; there are also {', '.join(OPENCL_PEERS)}, "
        "which compute by OpenCL on device 0",
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of every peer; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of each layer; default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="for each variant of a peer and round; default: %(default)s"
    )
    parser.add_argument(
        "--timeout", type=float, default=600, help="seconds after which an answer is given up; default: %(default)s"
    )
    parser.add_argument("--math", choices=("exact", "fast"), default="exact", help="of ours only; default: %(default)s")
    parser.add_argument("--json", default="compare.json", help="all results; default: %(default)s")
    parser.add_argument("--resume", action="store_true", help="go on with what the JSON file has")
    parser.add_argument(
        "--noisy",
        type=float,
        metavar="SHARE",
        help="with --resume: time layers again while which others took more than this share of the CPU, "
        "for example 0.05",
    )
    compare_report.add_options(parser)
    arguments = parser.parse_args()
    os.environ["POCL_AFFINITY"] = subprocess.run(
        ["sh", os.path.join(HERE, "..", "scripts", "pocl_affinity.sh")], capture_output=True, text=True, check=True
    ).stdout.strip()
    for name in arguments.peers.split(",") if arguments.peers else []:
        if name not in PEERS:
            parser.error(f'--peers names "{name}": it must be one of {", ".join(PEERS)}')
    if not shutil.which(arguments.tool):
        parser.error(f"--tool {arguments.tool} is not a program")
    if arguments.crop:
        arguments.suite = cropped(arguments.suite, arguments.crop, stack.enter_context(tempfile.TemporaryDirectory()))
    run = begin(arguments)
    workers = [Worker(name, arguments) for name in run["how"]["peers"]]
    suite = list(read_suite(arguments.suite))
    if arguments.type != "f32" and any("convolution" in layer for layer in suite):
        parser.error(f"--type {arguments.type}: convolutions are compared in f32")
    order = {layer["id"]: number for number, layer in enumerate(suite)}
    for wanted in arguments.ids.split(",") if arguments.ids else []:
        if wanted not in order:
            parser.error(f'--ids names "{wanted}", which no layer of the suite is called')
    named = {layer["id"]: layer["layer"] for layer in suite}
    for entry in run["layers"]:
        if named.get(entry["id"]) != entry["layer"]:
            sys.exit(
                f"compare.py: {arguments.json} cannot be resumed: "
                f"its {entry['id']}, {entry['layer']}, is not in {arguments.suite}"
            )
    done = {e["id"] for e in run["layers"] if arguments.noisy is None or e.get("others", 0) <= arguments.noisy}
    chosen = set(arguments.ids.split(",")) if arguments.ids else order
    layers = [
        e
        for e in suite
        if e["id"] not in done
        and e["id"] in chosen
        and min(e["in_channels"], e["out_channels"]) >= arguments.least_channels * e["groups"]
    ]
    start = time.monotonic()
    try:
        for number, layer in enumerate(layers, 1):
            if 4 * math.prod(output_shape(layer)) > 4e9:
                entry = {
                    "id": layer["id"],
                    "layer": layer["layer"],
                    "error": "left out: an output beyond 4 GB",
                    "ours": {},
                    "peers": [],
                }
            else:
                entry = compare(run, layer, workers, arguments, number % CEILINGS_EVERY == 0)
            run["layers"] = sorted(
                [e for e in run["layers"] if e["id"] != layer["id"]] + [entry], key=lambda e: order[e["id"]]
            )
            write_json(run, arguments.json)
            print(
                f"{number}/{len(layers)}, {time.monotonic() - start:.0f} s: {compare_report.sentence(entry)}",
                file=sys.stderr,
            )
    except KeyboardInterrupt:
        sys.exit(
            f"\ncompare.py: interrupted; {len(run['layers'])} layers are in {arguments.json}, and --resume goes on"
        )
    compare_report.write(run, arguments)
    if not any(compare_report.own(entry, False) for entry in run["layers"]):
        sys.exit("compare.py: tconv-cl has timed no layer")
    failed = [entry["id"] for entry in run["layers"] if "error" not in entry and not compare_report.own(entry, False)]
    if failed:
        sys.exit(f"compare.py: tconv-cl has not timed {', '.join(failed)}")


if __name__ == "__main__":
    main()
