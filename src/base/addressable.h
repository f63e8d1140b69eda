/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a process can address the tensors of a problem. Their sizes have 64 bits on all
 * systems. */
#ifndef TCONV_BASE_ADDRESSABLE_H
#define TCONV_BASE_ADDRESSABLE_H

#include "tconv_cl/problem.h"

/* Returns TCONV_ERROR_SHAPE if a tensor of the geometry, or an array with a number for each output
 * channel, has more bytes than a process can address: PTRDIFF_MAX, which is 2 GiB - 1 in 32-bit
 * programs. */
tconv_status tconv_check_addressable(const tconv_geometry *geometry, tconv_error *error);

#endif
