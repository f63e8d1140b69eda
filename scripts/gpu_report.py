#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests and times the library on one device, beside PyTorch (cuDNN, MIOpen, oneDNN), and writes report.md.

What tells most comes first: a short check of every algorithm, a few decisive layers of each kind (element type and data
format), the other layers, device tests, bytes. A slice is five layers of one kind, by tconv-cl bench and then by
PyTorch. Each layer of ours is verified in the run that times it. Each slice has a file, so an interruption loses one
slice at most, and --resume goes on.
"""

import argparse
import contextlib
import csv
import fcntl
import glob
import hashlib
import json
import math
import os
import queue
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ["f16-NXC", "f16-NCX", "f32-NCX", "f32-NXC", "bf16-NXC", "bf16-NCX", "tf32-NXC", "tf32-NCX", "i8-NXC", "i8-NCX"]
DECISIVE = ["B24", "B25", "B43", "B10", "B07", "B09", "B11", "S1", "B23", "B39"]
CHECKED = ["S5", "S7"]  # small layers for every algorithm; the first that --ids has
TESTS = "special probe session_layer programs cache launches algorithms types".split()  # the first; then the others
NOT_TESTS = ["accesses"]  # for Oclgrind; test_algorithms has more problems
SLICE, LAUNCH_MS, TORCH_LIMIT = 5, 0.004, 60
COMPILE_SHARE, COMPILE_LIMIT = 0.2, 120  # of the time, and in seconds, for compiling ahead
# What data sheets promise without sparsity: TFLOP/s of f32, TF32, f16 and bf16, i8; TB/s. The whole name counts: GH200,
# H100 NVL and a part of a card (MIG) have other sheets.
SHEETS = {
    "NVIDIA A100-SXM4-40GB": (19.5, 156, 312, 624, 1.555),
    "NVIDIA A100-SXM4-80GB": (19.5, 156, 312, 624, 2.039),
    "NVIDIA H100 80GB HBM3": (66.9, 495, 990, 1979, 3.35),
    "NVIDIA H100 PCIe": (51.2, 378, 756, 1513, 2.0),
    "NVIDIA H200": (66.9, 495, 990, 1979, 4.8),
}


def load(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, value):
    """Whole or not at all: whatever ends the program, the file is the old or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
    os.replace(path + ".new", path)


# ---- PyTorch: a process of its own, which is loaded once ----


def numbers(layer, name):
    return [int(text) for text in layer[name].split("x")]


