#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the library's kernel plans for the processors of a vendor, and executes the code on this computer with
build/device_tests/VENDOR_code, which compares every output with the oracle and checks every access to memory.
VENDOR/programs.py says how programs are compiled, and what that needs.

usage: executed_code.py VENDOR EXECUTOR SUITE.csv CASES      cases.h says what a list of cases looks like

With --sample it is a short run, of some of the cases (sample_of), unless the environment variable TCONV_CL_TEST_CODE is
"all". The defects are always all.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts"))
import offline_gate  # noqa: E402  (which compiles the same sources)

LAYERS = os.path.join(HERE, "layers.csv")
SKIPPED = 77

# As `EXECUTOR programs` lists them; a case has the programs that it needs.
Program = collections.namedtuple("Program", "number target source options")
Case = collections.namedtuple("Case", "line text programs")


class Vendor:
    """A vendor's programs.py, with the program that executes its code. The module has

    TOOLS             names of programs, all of which it needs
    FILES             paths of files, all of which it needs
    versions          texts that differ if the compiler does, where TOOLS do not know "--version"
    compile_program   (number, target, options, text, folder): writes FOLDER/NUMBER.* from the text of OpenCL C for
                      the executor; raises offline_gate.Failed
    DEFECTS           what must be found: what is wrong, what stands in the kernels, what takes its place, a case,
                      words of the failure. Where nothing is replaced, the compiler's options are the defect, and the
                      kernels must refuse them.
    CODE_DEFECTS      the same for the compiled code in FOLDER/NUMBER.s, if there are any: an expression, and what takes
                      the place of what matches first
    """

    def __init__(self, name, executor):
        self.name, self.executor = name, executor
        self.programs = importlib.import_module(name + ".programs")
        self.code_defects = getattr(self.programs, "CODE_DEFECTS", [])

    def missing(self):
        tools = [tool for tool in self.programs.TOOLS if shutil.which(tool) is None]
        return tools + [path for path in self.programs.FILES if not os.path.exists(path)]

    def versions(self):
        """Texts that differ if the compiler does."""
        if hasattr(self.programs, "versions"):
            return self.programs.versions()
        return [
            subprocess.run([tool, "--version"], stdout=subprocess.PIPE, check=True).stdout
            for tool in self.programs.TOOLS
        ]

    def listed(self, suite, path):
        """The cases of a list, and all their programs."""
        done = subprocess.run([self.executor, "programs", path, suite], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit("%s: some cases cannot be planned" % path)
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        programs = [Program(*fields) for fields in lines if len(fields) == len(Program._fields)]
        cases = [
            Case(int(fields[0]), fields[1], [programs[int(number)] for number in fields[2].split()])
            for fields in lines
            if len(fields) == len(Case._fields)
        ]
        return cases, programs

    def compile_program(self, program, folder, change, change_code=None):
        """Returns an error's text, or None. `change` makes another text of the kernels' text, `change_code` of the
        code's."""
        try:
            text = change(offline_gate.source_text(program.source, set()))
            self.programs.compile_program(program.number, program.target, program.options.split(), text, folder)
            if change_code:
                path = os.path.join(folder, program.number + ".s")
                code = change_code(read(path).decode("latin1"))
                with open(path, "w", encoding="latin1") as file:
                    file.write(code)
        except offline_gate.Failed as error:
            return "%s\n%s" % ("\t".join(program), error)
        return None

    def run_list(self, suite, cases, folder, jobs, change=lambda text: text, change_code=None):
        """The lines of all cases of a file."""
        programs = self.listed(suite, cases)[1]

        def execute(first):
            return subprocess.run(
                [self.executor, "run", cases, suite, folder, str(first), str(jobs)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            ).stdout.splitlines()

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            errors = pool.map(lambda program: self.compile_program(program, folder, change, change_code), programs)
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

        def change_code(code):
            code, found = re.subn(old, new, code, count=1)
            if not found:
                raise offline_gate.Failed("the code does not have: " + old)
            return code

        folder = tempfile.mkdtemp(dir=top)
        cases = write_list(os.path.join(folder, "cases.txt"), [case])
        if defect in self.code_defects:
            lines = self.run_list(LAYERS, cases, folder, 1, change_code=change_code)
        else:
            lines = self.run_list(LAYERS, cases, folder, 1, change)
        found = [line for line in lines if line.startswith("FAILED") and words in line]
        if found:
            reason = [part for part in found[0].splitlines() if words in part][0]
            print("found   %s: %s" % (what, reason.split(": ", 1)[1]))
        else:
            print("FAILED  to find the defect %s: %s" % (what, "; ".join(lines)))
        return bool(found)


def sample_of(cases, seed):
    """Chooses cases: at least one of each line of the list, and at least one with each word of each column."""
    met, chosen = set(), set()  # words; texts

    def words(case):
        target, algorithm, types, layer, *options = case.text.split()
        return {(0, target), (1, algorithm), (2, types), (3, layer), *((4, option) for option in options)}

    def new(case):
        return len(words(case) - met)

    def choose(case):
        met.update(words(case))
        chosen.add(case.text)

    lines = collections.defaultdict(list)
    for case in cases:
        lines[case.line].append(case)
    for number, line in enumerate(lines.values()):
        first = (seed + number) % len(line)
        choose(max(line[first:] + line[:first], key=new))
    while max(map(new, cases)) > 0:
        choose(max(cases, key=new))
    return [case for case in cases if case.text in chosen]


class Verdicts:
    """Cases, and defects, that passed in an earlier run and are not run again while nothing has changed that they
    depend on: EXECUTOR, which holds kernel plans, oracle and executor; their programs, with the texts of the kernels;
    the layers; the compiler; these scripts. As in device_tests/support/verdicts.h, TCONV_CL_TEST_VERDICTS names their
    folder."""

    def __init__(self, vendor, suite):
        folder = os.environ.get("TCONV_CL_TEST_VERDICTS") or "off"
        program = read(vendor.executor)
        # With the library linked as a shared one, that file does not tell what is executed.
        off = folder == "off" or b"libtconv_cl." in program
        self.path = None if off else os.path.join(folder, vendor.name + "_code")
        self.kept, self.passed, self.texts = set(), set(), {}
        if self.path is None:
            return
        if os.path.exists(self.path):
            self.kept = set(read(self.path).decode().split())
        versions = vendor.versions()
        scripts = [__file__, offline_gate.__file__, vendor.programs.__file__, os.path.join(HERE, "common.py")]
        files = [read(path) for path in [*vendor.programs.FILES, suite, *scripts]]
        self.common = b"\0".join([hashlib.sha256(part).digest() for part in [program, *versions, *files]])

    def text(self, source):
        if source not in self.texts:
            self.texts[source] = offline_gate.source_text(source, set())
        return self.texts[source]

    def key(self, case, *more):
        """The key of a case; None where no verdicts are kept."""
        if self.path is None:
            return None
        programs = [(program.target, program.options, self.text(program.source)) for program in case.programs]
        return hashlib.sha256(self.common + repr((case.text, more, programs)).encode()).hexdigest()

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


def write_list(path, lines):
    offline_gate.write_text(path, "".join(line + "\n" for line in lines))
    return path


def has_passed(text, lines):
    """Whether the executor's lines say that a case passed, or was not to be executed. One with the programs of another
    target's case passed if that one did."""
    same = "same    %s: the programs are those of " % text
    for line in lines:
        if line.startswith(("passed  %s: " % text, "left out  %s: " % text)):
            return True
        if line.startswith(same):
            return has_passed(line[len(same) :] + text[text.index(" ") :], lines)
    return False


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
    parser.add_argument("--sample", action="store_true", help='a short run, unless TCONV_CL_TEST_CODE is "all"')
    arguments = parser.parse_args()
    vendor = Vendor(arguments.vendor, arguments.executor)
    if vendor.missing():
        print("skipped for lack of %s" % " and ".join(vendor.missing()))
        return SKIPPED
    verdicts = Verdicts(vendor, arguments.suite)
    with tempfile.TemporaryDirectory() as top:
        folder = arguments.keep or os.path.join(top, "programs")
        os.makedirs(folder, exist_ok=True)
        cases = vendor.listed(arguments.suite, arguments.cases)[0]
        if arguments.sample and os.environ.get("TCONV_CL_TEST_CODE") != "all":
            seed = int(os.environ.get("TCONV_CL_TEST_SEED") or 1)
            sample = sample_of(cases, seed)
            print("the sample has %d of %d cases" % (len(sample), len(cases)))
            cases = sample
        keys = {case.text: verdicts.key(case) for case in cases}
        texts = [case.text for case in cases if not verdicts.is_kept(keys[case.text])]
        path = write_list(os.path.join(top, "cases.txt"), texts)
        lines = vendor.run_list(arguments.suite, path, folder, arguments.jobs) if texts else []
        verdicts.passed.update(keys[text] for text in texts if has_passed(text, lines))
        defects = [] if arguments.no_defects else vendor.programs.DEFECTS + vendor.code_defects
        planned = vendor.listed(LAYERS, write_list(os.path.join(top, "defects.txt"), [d[3] for d in defects]))[0]
        keys = {defects[case.line - 1]: verdicts.key(case, defects[case.line - 1]) for case in planned}
        defects = [defect for defect in defects if not verdicts.is_kept(keys[defect])]
        known = len(verdicts.passed.intersection(verdicts.kept))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            found = list(pool.map(lambda defect: vendor.find_defect(defect, top), defects))
        verdicts.passed.update(keys[defect] for defect, is_found in zip(defects, found) if is_found)
        verdicts.write()
    if known:
        print("%d of %d cases passed before and were not run again" % (known, len(verdicts.passed)))
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
