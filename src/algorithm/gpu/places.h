/* SPDX-License-Identifier: Apache-2.0 */
/* What implicit matrix products on GPUs have in common: phases, rows and places, parts of the input
 * channels, the table, packing, and the launches. For tiled.c and matrix.c; cl/gpu/places.clh says
 * the same of the kernels. */
#ifndef TCONV_ALGORITHM_PLACES_H
#define TCONV_ALGORITHM_PLACES_H

#include "algorithm/any/folded.h"

enum {
    TCONV_MOST_PARTS = 8,
};

/* Multiply-adds that are issued for one that is useful where a tile has so many rows. */
struct tconv_height {
    int rows;
    double cost;
};

/* An axis as the kernel sees it. */
struct tconv_side {
    const struct tconv_axis *axis;
    bool merged;   /* phases are rows */
    int64_t first; /* the output of place 0 in phase 0 */
    int64_t places, phases, taps;
    int64_t reaching; /* taps that read an input for any place; the kernel skips the others */
};

/* A layer as a matrix product, and what follows from the tile. */
struct tconv_places {
    struct tconv_folded_layer folded;
    struct tconv_side side[3]; /* z, y, x */
    enum tconv_packing packing;
    int64_t packed_channels; /* of a tap of the packed filter: input channels, or words of them */
    bool last;               /* channels are neighbours */
    bool rows_last;          /* rows are quads of output channels */
    int64_t phases, list_taps, reaching; /* of all phases of work-groups */
    int64_t merged, matrix_rows;         /* phases that are rows; rows of the packed filter */
    bool constant_table;                 /* the device's constant memory takes the table */
    int64_t all_places;
    /* The tile: rows, places, input channels of a stage; parts of the input channels, each with
     * work-groups of its own. */
    int mt, nt, stage;
    int parts;
    int64_t tiles, blocks;
};

/* Everything that all tiles have in common; `heights` of the tiles that there are. False with a
 * reason where the layer is refused. */
bool tconv_places_prepare(struct tconv_places *p, const struct tconv_request *request,
                          enum tconv_packing packing, const struct tconv_height *heights,
                          int height_count, struct tconv_reason *reason);

void tconv_places_set_tile(struct tconv_places *p, int mt, int nt, int stage, int parts);

/* Of struct outputs in cl/gpu/places.clh, for each place. */
int64_t tconv_places_output_bytes(const struct tconv_places *p);

/* Stages of one work-group, the mean of all phases. */
double tconv_places_stages(const struct tconv_places *p);

/* Whether so many parts have two stages each, and the workspace that they need may be had. */
bool tconv_places_may_split(const struct tconv_places *p, const struct tconv_request *request);

/* Whether work-groups of `items` work-items can be handed out. */
bool tconv_places_check(const struct tconv_places *p, int items, const tconv_device_info *device,
                        struct tconv_reason *reason);

/* What a work-group of a tile takes. */
struct tconv_group_cost {
    double busy;      /* cycles of a compute unit that has enough of them to hide all waits */
    double alone;     /* cycles of one that has a unit for itself */
    double warps;     /* that it has */
    double registers; /* of a work-item */
    int64_t local;    /* bytes of local memory */
    double l2;        /* bytes that it reads */
    double finish;    /* cycles of the launch that adds up parts, but for its reads */
};

/* The cost of all launches that run. */
double tconv_places_cost(const struct tconv_places *p, const struct tconv_group_cost *group,
                         const tconv_device_info *device);

/* Whether groups of `count` neighbouring channels lie at multiples of so many elements from a
 * tensor's begin. */
bool tconv_places_has_groups(const struct tconv_places *p, bool output, int count);

/* The table; false where host memory is missing. */
bool tconv_places_write_table(const struct tconv_places *p, struct tconv_kernel_plan *kernel_plan);

/* SPLIT of cl/gpu/places.clh. */
enum tconv_split { TCONV_WHOLE_SUMS, TCONV_PART_SUMS, TCONV_FINISHED_SUMS };

/* The options of cl/gpu/places.clh but MT and NT. */
void tconv_places_options(const struct tconv_places *p, enum tconv_split split, int items,
                          struct tconv_launch *launch);

/* Adds the launch that computes, of work-groups of `items`; with parts the one that adds them up,
 * of `groups` work-groups for each tile; and those that pack the filter, with the options of `run`
 * once it has them all. The last one also names the packed layout. */
struct tconv_launch *tconv_places_run(const struct tconv_places *p, const char *kernel, int items,
                                      struct tconv_kernel_plan *kernel_plan);
struct tconv_launch *tconv_places_finish(const struct tconv_places *p, const char *kernel,
                                         int items, int groups,
                                         struct tconv_kernel_plan *kernel_plan);
void tconv_places_pack(const struct tconv_places *p, const char *kind,
                       const struct tconv_launch *run, const struct tconv_request *request,
                       struct tconv_kernel_plan *kernel_plan);

#endif
