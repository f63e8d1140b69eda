/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a problem for a window of its output rows. */
#ifndef TCONV_GEOMETRY_WINDOW_H
#define TCONV_GEOMETRY_WINDOW_H

#include "tconv_cl/problem.h"

/* Resolves `problem` for output rows [begin, end) of the outermost spatial axis; the input rows are
 * those of tconv_window_input. With begin = end = 0 it stays whole. Steps are those of arrays with
 * these rows. Returns what tconv_resolve and tconv_window_input return. */
tconv_status tconv_resolve_window(const tconv_problem *problem, int64_t begin, int64_t end,
                                  tconv_geometry *geometry, tconv_error *error);

#endif
