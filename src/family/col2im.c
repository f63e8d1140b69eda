/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled col2im family: parameters, cost and recipe of cl/col2im.cl. */
#include "family/families.h"

#include "base/checked.h"
#include "col2im_table.h"
#include "family/rows.h"

#include <stdio.h>
#include <stdlib.h>

/* The parameters of a kernel, and what follows from them. */
struct col2im {
    struct tconv_rows rows;
    int vw, nx, mw, mc, group;
    int64_t class_taps;            /* the most that any class has */
    int64_t places, inputs, tiles; /* as in cl/col2im_table.h */
    int64_t part_classes, parts;
    int64_t columns, row; /* COLUMNS, ROW */
    int64_t blocks;
};

/* Elements of local memory that a work-group may take. */
static int64_t capacity(bool vector, const tconv_device_info *device)
{
    /* CPUs: the columns live in the first-level cache. GPUs: room for several groups on a compute
     * unit. */
    const uint64_t wanted = vector ? 32 << 10 : 16 << 10;
    return (int64_t)((wanted < device->local_memory ? wanted : device->local_memory) /
                     sizeof(float));
}

/* Everything that follows from vw, nx, mw, mc and the number of vectors that a tile reads; false
 * where local memory is too small. */
static bool derive(struct col2im *g, int64_t vectors, int64_t room)
{
    const struct tconv_rows *r = &g->rows;
    const int64_t tile = (int64_t)g->vw * g->nx, reach = r->high - r->low;
    g->places = tconv_min(vectors * tile - reach, r->places);
    if (g->places < 1) return false;
    g->inputs = g->places + reach;
    g->tiles = tconv_ceil_div(r->places, g->places);
    g->row = g->inputs + 2 * tile;
    const int64_t most_columns = room / g->row / g->mw * g->mw;
    g->part_classes = tconv_min(r->x.stride, most_columns / (g->class_taps * g->mc));
    if (g->part_classes < 1) return false;
    g->parts = tconv_ceil_div(r->x.stride, g->part_classes);
    g->columns = tconv_ceil_div(g->part_classes * g->class_taps * g->mc, g->mw) * g->mw;
    g->blocks = tconv_ceil_div(r->layer.out_channels, g->mc);
    return g->columns <= most_columns;
}

/* The cost of one choice, in useful multiply-adds at full speed. */
static double cost_of(const struct col2im *g, bool vector, const tconv_device_info *device)
{
    const struct tconv_rows *r = &g->rows;
    const struct tconv_layer *layer = &r->layer;
    const double tile = (double)g->vw * g->nx;
    const double inputs = (double)g->tiles *
                          (double)tconv_ceil_div(tconv_min(g->inputs, r->x.input), g->vw * g->nx) *
                          tile;
    const double columns =
        (double)g->parts *
        (double)tconv_ceil_div((r->x.kernel + g->parts - 1) / g->parts * g->mc, g->mw) * g->mw;
    const double images = (double)layer->batch * (double)layer->groups;
    const double adds = images * (double)g->blocks * tconv_rows_pairs(&r->z) *
                        tconv_rows_pairs(&r->y) * inputs * columns * (double)layer->in_channels;
    const double lanes =
        vector && g->vw < (int)device->vector_width ? (double)device->vector_width / g->vw : 1;
    const double loads = 1 + 0.3 * (g->mw + g->nx) / (g->mw * g->nx);
    const double outputs = images * (double)layer->out_channels * (double)r->output_rows *
                           (double)r->x.output;
    const double add_up = (double)g->class_taps * 2 + (r->x.stride == 1 ? 4 : 24);
    const double zeros = images * (double)g->blocks * (double)r->output_rows *
                         (double)(g->tiles * g->parts * g->columns) * 2 * tile;
    return adds * lanes * loads * (g->nx == 1 ? 1.07 : 1) + outputs * add_up + zeros;
}

