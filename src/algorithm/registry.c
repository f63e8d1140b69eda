/* SPDX-License-Identifier: Apache-2.0 */
/* Looks algorithms up in the list of registry.h. */
#include "algorithm/registry.h"

#include <string.h>

#define ADDRESS(name) &tconv_##name,
static const struct tconv_algorithm *const algorithms[] = {TCONV_ALGORITHMS(ADDRESS)};

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
