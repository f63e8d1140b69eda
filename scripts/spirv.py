#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles programs to SPIR-V, checks each module by spirv-val, and writes it into a folder for TCONV_CL_SPIRV.

The programs: those of a trace that `tconv-cl check --trace FILE.json` wrote on a device like the one that will run
them, or the lines of build/host_tests/gpu_programs. Those for matrix units and with dot products of bytes are left
out: devices compile them from source. The sources are those of this folder, which must be those of the library that
takes the modules.

A device needs its own target: pointers of 64 or 32 bits; spir for most implementations, mesa for rusticl. Options of
compilation hold everything else that kernels know of a device, and modules are taken for equal options only.

A file is a module behind 8 bytes, a hash of all that it was compiled from and of itself.

Needs clang and llvm-spirv of the same version, and spirv-tools (Debian 12: clang-14, llvm-spirv-14, spirv-tools).
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "cl"
INCLUDE = re.compile(r'^#include "([^"\n]*)"[^\n]*', re.MULTILINE)
TARGETS = {
    "spir64": ["spir64-unknown-unknown"],
    "spir32": ["spir-unknown-unknown"],
    # What Mesa's front end defines, and does not (cl/common/types.clh).
    "mesa64": ["spir64-unknown-unknown", "-U__SPIR__"],
    "mesa32": ["spir-unknown-unknown", "-U__SPIR__", "-D__SPIR32__"],
}
VALID = "opencl2.2"  # modules have SPIR-V 1.0, or 1.1 for sub-groups


def source_of(name, known):
    """The text that src/device/kernel_source.c puts together."""
    if name in known:
        return ""
    known.add(name)
    text = f'#line 1 "{name}"\n' + (KERNELS / name).read_text()
    return "".join(source_of(found, known) for found in INCLUDE.findall(text)) + INCLUDE.sub("", text)


def hash_more(value, text):
    """FNV-1a, as src/device/spirv.c has it."""
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def compile_module(arguments, program):
    """Writes a module. Returns why that failed, or None."""
    name, options = program
    source = source_of(name, set())
    value = hash_more(0xCBF29CE484222325, f"{arguments.target}\n{name}\n{options}\n{source}".encode())
    output = os.path.join(arguments.folder, f"{pathlib.PurePosixPath(name).stem}.{value:016x}.module")
    if os.path.exists(output):
        return None
    triple, *macros = TARGETS[arguments.target]
    front = [word for word in options.split() if word.startswith(("-D", "-cl-std="))]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as work:
        ir, module = os.path.join(work, "ir.bc"), os.path.join(work, "module.spv")
        clang = [arguments.clang, "-x", "cl", "-target", triple, *macros, "-D__OPENCL_VERSION__=120", "-DASSEMBLY=0"]
        clang += [*front, "-O0", "-Xclang", "-disable-O0-optnone", "-w", "-emit-llvm", "-c", "-o", ir, "-"]
        steps = [
            (clang, source),
            ([arguments.llvm_spirv, "--spirv-max-version=1.1", "-o", module, ir], None),
            (["spirv-val", "--target-env", VALID, module], None),
        ]
        for command, text in steps:
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"{command[0]}: {name} {options}\n{done.stderr[:1000]}"
        # A built-in function that the translator does not know becomes one of another module.
        text = subprocess.run(["spirv-dis", module], capture_output=True, text=True, check=True).stdout
        imported = re.search(r'LinkageAttributes "(_Z\w+)" Import', text)
        if imported:
            return f"{arguments.llvm_spirv} does not know {imported[1]}: {name} {options}"
        words = pathlib.Path(module).read_bytes()
        whole = pathlib.Path(work, "whole")
        whole.write_bytes(hash_more(value, words).to_bytes(8, "little") + words)
        os.replace(whole, output)
    return None


def programs_of_trace(path):
    events = json.loads(pathlib.Path(path).read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    return [
        (event["name"].split(" ", 1)[1], event["args"]["options"]) for event in events if event.get("cat") == "program"
    ]


def programs_of_list(path):
    rows = [line.split("\t") for line in pathlib.Path(path).read_text().splitlines()]
    return [(row[3], row[2]) for row in rows]


def is_left_out(name, options):
    """Matrix units have the assembly of one vendor; llvm-spirv 14 and 15 do not know the dot products of bytes."""
    return name.startswith("gpu/matrix") or "-DDOT=2" in options.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="for the modules; those that are there stay")
    parser.add_argument("--trace", action="append", default=[], metavar="FILE.json")
    parser.add_argument("--programs", action="append", default=[], metavar="FILE", help="lines of gpu_programs")
    parser.add_argument("--target", choices=TARGETS, default="spir64")
    parser.add_argument("--count", type=int, metavar="N", help="so many of the programs, evenly spread")
    parser.add_argument("--clang", default="clang-14")
    parser.add_argument("--llvm-spirv", default="llvm-spirv-14")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    listed = [program for path in arguments.trace for program in programs_of_trace(path)]
    listed += [program for path in arguments.programs for program in programs_of_list(path)]
    programs = sorted(program for program in set(listed) if not is_left_out(*program))
    left_out = len(set(listed)) - len(programs)
    if arguments.count is not None and arguments.count < len(programs):
        programs = [programs[i * len(programs) // arguments.count] for i in range(arguments.count)]
    if not programs:
        sys.exit("no programs: give --trace or --programs")
    os.makedirs(arguments.folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        failures = [why for why in pool.map(lambda p: compile_module(arguments, p), programs) if why is not None]
    for why in failures:
        print(why, file=sys.stderr)
    print(f"{len(programs) - len(failures)} of {len(programs)} programs are modules of SPIR-V in {arguments.folder}")
    if left_out:
        print(f"{left_out} are left out: SPIR-V does not have matrix units, nor these compilers dot products of bytes")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
