#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the library's kernel plans for AMD processors, and executes the machine code on this computer with
build/device_tests/amd_code, which compares every output with the oracle and checks every access to memory. Needs
clang-19, lld-19, llvm-19 and libclc.

usage: amd_code.py AMD_CODE SUITE.csv CASES      device_tests/amd/cases.txt says what a list of cases looks like
"""

import argparse
import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import offline_gate  # noqa: E402  (which compiles the same sources)

LAYERS = os.path.join(ROOT, "device_tests", "amd", "layers.csv")
LIBCLC = "/usr/lib/clc/amdgcn--amdhsa.bc"
TOOLS = ["clang-19", "ld.lld-19", "llvm-objdump-19"]
SKIPPED = 77
# Conversions that libclc lacks; the vendor's library has them.
HALF_CONVERSIONS = "\n#ifdef HALF\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n%s#endif\n" % "".join(
    "__attribute__((overloadable)) %s%d convert_%s%d(%s%d x) { return __builtin_convertvector(x, %s%d); }\n"
    % (to, n, to, n, of, n, to, n)
    for to, of in (("float", "half"), ("half", "float"))
    for n in (2, 4, 8, 16)
)


# Defects that must be found: what is wrong, what stands in the kernels, what takes its place, a case, words of the
# failure. Two change nothing: options of the compiler are the defect, and the kernels must refuse them.
MATRIX_CASE = " matrix_group %s wide math=fast"
BEFORE_STAGE = "barrier(CLK_LOCAL_MEM_FENCE); /* this stage is loaded, and the products of the stage"
MUTANTS = [
    (
        "wmma: rows as gfx12 has them",
        "#define ROW_OF(lane, i) (2 * (i) + (lane) / 16)",
        "#define ROW_OF(lane, i) ((i) + 8 * ((lane) / 16))",
        "gfx1100" + MATRIX_CASE % "f16",
        "expected",
    ),
    (
        "wmma: u8 taken as signed",
        "#define SIGNED_u8 false",
        "#define SIGNED_u8 true",
        "gfx1100" + MATRIX_CASE % "u8/i8/i32",
        "expected",
    ),
    (
        "wmma of gfx12: rows as gfx11 has them",
        "#define ROW_OF(lane, i) ((lane) / 16 * 8 + (i))",
        "#define ROW_OF(lane, i) (2 * (i) + (lane) / 16)",
        "gfx1201" + MATRIX_CASE % "f16",
        "expected",
    ),
    (
        "wmma of gfx12: a lane has the other half of the inputs",
        "#define INPUT_START FILTER_START",
        "#define INPUT_START(k, n, lane) TILE_AT((k) + (1 - (lane) / 16) * 4, (n) + (lane) % 16)",
        "gfx1201" + MATRIX_CASE % "bf16",
        "expected",
    ),
    (
        "wmma: compiled for waves of 64 lanes",
        "",
        "",
        "gfx1100 matrix_group f16 k4 math=fast wave64",
        "wmma needs waves of 32 lanes",
    ),
    (
        "wmma of gfx12: compiled for waves of 64 lanes",
        "",
        "",
        "gfx1201 matrix_group u8/i8/i32 k4 math=fast wave64",
        "wmma needs waves of 32 lanes",
    ),
    (
        "mfma: rows and columns exchanged",
        "#define ROW_OF(lane, i) ((lane) / 16 * 4 + (i))\n#define COLUMN_OF(lane, i) ((lane) % 16)",
        "#define ROW_OF(lane, i) ((lane) % 16)\n#define COLUMN_OF(lane, i) ((lane) / 16 * 4 + (i))",
        "gfx942" + MATRIX_CASE % "f16",
        "expected",
    ),
    (
        "mfma: words of the filter exchanged",
        "const factors_t a = FACTORS(filters, i * FRAG_M);",
        "const factors_t a = FACTORS(filters, i * FRAG_M).yxwz;",
        "gfx90a" + MATRIX_CASE % "bf16",
        "expected",
    ),
    (
        "mfma: all rows have the same order of quads",
        "#define SWIZZLE(row) ((row) / (32 / KT) % (KT / 4))",
        "#define SWIZZLE(row) 0",
        "gfx942" + MATRIX_CASE % "f16" + " banks=105",
        "without bank conflicts",
    ),
    (
        "sorted positions: a neighbour's taps",
        "(uint)(slot_of(tile, existing, &batch_item, table) >> 32)",
        "(uint)(slot_of(tile, existing ^ 16, &batch_item, table) >> 32)",
        "gfx942 matrix_group f16 points math=fast",
        "of the workspace, which has",
    ),
    (
        "sorted positions: the last sub-group's are left out",
        "(UNIFORM((own)->n) < (own)->count)",
        "(UNIFORM((own)->n) + FN * FRAG_N < (own)->count)",
        "gfx1100 matrix_group f16 small math=fast format=NXC",
        "expected",
    ),
    (
        "tiled: no barrier before a stage's products",
        BEFORE_STAGE,
        BEFORE_STAGE.replace("barrier(CLK_LOCAL_MEM_FENCE);", ""),
        "gfx1030 tiled_group f32 wide",
        "since the last barrier",
    ),
    (
        "matrix: no barrier before a stage's products",
        BEFORE_STAGE,
        BEFORE_STAGE.replace("barrier(CLK_LOCAL_MEM_FENCE);", ""),
        "gfx1100" + MATRIX_CASE % "f16",
        "since the last barrier",
    ),
    (
        "tiled: two work-groups compute the same",
        "#define GROUP_NUMBER ((int)get_group_id(0))",
        "#define GROUP_NUMBER ((int)get_group_id(0) / 2)",
        "gfx942 tiled_group f32 wide",
        "another work-group of this launch",
    ),
    (
        "reference: it reads behind the data",
        "sum = MULTIPLY_ADD(READ_DATA(x",
        "sum += *(volatile __global const data_t *)(x + (ci)*table[REF_DATA_CHANNEL_STEP] + 1) == 12345, "
        "sum = MULTIPLY_ADD(READ_DATA(x",
        "gfx1201 reference f32 odd",
        "of the data, which has",
    ),
]


def compile_program(line, folder, change):
    """Writes NUMBER.elf and NUMBER.s for a line of `amd_code programs`; returns an error's text, or None. `change`
    makes another text of the kernels' text."""
    try:
        compile_line(line, folder, change)
    except offline_gate.Failed as error:
        return "%s\n%s" % (line, error)
    return None


