#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every program that the suite would build on GPUs, without a GPU, and fails where one spills registers or
uses scratch memory.

What is compiled: the lines of build/host_tests/gpu_programs, with a bias, which takes more registers. With what: clang
and libclc for AMD; clang, libclc and ptxas for NVIDIA, and once more with libNVVM, the optimiser of NVIDIA's drivers,
in clang's place; ocloc for Intel. What is not there is skipped, unless --require names its vendor. First each compiler
gets a kernel that must spill, and the gate fails if it does not say so. For Intel it must also find a kernel that is
compiled to a wrong number of lanes.

The table has, for each program, the worst of a vendor's targets: registers of a work-item (Intel: lanes that work-items
are compiled to), bytes of local memory, and how many multiply-adds there are for 100 instructions of the hottest loop.
That is the innermost loop with most multiply-adds; an instruction that does two of them (v_pk_fma, v_dual_fmac) counts
as two and there can be more than 100. An instruction of a matrix unit counts as one. Behind libNVVM's registers are the
bytes that ptxas spills although it has registers left, so that more work-groups run at the same time. That is not a
failure; a spill that one work-group alone needs is.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import libnvvm

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENDORS = ["AMD", "Intel", "NVIDIA"]
# Of each compiler, by the name of its column.
VENDOR_OF = {"AMD": "AMD", "Intel": "Intel", "NVIDIA": "NVIDIA", "libNVVM": "NVIDIA"}
TARGETS = {  # of each device that gpu_programs describes
    "AMD": ["gfx1030", "gfx1100", "gfx1201"],
    "AMD CDNA": ["gfx90a", "gfx942"],
    "Intel": ["dg2"],
    "Intel Max": ["pvc"],
    "Intel Gen9": ["skl"],
    "NVIDIA": ["sm_80", "sm_90"],
    "AMD wmma": ["gfx1100"],
    "AMD wmma12": ["gfx1201"],
    "AMD mfma": ["gfx908", "gfx90a", "gfx942"],
    "Intel dpas": ["dg2"],
    "Intel Max dpas": ["pvc"],
    "NVIDIA mma": ["sm_80", "sm_90"],
    "NVIDIA wgmma": ["sm_90a"],  # by way of sm_90, as the library does: changed_for_sm_90a
}
LIBCLC_14 = os.path.join(ROOT, "build/libclc-14/usr/lib/clc")
LIBCLC = {"AMD": "amdgcn--amdhsa.bc", "NVIDIA": "nvptx64--nvidiacl.bc"}

Program = collections.namedtuple("Program", "device vendor algorithm options source layers")
# Of one kernel on one target; wrong: a sentence, or None; share: multiply-adds for 100 instructions, or None; traded:
# bytes that are spilled for more work-groups.
Kernel = collections.namedtuple("Kernel", "name registers local wrong share traded", defaults=[0])
Result = collections.namedtuple("Result", "program compiler target kernels")  # kernels: a list, or the text of an error


class Failed(Exception):
    pass


def run(command, stderr=subprocess.STDOUT, **more):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", check=False, **more
    )
    if done.returncode != 0:
        raise Failed("%s\n%s" % (" ".join(command), "\n".join((done.stderr or done.stdout).splitlines()[:20])))
    return done.stdout


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- the hottest loop ----


def hottest_loop(lines, label, branch, multiply_adds):
    """The instructions of the code, and those of the innermost loop with most multiply-adds; None if no loop has any.
    `lines` are instructions and labels. label(line) names a label or is None; branch(line) names the label that an
    instruction may go to, or is None; multiply_adds(line) counts."""
    at, places, instructions = {}, [], []
    for line in lines:
        name = label(line)
        if name is not None:
            at[name] = len(instructions)
        else:
            instructions.append(line)
    for end, line in enumerate(instructions):
        target = branch(line)
        if target in at and at[target] <= end:
            places.append((at[target], end + 1))
    best, hottest = (0, 0), None
    for begin, end in places:
        if any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in places):
            continue  # not innermost
        count = sum(multiply_adds(line) for line in instructions[begin:end])
        if (count, begin - end) > best and count > 0:
            best, hottest = (count, begin - end), instructions[begin:end]
    return instructions, hottest


