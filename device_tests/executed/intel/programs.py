# SPDX-License-Identifier: Apache-2.0
"""Intel's programs: how they are compiled, and defects that must be found. Needs ocloc (Debian: intel-opencl-icd)."""

import os
import shutil

import offline_gate

TOOLS = ["ocloc"]
FILES = []


def compile_program(number, target, options, text, folder):
    """Writes NUMBER.info, in which the compiler describes the kernels, and NUMBER.s, the text of their machine code."""
    path = os.path.join(folder, number)
    dump = path + ".dump"
    os.makedirs(dump)
    source = os.path.join(dump, "a.cl")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    info = offline_gate.intel_binary("ocloc", target, source, options, dump)
    with open(path + ".info", "w", encoding="latin1") as file:
        file.write(info)
    with open(path + ".s", "w", encoding="latin1") as file:
        for name, _ in offline_gate.intel_kernels(info):
            file.write(offline_gate.intel_code(dump, name))
    shutil.rmtree(dump)


DEFECTS = []