def torch_layer(torch, layer, kind, device):
    """A function that computes the layer once. An exception is a refusal."""
    element, order = kind.split("-")
    rank = len(numbers(layer, "input"))
    if rank > 3:
        raise ValueError("it knows up to three axes")
    begin, end = numbers(layer, "pads_begin"), numbers(layer, "pads_end")
    strides, dilations = numbers(layer, "strides"), numbers(layer, "dilations")
    # Its pads are the same at both ends; what the end has less of becomes output padding.
    extra = [o + b - e for o, b, e in zip(numbers(layer, "output_padding"), begin, end)]
    if any(not 0 <= x < max(s, d) for x, s, d in zip(extra, strides, dilations)):
        raise ValueError("it does not have these pads")
    channels, groups = int(layer["in_channels"]), int(layer["groups"])
    # Without TF32 it is exact, as tconv-cl is by default.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = element == "tf32"
    kinds = {"device": device, "dtype": {"f16": torch.float16, "bf16": torch.bfloat16}.get(element, torch.float32)}
    # The distribution of the tool's tensors.
    data = torch.rand(int(layer["batch"]), channels, *numbers(layer, "input"), **kinds) * 4 - 2
    weights = torch.rand(channels, int(layer["out_channels"]) // groups, *numbers(layer, "kernel"), **kinds) * 4 - 2
    if order == "NXC":
        if rank == 1:
            raise ValueError("its channels last are of two or three axes")
        memory = torch.channels_last if rank == 2 else torch.channels_last_3d
        data, weights = data.contiguous(memory_format=memory), weights.contiguous(memory_format=memory)
    convolve = getattr(torch.nn.functional, "conv_transpose%dd" % rank)
    return lambda: convolve(data, weights, None, strides, begin, extra, groups, dilations)


def graph_ms(torch, run):
    """Of a GPU: the mean of computations in a graph, the median of several. Like bench --repeat, without waiting."""
    for _ in range(3):  # cuDNN chooses
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    count, times = 20 if time.perf_counter() - start < 0.005 else 4, []
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count)
    return sorted(times)[len(times) // 2]


def loop_ms(run):
    """Of a CPU: the median of many runs, up to half a second of them, as bench has it."""
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (len(times) < 100 and time.perf_counter() - begin < 0.5):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


def torch_worker(processor, name):
    """Reads lines "KIND ID,ID"; writes one line of JSON for itself, one for each layer, and {} after each request."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is not an answer

    def answer(value):
        answers.write(json.dumps(value) + "\n")

    try:
        import torch
    except ImportError as error:
        return answer({"error": "PyTorch is not installed (%s)" % error})
    device = "cpu"
    if processor == "GPU":
        if not torch.cuda.is_available():
            return answer({"error": "PyTorch %s does not find a GPU" % torch.__version__})
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        device = "cuda:%d" % (names.index(name) if name in names else 0)
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    about = "CPU"
    if device != "cpu":
        about = "%s, cuDNN %s" % (torch.cuda.get_device_name(), torch.backends.cudnn.version())
    answer({"version": torch.__version__, "device": about})
    layers = {layer["id"]: layer for layer in suite()}
    for line in sys.stdin:
        kind, ids = line.split()
        for key in ids.split(","):
            try:
                with torch.no_grad():
                    run = torch_layer(torch, layers[key], kind, device)
                    answer({"id": key, "ms": loop_ms(run) if device == "cpu" else graph_ms(torch, run)})
            except (ValueError, RuntimeError) as error:
                answer({"id": key, "error": (str(error).splitlines() or [type(error).__name__])[0]})
            run = None
            if device != "cpu":
                torch.cuda.empty_cache()  # the next slice of ours needs it
        answer({})
    return None


class Torch:
    """The process with PyTorch. `about` is what it says of itself, once it was asked."""

    def __init__(self, python, processor, name, log):
        self.command = [python, os.path.abspath(__file__), "--torch-worker", processor, name]
        self.log, self.about, self.process = log, None, None
        self.start()

    def start(self):
        self.answers = queue.Queue()
        try:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        except OSError as error:
            self.process, self.about = None, {"error": "PyTorch was not started: %s" % error}
            return
        threading.Thread(target=self.listen, args=(self.process, self.answers), daemon=True).start()

    @staticmethod
    def listen(process, answers):
        for line in process.stdout:
            with contextlib.suppress(ValueError):  # the process was killed while it wrote
                answers.put(json.loads(line))
        answers.put(None)  # it ended

    def answer(self, over, limit=math.inf):
        """The next answer; None if it ended, or was ended after `limit` seconds; "over" if no time is left to wait."""
        begin = time.time()
        while True:
            try:
                return self.answers.get(timeout=0.2)
            except queue.Empty:
                if over() or time.time() - begin > limit:
                    self.end()
                    return "over" if over() else None

    def end(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def time(self, kind, ids, over):
        """Yields the layers' results as they come."""
        if self.about and "error" in self.about:
            return
        if self.about and self.process and self.process.poll() is not None:
            self.end()  # while ours ran; the next layer is not to blame
        if self.process is None:
            self.start()
            self.about = None
        if self.about is None:
            about = self.answer(over)
            if about == "over":
                return
            self.about = about or {"error": "PyTorch ended (torch.log)"}
            if "error" in self.about:
                return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("%s %s\n" % (kind, ",".join(ids)))
            self.process.stdin.flush()
        for key in [*ids, None]:
            result = self.answer(over, TORCH_LIMIT)
            if result == "over":
                return
            if result is None:
                result = {"id": key, "error": "PyTorch ended (torch.log), or took more than %d s" % TORCH_LIMIT}
                ended = True
            else:
                ended = "CUDA error" in result.get("error", "")  # after it, all calls of that process fail
            if key:
                yield result
            if ended:  # a new process does the next layers
                self.end()
                if key and key != ids[-1]:
                    yield from self.time(kind, ids[ids.index(key) + 1 :], over)
                return


# ---- the measurements ----


def suite():
    with open(os.path.join(ROOT, "bench/suite.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def slices(kinds, ids, wanted):
    """(kind, number, ids): the layers of each kind that are `wanted`, the "decisive" ones or the "others"."""
    first = [key for key in DECISIVE if key in ids]
    layers = {"decisive": first, "others": [key for key in ids if key not in first]}[wanted]
    number = 1 if wanted == "decisive" else 1 + math.ceil(len(first) / SLICE)
    return [(kind, number + i // SLICE, layers[i : i + SLICE]) for kind in kinds for i in range(0, len(layers), SLICE)]


def torch_said(folder):
    """What PyTorch said of itself, in order: --resume may have gone on with another one."""
    said = load(os.path.join(folder, "torch.json")) or []
    return [said] if isinstance(said, dict) else said  # earlier versions kept one


def checks(kinds):
    return [kind for kind in kinds if not kind.startswith("tf32")]  # check computes TF32 with --math fast only


def first_checks(kinds):
    """One kind of each element type: correctness is known after little time."""
    return list({kind.split("-")[0]: kind for kind in reversed(checks(kinds))}.values())[::-1]


class Run:
    def __init__(self, arguments):
        self.folder, self.build = os.path.abspath(arguments.output), os.path.abspath(arguments.build)
        self.tool = os.path.join(self.build, "tconv-cl")
        self.begin = arguments.begin or time.time()
        self.end = self.begin + 60 * arguments.minutes if arguments.minutes else math.inf
        self.signal = 0
        # Not of one name: a process that was killed may have left one of the tool's, which still writes.
        self.bench_json = self.path("bench-%d.json" % os.getpid())
        # Programs stay in the folder, so that what the driver compiled can be read later. No results of tconv-cl tune
        # are there, so the cost model selects.
        self.environment = {
            **os.environ,
            "TCONV_CL_CACHE_DIR": os.path.join(self.folder, "cache"),
            "TCONV_CL_CACHE_MIB": "4096",
            "LD_LIBRARY_PATH": os.pathsep.join([self.build, os.environ.get("LD_LIBRARY_PATH", "")]).strip(os.pathsep),
        }
        self.torch = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def over(self):
        """True if nothing more may be measured: the last seconds are for the report."""
        return self.signal != 0 or time.time() > self.end - min(10, 0.1 * (self.end - self.begin))

    def say(self, text, end="\n"):
        sys.stderr.write(text + end)
        sys.stderr.flush()

    def head(self, what):
        left = "" if self.end == math.inf else ", %.0f s left" % max(0, self.end - time.time())
        self.say("%5.0f s%s: %s ... " % (time.time() - self.begin, left, what), "")

    def command(self, command, log):
        """The command's exit status; None if there was no time to end it. SIGINT lets the tool write what it has."""
        with open(self.path(log), "ab") as out:
            out.write(("$ %s\n" % " ".join(command)).encode())
            out.flush()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment, start_new_session=True
            )
        sampled = False
        while not self.over():
            try:
                return process.wait(1)
            except subprocess.TimeoutExpired:
                if not sampled:
                    self.sample_clock()
                sampled = True
        if process.poll() is not None:  # in the last moment
            return process.returncode
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            process.send_signal(signal.SIGINT)
            process.wait(3 if self.signal else max(1, self.end - time.time() - 1))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return None

    def sample_clock(self):
        """What the card does while a command runs, where NVIDIA's tool tells it."""
        if shutil.which("nvidia-smi"):
            query = "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,temperature.gpu,power.draw"
            with open(self.path("clocks.csv"), "ab") as out:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(
                        ["nvidia-smi", query, "--format=csv,noheader"],
                        stdout=out,
                        stderr=subprocess.DEVNULL,
                        check=False,
                        timeout=5,
                    )

    # ---- one step each. Each keeps what was measured before.

    def report(self):
        """A mistake in the report must not end the measurements: --report writes it again."""
        try:
            write_report(self.folder)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.say("the report failed: %r" % error)

    def step(self, name, what, command):
        if self.over() or os.path.exists(self.path(name + ".step.json")):
            return
        self.head(what)
        start = time.time()
        code = self.command(command, name + ".log")
        if code is None:
            self.say("no time")
            return
        save(
            self.path(name + ".step.json"),
            {"what": what, "outcome": "FAILED" if code else "passed", "seconds": time.time() - start},
        )
        self.say("FAILED (%s.log)" % name if code else "passed")

    def bench_command(self, kind, ids, json_path):
        element, order = kind.split("-")
        math_option = ["--math", "fast"] if element == "tf32" else []
        command = [self.tool, "bench", "--device", str(self.device), "--type", element.replace("tf32", "f32")]
        command += ["--data-format", order, *math_option, "--repeat", str(self.repeat)]
        return [*command, "--ids", ",".join(ids), "--json", json_path]

    def bench(self, kind, ids):
        """Measured layers of ours, and the report that holds them."""
        path = self.bench_json
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        code = self.command([*self.bench_command(kind, ids, path), "--no-ceilings"], "bench.log")
        try:
            report = load(path) or {}
        except ValueError:  # it was killed while it wrote
            report = {}
        if code is not None and not report:  # it crashed: which layer is it?
            if len(ids) == 1:
                error = "the tool ended with %d" % code
                return {"layers": [{"id": ids[0], "layer": "", "algorithm": None, "ms_median": None, "error": error}]}
            parts = [self.bench(kind, [key]) for key in ids]
            about = {key: value for part in parts for key, value in part.items()}
            return {**about, "layers": [layer for part in parts for layer in part["layers"]]}
        return {**report, "layers": [layer for layer in report.get("layers", []) if layer["error"] != "interrupted"]}

    def slice(self, kind, number, ids):
        path = self.path("%s-%02d.slice.json" % (kind, number))
        kept = load(path) or {"kind": kind, "ids": ids, "layers": [], "torch": {}}
        ours = [key for key in ids if key not in {layer["id"] for layer in kept["layers"]}]
        theirs = [key for key in ids if key not in kept["torch"]]
        if kind.startswith("i8"):  # PyTorch has none of integers
            theirs = []
        if self.torch.about and "error" in self.torch.about:
            theirs = []
        if self.over() or not ours + theirs:
            return
        self.head("%s %s" % (kind, " ".join(ids)))
        start = time.time()
        if ours:
            report = self.bench(kind, ours)
            kept["layers"] += report["layers"]
            kept.update({key: report[key] for key in ("tool_version", "date", "environment") if key in report})
            if report["layers"]:
                save(path, kept)
        middle, known = time.time(), len(kept["torch"])
        if theirs and not self.over():
            for result in self.torch.time(kind, theirs, self.over):
                kept["torch"][result.pop("id")] = result
                save(path, kept)
        said = torch_said(self.folder)
        if self.torch.about and self.torch.about not in said:
            save(self.path("torch.json"), [*said, self.torch.about])
        self.say(
            "%d layers in %.1f s, PyTorch %d in %.1f s"
            % (len(report["layers"]) if ours else 0, middle - start, len(kept["torch"]) - known, time.time() - middle)
        )
        self.report()

    def compile_ahead(self, kinds, ids):
        """What the driver compiles lies in the cache before slices run: its compiler takes one core, and much longer
        than a slice. Several processes bench the layers once; their times count for nothing."""
        jobs = os.cpu_count() or 1
        if self.over() or jobs < 4 or os.path.exists(self.path("compiled.json")):
            return
        start = time.time()
        limit = min(COMPILE_LIMIT, COMPILE_SHARE * (self.end - start))
        self.head("compiling ahead in %d processes, at most %.0f s" % (jobs, limit))
        shares = max(1, jobs // len(kinds))
        commands = [
            self.bench_command(kind, ids[i::shares], os.devnull)
            for kind in kinds
            for i in range(shares)
            if ids[i::shares]
        ]
        with open(self.path("compile.log"), "ab") as out:
            processes = [
                subprocess.Popen(
                    [*command, "--runs", "1", "--no-ceilings"],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=self.environment,
                    start_new_session=True,
                )
                for command in commands
            ]
        while not self.over() and time.time() - start < limit and any(process.poll() is None for process in processes):
            time.sleep(0.2)
        late = [process for process in processes if process.poll() is None]
        for process in late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()
        if not self.over():  # else --resume goes on with it
            save(
                self.path("compiled.json"),
                {"seconds": time.time() - start, "processes": len(processes), "late": len(late)},
            )
        self.say("%.1f s, %d of %d ended" % (time.time() - start, len(processes) - len(late), len(processes)))

    def ceilings(self, ids):
        path = self.path("ceilings.json")
        if self.over() or os.path.exists(path):
            return
        self.head("the device's ceilings")
        code = self.command(self.bench_command("f32-NCX", ids[:1], self.bench_json), "bench.log")
        report = None if code is None else load(self.bench_json)
        if report and report["peak_gflops"] is None:
            report = None
        self.say("measured" if report else "no time" if code is None else "FAILED (bench.log)")
        if report:
            save(
                path,
                {key: report[key] for key in ("launch_us", "peak_gflops", "bandwidth_gbs", "bandwidth_by_working_set")},
            )

    def all(self, plan):
        ids, kinds = plan["ids"], plan["kinds"]
        self.device = plan["device"]["number"]
        self.repeat = 20 if plan["device"]["kind"] == "GPU" else 1  # a launch on a GPU takes longer than many layers
        self.environment.update(
            {"TCONV_CL_TEST_DEVICE": str(self.device), "TCONV_CL_TEST_PERCENT": str(plan["percent"])}
        )
        checked = next((key for key in CHECKED if key in ids), ids[0])

        def check(some):
            for kind in some:
                element, order = kind.split("-")
                command = [self.tool, "check", "--device", str(self.device), "--ids", checked]
                command += ["--type", element, "--data-format", order]
                self.step("check-" + kind, "check of every algorithm, %s, %s" % (kind, checked), command)

        check(first_checks(kinds))
        self.ceilings([checked])
        floats = [kind for kind in kinds if not kind.startswith("i8")]
        if plan["device"]["kind"] == "GPU":
            self.compile_ahead(floats, ids)
        for part in [*slices(floats, ids, "decisive"), *slices(floats, ids, "others")]:
            self.slice(*part)
        check(checks(kinds))
        for name in plan["tests"]:
            self.step(
                "test-" + name,
                "device test %s, %s %% of its problems" % (name, plan["percent"]),
                [os.path.join(self.build, "device_tests/test_" + name)],
            )
        byte_kinds = [kind for kind in kinds if kind.startswith("i8")]
        for part in [*slices(byte_kinds, ids, "decisive"), *slices(byte_kinds, ids, "others")]:
            self.slice(*part)


def make_plan(run, arguments):
    """What is to be measured: of the folder with --resume, else of the options. A text is an error. Writes nothing."""
    digest = hashlib.sha256()
    for path in [run.tool, *sorted(glob.glob(os.path.join(run.build, "libtconv_cl.so*")))]:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(file.read())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "devices.json")
        listing = subprocess.run(
            [run.tool, "devices", "--json", path], env=run.environment, capture_output=True, text=True, check=False
        )
        if listing.returncode or not os.path.exists(path):
            return "tconv-cl devices failed: %s" % (listing.stderr or listing.stdout)
        devices = load(path)["devices"]
    old = load(run.path("plan.json")) if arguments.resume else None
    if old:
        device = next((d for d in devices if d["number"] == old["device"]["number"]), {})
        known = (old["device"]["name"], old["device"]["driver"])
        if (device.get("name"), device.get("driver")) != known:
            return "the folder's measurements are of another device: %s, driver %s" % known
        if digest.hexdigest() != old["build"]:
            return "the folder's measurements are of another build: begin anew, without --resume"
        return old
    number = arguments.device
    if number is None:
        starred = [line.split("*")[0] for line in listing.stdout.splitlines() if line.split(" ")[0].endswith("*")]
        number = int(starred[0]) if starred else devices[0]["number"]
    device = next((d for d in devices if d["number"] == number), None)
    if device is None:
        return "there is no device %s" % number
    tests = [
        os.path.basename(path)[5:]
        for path in glob.glob(os.path.join(run.build, "device_tests/test_*"))
        if os.access(path, os.X_OK)
    ]
    tests = [
        name
        for name in sorted(tests, key=lambda n: (TESTS.index(n) if n in TESTS else len(TESTS), n))
        if name not in NOT_TESTS
    ]
    known, asked = [layer["id"] for layer in suite()], [name for name in (arguments.tests or "").split(",") if name]
    plan = {
        "ids": arguments.ids.split(",") if arguments.ids else known,
        "kinds": arguments.kinds.split(",") if arguments.kinds else KINDS,
        "tests": tests if arguments.tests is None else [name for name in tests if name in asked],
        "percent": (1 if arguments.minutes else 10) if arguments.percent is None else arguments.percent,
        "device": device,
        "build": digest.hexdigest(),
    }
    strangers = [key for key in plan["ids"] if key not in known] + [kind for kind in plan["kinds"] if kind not in KINDS]
    strangers += [name for name in asked if name not in tests]
    if strangers:
        return "no layer of the suite, kind or device test: %s" % ", ".join(strangers)
    return plan


def take_folder(folder, resume):
    """Makes or empties the folder. Returns a file that keeps other runs out until it is closed, or an error's text."""
    os.makedirs(folder, exist_ok=True)
    if set(os.listdir(folder)) - {"lock"} and not os.path.exists(os.path.join(folder, "plan.json")):
        return "%s has files but no report; nothing was changed: choose another folder" % folder
    lock = open(os.path.join(folder, "lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return "another run measures in %s" % folder
    except OSError as error:  # some file systems of clusters have no locks
        print("%s cannot be locked (%s): let no other run measure there" % (folder, error))
    # The plan goes last: whatever ends this, the folder can be emptied the next time.
    for entry in [] if resume else sorted(os.scandir(folder), key=lambda entry: entry.name == "plan.json"):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.name != "lock":
            os.remove(entry.path)
    return lock


# ---- the report ----


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def table(out, heads, rows):
    out.write("| %s |\n|%s\n" % (" | ".join(heads), "---|" * len(heads)))
    for row in rows:
        out.write(
            "| %s |\n"
            % " | ".join("" if cell is None else str(cell).replace("|", "/").replace("\n", " ") for cell in row)
        )
    out.write("\n")


def sheet_of(name, kind):
    """GFLOP/s and GB/s that the card's data sheet promises, or None."""
    if name not in SHEETS:
        return None
    f32, tf32, half, byte, bandwidth = SHEETS[name]
    return 1e3 * {"f32": f32, "tf32": tf32, "i8": byte}.get(kind.split("-")[0], half), 1e3 * bandwidth


def measured_bandwidth(ceilings, size):
    sizes = ceilings["bandwidth_by_working_set"]
    return next((entry["gbs"] for entry in sizes if entry["bytes"] >= size), sizes[-1]["gbs"])


def evaluate(layer, ceilings, sheet, torch):
    """A row of the report: times, and shares of the roofline by measured ceilings and by the data sheet."""
    ms, row = layer["ms_median"], {"id": layer["id"], "layer": layer["layer"], "error": layer["error"]}
    other = torch.get(layer["id"], {})
    row.update({"algorithm": layer["algorithm"], "ms": ms, "torch": other.get("ms"), "torch_error": other.get("error")})
    if ms:
        flops, size = 1e6 * layer["gflops"] * ms, 1e6 * layer["gbs"] * ms
        if ceilings and ceilings["bandwidth_by_working_set"]:
            floor = 1e-6 * max(flops / ceilings["peak_gflops"], size / measured_bandwidth(ceilings, size))
            row["share"] = (floor + LAUNCH_MS) / ms
        if sheet:
            row["sheet"] = (1e-6 * max(flops / sheet[0], size / sheet[1]) + LAUNCH_MS) / ms
        if row["torch"]:
            row["ratio"] = row["torch"] / ms
    return row


def number(form, value):
    return None if value is None else form % value


def mean_and_worst(rows, name):
    values = {row["id"]: row[name] for row in rows if row.get(name)}
    if not values:
        return None
    worst = min(values, key=values.get)
    return "%.3f (%s %.3f)" % (mean(list(values.values())), worst, values[worst])


def span(rows, column):
    """The least and the largest number of a column, whose cells may have units or no number."""
    values = []
    for row in rows:
        with contextlib.suppress(ValueError):
            values.append(float(row[column].split(" ")[0]))
    return "%g to %g" % (min(values), max(values)) if values else "unknown"


def clocks_text(folder):
    """Card, driver and the range of clocks that were seen while commands ran."""
    if not os.path.exists(os.path.join(folder, "clocks.csv")):
        return None
    with open(os.path.join(folder, "clocks.csv"), encoding="utf-8", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 7]
    cards = {}
    for row in rows:
        cards.setdefault((row[0], row[1], row[3]), []).append(row)
    spans = []
    for (name, driver, limit), seen in cards.items():
        spans.append(
            "%s, driver %s: clock %s MHz (at most %s), memory's %s MHz, %s degrees, %s W, in %d samples"
            % (name, driver, span(seen, 2), limit, span(seen, 4), span(seen, 5), span(seen, 6), len(seen))
        )
    return "; ".join(spans)


def write_report(folder):
    plan, ceilings = load(os.path.join(folder, "plan.json")), load(os.path.join(folder, "ceilings.json"))
    said = torch_said(folder)
    versions = ["%(version)s on %(device)s" % about for about in said if "error" not in about]
    no_torch = None if versions or not said else said[-1]["error"]
    parts = [load(path) for path in sorted(glob.glob(os.path.join(folder, "*.slice.json")))]
    steps = {os.path.basename(path)[:-10]: load(path) for path in glob.glob(os.path.join(folder, "*.step.json"))}
    name = plan["device"]["name"]
    kinds = {}
    for kind in plan["kinds"]:
        mine = [part for part in parts if part["kind"] == kind]
        torch = {key: value for part in mine for key, value in part["torch"].items()}
        rows = {
            layer["id"]: evaluate(layer, ceilings, sheet_of(name, kind), torch)
            for part in mine
            for layer in part["layers"]
        }
        kinds[kind] = ([rows[key] for key in plan["ids"] if key in rows], torch)
    steps_wanted = ["check-" + kind for kind in checks(plan["kinds"])] + ["test-" + test for test in plan["tests"]]
    missing = [step for step in steps_wanted if step not in steps] + ([] if ceilings else ["ceilings"])
    for kind, (rows, torch) in kinds.items():
        ours = [key for key in plan["ids"] if key not in {row["id"] for row in rows}]
        theirs = [] if kind.startswith("i8") or no_torch else [key for key in plan["ids"] if key not in torch]
        for who, keys in [("", ours), (" of PyTorch", [key for key in theirs if key not in ours])]:
            if keys:
                some = "all layers" if len(keys) == len(plan["ids"]) else " ".join(keys)
                missing.append("%s: %s%s" % (kind, some, who))
    with open(os.path.join(folder, "report.md.new"), "w", encoding="utf-8") as out:
        out.write("# tconv-cl on %s\n\n" % name)
        newest = max((part for part in parts if "date" in part), key=lambda part: part["date"], default={})
        facts = [
            *plan["device"].items(),
            ("tool_version", newest.get("tool_version")),
            ("date", newest.get("date")),
            ("seen while commands ran", clocks_text(folder) or "unknown: nvidia-smi was not found"),
        ]
        if ceilings:
            form = "%(peak_gflops).4g GFLOP/s of f32, %(bandwidth_gbs).4g GB/s from memory, a launch %(launch_us).3g us"
            facts.append(("ceilings, measured", form % ceilings))
        facts += [("PyTorch", no_torch or ", then ".join(versions) or "was not asked")]
        table(out, ["property", "value"], facts)
        out.write(
            "## Missing\n\n%s\n"
            % ("".join("- %s\n" % text for text in missing) or "Nothing: everything was measured.\n")
        )
        if missing:
            out.write("`--resume` goes on with these.\n\n")
        out.write("## Tests\n\n")
        out.writelines(
            "- %(what)s: %(outcome)s, %(seconds).0f s\n" % steps[key] for key in steps_wanted if key in steps
        )
        out.write("""
## Kinds

All times are measured, none is predicted: medians, with random data on both sides, of computations in a full queue on
GPUs. `bench` verified 2000 outputs of each layer (or all) against an f64 computation in the run that timed it; a layer
with a wrong one has no time. The share of the roofline is (floor + 4 us) / time. The floor follows from measured
ceilings; the measured peak is that of f32 multiply-adds, so matrix units may exceed 1. A data sheet's peaks are known
of few cards. A ratio is PyTorch's time / ours. tf32 is f32 with `--math fast`, and TF32 allowed in PyTorch.

""")
        heads = ["kind", "layers", "failed", "of roofline (worst)", "of data sheet (worst)", "PyTorch / ours (worst)"]
        heads += ["of layers", "lost"]
        summary = []
        for kind, (rows, _) in kinds.items():
            ratios = [row["ratio"] for row in rows if row.get("ratio")]
            lost = sorted((row for row in rows if row.get("ratio", 1) < 1), key=lambda row: row["ratio"])
            summary.append(
                [
                    kind,
                    "%d of %d" % (sum(1 for row in rows if row["ms"]), len(plan["ids"])),
                    ", ".join(row["id"] for row in rows if row["error"]),
                    mean_and_worst(rows, "share"),
                    mean_and_worst(rows, "sheet"),
                    mean_and_worst(rows, "ratio"),
                    len(ratios),
                    "%d: %s" % (len(lost), " ".join(row["id"] for row in lost)) if lost else 0 if ratios else None,
                ]
            )
        table(out, heads, summary)
        for kind, (rows, _) in kinds.items():
            if rows:
                out.write("## %s\n\n" % kind)
                table(
                    out,
                    ["id", "layer", "algorithm", "ms", "PyTorch ms", "ratio", "of roofline", "of data sheet"],
                    [
                        [
                            row["id"],
                            row["layer"],
                            row["algorithm"],
                            number("%.4f", row["ms"]) or row["error"],
                            number("%.4f", row["torch"]) or row["torch_error"],
                            number("%.2f", row.get("ratio")),
                            number("%.3f", row.get("share")),
                            number("%.3f", row.get("sheet")),
                        ]
                        for row in rows
                    ],
                )
        out.write(
            "Tiles, errors and bounds are in `*.slice.json`. "
            "What the driver compiled is in `cache`; `--programs` unpacks it.\n"
        )
    os.replace(os.path.join(folder, "report.md.new"), os.path.join(folder, "report.md"))
    failed = [key for key, step in steps.items() if step["outcome"] != "passed"]
    failed += ["%s %s" % (kind, row["id"]) for kind, (rows, _) in kinds.items() for row in rows if row["error"]]
    return failed, missing


# ---- programs ----


def unpack_programs(folder):
    """Writes each program of the cache (its format: src/cache/record.h) and its key as files; asks ptxas about PTX."""
    target = os.path.join(folder, "programs")
    os.makedirs(target, exist_ok=True)
    count = 0
    for path in sorted(glob.glob(os.path.join(folder, "cache/**/*"), recursive=True)):
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            record = file.read()
        if record[:7] != b"tconvcl":
            continue
        key_size, size = struct.unpack_from("<QQ", record, 8)
        key, binary = record[24 : 24 + key_size], record[24 + key_size : 24 + key_size + size]
        base = os.path.join(target, os.path.splitext(os.path.basename(path))[0])
        ptx = b".version" in binary[:4096]
        program = base + (".ptx" if ptx else ".bin")
        with open(program, "wb") as out:
            out.write(binary.rstrip(b"\0") if ptx else binary)
        with open(base + ".key", "wb") as out:
            out.write(key)
        count += 1
        if ptx and shutil.which("ptxas"):
            targets = [line.split()[1] for line in binary.splitlines() if line.startswith(b".target")]
            arch = targets[0].split(b",")[0].decode() if targets else "sm_90"
            done = subprocess.run(
                ["ptxas", "-v", "-arch", arch, "-o", os.devnull, program], capture_output=True, text=True, check=False
            )
            with open(base + ".ptxas", "w", encoding="utf-8") as out:
                out.write(done.stdout + done.stderr)
            lines = [
                line.split(":")[-1].strip()
                for line in done.stderr.splitlines()
                if "registers" in line or "spill" in line
            ]
            print("%s: %s" % (os.path.basename(base), "; ".join(lines) if not done.returncode else "ptxas failed"))
    print("%d programs: %s" % (count, target))


def parse():
    parser = argparse.ArgumentParser(
        prog="gpu_report.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=0,
        help="end after so many, the build and the report included; default: when all is done",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on in the folder: measure what it lacks, of the layers, kinds, tests and device "
        "that it was begun with",
    )
    parser.add_argument("--ids", default="", metavar="B01,B07", help="only these layers of the suite")
    parser.add_argument("--kinds", default="", metavar="f16-NXC,...", help="only these of %s" % " ".join(KINDS))
    parser.add_argument("--tests", metavar="NAME,...", help="only these device tests; '' for none")
    parser.add_argument(
        "--percent",
        type=int,
        help="share of their problems that device tests sample, 0: the least; default 10, with --minutes 1",
    )
    parser.add_argument(
        "--device", type=int, metavar="N", help="its number, as tconv-cl devices lists it; default: the one with *"
    )
    parser.add_argument(
        "--output",
        default=os.path.join(ROOT, "build/gpu_report"),
        metavar="FOLDER",
        help="for report.md and all else; default: build/gpu_report of the sources",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="PROGRAM",
        help="the Python that has PyTorch; default: the one that runs this",
    )
    parser.add_argument(
        "--build",
        default=os.path.join(ROOT, "build"),
        metavar="FOLDER",
        help="was built before: build nothing; default: build into build/ of the sources",
    )
    parser.add_argument(
        "--report", action="store_true", help="measure nothing: write the report of what is in the folder"
    )
    parser.add_argument(
        "--programs",
        action="store_true",
        help="measure nothing: unpack the folder's programs, with registers and spills of PTX by ptxas, if it is there",
    )
    # When the script began, in seconds since 1970.
    parser.add_argument("--begin", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--torch-worker", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.torch_worker:
        return torch_worker(*arguments.torch_worker)
    if (arguments.programs or arguments.report) and not os.path.exists(os.path.join(arguments.output, "plan.json")):
        return "%s has no report" % arguments.output
    if arguments.programs:
        return unpack_programs(arguments.output)
    if arguments.report:
        write_report(arguments.output)
        return None
    run = Run(arguments)
    plan = make_plan(run, arguments)  # before an earlier report is deleted
    if isinstance(plan, str):
        return plan
    lock = take_folder(run.folder, arguments.resume)
    if isinstance(lock, str):
        return lock
    save(run.path("plan.json"), plan)

    def stop(number, _):
        run.signal = number

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    run.say("%s; %s" % (plan["device"]["name"], run.folder))
    run.torch = Torch(arguments.python, plan["device"]["kind"], plan["device"]["name"], run.path("torch.log"))
    try:
        run.all(plan)
    finally:
        run.torch.end()
        for path in glob.glob(run.path("bench-*.json")):
            os.remove(path)
        failed, missing = write_report(run.folder)
    lock.close()
    ended, failures = "interrupted: " if run.signal else "", "".join(" " + text for text in failed[:10])
    told = (ended, len(missing), len(failed), failures, run.path("report.md"))
    run.say("%s%d parts are missing, %d failed%s; the report: %s" % told)
    return 128 + run.signal if run.signal else bool(failed)


if __name__ == "__main__":
    sys.exit(main())
