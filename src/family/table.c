/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernel families and the choice among them. To add a family: write its .cl and its
 * .c, and name it here. */
#include "family/families.h"

#include <string.h>

static const struct tconv_family *const families[] = {
    &tconv_packed,       &tconv_thin,          &tconv_channels,     &tconv_phases,
    &tconv_depthwise,    &tconv_winograd,      &tconv_gather_group, &tconv_gather_dot,
    &tconv_matrix_group, &tconv_col2im_vector, &tconv_col2im_group, &tconv_reference,
};

const struct tconv_family *tconv_family_at(int index)
{
    const int count = (int)(sizeof families / sizeof *families);
    return index >= 0 && index < count ? families[index] : NULL;
}

const struct tconv_family *tconv_family_named(const char *name)
{
    for (int i = 0; tconv_family_at(i) != NULL; i++)
        if (strcmp(tconv_family_at(i)->name, name) == 0) return tconv_family_at(i);
    return NULL;
}

int tconv_family_index(const struct tconv_family *family)
{
    int index = 0;
    while (tconv_family_at(index) != family) index++;
    return index;
}

static const struct tconv_family *cheapest(const struct tconv_request *request, unsigned excluded,
                                           struct tconv_reason *reason)
{
    const struct tconv_family *best = NULL;
    double least = 0;
    for (int i = 0; tconv_family_at(i) != NULL; i++) {
        const struct tconv_family *family = tconv_family_at(i);
        double cost;
        if ((excluded >> i & 1) == 0 && family->accepts(request, &cost, reason) &&
            (best == NULL || cost < least)) {
            best = family;
            least = cost;
        }
    }
    return best;
}

const struct tconv_family *tconv_family_choose(const struct tconv_request *request,
                                               const char *name, unsigned excluded,
                                               struct tconv_reason *reason)
{
    if (name == NULL || strcmp(name, "auto") == 0) return cheapest(request, excluded, reason);
    const struct tconv_family *family = tconv_family_named(name);
    double cost;
    if (family == NULL) tconv_refuse(reason, "there is no such kernel family");
    return family != NULL && family->accepts(request, &cost, reason) ? family : NULL;
}
