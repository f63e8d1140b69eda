# SPDX-License-Identifier: Apache-2.0
"""AMD's programs: how they are compiled, and defects that must be found. Needs clang-19, lld-19, llvm-19 and libclc."""

import os

import offline_gate
from common import BEFORE_STAGE, HALF_CONVERSIONS, NO_BARRIER, common_defects

LIBCLC = "/usr/lib/clc/amdgcn--amdhsa.bc"
TOOLS = ["clang-19", "ld.lld-19", "llvm-objdump-19"]
FILES = [LIBCLC]


def compile_program(number, target, options, text, folder):
    """Writes NUMBER.elf and NUMBER.s."""
    path = os.path.join(folder, number)
    offline_gate.write_text(path + ".cl", text + HALF_CONVERSIONS)
    target_options = ["-target", "amdgcn-amd-amdhsa", "-mcpu=" + target, "-nogpulib"]
    library = ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", LIBCLC]
    command = ["clang-19", "-x", "cl", "-D__OPENCL_VERSION__=120", "-O3", "-w", *target_options, *library]
    offline_gate.run([*command, *options, "-c", "-o", path + ".o", path + ".cl"])
    offline_gate.run(["ld.lld-19", "-shared", "-o", path + ".elf", path + ".o"])
    offline_gate.write_text(path + ".s", offline_gate.run(["llvm-objdump-19", "-d", path + ".elf"]))


# Defects that must be found: what is wrong, what stands in the kernels, what takes its place, a case, words of the
# failure. Two change nothing: options of the compiler are the defect, and the kernels must refuse them.
MATRIX_CASE = " matrix_group %s wide math=fast"
DEFECTS = [
    *common_defects("gfx1030 tiled_group f32 wide", "gfx942 tiled_group f32 wide", "gfx1201 reference f32 odd"),
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
        "matrix: no barrier before a stage's products",
        BEFORE_STAGE,
        NO_BARRIER,
        "gfx1100" + MATRIX_CASE % "f16",
        "since the last barrier",
    ),
]
