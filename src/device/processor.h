/* SPDX-License-Identifier: Apache-2.0 */
/* The processor that this process runs on: asked itself, not a compiler. */
#ifndef TCONV_DEVICE_PROCESSOR_H
#define TCONV_DEVICE_PROCESSOR_H

#include "tconv_cl/device_info.h"

/* Its instructions that add up products of bytes, if the operating system keeps their registers;
 * TCONV_MATRIX_NONE: it has none. */
tconv_matrix_unit tconv_processor_unit(void);

#endif
