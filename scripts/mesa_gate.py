#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles what selection takes on GPUs of phones with Mesa's compilers, without a phone, and fails where a kernel
keeps variables in memory.

What is compiled: the launches that build/host_tests/gpu_programs --listing gives for a few layers of the suite, in
f32, f16 and i8, in both data formats, for described phones. With what: rusticl of Debian 13 for arm64, under QEMU, on
Mesa's stand-ins for the GPUs (sh scripts/mesa_tools.sh). First each compiler gets a kernel that must spill, and the
gate fails if it does not say so.

The table has, for each program: the bytes that a work-item keeps in memory, spilled registers included. For Mali, the
work-items that a register file holds (2: all that it can, 1: half), and the cycles of multiply-adds and of loads and
stores of the whole kernel, each instruction once. For Adreno, full registers of four numbers, and of the hottest loop
(the innermost one with most multiply-adds) multiply-adds, loads, accesses of private memory, and instructions for each
multiply-add. `others` are the instructions of the longest kernel that does not multiply: packing or staging. The last
two have limits for direct_group.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import resource
import subprocess
import sys
import tempfile

import offline_gate as gate

TOOLS = os.path.join(gate.ROOT, "build/mesa")
LIBRARIES = os.path.join(TOOLS, "root/usr/lib/aarch64-linux-gnu")
LAYERS = ["B04", "B08", "B10", "B20", "B26", "B31", "B33", "B34", "B37", "B44", "B61", "S6"]
Target = collections.namedtuple("Target", "device driver environment")
TARGETS = {
    "Mali-G610": Target("Mali-G78", "panfrost", {"PAN_GPU_ID": "a867", "BIFROST_MESA_DEBUG": "shaderdb"}),
    "Adreno 740": Target("Adreno 740", "freedreno", {"FD_GPU_ID": "740", "IR3_SHADER_DEBUG": "cs,nocache"}),
    "Adreno 630": Target("Adreno 740", "freedreno", {"FD_GPU_ID": "630", "IR3_SHADER_DEBUG": "cs,nocache"}),
}
# Bytes of private memory that the kernel that computes may have, where none is out of reach: pattern of the options,
# bytes. This is what kernels have with Mesa 25.0.7. Those of direct.cl are vectors of channels with two taps along x
# (B44), with taps that differ by phase (B10), and with taps along z (B61).
LIMITS = [
    ("Mali-G610", "gpu/direct.cl", r"-DTAPS_X=2 .*-DDEPTHWISE=0 .*-DVW=4\b", 4),
    ("Mali-G610", "gpu/direct.cl", r"-DTAPS_X=0 .*-DDEPTHWISE=0 .*-DVW=4\b", 52),
    ("Mali-G610", "gpu/direct.cl", r"-DDEPTHWISE=0 .*-DFLAT=0 -DVW=4\b", 84),
    ("Mali-G610", "gpu/gather.cl", r"-DDOT=0 (-DHALF=1 )?-DVW=1 .*-DKX=9\b", 420),
    ("Adreno 740", "gpu/gather.cl", r"-DDOT=[12] -DVW=4 -DMW=4 .*-DSX=2 -DKX=4\b", 512),
    ("Adreno 630", "gpu/gather.cl", r"-DDOT=[12] -DVW=4 -DMW=4 .*-DSX=2 -DKX=4\b", 512),
]
# The same for instructions of the hottest loop for each multiply-add, and of the longest of the other kernels.
MOST_PER_MAD = [
    *((target, "gpu/direct.cl", r"-DDATA=f32 ", 3.2) for target in ("Adreno 740", "Adreno 630")),
    *((target, "gpu/direct.cl", r"-DDATA=f16 ", 5.6) for target in ("Adreno 740", "Adreno 630")),
]
MOST_OTHERS = [
    ("Mali-G610", "gpu/direct.cl", "", 340),
    ("Adreno 740", "gpu/direct.cl", "", 500),
    ("Adreno 630", "gpu/direct.cl", "", 625),
]
# Programs that are not compiled: Mesa 25.0.7 had not done with one of them after two minutes, and with one of bytes
# (two taps along x, the fewest) after one. Three of bytes have 324 to 388 bytes of private memory (B04, B20, S6).
LEFT_OUT = [("Mali-G610", "gpu/gather.cl", r"-DDOT=[02] (-DHALF=1 )?-DVW=4\b")]
JOBS_OF_PROCESS = 6
CPU_SECONDS = 120  # of one program; most take 3 to 8, nine taps on Mali 60
Program = collections.namedtuple("Program", "target source options kernel algorithm layers")
Result = collections.namedtuple("Result", "program private figures failure")


