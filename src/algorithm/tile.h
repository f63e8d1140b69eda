/* SPDX-License-Identifier: Apache-2.0 */
/* A tile: the numbers by which an algorithm divides a layer among work-groups, work-items and
 * registers. */
#ifndef TCONV_ALGORITHM_TILE_H
#define TCONV_ALGORITHM_TILE_H

#include <stddef.h>

/* The parameters of all algorithms. An algorithm lists those that it has; the others are 0. Users,
 * stored results and prepared programs call them by these names, kernels mostly by the same ones in
 * capital letters. They count parts of extents, which are below 2^30 (any/folded.c). */
struct tconv_tile {
    /* Products of matrices. Rows are output channels, of several phases where phases are merged.
     * Columns are positions. The depth is input channels. */
    int mt, nt;       /* rows, columns of a work-group */
    int tm, tn;       /* rows, columns of a work-item */
    int wm, wn;       /* rows, columns of a sub-group */
    int slices;       /* of a stage, each for work-items or sub-groups of its own */
    int ks, kt;       /* depth of a stage: in channels, in words of 32 bits */
    int split, parts; /* whether work-groups share the depth; the parts into which it is divided */
    int copy;         /* whether data are copied first, with the channels of a point together */
    int shared;       /* all taps of a phase share inputs, those of so many more columns; 0: no */

    /* Registers of a work-item. */
    int vw;                /* lanes of a vector */
    int nx, px;            /* vectors of positions; positions whose vectors are channels */
    int mw;                /* output channels (col2im: columns) that share the loads of inputs */
    int mc;                /* col2im: output channels whose columns are computed together */
    int ry;                /* output rows that share the loads of inputs */
    int merged;            /* whether all phases along x are computed together */
    int batched;           /* whether the positions are of several images */
    int flat;              /* the order in which positions fill vectors: cl/cpu/packed.cl */
    int mz, my, mx;        /* winograd: positions of a tile along each axis */
    int outputs, channels; /* direct: outputs of a phase, output channels */
    int along_y;           /* whether these outputs lie along y, not x */
    int rounds;            /* how often a work-item repeats this */
    int images;            /* whether data and weights are read as images */

    /* The share of a work-item or, where work-items are lanes, of a work-group. */
    int box_z, box_y, box_x;   /* positions of a box */
    int rows, positions;       /* rows; positions of a row */
    int tiles, bands;          /* of vectors; of neighbouring output rows */
    int planes, teams, blocks; /* of images; of vectors of tiles; of output channels */
    int chunk;                 /* input channels that local memory holds at a time */
    int width;                 /* inputs of a column in local memory */
    int run;                   /* neighbouring output elements */
};

/* One parameter, for texts. */
struct tconv_tile_parameter {
    const char *name;
    size_t offset; /* in struct tconv_tile */
};

static inline int tconv_tile_value(const struct tconv_tile *tile,
                                   const struct tconv_tile_parameter *parameter)
{
    return *(const int *)((const char *)tile + parameter->offset);
}

static inline void tconv_tile_set(struct tconv_tile *tile,
                                  const struct tconv_tile_parameter *parameter, int value)
{
    *(int *)((char *)tile + parameter->offset) = value;
}

/* A row of an algorithm's list of parameters. */
#define TCONV_TILE(member)                                                                         \
    {                                                                                              \
#member, offsetof(struct tconv_tile, member)                                               \
    }

#endif
