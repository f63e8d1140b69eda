# SPDX-License-Identifier: Apache-2.0
"""What the programs of several vendors need."""

# Conversions that libclc lacks; the vendor's library has them.
HALF_CONVERSIONS = "\n#ifdef HALF\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n%s#endif\n" % "".join(
    "__attribute__((overloadable)) %s%d convert_%s%d(%s%d x) { return __builtin_convertvector(x, %s%d); }\n"
    % (to, n, to, n, of, n, to, n)
    for to, of in (("float", "half"), ("half", "float"))
    for n in (2, 4, 8, 16)
)
