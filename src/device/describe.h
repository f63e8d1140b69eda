/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says of itself, besides tconv_device_describe. */
#ifndef TCONV_DEVICE_DESCRIBE_H
#define TCONV_DEVICE_DESCRIBE_H

#include "tconv_cl/device.h"

#include <stdbool.h>

/* True if a device's list of extensions has this name. */
bool tconv_device_has_extension(cl_device_id device, const char *name);

/* The version of a name in a list with versions, which devices have since OpenCL 3.0: 10 bits, 10
 * bits, 12 bits. 0: it is not there. */
uint32_t tconv_device_version(cl_device_id device, uint32_t list, const char *name);

/* Refuses a device whose compiler does not take the 64-bit integers of the kernels, before it is
 * called: some compilers end the process. */
tconv_status tconv_device_check_integers(cl_device_id device, const tconv_device_info *info,
                                         tconv_error *error);

#endif
