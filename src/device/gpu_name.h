/* SPDX-License-Identifier: Apache-2.0 */
/* Which family a GPU belongs to, from what its driver says. */
#ifndef TCONV_DEVICE_GPU_NAME_H
#define TCONV_DEVICE_GPU_NAME_H

#include "tconv_cl/device.h"

/* What a driver says of a GPU. */
struct tconv_gpu_facts {
    const char *name, *vendor;
    bool nvidia;      /* it has cl_nv_device_attribute_query */
    bool intel_xe_hp; /* Intel's version 12.50 or later */
};

/* The family of a GPU, or OTHER. A row of test_gpu_name.c shows how each one is recognised. */
tconv_architecture tconv_gpu_architecture(const struct tconv_gpu_facts *facts);

/* Whether a text begins with one of these words, which spaces separate. */
bool tconv_begins(const char *text, const char *words);

#endif