def hottest_share(lines, label, branch, multiply_adds):
    """Multiply-adds for 100 instructions of the hottest loop, or None."""
    _, loop = hottest_loop(lines, label, branch, multiply_adds)
    return None if loop is None else 100 * sum(multiply_adds(line) for line in loop) / len(loop)


def first_group(pattern, line):
    found = re.match(pattern, line)
    return found.group(1) if found else None


# ---- the vendors' compilers ----


def clang(tools, vendor, target, source, options, output):
    triple = {"AMD": "amdgcn-amd-amdhsa", "NVIDIA": "nvptx64-nvidia-cuda"}[vendor]
    later = ["-Xclang", "-target-feature", "-Xclang", "+ptx80"] if target.endswith("a") else []
    nvidia = ["-march=" + target.rstrip("a"), *later]
    chip = {"AMD": ["-mcpu=" + target, "-nogpulib"], "NVIDIA": nvidia}[vendor]
    library = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", os.path.join(tools.libclc, LIBCLC[vendor])]
    # -w: libclc's own triple is another one, which clang warns of for every program.
    command = [tools.clang, "-x", "cl", "-D__OPENCL_VERSION__=120", "-O3", "-w", "-target", triple]
    run([*command, *chip, *library, *options, "-S", "-o", output, source])


def compile_amd(tools, target, source, options, folder):
    output = os.path.join(folder, target + ".s")
    clang(tools, "AMD", target, source, options, output)
    text = text_of(output)
    code, metadata = text.split("amdhsa.kernels:")

    def multiply_adds(line):
        packed = 2 * len(re.findall(r"\bv_pk_fma_f32", line))
        return packed + len(re.findall(r"\bv_(?:(?:dual_)?fma(?:c|mk|ak|amk|aak)?_f32|wmma_|mfma_)", line))

    bodies = {}
    for name, body in re.findall(r"\n(\w+):\s+; @\w+\n(.*?)\n\.Lfunc_end", code, re.S):
        lines = [line.split(";")[0].strip() for line in body.split("\n")]
        lines = [line for line in lines if line and (not line.startswith(".") or line.startswith(".LBB"))]
        bodies[name] = hottest_share(
            lines,
            lambda line: first_group(r"(\.LBB\w+):", line),
            lambda line: first_group(r"s_c?branch\w* (\.LBB\w+)", line),
            multiply_adds,
        )
    kernels = []
    for block in re.split(r"\n  - ", metadata)[1:]:
        if "vgpr_count" not in block:
            continue  # the format's version
        value = dict(re.findall(r"^ *\.(\w+): +(\S+)$", block, re.M))
        spills, scratch = int(value["vgpr_spill_count"]), int(value["private_segment_fixed_size"])
        spilled = "%d registers spilled, %d bytes of scratch" % (spills, scratch) if spills or scratch else None
        kernels.append(
            Kernel(
                value["symbol"][:-3],
                int(value["vgpr_count"]),
                int(value["group_segment_fixed_size"]),
                spilled,
                bodies[value["symbol"][:-3]],
            )
        )
    return kernels


# hottest_loop's arguments for NVIDIA's machine code
NVIDIA_CODE = (
    lambda line: first_group(r"(\.L\w+):", line),
    lambda line: first_group(r".*\bBRA\b.*`\((\.L\w+)\)", line),
    lambda line: 2 if "FFMA2" in line else 1 if re.search("FFMA|[HI]G?MMA", line) else 0,
)


def clang_ptx(tools, target, source, options, folder):
    """A file of PTX as clang makes it."""
    ptx = os.path.join(folder, target + ".clang.ptx")
    clang(tools, "NVIDIA", target, source, options, ptx)
    if target.endswith("a"):  # ptxas must know the size of work-groups that share a compute unit
        size = next((option.split("=")[1] for option in options if option.startswith("-DITEMS=")), None)
        if size:
            directive = r"\g<1>.reqntid %s, 1, 1\n{" % size
            write_text(ptx, re.sub(r"(\.entry tconv_matrix\([^{]*)\{", directive, text_of(ptx)))
    return ptx


