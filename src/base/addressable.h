/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of tensors, which have 64 bits on all systems, against what a process can address. */
#ifndef TCONV_BASE_ADDRESSABLE_H
#define TCONV_BASE_ADDRESSABLE_H

#include "tconv_cl/problem.h"

/* Returns TCONV_ERROR_SHAPE where a tensor of the geometry, or one number for each of its output
 * channels, takes more bytes than a process can address: PTRDIFF_MAX, which is 2 GiB less 1 in
 * 32-bit programs. */
tconv_status tconv_check_addressable(const tconv_geometry *geometry, tconv_error *error);

#endif
