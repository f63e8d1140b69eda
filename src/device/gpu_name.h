/* SPDX-License-Identifier: Apache-2.0 */
/* What the names of GPUs tell. */
#ifndef TCONV_DEVICE_GPU_NAME_H
#define TCONV_DEVICE_GPU_NAME_H

#include "tconv_cl/device_info.h"

/* The architecture of an AMD GPU, or OTHER if the name is not one that AMD's or Mesa's driver
 * gives. AMD's names begin with "gfx" and a version. Mesa's have the driver, the chip and more in
 * brackets behind the product: "AMD Radeon RX 7900 XTX (radeonsi, navi31, ACO, DRM 3.57)". */
tconv_architecture tconv_amd_architecture(const char *name);

#endif
