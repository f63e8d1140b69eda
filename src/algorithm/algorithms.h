/* SPDX-License-Identifier: Apache-2.0 */
/* All algorithms by name. A hot algorithm stands here twice: in the shape for devices whose
 * work-items have wide vectors (CPUs) and in the shape for devices whose work-items are lanes
 * (GPUs). Each shape is correct on every device. */
#ifndef TCONV_ALGORITHM_ALGORITHMS_H
#define TCONV_ALGORITHM_ALGORITHMS_H

#include "algorithm/algorithm.h"

extern const struct tconv_algorithm tconv_packed;
extern const struct tconv_algorithm tconv_thin;
extern const struct tconv_algorithm tconv_channels;
extern const struct tconv_algorithm tconv_phases;
extern const struct tconv_algorithm tconv_dot;
extern const struct tconv_algorithm tconv_depthwise;
extern const struct tconv_algorithm tconv_winograd;
extern const struct tconv_algorithm tconv_tiled_group;
extern const struct tconv_algorithm tconv_direct_group;
extern const struct tconv_algorithm tconv_gather_group;
extern const struct tconv_algorithm tconv_gather_dot;
extern const struct tconv_algorithm tconv_matrix_group;
extern const struct tconv_algorithm tconv_col2im_vector;
extern const struct tconv_algorithm tconv_col2im_group;
extern const struct tconv_algorithm tconv_sparse;
extern const struct tconv_algorithm tconv_reference;

#endif
