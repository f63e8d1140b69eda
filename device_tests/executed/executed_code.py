#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the library's kernel plans for the processors of a vendor, and executes the code on this computer with
build/device_tests/VENDOR_code, which compares every output with the oracle and checks every access to memory.
VENDOR/programs.py says how programs are compiled, and what that needs.

usage: executed_code.py VENDOR EXECUTOR SUITE.csv CASES      cases.h says what a list of cases looks like
"""

import argparse
import concurrent.futures
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts"))
import offline_gate  # noqa: E402  (which compiles the same sources)

LAYERS = os.path.join(HERE, "layers.csv")
SKIPPED = 77


class Vendor:
    """A vendor's programs.py, with the program that executes its code. The module has

    TOOLS             names of programs, all of which it needs
    FILES             paths of files, all of which it needs
    compile_program   (number, target, options, text, folder): writes FOLDER/NUMBER.* from the text of OpenCL C for
                      the executor; raises offline_gate.Failed
    DEFECTS           what must be found: what is wrong, what stands in the kernels, what takes its place, a case,
                      words of the failure. Where nothing is replaced, the compiler's options are the defect, and the
                      kernels must refuse them.
    """

    def __init__(self, name, executor):
        self.name, self.executor = name, executor
        self.programs = importlib.import_module(name + ".programs")

    def missing(self):
        tools = [tool for tool in self.programs.TOOLS if shutil.which(tool) is None]
        return tools + [path for path in self.programs.FILES if not os.path.exists(path)]

    def compile_line(self, line, folder, change):
        """Compiles for a line of `EXECUTOR programs`; returns an error's text, or None. `change` makes another text of
        the kernels' text."""
        number, target, source, options = line.split("\t")
        try:
            text = change(offline_gate.source_text(source, set()))
            self.programs.compile_program(number, target, options.split(), text, folder)
        except offline_gate.Failed as error:
            return "%s\n%s" % (line, error)
        return None

    def run_list(self, suite, cases, folder, jobs, change=lambda text: text):
        """The lines of all cases of a file."""
        listed = subprocess.run(
            [self.executor, "programs", cases, suite], stdout=subprocess.PIPE, text=True, check=False
        )
        if listed.returncode != 0:
            sys.exit("%s: some cases cannot be planned" % cases)

        def execute(first):
            return subprocess.run(
                [self.executor, "run", cases, suite, folder, str(first), str(jobs)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            ).stdout.splitlines()

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            errors = pool.map(lambda line: self.compile_line(line, folder, change), listed.stdout.splitlines())
            lines = ["FAILED  to compile " + error for error in errors if error]
            for part in pool.map(execute, range(jobs)):
                lines += part
        return lines

    def find_defect(self, defect, top):
        """Whether a defect is found; prints how."""
        what, old, new, case, words = defect

        def change(text):
            if old not in text:
                raise offline_gate.Failed("the kernels do not have: " + old)
            return text.replace(old, new)

        folder = tempfile.mkdtemp(dir=top)
        cases = os.path.join(folder, "cases.txt")
        with open(cases, "w", encoding="utf-8") as file:
            file.write(case + "\n")
        lines = self.run_list(LAYERS, cases, folder, 1, change)
        found = [line for line in lines if line.startswith("FAILED") and words in line]
        if found:
            reason = [part for part in found[0].splitlines() if words in part][0]
            print("found   %s: %s" % (what, reason.split(": ", 1)[1]))
        else:
            print("FAILED  to find the defect %s: %s" % (what, "; ".join(lines)))
        return bool(found)


class Verdicts:
    """Lines of cases, and defects, that passed in an earlier run and are not run again while nothing has changed that
    they depend on: EXECUTOR, which holds kernel plans, oracle and executor; the texts of the kernels; the layers; the
    compiler; these scripts. As in device_tests/support/verdicts.h, TCONV_CL_TEST_VERDICTS names their folder."""

    def __init__(self, vendor, suite):
        folder = os.environ.get("TCONV_CL_TEST_VERDICTS") or "off"
        program = read(vendor.executor)
        # With the library linked as a shared one, that file does not tell what is executed.
        off = folder == "off" or b"libtconv_cl." in program
        self.path = None if off else os.path.join(folder, vendor.name + "_code")
        self.executor, self.suite = vendor.executor, suite
        self.kept, self.passed, self.texts = set(), set(), {}
        if self.path is None:
            return
        if os.path.exists(self.path):
            self.kept = set(read(self.path).decode().split())
        versions = [
            subprocess.run([tool, "--version"], stdout=subprocess.PIPE, check=True).stdout
            for tool in vendor.programs.TOOLS
        ]
        scripts = [__file__, offline_gate.__file__, vendor.programs.__file__, os.path.join(HERE, "common.py")]
        files = [read(path) for path in [*vendor.programs.FILES, suite, *scripts]]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("vendor", metavar="VENDOR", help="a folder beside this script")
    parser.add_argument("executor", metavar="EXECUTOR")
    parser.add_argument("suite", metavar="SUITE.csv")
    parser.add_argument("cases", metavar="CASES")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="print passed cases, too")
    parser.add_argument(
        "--no-defects", action="store_true", help="leave out the programs with defects, which must be found"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep the programs of what runs there")
    arguments = parser.parse_args()
    vendor = Vendor(arguments.vendor, arguments.executor)
    if vendor.missing():
        print("skipped for lack of %s" % " and ".join(vendor.missing()))
        return SKIPPED
    verdicts = Verdicts(vendor, arguments.suite)
    with tempfile.TemporaryDirectory() as top:
        folder = arguments.keep or os.path.join(top, "programs")
        os.makedirs(folder, exist_ok=True)
        cases = [line for line in read(arguments.cases).decode().splitlines() if line.strip() and line[0] != "#"]
        keys = {line: verdicts.key(top, line) for line in cases}
        cases = [line for line in cases if not verdicts.is_kept(keys[line])]
        with open(os.path.join(top, "cases.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(cases) + "\n")
        lines = vendor.run_list(arguments.suite, file.name, folder, arguments.jobs) if cases else []
        if all(line.startswith(("passed", "same", "left out")) for line in lines):
            verdicts.passed.update(keys[line] for line in cases)
        defects = [] if arguments.no_defects else vendor.programs.DEFECTS
        keys = {defect: verdicts.key(top, defect[3], defect) for defect in defects}
        defects = [defect for defect in defects if not verdicts.is_kept(keys[defect])]
        known = len(verdicts.passed.intersection(verdicts.kept))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            found = list(pool.map(lambda defect: vendor.find_defect(defect, top), defects))
        verdicts.passed.update(keys[defect] for defect, is_found in zip(defects, found) if is_found)
        verdicts.write()
    if known:
        print("%d lines of cases and defects passed before and were not run again" % known)
    passed, same, left_out = (sum(line.startswith(word) for line in lines) for word in ("passed", "same", "left out"))
    for line in lines:
        if arguments.verbose or not line.startswith(("passed", "same", "left out")):
            print(line)
    if same:
        print("%d with the programs of another target's case" % same)
    if left_out:
        print("%d left out" % left_out)
    failed = len(lines) - passed - same - left_out + found.count(False)
    print("%d passed, %d failed" % (passed + found.count(True), failed))
    return 1 if failed or not passed + known else 0


if __name__ == "__main__":
    sys.exit(main())
