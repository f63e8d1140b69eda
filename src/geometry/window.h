/* SPDX-License-Identifier: Apache-2.0 */
/* Narrows a problem to a window of its output rows. */
#ifndef TCONV_GEOMETRY_WINDOW_H
#define TCONV_GEOMETRY_WINDOW_H

#include "tconv_cl/problem.h"

/* Narrows the geometry of `problem` to output rows [begin, end) of the outermost spatial axis; its
 * input rows are those of tconv_window_input. With begin = end = 0 it stays whole. Returns what
 * tconv_window_input returns. */
tconv_status tconv_geometry_narrow(const tconv_problem *problem, tconv_geometry *geometry,
                                   int64_t begin, int64_t end, tconv_error *error);

#endif