def libnvvm_ptx(tools, target, source, options, folder):
    """A file of PTX as libNVVM makes it. It is the same for all targets but for their name, so one file serves all."""
    ptx, ir, named = (os.path.join(folder, name) for name in ("libnvvm.ptx", "clang.ll", "named.ll"))
    if os.path.exists(ptx):
        return ptx
    passed_on = ["-target-cpu", "sm_80", "-cl-ext=+all", "-disable-llvm-passes"]
    passed_on += ["-mlink-builtin-bitcode", os.path.join(tools.libclc_14, LIBCLC["NVIDIA"])]
    command = [tools.clang_14, "-x", "cl", "-D__OPENCL_VERSION__=120", "-O1", "-w", "-target", "nvptx64-nvidia-cuda"]
    command += [*options, *(word for option in passed_on for word in ("-Xclang", option))]
    run([*command, "-fno-discard-value-names", "-emit-llvm", "-S", "-o", ir, source])
    run([tools.opt_14, "-S", "-instnamer", "-o", named, ir])
    text = libnvvm.llvm_7(text_of(named))
    try:
        text = tools.libnvvm.ptx(text, "sm_80")
    except ValueError as error:
        raise Failed("libNVVM: %s" % error) from error
    write_text(ptx, text)
    return ptx


MARK = "//@sm_90a "  # TCONV_SM_90A_MARK of src/device/sm_90a.h


def changed_for_sm_90a(text):
    """PTX for sm_90 as src/device/sm_90a.c changes it for sm_90a."""

    def changed(kernel):
        directive = re.search(re.escape(MARK) + r"(\.minnctapersm \d+)", kernel.group())
        head, body = re.sub(re.escape(MARK) + r"\.minnctapersm \d+", "", kernel.group()).split("{", 1)
        if directive:
            head += directive.group(1) + "\n"
        return head + "{" + body

    text = re.sub(r"^\.target sm_\d+", ".target sm_90a", text, count=1, flags=re.M)
    return re.sub(r"\.entry .*?(?=\.entry |\Z)", changed, text, flags=re.S).replace(MARK, "")


def assemble(tools, target, ptx):
    """ptxas's log, and the file with the machine code."""
    cubin = "%s.%s.cubin" % (ptx, target)
    if target.endswith("a"):
        text = text_of(ptx)
        if MARK not in text:
            raise Failed("the program has no %s" % MARK)
        ptx += ".changed"
        write_text(ptx, changed_for_sm_90a(text))
    log = run([tools.ptxas, "-arch=" + target, "-v", "-o", cubin, ptx])
    if "serialized" in log:
        raise Failed("ptxas waits for each wgmma:\n" + log)
    return log, cubin


def compile_source(tools, make_ptx, target, launch, folder):
    """ptxas's log, and the file with the machine code, of a launch of gpu_programs --listing."""
    source = os.path.join(folder, "a.cl")
    write_text(source, source_text(launch["sources"][0], set()))
    return assemble(tools, target, make_ptx(tools, target, source, launch["options"].split(), folder))


def nvidia_code(tools, cubin):
    """The instructions and labels of each kernel (none without nvdisasm)."""
    code = {}
    if tools.nvdisasm:
        for name, body in re.findall(
            r"\n\.text\.(\w+):\n(.*?)(?=\n\.text\.|\Z)", run([tools.nvdisasm, "-c", cubin]), re.S
        ):
            lines = [re.sub(r"/\*.*?\*/", "", line).strip() for line in body.split("\n")]
            code[name] = [line for line in lines if line and (not line.startswith(".") or line.startswith(".L"))]
    return code


