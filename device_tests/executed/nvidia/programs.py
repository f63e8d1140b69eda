# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's programs: how they are compiled, and defects that must be found. Needs clang-19 and libclc."""

import os
import re

import offline_gate
from common import HALF_CONVERSIONS

LIBCLC = "/usr/lib/clc/nvptx64--nvidiacl.bc"
TOOLS = ["clang-19"]
FILES = [LIBCLC]

# A comment of PTX that is an instruction for sm_90a, as the library makes it one before it hands PTX to the driver.
MARK = "//@sm_90a "


def compile_program(number, target, options, text, folder):
    """Writes NUMBER.ptx."""
    path = os.path.join(folder, number)
    with open(path + ".cl", "w", encoding="utf-8") as file:
        file.write(text + HALF_CONVERSIONS)
    # "nvcl": local and constant arguments keep their address spaces, as with NVIDIA's OpenCL.
    command = ["clang-19", "-x", "cl", "-D__OPENCL_VERSION__=120", "-O3", "-w", "-target", "nvptx64-nvidia-nvcl"]
    library = ["-march=" + target.replace("90a", "90"), "-Xclang", "-mlink-builtin-bitcode", "-Xclang", LIBCLC]
    offline_gate.run([*command, *library, *options, "-S", "-o", path + ".ptx", path + ".cl"])
    with open(path + ".ptx", encoding="utf-8") as file:
        ptx = file.read()
    if MARK in ptx:
        ptx = re.sub(r"^(\.target sm_90)\b", r"\1a", ptx, flags=re.M)
        ptx = re.sub(MARK + r"\..*", "", ptx).replace(MARK, "")  # a directive changes nothing that is executed
        with open(path + ".ptx", "w", encoding="utf-8") as file:
            file.write(ptx)


DEFECTS = []
