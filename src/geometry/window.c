/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the input rows of a window along the outermost spatial axis. From y = x*s + k*d - pb with 0
 * <= k < K follows: the output rows [a, b) need the inputs from ceil((a + pb - d*(K-1)) / s) to
 * floor((b - 1 + pb) / s), as far as they exist. */
#include "geometry/window.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/steps.h"
#include "base/struct_size.h"
#include "geometry/count.h"

#include <inttypes.h>

tconv_status tconv_window_input(const tconv_geometry *geometry, int64_t output_begin,
                                int64_t output_end, int64_t *input_begin, int64_t *input_end,
                                tconv_error *error)
{
    if (geometry == NULL || input_begin == NULL || input_end == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          geometry == NULL      ? "geometry"
                          : input_begin == NULL ? "input_begin"
                                                : "input_end");
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    const tconv_status status = tconv_struct_read(TCONV_SIZED_GEOMETRY, geometry, &g, error);
    if (status != TCONV_OK) return status;
    if (output_begin < 0 || output_end <= output_begin || output_end > g.output[0])
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "output rows %" PRId64 " to %" PRId64
                          " are not a part of the outermost spatial axis: it has extent %" PRId64,
                          output_begin, output_end, g.output[0]);
    int64_t span, first, last;
    if (g.stride[0] < 1 || g.kernel[0] < 1 || g.input[0] < 0 ||
        !tconv_mul(g.dilation[0], g.kernel[0] - 1, &span) ||
        !tconv_add(output_begin, g.pad_begin[0], &first) || !tconv_sub(first, span, &first) ||
        !tconv_add(output_end - 1, g.pad_begin[0], &last))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "geometry is not one that tconv_resolve wrote: outermost spatial axis "
                          "with input %" PRId64 ", stride %" PRId64 ", dilation %" PRId64
                          ", kernel %" PRId64 ", pad_begin %" PRId64,
                          g.input[0], g.stride[0], g.dilation[0], g.kernel[0], g.pad_begin[0]);
    const int64_t input = g.input[0];
    first = tconv_ceil_div(first, g.stride[0]);
    last = tconv_floor_div(last, g.stride[0]);
    /* Output rows that no input reaches get one input row all the same, if there is one. */
    first = tconv_max(tconv_min(first, input - 1), 0);
    last = tconv_max(tconv_min(last, input - 1), first);
    *input_begin = first;
    *input_end = tconv_min(last + 1, input);
    return TCONV_OK;
}

static tconv_status narrow(tconv_geometry *g, int64_t begin, int64_t end, tconv_error *error)
{
    int64_t first, last;
    const tconv_status status = tconv_window_input(g, begin, end, &first, &last, error);
    if (status != TCONV_OK) return status;
    const int rows_at = g->data_format == TCONV_NXC ? 1 : 2;
    g->pad_begin[0] += begin - first * g->stride[0];
    g->input[0] = last - first;
    g->output[0] = end - begin;
    g->output_shape.dim[rows_at] = end - begin;
    g->pad_end[0] = g->stride[0] * (g->input[0] - 1) + g->dilation[0] * (g->kernel[0] - 1) + 1 -
                    g->pad_begin[0] - g->output[0];
    return tconv_count_macs(g, &g->macs) ? TCONV_OK
                                         : tconv_fail(error, TCONV_ERROR_INTERNAL,
                                                      "the work of a window does not fit 64 bits");
}

tconv_status tconv_resolve_window(const tconv_problem *problem, int64_t begin, int64_t end,
                                  tconv_geometry *geometry, tconv_error *error)
{
    if (begin == 0 && end == 0) return tconv_resolve(problem, geometry, error);
    const tconv_problem dense = tconv_without_steps(problem);
    tconv_status status = tconv_resolve(&dense, geometry, error);
    if (status == TCONV_OK) status = narrow(geometry, begin, end, error);
    return status == TCONV_OK ? tconv_steps_resolve(problem, geometry, error) : status;
}
