/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of tiled.c and matrix.c, which compute layers as matrix products on GPUs: phases,
 * rows and positions, parts of the input channels, the table, packing and launches.
 * positions.c decides and counts, positions_table.c and positions_launches.c write down what
 * follows. cl/gpu/positions.clh is its counterpart for kernels. */
#ifndef TCONV_ALGORITHM_POSITIONS_H
#define TCONV_ALGORITHM_POSITIONS_H

#include "algorithm/any/folded.h"

enum {
    TCONV_MOST_PARTS = 8,
};

/* What the kernels of an algorithm have in common, for the choice of the phases that become rows.
 */
struct tconv_product {
    enum tconv_packing packing;
    /* The rows of all tiles, the most first, and the cost of a multiply-add in tiles of so many. */
    struct {
        int rows;
        double cost; /* 1: in the highest tiles */
    } height[6];
    int heights;
    /* The cost, in multiply-adds, of an output that is stored without its neighbours: for each
     * neighbour that the stride takes away. */
    double apart;
    bool difference; /* the difference form of cl/gpu/tiled.cl */
};

/* An axis as the kernel sees it. */
struct tconv_side {
    const struct tconv_axis *axis;
    bool merged;   /* phases are rows */
    int64_t first; /* the output of position 0 in phase 0 */
    int64_t positions, phases, taps;
};

/* A copy of plain data with neighbouring channels: cl/gpu/copy.clh. */
struct tconv_copy {
    int64_t points;        /* of a batch item */
    int64_t channels, row; /* of all groups; elements of a point in the copy: channels and
                              padding */
    int64_t batch_step, channel_step; /* of the data */
    int64_t elements;                 /* of the copy */
};

/* An order of positions: positions_sorted.c. */
struct tconv_sorting {
    int nt;            /* it is for tiles of so many positions */
    int64_t items;     /* batch items that are sorted together; 0: the usual order */
    double taps;       /* of the tiles of all phases, without those that they skip */
    double last_taps;  /* of the last tile of each phase, which may have fewer positions */
    int64_t most_taps; /* of a tile */
    double reuses;     /* how often a tile reads an input */
};

/* A layer as a matrix product, and the numbers that follow from the tile. */
struct tconv_positions {
    struct tconv_folded folded;
    struct tconv_side side[3]; /* z, y, x */
    enum tconv_packing packing;
    int64_t packed_channels; /* of a tap of the packed filter: input channels, or words of them */
    struct tconv_copy copy;  /* elements == 0: the kernel reads the data itself */
    bool last;               /* input channels are neighbours, in the copy if there is one */
    bool rows_last;          /* rows are quads of output channels */
    int64_t all_phases, phases; /* of work-groups; those that have taps */
    int64_t most_taps;          /* of a phase */
    int64_t list_taps;          /* of all phases */
    int64_t reaching; /* those that read an input for at least one position; the kernel skips the
                         others */
    double units;     /* compute units that have work-groups */
    int64_t merged, matrix_rows; /* phases that are rows; rows of the packed filter */
    int difference; /* DIFFERENCE of cl/gpu/tiled.cl, 0: taps are added along all axes. Its axes are
                       those whose phases are rows */
    bool constant_table; /* the device's constant memory takes the table */
    int64_t all_positions;
    double apart;  /* of tconv_product */
    int halo;      /* HALO of cl/gpu/matrix.cl; 0: taps do not share inputs */
    int64_t slots; /* positions of a batch item that may be sorted; 0: they may not */
    struct tconv_sorting kept[25]; /* the orders for tiles that were set before */
    int kept_count;
    /* The tile: rows, positions, input channels of a stage; parts of the input channels, each with
     * work-groups of its own. */
    int mt, nt, stage;
    int parts;
    int64_t tiles, blocks;
    struct tconv_sorting order;
    int columns; /* positions that are left out together if a sorted tile has too few */
};

/* Sets what all tiles have in common. False with a reason if the layer is refused. */
bool tconv_positions_prepare(struct tconv_positions *p, const struct tconv_request *request,
                             const struct tconv_product *product, struct tconv_reason *reason);

/* The same for a kernel that reads a copy of the data with neighbouring channels, padded to
 * multiples of `quad` channels. False also if the data need no copy. */
