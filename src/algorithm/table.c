/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms. To add an algorithm: write its .cl and its .c, and name it here. */
#include "algorithm/algorithms.h"

#include <string.h>

static const struct tconv_algorithm *const algorithms[] = {
    &tconv_packed,        &tconv_thin,         &tconv_channels,   &tconv_phases,
    &tconv_dot,           &tconv_depthwise,    &tconv_winograd,   &tconv_tiled_group,
    &tconv_direct_group,  &tconv_gather_group, &tconv_gather_dot, &tconv_matrix_group,
    &tconv_col2im_vector, &tconv_col2im_group, &tconv_sparse,     &tconv_reference,
};

const struct tconv_algorithm *tconv_algorithm_at(int index)
{
    const int count = (int)(sizeof algorithms / sizeof *algorithms);
    return index >= 0 && index < count ? algorithms[index] : NULL;
}

const struct tconv_algorithm *tconv_algorithm_named(const char *name)
{
    for (int i = 0; tconv_algorithm_at(i) != NULL; i++)
        if (strcmp(tconv_algorithm_at(i)->name, name) == 0) return tconv_algorithm_at(i);
    return NULL;
}

int tconv_algorithm_index(const struct tconv_algorithm *algorithm)
{
    int index = 0;
    while (tconv_algorithm_at(index) != algorithm) index++;
    return index;
}