def kernels_of_log(log, shares):
    kernels = []
    for block in log.split("Compiling entry function '")[1:]:
        name = block[: block.index("'")]
        numbers = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", block
        ).groups()
        local = re.search(r"(\d+) bytes smem", block)
        spilled = (
            "%s bytes of stack, %s stored and %s loaded for spills" % numbers if any(int(n) for n in numbers) else None
        )
        kernels.append(
            Kernel(
                name,
                int(re.search(r"Used (\d+) registers", block).group(1)),
                int(local.group(1)) if local else 0,
                spilled,
                shares.get(name),
                int(numbers[0]),
            )
        )
    return kernels


def compile_nvidia(tools, target, source, options, folder):
    ptx = clang_ptx(tools, target, source, options, folder)
    log, cubin = assemble(tools, target, ptx)
    code = nvidia_code(tools, cubin)
    kernels = kernels_of_log(log, {name: hottest_share(lines, *NVIDIA_CODE) for name, lines in code.items()})
    return without_traded(tools, target, ptx, kernels, code) if target.endswith("a") else kernels


def without_traded(tools, target, ptx, kernels, code):
    """The same kernels. ptxas knows the size of a work-group here. It spills a little if more groups fit then, which
    one group at a time would not need. That is not wrong, unless the hottest loop has it."""
    if not any(kernel.wrong for kernel in kernels):
        return kernels
    text = text_of(ptx)
    directive = re.escape(MARK) + r"\.minnctapersm \d+"
    text = re.sub(directive, MARK + ".minnctapersm 1", text)
    if not re.search(directive, text):
        text = re.sub(r"^\.reqntid .*$", r"\g<0>\n.minnctapersm 1", text, flags=re.M)
    alone = "%s.alone.ptx" % ptx
    write_text(alone, text)
    wrong = {kernel.name: kernel.wrong for kernel in kernels_of_log(assemble(tools, target, alone)[0], {})}
    for name, lines in code.items():
        if any(re.search(r"\b(LDL|STL)\b", line) for line in hottest_loop(lines, *NVIDIA_CODE)[1] or []):
            wrong[name] = "a spill in the hottest loop"
    return [kernel._replace(wrong=wrong[kernel.name]) for kernel in kernels]


def compile_libnvvm(tools, target, source, options, folder):
    ptx = libnvvm_ptx(tools, target, source, options, folder)
    log, cubin = assemble(tools, target, ptx)
    kernels = kernels_of_log(log, {})
    return without_traded(tools, target, ptx, kernels, nvidia_code(tools, cubin) if target.endswith("a") else {})


# What OpenCL C 3.0 has for products of bytes, for compilers that are older than it: IGC's name for the instruction.
INTEL_DOT = "".join(
    "int __builtin_IB_dp4a_%s(int, int, int);\n"
    "#define dot_4x8packed_%s_%s(x, w) __builtin_IB_dp4a_%s(0, (int)(x), (int)(w))\n"
    % (signs, signs, "uint" if signs == "uu" else "int", signs)
    for signs in ("ss", "su", "us", "uu")
)


LARGE_REGISTERS = "-cl-intel-256-GRF-per-thread"  # which users may ask for; with it the compiler prefers more lanes


def required_lanes(options, kernel):
    """What a kernel must be compiled to, or 0: SUBGROUP and LANES say it for those that compute."""
    numbers = [int(option.split("=")[1]) for option in options if re.match("-D(SUBGROUP|LANES)=", option)]
    return numbers[0] if numbers and is_main(kernel) else 0


def compile_intel(tools, target, source, options, folder):
    kernels = compile_intel_once(tools, target, source, options, folder)
    if "-DLANES=8" not in options or LARGE_REGISTERS in options:
        return kernels
    large = os.path.join(folder, target + "-large")
    os.makedirs(large)
    more = compile_intel_once(tools, target, source, [*options, LARGE_REGISTERS], large)
    return kernels + [
        kernel._replace(wrong="%s (%s)" % (kernel.wrong, LARGE_REGISTERS)) for kernel in more if kernel.wrong
    ]


