#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the multiply-adds that `gpu_programs --listing` tells of a launch are those that it executes: runs small
layers under Oclgrind, which counts instructions, with every algorithm for GPUs. Fails where they differ by more than
a twentieth.

usage: issued.py TCONV-CL GPU-PROGRAMS SUITE.csv [ALGORITHM...]      without names: all that end in _group
"""

import json
import os
import re
import subprocess
import sys

# Oclgrind cannot run what LLVM notes about restricted pointers of inlined functions.
OPTIONS = "-Drestrict= -fno-inline"
KINDS = [("f32", "NCX"), ("f16", "NXC")]


def run(*command):
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=dict(os.environ, TCONV_CL_CACHE="off"),
    )
    return done.returncode, done.stdout + done.stderr


def executed(text):
    """For each launch in order: the kernel and its multiply-adds, those of vectors by lanes."""
    launches = []
    for line in text.splitlines():
        kernel = re.match(r"Instructions executed for kernel '(\w+)'", line)
        if kernel:
            launches.append([kernel.group(1), 0])
        called = re.match(r" *(\d+) - call (?:llvm\.fmuladd\.|_Z3fma)\D*?(\d*)(?:f32|f64|_?[fd])", line)
        if called and launches:
            launches[-1][1] += int(called.group(1)) * int(called.group(2) or 1)
    return launches


def main():
    tool, lister, suite = sys.argv[1:4]
    names = sys.argv[4:] or [
        line.split()[0] for line in run(tool, "bench", "--algorithm", "list")[1].splitlines() if "_group " in line
    ]
    compared, wrong = 0, 0
    for algorithm in names:
        for kind, form in KINDS:
            code, text = run(
                lister, "--listing", kind, form, "--device", "Oclgrind", "--algorithm", algorithm, "--suite", suite
            )
            if code != 0:
                sys.exit("gpu_programs failed: %s" % text)
            layers = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            if not layers:
                continue  # it takes nothing of this type
            command = ["oclgrind", "--inst-counts", "--build-options", OPTIONS, tool, "check", "--suite", suite]
            code, text = run(*command, "--type", kind, "--data-format", form, "--algorithm", algorithm)
            listed = [
                (layer["layer"], launch["kernel"], launch["macs"]) for layer in layers for launch in layer["launches"]
            ]
            kernels = {kernel for _, kernel, _ in listed}
            counted = [launch for launch in executed(text) if launch[0] in kernels]
            if code != 0 or [kernel for kernel, _ in counted] != [kernel for _, kernel, _ in listed]:
                sys.exit("%s %s %s: the launches are others than listed:\n%s" % (algorithm, kind, form, text[-2000:]))
            for (layer, kernel, macs), (_, count) in zip(listed, counted):
                same = abs(macs - count) <= 0.05 * max(macs, count)
                compared += macs > 0
                wrong += not same
                if macs > 0 or not same:
                    print(
                        "%-4s %s %s %-14s %-14s listed %9d, executed %9d%s"
                        % (layer, kind, form, algorithm, kernel, macs, count, "" if same else "  FAILED")
                    )
    print("%d passed, %d failed" % (compared - wrong, wrong))
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
