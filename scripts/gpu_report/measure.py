# SPDX-License-Identifier: Apache-2.0
"""The measurements: what a run does, slice by slice, until its time is over."""

import contextlib
import glob
import hashlib
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from files import load, save, torch_said
from gpus import NONE
from layers import checks, first_checks, KINDS, slices, suite
from report import write_report

CHECKED = ["S5", "S7"]  # small layers for every algorithm; the first that --ids has
TESTS = "special probe layer programs cache launches algorithms types".split()  # first, in this order
NOT_TESTS = ["accesses"]  # for Oclgrind; test_algorithms has more problems
COMPILE_SHARE, COMPILE_LIMIT = 0.2, 120  # of the time, and in seconds, for compiling ahead


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
        listed = load(path)
        devices = listed["devices"]
    old = load(run.path("plan.json")) if arguments.resume else None
    if old:
        device = next((d for d in devices if d["number"] == old["device"]["number"]), {})
        known = (old["device"]["name"], old["device"]["driver"])
        if (device.get("name"), device.get("driver")) != known:
            return "the folder's measurements are of another device: %s, driver %s" % known
        if digest.hexdigest() != old["build"]:
            return "the folder's measurements are of another build: begin anew, without --resume"
        return old
    number = listed["default"] if arguments.device is None else arguments.device
    device = next((d for d in devices if d["number"] == number), None)
    if device is None:
        return "there is no device %s" % number
    if arguments.device is None and device["kind"] != "GPU":
        return NONE % ("the default device is %s, a %s" % (device["name"], device["kind"]))
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
