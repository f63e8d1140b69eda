# SPDX-License-Identifier: Apache-2.0
"""Intel's programs: how they are compiled, and defects that must be found. Needs ocloc (Debian: intel-opencl-icd)."""

import glob
import os
import shutil

import offline_gate
from common import BEFORE_STAGE, common_defects

TOOLS = ["ocloc"]
FILES = []
# For pvc, the compiler of Debian 12 (IGC 1.0.12504) folds a comparison of 32 lanes with 0 into a move of 64 bits that
# it then shortens to one lane: "mov (1|M0) (eq)f3.0" writes one flag, and "(~f3.0) goto (32|M0)" behind it reads 32. So
# quotients of 64 bits are -1 in all lanes but the first. Without this optimisation it does not.
ENVIRONMENT = {"pvc": {"IGC_VISAOptions": "-noflagopt"}}


def versions():
    libraries = ("ocloc", "igc", "igdfcl", "opencl-clang", "LLVMSPIRVLib")
    found = sorted(path for name in libraries for path in glob.glob("/usr/lib/*/lib%s.so*" % name))
    paths = [shutil.which("ocloc"), *found]
    return [repr((path, os.stat(path).st_size, os.stat(path).st_mtime)).encode() for path in paths]


def compile_program(number, target, options, text, folder):
    """Writes NUMBER.info, in which the compiler describes the kernels, and NUMBER.s, the text of their machine code."""
    path = os.path.join(folder, number)
    dump = path + ".dump"
    os.makedirs(dump)
    source = os.path.join(dump, "a.cl")
    offline_gate.write_text(source, text)
    info = offline_gate.intel_binary("ocloc", target, source, options, dump, **ENVIRONMENT.get(target, {}))
    with open(path + ".info", "w", encoding="latin1") as file:
        file.write(info)
    with open(path + ".s", "w", encoding="latin1") as file:
        for name, _ in offline_gate.intel_kernels(info):
            file.write(offline_gate.intel_code(dump, name))
    shutil.rmtree(dump)


# Defects that must be found: what is wrong, what stands in the kernels, what takes its place, a case, words of the
# failure.
MATRIX_CASE = " matrix_group f16 wide math=fast"
DEFECTS = [
    *common_defects("dg2 tiled_group f32 wide", "pvc tiled_group f32 wide", "dg2 reference f32 k2"),
    (
        "dpas: neighbouring rows exchanged",
        "#define ROW_OF(lane, i) (i)",
        "#define ROW_OF(lane, i) ((i) ^ 1)",
        "dg2" + MATRIX_CASE,
        "expected",
    ),
    (
        "dpas of 8 lanes: words of the filter exchanged",
        "#define FILTER_START(k, m, lane) TILE_AT((k) + (lane) / (LANES / 8), m)",
        "#define FILTER_START(k, m, lane) TILE_AT((k) + ((lane) / (LANES / 8) ^ 1), m)",
        "dg2" + MATRIX_CASE,
        "expected",
    ),
    (
        "dpas of 16 lanes: halves of a word exchanged",
        "16 * (own->lane % 2)",
        "16 * (1 - own->lane % 2)",
        "pvc" + MATRIX_CASE,
        "expected",
    ),
    (
        "matrix: no barrier before a stage's products",
        "barrier(CLK_LOCAL_MEM_FENCE);\n        multiply_stage(sums, words, own",
        "multiply_stage(sums, words, own",
        "pvc" + MATRIX_CASE,
        "since the last barrier",
    ),
    (
        "tiled: a barrier for some lanes only",
        BEFORE_STAGE,
        BEFORE_STAGE.replace("barrier", "if (get_local_id(0) % 4 < 3) barrier"),
        "dg2 tiled_group f32 wide",
        "come to the barrier",
    ),
    (
        "direct: one tap too few",
        "for (int j = 0; j < (TAPS_X > 0 ? TAPS_X : item->taps); j++)",
        "for (int j = 1; j < (TAPS_X > 0 ? TAPS_X : item->taps); j++)",
        "dg2 direct_group f32 k2",
        "expected",
    ),
]

CODE_DEFECTS = [
    (
        "code: a thread does not wait at a barrier",
        r"\n[^\n]*sync\.bar[^\n]*",
        "",
        "dg2 tiled_group f32 wide",
        "signals twice",
    ),
    (
        "code: stores to local memory without a fence",
        r"\n[^\n]*fence\.slm[^\n]*",
        "",
        "pvc tiled_group f32 wide",
        "before its stores are fenced",
    ),
    (
        "code: a branch with the other predicate (the last one)",
        r"(?s)(.*\n)\(~(f\d\.\d\)\s+goto )",
        r"\1(\2",
        "dg2 tiled_group f32 wide",
        "expected",
    ),
    (
        "code: dpas forgets its sums",
        r"(dpas\.8x8 \(8\|M0\)\s+r\d+:f\s+)r\d+:f",
        r"\1null:f",
        "dg2" + MATRIX_CASE,
        "expected",
    ),
]
