/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of tiled.c and matrix.c, which compute layers as matrix products on GPUs: phases,
 * rows and places, parts of the input channels, the table, packing and launches. cl/gpu/places.clh
 * is its counterpart for kernels. */
#ifndef TCONV_ALGORITHM_PLACES_H
#define TCONV_ALGORITHM_PLACES_H

#include "algorithm/any/folded.h"

enum {
    TCONV_MOST_PARTS = 8,
};

/* Issued multiply-adds for each useful one in a tile of so many rows. */
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
    int64_t
        reaching; /* taps that read an input for at least one place; the kernel skips the others */
};

/* A layer as a matrix product, and the numbers that follow from the tile. */
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

/* Sets what all tiles have in common. `heights` lists the rows of all tiles. False with a reason if
 * the layer is refused. */
bool tconv_places_prepare(struct tconv_places *p, const struct tconv_request *request,
                          enum tconv_packing packing, const struct tconv_height *heights,
                          int height_count, struct tconv_reason *reason);

void tconv_places_set_tile(struct tconv_places *p, int mt, int nt, int stage, int parts);

/* Bytes of struct outputs in cl/gpu/places.clh, for each place. */
int64_t tconv_places_output_bytes(const struct tconv_places *p);

/* Stages of one work-group, the mean of all phases. */
double tconv_places_stages(const struct tconv_places *p);

/* True if each of p->parts parts has at least two stages, and their workspace is within the
 * caller's limit. */
bool tconv_places_may_split(const struct tconv_places *p, const struct tconv_request *request);

/* True if the device can launch this tile's work-groups of `items` work-items. */
bool tconv_places_check(const struct tconv_places *p, int items, const tconv_device_info *device,
                        struct tconv_reason *reason);

/* The costs of a work-group of a tile. */
struct tconv_group_cost {
    double busy;      /* cycles of a compute unit that has enough groups to hide all waits */
    double alone;     /* cycles of a group that has a unit for itself */
    double warps;     /* warps of a group */
    double registers; /* of a work-item */
    int64_t local;    /* bytes of local memory */
    double l2;        /* bytes that it reads from l2 */
    double finish;    /* cycles of the launch that adds up parts; 0 without parts */
};

/* The cost of all launches that run. */
double tconv_places_cost(const struct tconv_places *p, const struct tconv_group_cost *group,
                         const tconv_device_info *device);

/* True if groups of `count` neighbouring channels begin at multiples of `count` elements in the
 * tensor. */
bool tconv_places_has_groups(const struct tconv_places *p, bool output, int count);

/* Writes the table. False if host memory is missing. */
bool tconv_places_write_table(const struct tconv_places *p, struct tconv_kernel_plan *kernel_plan);

/* SPLIT of cl/gpu/places.clh. */
enum tconv_split { TCONV_WHOLE_SUMS, TCONV_PART_SUMS, TCONV_FINISHED_SUMS };

/* Sets the options of cl/gpu/places.clh except MT and NT. */
void tconv_places_options(const struct tconv_places *p, enum tconv_split split, int items,
                          struct tconv_launch *launch);

/* tconv_places_run adds the launch that computes, with work-groups of `items`. tconv_places_finish
 * adds the launch that adds up parts, with `groups` work-groups for each tile. tconv_places_pack
 * adds the launches that pack the filter and names the packed layout; call it when `run` has all
 * its options. */
struct tconv_launch *tconv_places_run(const struct tconv_places *p, const char *kernel, int items,
                                      struct tconv_kernel_plan *kernel_plan);
struct tconv_launch *tconv_places_finish(const struct tconv_places *p, const char *kernel,
                                         int items, int groups,
                                         struct tconv_kernel_plan *kernel_plan);
void tconv_places_pack(const struct tconv_places *p, const char *kind,
                       const struct tconv_launch *run, const struct tconv_request *request,
                       struct tconv_kernel_plan *kernel_plan);

#endif
