#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That executed_code.py runs a case again if anything changes that its verdict depends on, and that its samples have
each line and each word of a list. Compiler and executor are of this file: they compile nothing.

usage: test_verdicts.py        (as EXECUTOR: test_verdicts.py programs|run CASES SUITE.csv ...)
"""

import itertools
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = """# a comment
a,b    one,two   f32   k4,odd
a      two       f32   k4      seed=1
"""
SUITE = "id\nk4\nodd\n"


# ---- the executor: a case of the algorithm "one" needs the source one.cl; cases with "wrong" fail; code of
# the target d is that of a ----


def cases_of(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and line[0] != "#":
                columns = [word.split(",") for word in line.split()]
                for words in itertools.product(*columns):
                    yield number, " ".join(words)


def execute(command, path, *more):
    texts = [(text, text.split()[:2]) for _, text in cases_of(path)]
    programs = sorted({tuple(needed) for _, needed in texts})
    if command == "programs":
        for line, text in cases_of(path):
            print("%d\t%s\t%d" % (line, text, programs.index(tuple(text.split()[:2]))))
        for number, (target, algorithm) in enumerate(programs):
            print("%d\t%s\t%s.cl\t-DN=1" % (number, target, algorithm))
        return
    for number, (text, (target, algorithm)) in enumerate(texts):
        if number % int(more[3]) == int(more[2]):
            with open(os.environ["TEST_RAN"], "a", encoding="utf-8") as file:
                file.write(text + "\n")
            if target == "d" and "a" + text[1:] in dict(texts):
                print("same    %s: the programs are those of a" % text)
                continue
            with open(os.path.join(more[1], "%d.txt" % programs.index((target, algorithm))), encoding="utf-8") as file:
                wrong = "wrong" in file.read()
            print("%s  %s: as this test says" % ("FAILED" if wrong else "passed", text))


# ---- the compiler ----

VENDOR = """
import os
TOOLS = []
FILES = [os.path.join(os.path.dirname(__file__), "library")]
DEFECTS = [("a sign", "plus", "wrong", "a one f32 k4", "as this test says")]
VERSION = [b"1"]
def versions():
    return VERSION
def compile_program(number, target, options, text, folder):
    with open(os.path.join(folder, number + ".txt"), "w") as file:
        file.write(text)