def read_programs(arguments):
    """A program once for each target, with the layers that take it."""
    found = {}
    suite = ["--suite", arguments.suite] if arguments.suite else []
    for kind in ("f32", "f16", "i8"):
        for data_format in ("NCX", "NXC"):
            for device in sorted({target.device for target in TARGETS.values()}):
                for row in gate.listing(arguments.programs, kind, data_format, device, *suite):
                    if row["layer"] not in LAYERS and not arguments.suite:
                        continue
                    for launch in row["launches"]:
                        key = (device, launch["sources"][0], launch["options"], launch["kernel"], row["algorithm"])
                        if launch["macs"]:
                            found.setdefault(key, []).append(row["layer"])
    programs = [
        Program(name, *key[1:], sorted(set(layers)))
        for name, target in TARGETS.items()
        for key, layers in sorted(found.items())
        if key[0] == target.device
    ]
    return [program for program in programs if not any(is_of(program, row) for row in LEFT_OUT)]


def is_of(program, row):
    return row[:2] == (program.target, program.source) and re.search(row[2], program.options) is not None


def sample(programs, count):
    """So many programs, evenly spread."""
    return [programs[i * len(programs) // count] for i in range(count)] if count < len(programs) else programs


# ---- what the drivers print ----


def figures_of_mali(lines):
    """Of the shader with most cycles of multiply-adds."""
    pattern = r": (\d+) inst, .* ([\d.]+) fma, .* ([\d.]+) ls, .* (\d+) threads, .* (\d+):(\d+) spills:fills"
    shaders = [found.groups() for found in (re.search("SHADER-DB.*" + pattern, line) for line in lines) if found]
    if not shaders:
        return {}
    main = max(shaders, key=lambda shader: float(shader[1]))
    _, fma, ls, threads, spills, fills = main
    return {
        "threads": threads,
        "FMA cycles": fma,
        "LS cycles": ls,
        "spills": "%s:%s" % (spills, fills),
        "others": longest(int(shader[0]) for shader in shaders if shader is not main),
    }


def longest(lengths):
    return str(max(lengths, default=""))


FLAGS = r"(?:\([^)]*\) ?)*"  # in front of an instruction of Adreno's


def multiply_adds(line):
    """Of an instruction, with its repetitions."""
    if not re.match(FLAGS + r"(mad\.f|dp[24]acc)", line):
        return 0
    return 1 + int(gate.first_group(r".*\(rpt(\d)\)", line) or 0)


def figures_of_adreno(lines):
    """Of the shader whose hottest loop has most multiply-adds."""
    shaders, code, registers, length = [], None, 0, 0
    for line in lines:
        line = line.replace("MESA: info: ", "", 1).strip()
        if line.startswith("Native code for"):
            code = []
        elif code is not None and line.startswith("; CL prog"):
            length = int(gate.first_group(r".*: (\d+) instr", line) or length)
            full = re.search(r"(\d+) full", line)
            registers = int(full.group(1)) if full else registers
            if line.endswith("loops"):
                loop = gate.hottest_loop(
                    code,
                    lambda text: gate.first_group(r"(l\d+):$", text),
                    lambda text: gate.first_group(r".*#(l\d+)", text),
                    multiply_adds,
                )[1]
                shaders.append((sum(map(multiply_adds, loop or [])), length, registers, loop or []))
                code = None
        elif code is not None and line and line[0] not in ";@":
            code.append(line)
    if not shaders:
        return {}
    main = max(shaders, key=lambda shader: shader[:2])
    products, _, registers, loop = main
    count = lambda pattern: str(sum(bool(re.match(FLAGS + "(%s)" % pattern, line)) for line in loop))  # noqa: E731
    return {
        "registers": str(registers),
        "MADs": str(products),
        "loads": count("ldg|ldl"),
        "private": count("ldp|stp"),
        "instructions/MAD": "%.1f" % (len(loop) / products) if products else "",
        "others": longest(shader[1] for shader in shaders if shader is not main),
    }


def figures_of(target, lines):
    return figures_of_mali(lines) if TARGETS[target].driver == "panfrost" else figures_of_adreno(lines)


# ---- running the compilers ----


def command_of(target, jobs):
    """The command and its environment, which QEMU hands on; what is for the other system's loader alone comes by -E."""
    environment = {
        "RUSTICL_ENABLE": TARGETS[target].driver,
        "RUSTICL_FEATURES": "fp16",  # as the phones' own drivers have it
        "OCL_ICD_VENDORS": os.path.join(TOOLS, "vendors"),
        "MESA_SHADER_CACHE_DISABLE": "true",
        **TARGETS[target].environment,
    }
    command = [
        os.path.join(TOOLS, "qemu/usr/bin/qemu-aarch64"),
        *("-L", os.path.join(TOOLS, "root")),  # where files are looked for first: rusticl's have fixed paths
        *("-E", "LD_LIBRARY_PATH=%s:%s/gallium-pipe" % (LIBRARIES, LIBRARIES)),
        *("-E", "LD_PRELOAD=%s/lib%s_noop_drm_shim.so" % (LIBRARIES, TARGETS[target].driver)),
        *(os.path.join(TOOLS, "build"), jobs),
    ]
    return command, dict(os.environ, **environment)


def build(target, jobs, folder):
    """For each job, a pair (source file, options): the lines that were printed for it, or None for the jobs after one
    that ended the process."""
    path = os.path.join(folder, "jobs")
    gate.write_text(path, "".join("%s\t%s\n" % job for job in jobs))
    seconds = CPU_SECONDS * len(jobs)
    command, environment = command_of(target, path)
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
    )
    parts = re.split(r"^job \d+\n", done.stdout, flags=re.M)
    if len(parts) == 1:
        raise gate.Failed("%s: %s" % (target, done.stdout[-1000:]))
    printed = [part.splitlines() for part in parts[1:]]
    if not done.stdout.endswith("done\n"):
        printed[-1].append("failed the process ended: %d" % done.returncode)
    return printed + [None] * (len(jobs) - len(printed))


def limit_of(program):
    return max((row[3] for row in LIMITS if is_of(program, row)), default=0)


def excess(program, name, figures, limits):
    """A sentence for a figure above its limit, or None."""
    most = min((row[3] for row in limits if is_of(program, row)), default=None)
    if most is None or not figures.get(name) or float(figures[name]) <= most:
        return None
    return "%s: %s, %s allowed" % (name, figures[name], most)


def result_of(program, lines):
    kernels = dict(
        (found.group(1), int(found.group(2)))
        for found in (re.match(r"kernel (\S+) (\d+) \d+$", line) for line in lines)
        if found
    )
    failed = [line for line in lines if line.startswith("failed")]
    private = kernels.get(program.kernel)
    if failed or private is None:
        return Result(program, None, {}, failed[0][:600] if failed else "no such kernel")
    most, figures = limit_of(program), figures_of(program.target, lines)
    wrong = "%d bytes of private memory, %d allowed" % (private, most) if private > most else None
    for name, others in kernels.items():
        if others > 0 and name != program.kernel:
            wrong = "%s has %d bytes of private memory" % (name, others)
    wrong = wrong or excess(program, "instructions/MAD", figures, MOST_PER_MAD)
    wrong = wrong or excess(program, "others", figures, MOST_OTHERS)
    return Result(program, private, figures, wrong)


def compile_part(target, programs, top):
    results = []
    with tempfile.TemporaryDirectory(dir=top) as folder:
        while programs:
            jobs = [(gate.write_source(program, top), program.options) for program in programs]
            printed = build(target, jobs, folder)
            results += [result_of(program, lines) for program, lines in zip(programs, printed) if lines is not None]
            programs = programs[sum(lines is not None for lines in printed) :]
    return results


def compile_all(programs, processes):
    with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(processes) as pool:
        for program in programs:  # before threads share the files
            gate.write_source(program, top)
        waiting = []
        for target in TARGETS:
            own = [program for program in programs if program.target == target]
            waiting += [
                pool.submit(compile_part, target, own[i : i + JOBS_OF_PROCESS], top)
                for i in range(0, len(own), JOBS_OF_PROCESS)
            ]
        return [result for part in waiting for result in part.result()]


def blind_compilers(processes):
    """A line for each target of which this gate would miss a spill."""
    with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(processes) as pool:
        path = os.path.join(top, "spill.cl")
        gate.write_text(path, gate.TOO_LARGE)

        def printed(target):
            folder = os.path.join(top, target)
            os.mkdir(folder)
            return build(target, [(path, "-cl-std=CL1.2")], folder)[0]

        for target, lines in zip(TARGETS, pool.map(printed, TARGETS)):
            if not any(re.match(r"kernel tconv_spill [1-9]", line) for line in lines):
                yield "%s does not say that a kernel spills: %s" % (target, lines[-1:])


# ---- results ----


def tables(results):
    """For each target its lines."""
    for target in TARGETS:
        own = [result for result in results if result.program.target == target and result.private is not None]
        names = list(dict.fromkeys(name for result in own for name in result.figures))
        lines = [["algorithm", "program", "layers", "bytes", *names]]
        for result in sorted(own):
            split = result.program._replace(options=result.program.options.split())
            key = gate.row_key(split, gate.Kernel(result.program.kernel, 0, 0, None, None))
            first = [result.program.algorithm, key[2], ",".join(result.program.layers), str(result.private)]
            lines.append(first + [result.figures.get(name, "") for name in names])
        yield target, lines


def failures(results):
    for result in results:
        if result.failure:
            options = (result.program.algorithm, result.program.target, result.program.options)
            yield "%s for %s with %s: %s" % (*options, result.failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    gate.add_programs_argument(parser)
    parser.add_argument("--suite", metavar="FILE", help="all layers of a file in the form of bench/suite.csv")
    parser.add_argument("--count", type=int, metavar="N", help="compile N programs, evenly spread; without it all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes run at a time")
    arguments = parser.parse_args()
    if not os.path.exists(os.path.join(TOOLS, "done")):
        parser.error("the compilers are missing: sh scripts/mesa_tools.sh")
    programs = read_programs(arguments)
    wrong = list(blind_compilers(arguments.jobs))
    results = compile_all(sample(programs, arguments.count or len(programs)), arguments.jobs)
    for target, lines in tables(results):
        print(target)
        gate.print_table(lines)
        print()
    wrong += failures(results)
    for failure in wrong:
        print("FAILED: " + failure)
    print(
        "%d of %d programs compiled for %s: %d failures" % (len(results), len(programs), ", ".join(TARGETS), len(wrong))
    )
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main())