def compile_intel_once(tools, target, source, options, folder):
    dump = os.path.join(folder, target)
    os.makedirs(dump)
    info = intel_binary(tools.ocloc, target, source, options, dump)
    kernels = []
    for name, block in intel_kernels(info):
        lanes = int(re.search(r"simd_size: +(\d+)", block).group(1))
        local = re.search(r"slm_size: +(\d+)", block)
        memory = re.findall(r"usage: +(\w+)\n +size: +(\d+)", block.split("per_thread_memory_buffers:")[-1])
        wrong = ["%s %s bytes" % (size, usage) for usage, size in memory if "per_thread_memory" in block]
        wanted = required_lanes(options, name)
        if wanted not in (0, lanes):
            wrong.append("compiled to %d lanes, written for %d" % (lanes, wanted))
        share = share_intel(intel_code(dump, name))
        kernels.append(Kernel(name, lanes, int(local.group(1)) if local else 0, ", ".join(wrong) or None, share))
    return kernels


def intel_binary(ocloc, target, source, options, dump, **environment):
    """Compiles into the folder `dump`; returns the text in which the binary describes its kernels."""
    if "-DDOT=2" in options:
        options = ["-cl-std=CL1.2" if option.startswith("-cl-std") else option for option in options]
        if target == "skl":  # has no such instruction
            options[options.index("-DDOT=2")] = "-DDOT=1"
        else:
            text = text_of(source)
            source = os.path.join(dump, "dot.cl")
            write_text(source, INTEL_DOT + text)
    # The "zebin" format says in plain text what a kernel takes; IGC's own dump has the instructions.
    command = [ocloc, "compile", "-file", source, "-device", target, "-options", " ".join(options)]
    command += ["-internal_options", "-cl-intel-allow-zebin", "-out_dir", dump]
    run(command, env=dict(os.environ, IGC_ShaderDumpEnable="1", IGC_DumpToCustomDir=dump, **environment))
    with open(glob.glob(os.path.join(dump, "*.bin"))[0], "rb") as file:
        binary = file.read()
    info = binary[binary.rindex(b"version:         '") :].decode("latin1")
    return info.split("\nkernels_misc_info")[0]


def intel_kernels(info):
    """The name of each kernel and what the binary says of it."""
    blocks = [(block.split("\n")[0].strip(), block) for block in info.split("\n  - name: ")[1:]]
    # IGC's own is beside functions that are not inlined.
    return [(name, block) for name, block in blocks if not name.startswith("Intel_Symbol_Table")]


def intel_code(dump, name):
    """The text of a kernel's machine code: the last of IGC's attempts is the one that it took."""
    texts = []
    for path in glob.glob(os.path.join(dump, "*.asm")):
        with open(path, encoding="latin1") as file:
            text = file.read()
        if re.search(r"^//\.kernel %s$" % name, text, re.M):
            texts.append((os.path.getmtime(path), text))
    return max(texts)[1]


def share_intel(text):
    lines = [line.split("//")[0].strip() for line in text.split("\n") if line and not line.startswith(("//", "."))]
    return hottest_share(
        [line for line in lines if line],
        lambda line: first_group(r"(\w+):$", line),
        lambda line: (
            first_group(r".*\bgoto\.b\b.*\s(\w+)$", line)  # backwards: the second label
            or first_group(r".*\b(?:goto|while|jmpi)\b.*?\)?\s+(\w+)(?:\s|$)", line)
        ),
        lambda line: 1 if re.search(r"\b(mad|mac)\b.*:f|\bdp4a\b|\bdpas", line) else 0,
    )


COMPILE = {"AMD": compile_amd, "Intel": compile_intel, "NVIDIA": compile_nvidia, "libNVVM": compile_libnvvm}


def add_compiler_arguments(parser):
    """What find_tools reads."""
    parser.add_argument("--clang", default="clang-19", help="for AMD and NVIDIA")
    parser.add_argument("--libclc", default="/usr/lib/clc", metavar="FOLDER", help="where libclc's bitcode is")
    parser.add_argument(
        "--libclc-14", default=LIBCLC_14, metavar="FOLDER", help="where that of clang 14 is (scripts/libclc_14.sh)"
    )


