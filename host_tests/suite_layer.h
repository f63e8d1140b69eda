/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of the suite as algorithms see it, in an element type and a data format. */
#ifndef HOST_TESTS_SUITE_LAYER_H
#define HOST_TESTS_SUITE_LAYER_H

#include "geometry/loops.h"
#include "tool/io/suite.h"

/* False if the entry is not a layer that can be resolved. */
static inline bool suite_layer(const struct entry *entry, tconv_type type, tconv_data_format format,
                               struct tconv_loops *loops)
{
    tconv_problem problem = entry->problem;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    problem.data_type = problem.filter_type = type;
    if (format == TCONV_NXC) suite_channels_last(&problem);
    if (entry->error != NULL || tconv_resolve(&problem, &geometry, NULL) != TCONV_OK) return false;
    tconv_loops_init(loops, &problem, &geometry);
    return true;
}

#endif
