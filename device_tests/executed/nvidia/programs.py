# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's programs: how they are compiled, and defects that must be found. Needs clang-19 and libclc."""

import os

import offline_gate
from common import BEFORE_STAGE, HALF_CONVERSIONS, NO_BARRIER, common_defects

LIBCLC = "/usr/lib/clc/nvptx64--nvidiacl.bc"
TOOLS = ["clang-19"]
FILES = [LIBCLC]

# libclc's launches have no offset, but NVIDIA's have: a special register.
OFFSET = """
static uint global_offset(void) { uint offset; __asm__("mov.u32 %0, %%envreg3;" : "=r"(offset)); return offset; }
#define get_global_offset(dimension) ((dimension) == 0 ? (size_t)global_offset() : 0)
"""


def compile_program(number, target, options, text, folder):
    """Writes NUMBER.ptx."""
    path = os.path.join(folder, number)
    offline_gate.write_text(path + ".cl", OFFSET + text + HALF_CONVERSIONS)
    # "nvcl": local and constant arguments keep their address spaces, as with NVIDIA's OpenCL.
    command = ["clang-19", "-x", "cl", "-D__OPENCL_VERSION__=120", "-O3", "-w", "-target", "nvptx64-nvidia-nvcl"]
    library = ["-march=" + target.replace("90a", "90"), "-Xclang", "-mlink-builtin-bitcode", "-Xclang", LIBCLC]
    offline_gate.run([*command, *library, *options, "-S", "-o", path + ".ptx", path + ".cl"])
    ptx = offline_gate.text_of(path + ".ptx")
    if offline_gate.MARK in ptx:
        offline_gate.write_text(path + ".ptx", offline_gate.changed_for_sm_90a(ptx))


