/* SPDX-License-Identifier: Apache-2.0 */
/* All kernel families by name. A hot family stands here twice: in the shape for devices whose
 * work-items have wide vectors (CPUs) and in the shape for devices whose work-items are lanes
 * (GPUs). Each shape is correct on every device. */
#ifndef TCONV_FAMILY_FAMILIES_H
#define TCONV_FAMILY_FAMILIES_H

#include "family/family.h"

extern const struct tconv_family tconv_packed;
extern const struct tconv_family tconv_thin;
extern const struct tconv_family tconv_channels;
extern const struct tconv_family tconv_phases;
extern const struct tconv_family tconv_depthwise;
extern const struct tconv_family tconv_winograd;
extern const struct tconv_family tconv_gather_group;
extern const struct tconv_family tconv_gather_dot;
extern const struct tconv_family tconv_matrix_group;
extern const struct tconv_family tconv_col2im_vector;
extern const struct tconv_family tconv_col2im_group;
extern const struct tconv_family tconv_reference;

#endif
