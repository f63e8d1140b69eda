# SPDX-License-Identifier: Apache-2.0
"""What the programs of several vendors need, and defects that all executors must find."""

# Conversions that libclc lacks; the vendor's library has them.
HALF_CONVERSIONS = "\n#ifdef HALF\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n%s#endif\n" % "".join(
    "__attribute__((overloadable)) %s%d convert_%s%d(%s%d x) { return __builtin_convertvector(x, %s%d); }\n"
    % (to, n, to, n, of, n, to, n)
    for to, of in (("float", "half"), ("half", "float"))
    for n in (2, 4, 8, 16)
)

BEFORE_STAGE = "barrier(CLK_LOCAL_MEM_FENCE); /* this stage is loaded, and the products of the stage"
NO_BARRIER = BEFORE_STAGE.replace("barrier(CLK_LOCAL_MEM_FENCE);", "")


def common_defects(unordered, twice, behind):
    """Defects as executed_code.py's Vendor has them, each with a case of the vendor's."""
    return [
        ("tiled: no barrier before a stage's products", BEFORE_STAGE, NO_BARRIER, unordered, "since the last barrier"),
        (
            "tiled: two work-groups compute the same",
            "#define GROUP_NUMBER ((int)get_group_id(0))",
            "#define GROUP_NUMBER ((int)get_group_id(0) / 2)",
            twice,
            "another work-group of this launch",
        ),
        (
            "reference: it reads behind the data",
            "sum = MULTIPLY_ADD(READ_DATA(x",
            "sum += *(volatile __global const data_t *)(x + (ci)*table[REF_DATA_CHANNEL_STEP] + 1) == 12345, "
            "sum = MULTIPLY_ADD(READ_DATA(x",
            behind,
            "of the data, which has",
        ),
    ]