bool tconv_positions_prepare_copied(struct tconv_positions *p, const struct tconv_request *request,
                                    const struct tconv_product *product, int64_t quad,
                                    struct tconv_reason *reason);

/* Lengthens rows, slices and images of positions so that all taps of a phase may share inputs:
 * cl/gpu/matrix_shared.clh. Call it before a tile is set. False if no phase has two taps, if there
 * are more than `halo` positions between the inputs of a phase's first and last tap, or if there
 * are too many positions. */
bool tconv_positions_share(struct tconv_positions *p, int halo);

/* The order is the usual one then. */
void tconv_positions_set_tile(struct tconv_positions *p, int mt, int nt, int stage, int parts);

/* Sets order number `number` of positions for the tile; 0 is the usual one, others save work. False
 * if there is none. `columns`: see there. */
bool tconv_positions_set_order(struct tconv_positions *p, int number, int columns);

/* Bytes of struct outputs in cl/gpu/positions.clh, for each position. */
int64_t tconv_positions_output_bytes(const struct tconv_positions *p);

/* Products of a position of the difference form, where the equivalent filter has `merged` taps for
 * each of as many outputs. */
int64_t tconv_positions_products(const struct tconv_positions *p);

/* Taps of a work-group, the mean of all. */
double tconv_positions_taps(const struct tconv_positions *p);

/* Stages of one work-group, the mean of all phases. */
double tconv_positions_stages(const struct tconv_positions *p);

/* Stages of one work-group, the mean of those of the busiest compute unit. The order of work-groups
 * spreads phases evenly, but the largest phase of few groups stands out. */
double tconv_positions_busiest_stages(const struct tconv_positions *p);

/* True if each of p->parts parts has at least two stages, and their workspace is within the
 * caller's limit. */
bool tconv_positions_may_split(const struct tconv_positions *p,
                               const struct tconv_request *request);

/* True if the device can launch this tile's work-groups of `items` work-items. */
bool tconv_positions_check(const struct tconv_positions *p, int items,
                           const tconv_device_info *device, struct tconv_reason *reason);

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
double tconv_positions_cost(const struct tconv_positions *p, const struct tconv_group_cost *group,
                            const tconv_device_info *device);

/* True if groups of `count` neighbouring channels begin at multiples of `count` elements in the
 * tensor. */
bool tconv_positions_has_groups(const struct tconv_positions *p, bool output, int count);

/* Writes the table. False if host memory is missing. */
bool tconv_positions_write_table(const struct tconv_positions *p,
                                 struct tconv_kernel_plan *kernel_plan);

/* SPLIT of cl/gpu/positions.clh. */
enum tconv_split { TCONV_WHOLE_SUMS, TCONV_PART_SUMS, TCONV_FINISHED_SUMS };

/* Sets the options of cl/gpu/positions.clh except MT and NT. */
void tconv_positions_options(const struct tconv_positions *p, enum tconv_split split, int items,
                             struct tconv_launch *launch);

/* tconv_positions_copy adds the launch that copies data, if there is a copy; call it first. NULL if
 * there is none.
 * tconv_positions_run adds the launch that computes, with work-groups of `items`.
 * tconv_positions_fill adds the launch that stores the outputs of phases without taps, which the
 * other launches leave out; NULL if all phases have taps.
 * tconv_positions_finish adds the launch that adds up parts, with `groups` work-groups for each
 * tile. tconv_positions_pack adds the launches that pack the filter and names the packed layout;
 * call it when `run` has all its options. */
struct tconv_launch *tconv_positions_copy(const struct tconv_positions *p, int items,
                                          struct tconv_kernel_plan *kernel_plan);
struct tconv_launch *tconv_positions_run(const struct tconv_positions *p, const char *kernel,
                                         int items, struct tconv_kernel_plan *kernel_plan);
struct tconv_launch *tconv_positions_fill(const struct tconv_positions *p, int items,
                                          struct tconv_kernel_plan *kernel_plan);
struct tconv_launch *tconv_positions_finish(const struct tconv_positions *p, const char *kernel,
                                            int items, int groups,
                                            struct tconv_kernel_plan *kernel_plan);
void tconv_positions_pack(const struct tconv_positions *p, const char *kind,
                          const struct tconv_launch *run, const struct tconv_request *request,
                          struct tconv_kernel_plan *kernel_plan);

#endif