def compile_line(line, folder, change):
    number, target, source, options = line.split("\t")
    path = os.path.join(folder, number)
    with open(path + ".cl", "w", encoding="utf-8") as file:
        file.write(change(offline_gate.source_text(source, set())) + HALF_CONVERSIONS)
    target_options = ["-target", "amdgcn-amd-amdhsa", "-mcpu=" + target, "-nogpulib"]
    library = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", LIBCLC]
    command = ["clang-19", "-x", "cl", "-D__OPENCL_VERSION__=120", "-O3", "-w", *target_options, *library]
    offline_gate.run([*command, *options.split(), "-c", "-o", path + ".o", path + ".cl"])
    offline_gate.run(["ld.lld-19", "-shared", "-o", path + ".elf", path + ".o"])
    with open(path + ".s", "w", encoding="utf-8") as file:
        file.write(offline_gate.run(["llvm-objdump-19", "-d", path + ".elf"]))


def run_list(executor, suite, cases, folder, jobs, change=lambda text: text):
    """The lines of all cases of a file."""
    listed = subprocess.run([executor, "programs", cases, suite], stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode != 0:
        sys.exit("%s: some cases cannot be planned" % cases)

    def execute(first):
        return subprocess.run(
            [executor, "run", cases, suite, folder, str(first), str(jobs)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout.splitlines()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        errors = pool.map(lambda line: compile_program(line, folder, change), listed.stdout.splitlines())
        lines = ["FAILED  to compile " + error for error in errors if error]
        for part in pool.map(execute, range(jobs)):
            lines += part
    return lines


def find_mutant(executor, mutant, top):
    """Whether a defect is found; prints how."""
    what, old, new, case, words = mutant

    def change(text):
        if old not in text:
            raise offline_gate.Failed("the kernels do not have: " + old)
        return text.replace(old, new)

    folder = tempfile.mkdtemp(dir=top)
    cases = os.path.join(folder, "cases.txt")
    with open(cases, "w", encoding="utf-8") as file:
        file.write(case + "\n")
    lines = run_list(executor, LAYERS, cases, folder, 1, change)
    found = [line for line in lines if line.startswith("FAILED") and words in line]
    if found:
        reason = [part for part in found[0].splitlines() if words in part][0]
        print("found   %s: %s" % (what, reason.split(": ", 1)[1]))
    else:
        print("FAILED  to find the defect %s: %s" % (what, "; ".join(lines)))
    return bool(found)


class Verdicts:
    """Lines of cases, and defects, that passed in an earlier run and are not run again while nothing has changed that
    they depend on: AMD_CODE, which holds kernel plans, oracle and executor; the texts of the kernels; the layers; the
    compiler; this script. As in device_tests/support/verdicts.h, TCONV_CL_TEST_VERDICTS names their folder."""

    def __init__(self, executor, suite):
        folder = os.environ.get("TCONV_CL_TEST_VERDICTS") or "off"
        program = read(executor)
        # With the library linked as a shared one, that file does not tell what is executed.
        self.path = None if folder == "off" or b"libtconv_cl." in program else os.path.join(folder, "amd_code")
        self.executor, self.suite = executor, suite
        self.kept, self.passed, self.texts = set(), set(), {}
        if self.path is None:
            return
        if os.path.exists(self.path):
            self.kept = set(read(self.path).decode().split())
        versions = [subprocess.run([tool, "--version"], stdout=subprocess.PIPE, check=True).stdout for tool in TOOLS]
        files = [read(path) for path in (LIBCLC, suite, __file__, offline_gate.__file__)]
        self.common = b"\0".join([hashlib.sha256(part).digest() for part in [program, *versions, *files]])

    def text(self, source):
        if source not in self.texts:
            self.texts[source] = offline_gate.source_text(source, set())
        return self.texts[source]

    def key(self, folder, case, *more):
        """The key of a line of cases; None where no verdicts are kept."""
        if self.path is None:
            return None
        cases = os.path.join(folder, "line.txt")
        with open(cases, "w", encoding="utf-8") as file:
            file.write(case + "\n")
        listed = subprocess.run(
            [self.executor, "programs", cases, self.suite], stdout=subprocess.PIPE, text=True, check=False
        )
        texts = [self.text(line.split("\t")[2]) for line in listed.stdout.splitlines()]
        return hashlib.sha256(self.common + repr((case, more, listed.stdout, texts)).encode()).hexdigest()

    def is_kept(self, key):
        if key is None or key not in self.kept:
            return False
        self.passed.add(key)
        return True

    def write(self):
        """Writes the verdicts of this run, and a number of others: a change may be taken back."""
        if self.path is not None:
            others = sorted(self.kept - self.passed)[:2000]
            with open(self.path + ".part", "w", encoding="utf-8") as file:
                file.write("\n".join(sorted(self.passed) + others) + "\n")
            os.replace(self.path + ".part", self.path)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def missing():
    return [tool for tool in TOOLS if shutil.which(tool) is None] + ([] if os.path.exists(LIBCLC) else ["libclc"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("executor", metavar="AMD_CODE")
    parser.add_argument("suite", metavar="SUITE.csv")
    parser.add_argument("cases", metavar="CASES")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="print passed cases, too")
    parser.add_argument(
        "--no-mutants", action="store_true", help="leave out the kernels with defects, which must be found"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep the programs of what runs there")
    arguments = parser.parse_args()
    if missing():
        print("skipped for lack of %s" % " and ".join(missing()))
        return SKIPPED
    verdicts = Verdicts(arguments.executor, arguments.suite)
    with tempfile.TemporaryDirectory() as top:
        folder = arguments.keep or os.path.join(top, "programs")
        os.makedirs(folder, exist_ok=True)
        cases = [line for line in read(arguments.cases).decode().splitlines() if line.strip() and line[0] != "#"]
        keys = {line: verdicts.key(top, line) for line in cases}
        cases = [line for line in cases if not verdicts.is_kept(keys[line])]
        with open(os.path.join(top, "cases.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(cases) + "\n")
        lines = run_list(arguments.executor, arguments.suite, file.name, folder, arguments.jobs) if cases else []
        if all(line.startswith(("passed", "left out")) for line in lines):
            verdicts.passed.update(keys[line] for line in cases)
        defects = [] if arguments.no_mutants else MUTANTS
        keys = {mutant: verdicts.key(top, mutant[3], mutant) for mutant in defects}
        defects = [mutant for mutant in defects if not verdicts.is_kept(keys[mutant])]
        known = len(verdicts.passed.intersection(verdicts.kept))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            mutants = list(pool.map(lambda mutant: find_mutant(arguments.executor, mutant, top), defects))
        verdicts.passed.update(keys[mutant] for mutant, found in zip(defects, mutants) if found)
        verdicts.write()
    if known:
        print("%d lines of cases and defects passed before and were not run again" % known)
    passed = sum(line.startswith("passed") for line in lines)
    left_out = sum(line.startswith("left out") for line in lines)
    for line in lines:
        if arguments.verbose or not line.startswith(("passed", "left out")):
            print(line)
    if left_out:
        print("%d left out" % left_out)
    failed = len(lines) - passed - left_out + mutants.count(False)
    print("%d passed, %d failed" % (passed + mutants.count(True), failed))
    return 1 if failed or not passed + known else 0


if __name__ == "__main__":
    sys.exit(main())