def find_tools(arguments):
    """Every tool's path, or None: from pip's packages of this Python, from PATH, or where CUDA puts it. In this order
    for all, because ptxas must not be older than libNVVM."""
    site = os.path.join(sysconfig.get_path("purelib"), "nvidia", "*")

    def find(name):
        found = next(iter(glob.glob(os.path.join(site, "bin", name))), None) or shutil.which(name)
        return found or shutil.which(name, path="/usr/local/cuda/bin")

    libraries = [
        path
        for folder in (site, "/usr/local/cuda", "/usr/local/cuda/nvvm")
        for path in glob.glob(folder + "/lib*/libnvvm.so*")
    ]
    return argparse.Namespace(
        clang=shutil.which(arguments.clang),
        libclc=arguments.libclc,
        ocloc=find("ocloc"),
        ptxas=find("ptxas"),
        nvdisasm=find("nvdisasm"),
        clang_14=shutil.which("clang-14"),
        opt_14=shutil.which("opt-14"),
        libclc_14=arguments.libclc_14,
        libnvvm=libnvvm.Library(libraries[0]) if libraries else None,
    )


def missing_tools(tools, compiler):
    if compiler == "Intel":
        needed = {"ocloc": tools.ocloc}
    elif compiler == "libNVVM":
        needed = {
            "libnvvm": tools.libnvvm,
            "clang-14": tools.clang_14,
            "opt-14": tools.opt_14,
            "ptxas": tools.ptxas,
            "libclc for clang 14": os.path.exists(os.path.join(tools.libclc_14, LIBCLC["NVIDIA"])),
        }
    else:
        needed = {
            "clang": tools.clang,
            "libclc": os.path.exists(os.path.join(tools.libclc, LIBCLC[compiler])),
            "ptxas": tools.ptxas or compiler == "AMD",
        }
    return [name for name, found in needed.items() if not found]


# ---- programs and jobs ----


def add_programs_argument(parser):
    default = os.path.join(ROOT, "build/host_tests/gpu_programs")
    parser.add_argument("--programs", default=default, help="the program that lists programs and launches")


def listing(programs, kind, data_format, device, *more):
    """What the program lists for layers in this type and format on this device, with these options. Layers that it
    leaves out, because they do not take an --algorithm, are named on stderr."""
    command = [programs, "--listing", kind, data_format, "--device", device, *more]
    return map(json.loads, run(command, stderr=subprocess.PIPE).splitlines())


def read_programs(lister, suite):
    programs = []
    for line in run([lister, *suite]).splitlines():
        device, algorithm, options, source, layers = line.split("\t")
        programs.append(Program(device, device.split()[0], algorithm, tuple(options.split()), source, layers))
    return programs


def sample(programs, percent):
    """`percent` (1 to 100) of each device's programs of each algorithm, evenly spread, at least one."""
    seen = collections.Counter()
    drawn = []
    for program in programs:
        before = seen[program.device, program.algorithm] * percent
        seen[program.device, program.algorithm] += 1
        if before % 100 < percent:
            drawn.append(program)
    return drawn


def source_text(name, known):
    """A file of kernels behind the files that it includes, each once, as src/device/kernel_source.c joins them."""
    if name in known:
        return ""
    known.add(name)
    text = text_of(os.path.join(ROOT, "cl", name))
    include = re.compile(r'^#include "(.*)"', re.M)
    included = "".join(source_text(other, known) for other in include.findall(text))
    return included + '#line 1 "%s"\n%s' % (name, include.sub("", text))


def write_source(program, folder):
    path = os.path.join(folder, os.path.basename(program.source))
    if not os.path.exists(path):
        write_text(path, source_text(program.source, set()))
    return path


def compile_all(tools, programs, compilers, jobs):
    with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(jobs) as pool:

        def one(program, compiler):
            results = []
            with tempfile.TemporaryDirectory(dir=top) as folder:
                for target in TARGETS[program.device]:
                    try:
                        kernels = COMPILE[compiler](tools, target, write[program], program.options, folder)
                    except Failed as error:
                        kernels = str(error)
                    results.append(Result(program, compiler, target, kernels))
            return results

        write = {program: write_source(program, top) for program in programs}
        waiting = [
            pool.submit(one, program, compiler)
            for program in programs
            for compiler in compilers
            if takes(compiler, program)
        ]
        return [result for job in waiting for result in job.result()]


