/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a run is divided into slabs, and how large they are. */
#include "layer/division.h"

#include "base/addressable.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/steps.h"
#include "geometry/window.h"
#include "plan/place.h"

#include <inttypes.h>

enum {
    SLABS_A_DEVICE =
        6, /* the least slabs of each of several devices, so that they finish together */
    PART_OF_MEMORY = 4,
};
static const uint64_t DEFAULT_LIMIT = UINT64_C(256) << 20, WHOLE = UINT64_C(512) << 20;

/* ---- Checks ---- */

static bool is_array(const tconv_tensor *tensor)
{
    return tensor->host != NULL || !tconv_is_given(tensor);
}

/* True if the memory of an input and of the output may have a byte in common. `own` says how the
 * input lies in memory; NULL: densely. */
static bool overlaps(const tconv_tensor *input, uint64_t bytes, const struct tconv_slab_tensor *own,
                     const tconv_tensor *output, const struct tconv_slab_tensor *written,
                     uint64_t output_bytes)
{
    const uintptr_t from = (uintptr_t)tconv_array_of(input), to = (uintptr_t)tconv_array_of(output);
    if (input->host == NULL || output->host == NULL || bytes == 0 || from + bytes <= to ||
        to + output_bytes <= from)
        return false;
    if (own == NULL) return true;
    const struct tconv_placed read = {&own->view, from, own->element},
                              stored = {&written->view, to, written->element};
    return !tconv_placed_apart(&stored, &read);
}

/* True if each element of the residual lies where its output does: a slab then reads it before it
 * stores there. */
static bool residual_is_output(const struct tconv_division *d)
{
    const tconv_tensors *t = &d->call->tensors;
    if (tconv_array_of(&t->residual) != tconv_array_of(&t->output)) return false;
    for (int a = 0; a < d->output.view.rank; a++)
        if (d->residual.view.step[a] != d->output.view.step[a]) return false;
    return true;
}

