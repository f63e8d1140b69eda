/* SPDX-License-Identifier: Apache-2.0 */
/* The processor that this process runs on: asked itself, not a compiler. */
#ifndef TCONV_DEVICE_PROCESSOR_H
#define TCONV_DEVICE_PROCESSOR_H

#include "tconv_cl/device_info.h"

#include <stdbool.h>
#include <stdint.h>

/* What PoCL's platform is called. */
#define TCONV_POCL "Portable Computing Language"

/* What it says of itself; 0: nothing. */
struct tconv_processor {
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_1_eax; /* cpuid */
    uint32_t kept;                                         /* xcr0, low half */
};

struct tconv_processor tconv_processor_read(void);

/* Whether it has instructions that add up products of bytes, and the operating system keeps their
 * registers: TCONV_MATRIX_X86_*. */
bool tconv_processor_has(const struct tconv_processor *processor, tconv_matrix_unit unit);

/* The best of them; TCONV_MATRIX_NONE: it has none. */
tconv_matrix_unit tconv_processor_unit(const struct tconv_processor *processor);

/* Whether a device's compiler survives assembly in kernels. PoCL 4 to 6 take it for a call of a
 * function of their own (handleLocalMemAllocas in lib/llvmopencl/WorkitemLoops.cc) and end the
 * process. */
bool tconv_takes_assembly(const tconv_device_info *device);

#endif
