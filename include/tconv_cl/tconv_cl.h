/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl: transposed convolution on any OpenCL device. This is the one header that an application
 * includes.
 *
 *   version.h   the version
 *   status.h    status codes and errors
 *   problem.h   what is computed: operators, shapes, attributes; no OpenCL
 *   epilogue.h  what becomes of the sums: bias, scale, activation, ...; no OpenCL
 *   device.h    devices (device_info.h: what the library uses of one)
 *   cache.h     compiled programs on disk and in the application's hands
 *   plan.h      plan, pack, enqueue: for applications with OpenCL buffers
 *   host.h      upload, run, download: for applications with host arrays
 *   slabs.h     the same in slabs: tensors larger than memory, several devices */
#ifndef TCONV_CL_TCONV_CL_H
#define TCONV_CL_TCONV_CL_H

#include "cache.h"
#include "device.h"
#include "epilogue.h"
#include "host.h"
#include "plan.h"
#include "problem.h"
#include "slabs.h"
#include "status.h"
#include "version.h"

#endif