def takes(compiler, program):
    """libNVVM keeps the arrays of the reference in memory. No matter: the reference is slow on purpose."""
    return VENDOR_OF[compiler] == program.vendor and not (compiler == "libNVVM" and program.algorithm == "reference")


# More numbers alive at the same time than any target has registers.
TOO_LARGE = """__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void tconv_spill(__global float *x)
{
    float kept[320];
#pragma unroll
    for (int i = 0; i < 320; i++) kept[i] = x[get_global_id(0) + i * 64];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < 320; i++) x[get_global_id(0) + i * 64] = kept[319 - i];
}
"""


# Compiled to 16 lanes, although its options say that it is written for 8.
WRONG_LANES = """__kernel __attribute__((intel_reqd_sub_group_size(16))) void tconv_lanes(__global float *x)
{
    x[get_global_id(0)] += LANES;
}
"""


def blind_compilers(tools, compilers, jobs):
    """A line for each compiler and target of which this gate would miss a spill, or a wrong number of lanes."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "spill.cl")
        write_text(source, TOO_LARGE)
        programs = [Program(device, device, "spill", ("-cl-std=CL1.2",), source, "") for device in VENDORS]
        for result in compile_all(tools, programs, compilers, jobs):
            if isinstance(result.kernels, str) or not all(kernel.wrong for kernel in result.kernels):
                told = (result.compiler, result.target, result.kernels)
                yield "%s does not say that a kernel spills for %s: %s" % told
        source = os.path.join(folder, "lanes.cl")
        write_text(source, WRONG_LANES)
        programs = [Program("Intel", "Intel", "lanes", ("-cl-std=CL1.2", "-DLANES=8"), source, "")]
        for result in compile_all(tools, programs, compilers, jobs):
            if isinstance(result.kernels, str) or not all(
                "written for 8" in (kernel.wrong or "") for kernel in result.kernels
            ):
                yield "a wrong number of lanes is not found for %s: %s" % (result.target, result.kernels)


# ---- results ----


def failures(results):
    for program, compiler, target, kernels in results:
        options = " ".join(program.options)
        what = "%s by %s for %s %s with %s" % (program.algorithm, compiler, program.device, target, options)
        if isinstance(kernels, str):
            yield "%s does not compile: %s" % (what, kernels)
        else:
            for kernel in kernels:
                if kernel.wrong:
                    yield "%s: %s: %s" % (what, kernel.name, kernel.wrong)


def row_key(program, kernel):
    """Programs that differ in numbers of no consequence share a row, and so do those kernels of an algorithm that pack
    and stage."""
    if not is_main(kernel.name):
        return (program.algorithm, 1, kernel.name)
    unnamed = (
        "-(cl-std|D(FILTER|HALF|PACKED|OUTPUT|BIAS|ACC|RESULT|RAW|USE|SUBGROUP|WG|LOW|RX|ROW|MC|COLUMNS|DOT=0$|MERGED=1$|DX=1$|NX=1$|"
        "DATA=f32$|ACTIVATION_none=1$|(QUANTIZED|SCALE|ALPHA|BETA|RESIDUAL|REQUANTIZED)=0$))"
    )
    if program.algorithm == "matrix_group":
        unnamed = "-(?!DMATRIX=|DMT=)"
    options = [
        "256 registers" if option == LARGE_REGISTERS else option[2:].replace("=", " ")
        for option in program.options
        if not re.match(unnamed, option)
    ]
    return (program.algorithm, 0, ", ".join(options))


def is_main(name):
    return re.fullmatch("tconv_[a-z0-9]+", name) is not None


def table(results, compilers):
    rows = collections.defaultdict(lambda: {"layers": set(), "kernels": collections.defaultdict(list)})
    for program, compiler, _, kernels in results:
        for kernel in kernels if not isinstance(kernels, str) else []:
            row = rows[row_key(program, kernel)]
            row["kernels"][compiler].append(kernel)
            row["layers"].update(program.layers.split(",") if program.layers and is_main(kernel.name) else [])
    heads = ["algorithm", "program", "layers", "local bytes"]
    for compiler in compilers:
        heads += [
            compiler + (" lanes" if compiler == "Intel" else " registers"),
            "traded" if compiler == "libNVVM" else "FMA %",
        ]
    lines = [heads]
    for key in sorted(rows):
        row = rows[key]
        every = [kernel for kernels in row["kernels"].values() for kernel in kernels]
        line = [key[0], key[2], str(len(row["layers"]) or ""), str(max(kernel.local for kernel in every) or "")]
        for compiler in compilers:
            kernels = row["kernels"][compiler]
            shares = [kernel.share for kernel in kernels if kernel.share is not None and is_main(kernel.name)]
            worst = min if compiler == "Intel" else max
            line.append(str(worst(kernel.registers for kernel in kernels)) if kernels else "")
            if compiler == "libNVVM":
                line.append(str(max((kernel.traded for kernel in kernels), default=0) or ""))
            else:
                line.append("%.0f" % min(shares) if shares else "")
        lines.append(line)
    return lines


def print_table(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def write_markdown(path, lines):
    with open(path, "w", encoding="utf-8") as out:
        for i, line in enumerate(lines):
            out.write("| %s |\n" % " | ".join(line))
            if i == 0:
                out.write("|%s\n" % ("---|" * len(line)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_programs_argument(parser)
    parser.add_argument(
        "--suite", metavar="FILE", help="layers in the form of bench/suite.csv; without it the built-in suite"
    )
    parser.add_argument(
        "--require", default="", metavar="VENDORS", help="fail where compilers of these are missing: amd,intel,nvidia"
    )
    parser.add_argument("--only", default="", metavar="VENDORS", help="leave the others out")
    parser.add_argument(
        "--percent",
        type=int,
        default=100,
        metavar="P",
        help="compile P %% of each device's programs of each algorithm, at least one; default 100",
    )
    add_compiler_arguments(parser)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--markdown", metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()

    tools = find_tools(arguments)
    named = {vendor.lower(): vendor for vendor in VENDORS}
    for name in (arguments.require + "," + arguments.only).lower().split(","):
        if name and name not in named:
            parser.error("%s is none of %s" % (name, ", ".join(named)))
    required = [named[name] for name in arguments.require.lower().split(",") if name]
    only = [named[name] for name in arguments.only.lower().split(",") if name] or VENDORS
    if not set(required) <= set(only):
        parser.error("--only leaves out what --require names")
    compilers, absent = [], []
    for compiler in [name for name in COMPILE if VENDOR_OF[name] in only]:
        vendor, missing = VENDOR_OF[compiler], missing_tools(tools, compiler)
        if not missing:
            compilers.append(compiler)
            continue
        targets = [target for device in TARGETS if device.split()[0] == vendor for target in TARGETS[device]]
        print("skipped: %s (%s), for lack of %s" % (compiler, ", ".join(dict.fromkeys(targets)), " and ".join(missing)))
        absent += [compiler] if vendor in required else []

    wrong = list(blind_compilers(tools, compilers, arguments.jobs))
    programs = sample(
        read_programs(arguments.programs, [arguments.suite] if arguments.suite else []), arguments.percent
    )
    results = compile_all(tools, programs, compilers, arguments.jobs)
    lines = table(results, compilers)
    print_table(lines)
    if arguments.markdown:
        write_markdown(arguments.markdown, lines)
    wrong += failures(results)
    for failure in wrong:
        print("FAILED: " + failure)
    for compiler in absent:
        print("FAILED: %s was required" % compiler)
    print(
        "%d programs compiled by %s: %d failures"
        % (len(results), ", ".join(compilers) or "nothing", len(wrong) + len(absent))
    )
    return 1 if wrong or absent or not results else 0


if __name__ == "__main__":
    sys.exit(main())