/* Picks the cheapest parameters; false where none fit. */
static bool choose(struct col2im *g, bool vector, const tconv_device_info *device, double *least)
{
    static const int channels[] = {1, 2, 3, 4, 6, 8, 12, 16};
    static const int widths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
    const int sums = vector ? (device->vector_width >= 16 ? 26 : 12) : 16;
    const int64_t room = capacity(vector, device);
    const int widest = !vector                     ? 1
                       : device->vector_width > 16 ? 16
                       : device->vector_width > 1  ? (int)device->vector_width
                                                   : 4;
    struct col2im best = *g;
    bool found = false;
    for (g->vw = widest; g->vw >= 1; g->vw /= 2)
        for (g->nx = 1; g->nx <= (vector ? 2 : 1) && g->vw * g->nx <= g->rows.x.input; g->nx++)
            for (g->mw = 1; g->mw <= 16 && g->mw * g->nx <= sums; g->mw++)
                for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
                    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
                        g->mc = channels[c];
                        if ((g->mc > 1 && g->mc > g->rows.layer.out_channels) ||
                            !derive(g, widths[w] * (int64_t)g->group, room))
                            continue;
                        const double cost = cost_of(g, vector, device);
                        if (!found || cost < *least) {
                            found = true;
                            *least = cost;
                            best = *g;
                        }
                    }
    *g = best;
    return found;
}

/* Everything about the recipe but the recipe itself. */
static bool prepare(const struct tconv_request *request, bool vector, struct col2im *g,
                    double *cost, struct tconv_reason *reason)
{
    const tconv_device_info *device = request->device;
    *g = (struct col2im){0};
    if (request->layer->type != TCONV_F32)
        return tconv_refuse(reason, "element type %s", tconv_type_name(request->layer->type));
    if (!tconv_rows_of(request->layer, &g->rows, reason)) return false;
    g->class_taps = tconv_ceil_div(g->rows.x.kernel, tconv_tap_step(&g->rows.x));
    g->group = vector ? 1 : 64;
    while (g->group > 1 && ((uint64_t)g->group > device->work_group_limit ||
                            (uint64_t)g->group > device->work_item_limit[0]))
        g->group /= 2;
    if (!choose(g, vector, device, cost))
        return tconv_refuse(reason, "the columns of one residue do not fit into local memory");
    const bool suits = vector == (device->kind == TCONV_DEVICE_CPU && device->vector_width > 1);
    if (!suits) *cost *= 20;
    return true;
}

/* Writes parts and columns; returns the number of strips. `list` may be NULL to count only. */
static int64_t write_parts(const struct col2im *g, const struct tconv_class *classes,
                           int64_t *parts, int64_t *columns)
{
    const struct tconv_axis *x = &g->rows.x;
    int64_t strips = 0, taps_before = 0;
    for (int64_t p = 0; p < g->parts; p++) {
        const int64_t first = p * g->part_classes,
                      last = tconv_min(first + g->part_classes, x->stride);
        int64_t taps = 0;
        for (int64_t c = first; c < last; c++) {
            for (int64_t j = 0; columns != NULL && j < classes[c].taps; j++)
                for (int m = 0; m < g->mc; m++)
                    columns[strips * g->mw + (taps + j) * g->mc + m] =
                        (classes[c].first + j * tconv_tap_step(x)) * g->mc + m;
            taps += classes[c].taps;
        }
        const int64_t part_strips = tconv_ceil_div(taps * g->mc, g->mw);
        if (columns != NULL) {
            for (int64_t i = taps * g->mc; i < part_strips * g->mw; i++)
                columns[strips * g->mw + i] = -1;
            int64_t *part = parts + p * PART_LONGS;
            part[PART_STRIP] = strips;
            part[PART_STRIPS] = part_strips;
            part[PART_CLASS] = first;
            part[PART_CLASSES] = last - first;
            part[PART_CLASS_TAPS] = taps_before;
        }
        strips += part_strips;
        taps_before += taps;
    }
    return strips;
}

static bool write_table(const struct col2im *g, struct tconv_recipe *recipe)
{
    struct tconv_class *classes = malloc((size_t)g->rows.x.stride * sizeof *classes);
    if (classes == NULL) return false;
    tconv_classes(&g->rows.x, classes);
    const int64_t strips = write_parts(g, classes, NULL, NULL);
    const size_t parts_at = COL2IM_LONGS, columns_at = parts_at + (size_t)g->parts * PART_LONGS;
    const size_t own = columns_at + (size_t)(strips * g->mw) - ROWS_LONGS;
    bool written = tconv_recipe_table(recipe, tconv_rows_table_size(&g->rows, own));
    if (written) {
        int64_t *t = recipe->table;
        t[COL2IM_PLACES] = g->places;
        t[COL2IM_INPUTS] = g->inputs;
        t[COL2IM_STRIPS] = strips;
        t[COL2IM_PARTS_AT] = (int64_t)parts_at;
        t[COL2IM_COLUMNS_AT] = (int64_t)columns_at;
        write_parts(g, classes, t + parts_at, t + columns_at);
        written = tconv_rows_write_table(&g->rows, g->blocks, g->tiles, own, t);
    }
    free(classes);
    return written;
}