"""


class Test:
    def __init__(self, work):
        self.work = work
        self.texts = {"one.cl": "plus 1", "two.cl": "plus 2"}
        self.executor = os.path.join(work, "executor")
        os.mkdir(os.path.join(work, "stub"))
        os.mkdir(os.path.join(work, "verdicts"))
        self.write("stub/programs.py", VENDOR)
        self.write("stub/library", "1")
        self.write("layers.csv", SUITE)
        self.write("cases.txt", LIST)
        self.write("executor", "#!/bin/sh\nexec '%s' -S -E '%s' \"$@\"\n" % (sys.executable, os.path.abspath(__file__)))
        os.chmod(self.executor, 0o700)
        os.environ.update(TEST_RAN=os.path.join(work, "ran"), TCONV_CL_TEST_VERDICTS=os.path.join(work, "verdicts"))
        os.environ.pop("TCONV_CL_TEST_CODE", None)
        sys.path[:0] = [HERE, work]
        import executed_code

        self.script = executed_code
        executed_code.offline_gate.source_text = lambda name, known: self.texts[name]

    def write(self, name, text, mode="w"):
        with open(os.path.join(self.work, name), mode, encoding="utf-8") as file:
            file.write(text)

    def run(self, *more):
        """What the script returned, and the cases and defects that ran."""
        files = [self.executor, os.path.join(self.work, "layers.csv"), os.path.join(self.work, "cases.txt")]
        sys.argv = ["executed_code.py", "stub", *files, "--jobs", "1", *more]
        self.write("ran", "")
        stdout, sys.stdout = sys.stdout, open(os.path.join(self.work, "printed"), "w", encoding="utf-8")
        try:
            code = self.script.main()
        finally:
            sys.stdout.close()
            sys.stdout = stdout
        with open(os.path.join(self.work, "ran"), encoding="utf-8") as file:
            return code, sorted(file.read().splitlines())


def check(what, got, wanted):
    if got != wanted:
        sys.exit("%s: %r, not %r" % (what, got, wanted))


def main():
    if len(sys.argv) > 1:
        execute(*sys.argv[1:])
        return
    import shutil
    import tempfile  # which the executor, started often, does not need

    with tempfile.TemporaryDirectory() as work:
        test = Test(work)
        programs = __import__("stub.programs").programs
        every = ["a one f32 k4", "a one f32 odd", "a two f32 k4", "a two f32 k4 seed=1", "a two f32 odd"]
        every += ["b one f32 k4", "b one f32 odd", "b two f32 k4", "b two f32 odd"]
        all_and_defect = sorted(["a one f32 k4", *every])
        check("the first run", test.run(), (0, all_and_defect))
        check("the second run", test.run(), (0, []))

        # A change of one kernel runs the cases that have it; one that is taken back, none.
        test.texts["two.cl"] = "plus 3"
        check("another kernel", test.run(), (0, [text for text in every if " two " in text]))
        test.texts["two.cl"] = "plus 2"
        check("the first kernel again", test.run(), (0, []))

        # What all cases depend on.
        test.write("executor", "# another program\n", "a")
        check("another executor", test.run(), (0, all_and_defect))
        test.write("stub/library", "2")
        check("another library of the compiler's", test.run(), (0, all_and_defect))
        test.write("layers.csv", "more\n", "a")
        check("another suite", test.run()[1], all_and_defect)
        programs.VERSION = [b"2"]
        check("another compiler", test.run(), (0, all_and_defect))
        test.write("stub/programs.py", "# other options\n", "a")
        check("another script", test.run(), (0, all_and_defect))

        # A new case runs alone; another defect, too.
        test.write("cases.txt", "c two f32 k4\n", "a")
        check("a new case", test.run(), (0, ["c two f32 k4"]))
        test.write("cases.txt", "d two f32 k4\n", "a")
        check("a case of another target", test.run(), (0, ["d two f32 k4"]))
        programs.DEFECTS = [(*programs.DEFECTS[0][:3], "b one f32 k4", programs.DEFECTS[0][4])]
        check("another case of a defect", test.run(), (0, ["b one f32 k4"]))

        # What failed is not kept, what passed in the same run is; defects that are not found fail.
        test.texts["two.cl"] = "wrong"
        wrong = [text for text in [*every, "c two f32 k4", "d two f32 k4"] if " two " in text]
        check("a wrong kernel", test.run(), (1, wrong))
        test.texts["one.cl"] = "plus, another 1"
        test.run()
        check("a wrong kernel again", test.run(), (1, wrong))
        test.texts["two.cl"], test.texts["one.cl"] = "plus 2", "minus"
        check("a defect that the kernels do not have", test.run("--no-defects")[0], 0)
        check("a defect that the kernels do not have", test.run()[0], 1)

        # A sample has each line and each word; TCONV_CL_TEST_CODE has all.
        shutil.rmtree(os.path.join(work, "verdicts"))
        os.environ["TCONV_CL_TEST_VERDICTS"] = "off"
        check("without verdicts", len(test.run("--no-defects")[1]), 11)
        check("without verdicts, again", len(test.run("--no-defects")[1]), 11)
        for seed in "1", "2", "3":
            os.environ["TCONV_CL_TEST_SEED"] = seed
            sample = test.run("--no-defects", "--sample")[1]
            words = {word for text in sample for word in text.split()}
            check("words of sample " + seed, words, {"a", "b", "c", "d", "one", "two", "f32", "k4", "odd", "seed=1"})
            check("cases of sample " + seed, len(sample) < 6, True)
        os.environ["TCONV_CL_TEST_CODE"] = "all"
        check("all of the sample", len(test.run("--no-defects", "--sample")[1]), 11)
    print("cases are run again when they must be")


if __name__ == "__main__":
    main()
