/* SPDX-License-Identifier: Apache-2.0 */
/* The list of algorithms. An algorithm is one row here; its file defines `const struct
 * tconv_algorithm tconv_NAME`. The rows stand in order of preference: among equal costs the first
 * one wins. The reference algorithm is the last one. */
#ifndef TCONV_ALGORITHM_REGISTRY_H
#define TCONV_ALGORITHM_REGISTRY_H

#include "algorithm/algorithm.h"

#define TCONV_ALGORITHMS(A)                                                                        \
    A(packed)                                                                                      \
    A(thin)                                                                                        \
    A(channels)                                                                                    \
    A(phases)                                                                                      \
    A(dot)                                                                                         \
    A(depthwise)                                                                                   \
    A(winograd)                                                                                    \
    A(difference)                                                                                  \
    A(tiled_group)                                                                                 \
    A(difference_group)                                                                            \
    A(direct_group)                                                                                \
    A(gather_group)                                                                                \
    A(gather_dot)                                                                                  \
    A(matrix_group)                                                                                \
    A(col2im_vector)                                                                               \
    A(col2im_group)                                                                                \
    A(sparse)                                                                                      \
    A(reference)

#define TCONV_DECLARE(name) extern const struct tconv_algorithm tconv_##name;
TCONV_ALGORITHMS(TCONV_DECLARE)
#undef TCONV_DECLARE

#endif