/* Both kernels are built with the same options, so that they share a program. */
static void write_options(struct tconv_launch *launch, const struct col2im *g)
{
    tconv_launch_option(launch, "VW", g->vw);
    tconv_launch_option(launch, "NX", g->nx);
    tconv_launch_option(launch, "MW", g->mw);
    tconv_launch_option(launch, "MC", g->mc);
    tconv_launch_option(launch, "WG", g->group);
    tconv_launch_option(launch, "COLUMNS", g->columns);
    tconv_launch_option(launch, "ROW", g->row);
}

static bool write(const struct tconv_request *request, bool vector, struct tconv_recipe *recipe)
{
    struct col2im g;
    double cost;
    struct tconv_reason reason;
    if (!prepare(request, vector, &g, &cost, &reason)) return false;
    const struct tconv_layer *layer = request->layer;
    if (!write_table(&g, recipe)) return false;

    const int64_t kernel_rows = g.rows.z.kernel * g.rows.y.kernel,
                  all_blocks = layer->groups * g.blocks;
    const int64_t strips = recipe->table[COL2IM_STRIPS];
    char name[80];
    snprintf(name, sizeof name, "col2im mw%d mc%d part%lld s%lld d%lld", g.mw, g.mc,
             (long long)g.part_classes, (long long)g.rows.x.stride, (long long)g.rows.x.dilation);
    tconv_recipe_layout(recipe, name, &g.rows.layer);
    recipe->filter_bytes =
        (uint64_t)(all_blocks * kernel_rows * strips * layer->in_channels * g.mw) *
        tconv_type_size(layer->type);

    struct tconv_launch *pack = tconv_recipe_pack(recipe, "tconv_col2im_pack");
    write_options(pack, &g);
    tconv_launch_items(pack, 0, layer->in_channels, 32, request->device);
    tconv_launch_items(pack, 1, kernel_rows * strips, 1, request->device);
    tconv_launch_items(pack, 2, all_blocks, 1, request->device);
    tconv_launch_args(pack,
                      (enum tconv_arg[]){TCONV_ARG_WEIGHTS, TCONV_ARG_FILTER, TCONV_ARG_TABLE}, 3);

    struct tconv_launch *run = tconv_recipe_run(recipe, "tconv_col2im");
    write_options(run, &g);
    tconv_launch_items(run, 0, g.tiles * g.parts * g.group, (size_t)g.group, request->device);
    tconv_launch_items(run, 1, g.rows.output_rows, 1, request->device);
    tconv_launch_items(run, 2, layer->batch * all_blocks, 1, request->device);
    tconv_launch_args(run,
                      (enum tconv_arg[]){TCONV_ARG_DATA, TCONV_ARG_FILTER, TCONV_ARG_BIAS,
                                         TCONV_ARG_OUTPUT, TCONV_ARG_TABLE},
                      5);
    return true;
}

static bool accepts_vector(const struct tconv_request *request, double *cost,
                           struct tconv_reason *reason)
{
    struct col2im g;
    return prepare(request, true, &g, cost, reason);
}

static bool accepts_group(const struct tconv_request *request, double *cost,
                          struct tconv_reason *reason)
{
    struct col2im g;
    return prepare(request, false, &g, cost, reason);
}

static bool write_vector(const struct tconv_request *request, struct tconv_recipe *recipe)
{
    return write(request, true, recipe);
}

static bool write_group(const struct tconv_request *request, struct tconv_recipe *recipe)
{
    return write(request, false, recipe);
}

const struct tconv_family tconv_col2im_vector = {
    .name = "col2im_vector",
    .summary = "columns of a tile in local memory, then a gather overlap-add; wide vectors, one "
               "work-item a group: for CPUs",
    .sources = {"common.clh", "rows_table.h", "col2im_table.h", "col2im.cl"},
    .accepts = accepts_vector,
    .write = write_vector,
};

const struct tconv_family tconv_col2im_group = {
    .name = "col2im_group",
    .summary = "columns of a tile in local memory, then a gather overlap-add; a work-group shares "
               "the tile: for GPUs",
    .sources = {"common.clh", "rows_table.h", "col2im_table.h", "col2im.cl"},
    .accepts = accepts_group,
    .write = write_group,
};