# See Vendor in executed_code.py.
MATRIX_CASE = "sm_90 matrix_group %s wide math=fast"
WGMMA_CASE = "sm_90a matrix_group:kt=16:wn=128 f16 quads math=fast format=NXC"
EARLY_CASE = "sm_90a matrix_group:mt=64:nt=128:kt=32:wn=128 f16 %s math=fast format=NXC"
SHARED_CASE = "sm_90a matrix_group:shared=32 f16 tiles math=fast format=NXC"
DEFECTS = [
    *common_defects("sm_90 tiled_group f32 wide", "sm_90 tiled_group f32 wide", "sm_90 reference f32 odd"),
    (
        "mma: sums in other rows",
        "#define ROW_OF(lane, i) ((lane) / 32 * 16 + (lane) % 32 / 4 + (i) / 2 * 8)",
        "#define ROW_OF(lane, i) ((lane) / 32 * 16 + (lane) % 32 / 4 * 2 + (i) / 2)",
        MATRIX_CASE % "f16",
        "expected",
    ),
    (
        "mma: words of the filter exchanged",
        '"r"(a.s0), "r"(a.s1), "r"(a.s2)',
        '"r"(a.s0), "r"(a.s2), "r"(a.s1)',
        MATRIX_CASE % "bf16",
        "expected",
    ),
    (
        "mma: u8 taken as signed",
        "#define PTX_u8 u8",
        "#define PTX_u8 s8",
        MATRIX_CASE % "u8/i8/i32",
        "expected",
    ),
    (
        "ldmatrix: positions with a wrong stride",
        "(n) + (lane) / 16 * 8 + (lane) % 8)",
        "(n) + (lane) / 16 * 4 + (lane) % 8)",
        MATRIX_CASE % "f32",
        "expected",
    ),
    (
        "movmatrix left out",
        "movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;",
        "mov.b32 %0, %1;",
        "sm_90 matrix_group f16 k4 math=fast format=NXC",
        "expected",
    ),
    (
        "cp.async: nobody waits for copies",
        '"cp.async.wait_group %0;"',
        '"// %0"',
        MATRIX_CASE % "f16",
        "nobody waited for",
    ),
    (
        "cp.async: one group too many is left",
        "COPIES_ARE_THERE(AHEAD - 1);",
        "COPIES_ARE_THERE(AHEAD);",
        MATRIX_CASE % "f16",
        "nobody waited for",
    ),
    (
        "cp.async: no group is committed",
        '"cp.async.commit_group;"',
        '""',
        MATRIX_CASE % "f16",
        "nobody waited for",
    ),
    (
        "cp.async: no barrier behind the wait",
        BEFORE_STAGE,
        NO_BARRIER,
        MATRIX_CASE % "f16",
        "since the last barrier",
    ),
    (
        "cp.async: copies to 8 bytes behind a quad",
        "copy_quad(weights + 4 * PUT_WEIGHT(i),",
        "copy_quad(weights + 4 * PUT_WEIGHT(i) + 8,",
        MATRIX_CASE % "f16",
        "accesses 16 bytes of local memory at byte",
    ),
    (
        "cp.async: inputs outside of the data are read",
        '"r"(there ? 16 : 0)',
        '"r"(16)',
        MATRIX_CASE % "f16" + " format=NXC",
        "cp.async",
    ),
    (
        "matrix: half of a warp meets",
        "#define LANES_MEET __asm__",
        "#define LANES_MEET if (get_local_id(0) % 32 < 16) __asm__",
        MATRIX_CASE % "f16",
        "not all 32",
    ),
    (
        "matrix: a mask is changed without an atomic operation",
        "atomic_or(&places->taps, inside[i]);",
        "places->taps |= inside[i];",
        MATRIX_CASE % "f16",
        "expected",
    ),
    (
        "matrix: no barrier before sums take the place of factors",
        "barrier(CLK_LOCAL_MEM_FENCE); /* the products of the last stage are done */",
        "",
        MATRIX_CASE % "f16",
        "since the last barrier",
    ),
    (
        "tiled: half of a warp's lanes come to a barrier",
        BEFORE_STAGE,
        "if (get_local_id(0) % 2 == 0) " + BEFORE_STAGE,
        "sm_80 tiled_group f32 wide",
        "come to barrier",
    ),
    (
        "tiled: warps end while one waits at a barrier",
        "__global const data_t *own_data = data + data_offset",
        "if (get_local_id(0) >= 32) return; __global const data_t *own_data = data + data_offset",
        "sm_80 tiled_group f32 wide",
        "ended while others wait",
    ),
    (
        "col2im: no barriers",
        "#define GROUP_BARRIER barrier(CLK_LOCAL_MEM_FENCE)",
        "#define GROUP_BARRIER",
        "sm_90 col2im_group f32 long",
        "since the last barrier",
    ),
    (
        "wgmma: no proxy fence behind the copies",
        '#define SHOW_COPIES __asm__ volatile("fence.proxy.async.shared::cta;" : : : "memory")',
        "#define SHOW_COPIES",
        WGMMA_CASE,
        "without a fence.proxy.async behind it",
    ),
    (
        "wgmma: no fence before the first product",
        '"wgmma.fence.sync.aligned;"',
        '"// no fence"',
        WGMMA_CASE,
        "no wgmma.fence stands behind",
    ),
    (
        "wgmma: nobody waits for products",
        '"wgmma.wait_group.sync.aligned 0;"',
        '"wgmma.wait_group.sync.aligned 1;"',
        WGMMA_CASE,
        "which a product under way reads",
    ),
    (
        "wgmma: another swizzle of inputs",
        '"0x80000020"',
        '"0xc0000020"',
        WGMMA_CASE,
        "expected",
    ),
    (
        "wgmma: a wrong step between 8 rows",
        '#define HIGH_FILTER "8"',
        '#define HIGH_FILTER "16"',
        WGMMA_CASE,
        "expected",
    ),
    (
        "wgmma: the same words of inputs twice",
        '"add.u32 input, input, 2;\\n"',
        '""',
        WGMMA_CASE,
        "expected",
    ),
    (
        "wgmma: a wrong step between quads",
        '#define TWO_QUADS "256"',
        '#define TWO_QUADS "128"',
        WGMMA_CASE,
        "expected",
    ),
    (
        "wgmma: a stage is loaded where another one is multiplied",
        "next = AHEAD * STAGE_WORDS;",
        "next = (AHEAD - 1) * STAGE_WORDS;",
        "sm_90a matrix_group:kt=16:wn=128 f16 wide math=fast format=NXC",
        "which a copy that nobody waited for writes",
    ),
    (
        "wgmma: a wrong step between quads of 256 rows",
        '#define TWO_QUADS "512"',
        '#define TWO_QUADS "256"',
        "sm_90a matrix_group:mt=256 f16 quads math=fast format=NXC",
        "expected",
    ),
    (
        "early ends stand where a later stage is copied",
        "#define ENDS_AT (MOST_WORDS - ENDS_WORDS)",
        "#define ENDS_AT (MOST_WORDS - 2 * ENDS_WORDS)",
        EARLY_CASE % "wide",
        "another work-group of this launch accessed them",
    ),
    (
        "sums take the place of early ends",
        "#define SUMS_AT 0",
        "#define SUMS_AT (MOST_WORDS - SHORT_WORDS - 4)",
        EARLY_CASE % "quads",
        "since the last barrier",
    ),
    (
        "half of the warps find early ends",
        "find_ends(work->ends",
        "if (get_local_id(0) % 64 < 32) find_ends(work->ends",
        EARLY_CASE % "wide",
        "another work-group of this launch accessed them",
    ),
    (
        "shared taps: inputs take the place of those of running products, in phases with one tap",
        "stage->inputs == AHEAD * SHARED_WORDS",
        "stage->inputs == (AHEAD - 1) * SHARED_WORDS",
        SHARED_CASE,
        "which a product under way reads",
    ),
    (
        "shared taps: no tap is shifted",
        "+ (now.shift - least) * TILE_STEP",
        "",
        SHARED_CASE,
        "expected",
    ),
    (
        "shared taps: inputs beyond a tile's own positions are not copied",
        "needed = NT + shift_of(list, table) - least;",
        "needed = NT;",
        SHARED_CASE,
        "expected",
    ),
    (
        "shared taps: a position behind a row has the next row's input",
        "exists & has_input(&position, 0, 0, 0, &inputs);",
        "exists;",
        SHARED_CASE,
        "of the data, which has",
    ),
    (
        "shared taps: a tile's inputs begin at those of the first tap",
        "shift_of(list + (taps - 1) * TAP_LONGS, table)",
        "shift_of(list, table)",
        SHARED_CASE,
        "which a copy that nobody waited for writes",
    ),
]
