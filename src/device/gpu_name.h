/* SPDX-License-Identifier: Apache-2.0 */
/* What the names of GPUs tell. */
#ifndef TCONV_DEVICE_GPU_NAME_H
#define TCONV_DEVICE_GPU_NAME_H

#include "tconv_cl/device_info.h"

/* The architecture of an AMD GPU, or OTHER if the name is not one that AMD's or Mesa's driver
 * gives. AMD's names begin with "gfx" and a version. Mesa's have the driver, the chip and more in
 * brackets behind the product: "AMD Radeon RX 7900 XTX (radeonsi, navi31, ACO, DRM 3.57)". */
tconv_architecture tconv_amd_architecture(const char *name);

/* The architecture of a GPU for phones, or OTHER. The product is somewhere in the name: Mesa puts
 * its driver in front of it or behind it. Some names have no product; then the vendor tells. */
tconv_architecture tconv_mobile_architecture(const char *name, const char *vendor);

/* True for the architectures of GPUs for phones. They also draw what the phone shows. */
bool tconv_is_mobile(tconv_architecture architecture);

#endif
