#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the library's kernel plans for AMD processors, and executes the machine code on this computer with build/device_tests/amd_code,
which compares every output with the oracle and checks every access to memory. Needs clang-19, lld-19, llvm-19 and libclc.

usage: amd_code.py AMD_CODE SUITE.csv CASES      device_tests/amd/cases.txt says what a list of cases looks like
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import offline_gate  # noqa: E402  (which compiles the same sources)

LIBCLC = "/usr/lib/clc/amdgcn--amdhsa.bc"
TOOLS = ["clang-19", "ld.lld-19", "llvm-objdump-19"]
SKIPPED = 77


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise offline_gate.Failed("%s\n%s" % (" ".join(command), "\n".join(done.stdout.splitlines()[:20])))
    return done.stdout


def compile_program(line, folder):
    """Writes NUMBER.elf and NUMBER.s for a line of `amd_code programs`."""
    number, target, source, options = line.split("\t")
    path = os.path.join(folder, number)
    with open(path + ".cl", "w", encoding="utf-8") as file:
        file.write(offline_gate.source_text(source, set()))
    run(["clang-19", "-x", "cl", "-D__OPENCL_VERSION__=120", "-O3", "-w", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target, "-nogpulib",
         "-Xclang", "-mlink-builtin-bitcode", "-Xclang", LIBCLC, *options.split(), "-c", "-o", path + ".o", path + ".cl"])
    run(["ld.lld-19", "-shared", "-o", path + ".elf", path + ".o"])
    with open(path + ".s", "w", encoding="utf-8") as file:
        file.write(run(["llvm-objdump-19", "-d", path + ".elf"]))


def run_list(executor, suite, cases, folder, jobs):
    """The lines of all cases, in the order of the list."""
    listed = subprocess.run([executor, "programs", cases, suite], stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode != 0:
        sys.exit("%s: some cases cannot be planned" % cases)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda line: compile_program(line, folder), listed.stdout.splitlines()))
        parts = pool.map(lambda first: subprocess.run([executor, "run", cases, suite, folder, str(first), str(jobs)],
                                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout,
                         range(jobs))
        return [line for part in parts for line in part.splitlines()]


def missing():
    return [tool for tool in TOOLS if shutil.which(tool) is None] + ([] if os.path.exists(LIBCLC) else ["libclc"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("executor", metavar="AMD_CODE")
    parser.add_argument("suite", metavar="SUITE.csv")
    parser.add_argument("cases", metavar="CASES")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="print passed cases, too")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the programs there")
    arguments = parser.parse_args()
    if missing():
        print("skipped for lack of %s" % " and ".join(missing()))
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        if arguments.keep:
            folder = arguments.keep
            os.makedirs(folder, exist_ok=True)
        lines = run_list(arguments.executor, arguments.suite, arguments.cases, folder, arguments.jobs)
    passed = sum(line.startswith("passed") for line in lines)
    left_out = sum(line.startswith("left out") for line in lines)
    for line in lines:
        if arguments.verbose or not line.startswith(("passed", "left out")):
            print(line)
    if left_out:
        print("%d left out" % left_out)
    failed = len(lines) - passed - left_out
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
