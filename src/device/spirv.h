/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of SPIR-V in place of sources: files of the folder TCONV_CL_SPIRV, which scripts/spirv.py
 * compiled. */
#ifndef TCONV_DEVICE_SPIRV_H
#define TCONV_DEVICE_SPIRV_H

#include "device/device.h"
#include "device/kernel_source.h"

/* Builds a program from the module for exactly this source and these options. NULL if there is
 * none, or if it cannot be built: then `error` says why. */
cl_program tconv_spirv_program(const tconv_device *device, const char *name, const char *options,
                               const struct tconv_kernel_source *source, tconv_error *error);

#endif
