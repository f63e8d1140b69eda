/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses tensors that do not fit into the address space. */
#include "base/addressable.h"

#include "base/error.h"

#include <inttypes.h>
#include <stddef.h>

tconv_status tconv_check_addressable(const tconv_geometry *g, tconv_error *error)
{
    const uint64_t channels = (uint64_t)g->epilogue_channels;
    const struct {
        const char *what;
        uint64_t bytes;
    } tensors[] = {
        {"data", g->data_bytes},
        {"filter", g->filter_bytes},
        {"the output", g->output_bytes},
        {"the residual", g->residual_bytes},
        {"a tensor of output channels",
         channels > UINT64_MAX / sizeof(double) ? UINT64_MAX : channels * sizeof(double)},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (tensors[i].bytes > PTRDIFF_MAX)
            return tconv_fail(error, TCONV_ERROR_SHAPE,
                              "%s takes %" PRIu64 " bytes, but a process of %d bits can address "
                              "%td at most: use a 64-bit program, or compute windows of the output",
                              tensors[i].what, tensors[i].bytes, (int)sizeof(void *) * 8,
                              (ptrdiff_t)PTRDIFF_MAX);
    return TCONV_OK;
}