/* The input that the output overlaps; NULL: none. */
static const char *overlapped(const struct tconv_division *d)
{
    const struct tconv_call *call = d->call;
    const tconv_tensors *t = &call->tensors;
    const tconv_geometry *g = &d->geometry;
    const struct {
        const char *name;
        const tconv_tensor *tensor;
        uint64_t bytes;
        const struct tconv_slab_tensor *own;
    } others[] = {
        {"data", &t->data, g->data_bytes, &d->data},
        {"filter", &t->filter, g->filter_bytes, NULL},
        {"residual", &t->residual, residual_is_output(d) ? 0 : g->residual_bytes, &d->residual}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (overlaps(others[i].tensor, others[i].bytes, others[i].own, &t->output, &d->output,
                     g->output_bytes))
            return others[i].name;
    for (int i = 0; i < TCONV_VECTORS; i++) {
        const enum tconv_epilogue_tensor which = (enum tconv_epilogue_tensor)i;
        const uint64_t bytes =
            tconv_epilogue_bytes(&call->options.epilogue, which, call->problem.data_type, g);
        if (overlaps(tconv_call_tensor(t, which), bytes, NULL, &t->output, NULL, g->output_bytes))
            return tconv_epilogue_name(which);
    }
    return NULL;
}

static struct tconv_slab_tensor tensor_of(const struct tconv_division *d, const tconv_tensor *given,
                                          enum tconv_spaced which, tconv_type type)
{
    struct tconv_slab_tensor tensor = {
        .given = given,
        .view = tconv_view_of(&d->call->problem, &d->geometry, which),
        .element = tconv_type_size(type),
        .bytes = tconv_type_size(type)};
    tensor.dense = tconv_view_is_dense(&tensor.view);
    for (int a = 0; a < tensor.view.rank; a++) tensor.bytes *= (uint64_t)tensor.view.extent[a];
    return tensor;
}

/* Resolves the problem for the arrays, which have the rows of the window, and finds how they lie in
 * memory. Slabs are parts of these rows. */
static tconv_status resolve_arrays(const struct tconv_call *call, struct tconv_division *d,
                                   tconv_error *error)
{
    const tconv_plan_options *options = &call->options;
    tconv_status status;
    if ((status = tconv_resolve_window(&call->problem, options->output_begin, options->output_end,
                                       &d->geometry, error)) != TCONV_OK ||
        (status = tconv_steps_check_residual(&call->problem, options->epilogue.residual, error)) !=
            TCONV_OK)
        return status;
    const tconv_type output = d->geometry.output_type;
    d->call = call;
    d->data = tensor_of(d, &call->tensors.data, TCONV_SPACED_DATA, call->problem.data_type);
    d->output = tensor_of(d, &call->tensors.output, TCONV_SPACED_OUTPUT, output);
    d->residual = tensor_of(d, &call->tensors.residual, TCONV_SPACED_RESIDUAL, output);
    return tconv_check_addressable(&d->geometry, error);
}

/* ---- Whether ---- */

/* True if no element of the output is in the memory of an input, so that slabs can compute it. */
static bool is_apart(const struct tconv_call *call)
{
    struct tconv_division d = {.geometry = TCONV_GEOMETRY_INIT};
    return resolve_arrays(call, &d, NULL) == TCONV_OK && overlapped(&d) == NULL;
}

bool tconv_slabs_wanted(const tconv_layer *layer, const struct tconv_call *call,
                        const tconv_geometry *g)
{
    const tconv_tensors *t = &call->tensors;
    const tconv_device_info *info = tconv_device_properties(layer->keep[0].device);
    const uint64_t limit = call->run.memory_limit, part = info->global_memory / PART_OF_MEMORY;
    const uint64_t both = g->data_bytes + g->output_bytes;
    const uint64_t all = both + (call->options.epilogue.residual ? g->residual_bytes : 0);
    if (g->output_bytes == 0 || !is_array(&t->data) || !is_array(&t->output) ||
        !is_array(&t->residual))
        return false;
    if (layer->device_count > 1 || (limit != 0 && all > limit) ||
        g->data_bytes > info->allocation_limit || g->output_bytes > info->allocation_limit)
        return true;
    return (both > WHOLE || both > part) && is_apart(call);
}

bool tconv_slabs_may_follow(const struct tconv_call *call)
{
    struct tconv_division d = {.geometry = TCONV_GEOMETRY_INIT};
    return is_array(&call->tensors.data) && is_array(&call->tensors.output) &&
           is_array(&call->tensors.residual) && call->options.epilogue.beta == 0 &&
           resolve_arrays(call, &d, NULL) == TCONV_OK && overlapped(&d) == NULL &&
           !(call->options.epilogue.residual && residual_is_output(&d));
}

/* ---- How ---- */

/* Bytes of one of `rows` rows that have `bytes` in all. Empty data has neither. */
static uint64_t row_bytes(uint64_t bytes, int64_t rows)
{
    return rows == 0 ? 0 : bytes / (uint64_t)rows;
}

/* Bytes of data and of output for one batch item and `rows` output rows. */
static void bytes_of(const struct tconv_division *d, int64_t rows, uint64_t *data, uint64_t *output)
{
    const tconv_geometry *g = &d->geometry;
    const int64_t span = g->dilation[0] * (g->kernel[0] - 1);
    int64_t inputs = (rows - 1 + span) / g->stride[0] + 2;
    if (inputs > g->input[0]) inputs = g->input[0];
    *data = row_bytes(d->data.bytes / (uint64_t)g->batch, g->input[0]) * (uint64_t)inputs;
    *output = row_bytes(d->output.bytes / (uint64_t)g->batch, g->output[0]) * (uint64_t)rows;
}

/* What slabs must respect: bytes of those in flight, bytes of one buffer, and the device that
 * allows the fewest of these. */
struct limits {
    uint64_t memory, allocation;
    const char *device;
};

static struct limits limits_of(const tconv_layer *layer, const struct tconv_call *call)
{
    struct limits limits = {call->run.memory_limit != 0 ? call->run.memory_limit : DEFAULT_LIMIT,
                            UINT64_MAX, NULL};
    for (int i = 0; i < layer->device_count; i++) {
        const tconv_device_info *info = tconv_device_properties(layer->keep[i].device);
        if (info->allocation_limit >= limits.allocation) continue;
        limits.allocation = info->allocation_limit;
        limits.device = info->name;
    }
    return limits;
}

/* True if `items` batch items of `rows` output rows fit the limits. */
static bool fits(const struct tconv_division *d, int64_t items, int64_t rows,
                 const struct limits *limits)
{
    uint64_t data, output;
    bytes_of(d, rows, &data, &output);
    const double all =
        (double)items *
        ((double)data + (double)output * (d->call->options.epilogue.residual ? 2 : 1));
    return TCONV_SLABS_IN_FLIGHT * all <= (double)limits->memory &&
           (double)items * (double)data <= (double)limits->allocation &&
           (double)items * (double)output <= (double)limits->allocation;
}

/* The most rows of a batch item, at most `most`, that fit; 0: not even one. */
static int64_t rows_that_fit(const struct tconv_division *d, int64_t most,
                             const struct limits *limits)
{
    int64_t low = 0, high = most;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (fits(d, 1, middle, limits))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static tconv_status too_large(const struct tconv_division *d, const struct limits *limits,
                              tconv_error *error)
{
    uint64_t data, output;
    bytes_of(d, 1, &data, &output);
    return tconv_fail(error, TCONV_ERROR_DEVICE_MEMORY,
                      "one row of the outermost axis takes %" PRIu64 " bytes of data and %" PRIu64
                      " of output; %d slabs at once must fit into %" PRIu64
                      " bytes, and each into the %" PRIu64 " that %s allows in one buffer",
                      data, output, TCONV_SLABS_IN_FLIGHT, limits->memory, limits->allocation,
                      limits->device);
}

/* Chooses the sizes of slabs. */
static tconv_status choose_sizes(const tconv_layer *layer, struct tconv_division *d,
                                 tconv_error *error)
{
    const tconv_geometry *g = &d->geometry;
    const struct limits limits = limits_of(layer, d->call);
    const int64_t devices = layer->device_count,
                  wanted = devices > 1 ? devices * SLABS_A_DEVICE : 1;
    d->items = 1;
    d->rows = g->output[0];
    if (fits(d, 1, d->rows, &limits) && g->batch >= wanted) {
        while (d->items * 2 <= g->batch / wanted && fits(d, d->items * 2, d->rows, &limits))
            d->items *= 2;
    } else {
        d->rows = rows_that_fit(d, tconv_ceil_div(g->output[0], tconv_ceil_div(wanted, g->batch)),
                                &limits);
        if (d->rows == 0) return too_large(d, &limits, error);
        /* Whole strides, so that all inner slabs share a plan. */
        if (d->rows > g->stride[0] && d->rows < g->output[0])
            d->rows = d->rows / g->stride[0] * g->stride[0];
    }
    d->item_parts = tconv_ceil_div(g->batch, d->items);
    d->row_parts = tconv_ceil_div(g->output[0], d->rows);
    return TCONV_OK;
}

tconv_status tconv_divide(const tconv_layer *layer, const struct tconv_call *call,
                          struct tconv_division *d, tconv_error *error)
{
    *d = (struct tconv_division){.geometry = TCONV_GEOMETRY_INIT};
    tconv_status status = resolve_arrays(call, d, error);
    if (status != TCONV_OK || d->geometry.output_bytes == 0) return status;
    if ((status = tconv_call_check(call, &d->geometry, error)) != TCONV_OK) return status;
    const char *overlap = overlapped(d);
    if (overlap != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.output overlaps tensors.%s, which may be read after a slab "
                          "stored its output: give the output memory of its own",
                          overlap);
    return choose_sizes(layer, d, error);
}

int64_t tconv_division_slabs(const struct tconv_division *d)
{
    return d->item_parts * d->row_parts;
}

tconv_slab tconv_division_slab(const struct tconv_division *d, int64_t number, int device)
{
    const int64_t item = number / d->row_parts * d->items, row = number % d->row_parts * d->rows;
    tconv_slab slab = {.device = device,
                       .batch_begin = item,
                       .batch_end = tconv_min(item + d->items, d->geometry.batch),
                       .output_begin = row,
                       .output_end = tconv_min(row + d->rows, d->geometry.output[0])};
    tconv_window_input(&d->geometry, slab.output_begin, slab.output_end, &slab.input_begin,
                       &slab.input_end, NULL);
    return slab;
}
