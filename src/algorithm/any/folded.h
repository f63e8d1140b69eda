/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms that know three axes have in common: a folded layer as (z, y, x), and the
 * limits of their 32-bit indices. */
#ifndef TCONV_ALGORITHM_FOLDED_H
#define TCONV_ALGORITHM_FOLDED_H

#include "algorithm/algorithm.h"
#include "geometry/taps.h"

/* A layer of three axes; axes that it does not have are single points. Vectors run along x. Where
 * it has more, z counts the points and taps of all but the last two, and has no stride, dilation
 * and pad: kernels find their way by slices. */
struct tconv_folded_layer {
    struct tconv_layer layer; /* folded; its own axes are not to be used */
    struct tconv_axis z, y, x;
    int64_t output_rows, input_rows;     /* z and y together */
    int64_t places;                      /* along x: outputs of one phase, ceil(output / stride) */
    size_t acc_bytes;                    /* of what is added up */
    int64_t low, high;                   /* place u reads inputs u + low to u + high at most */
    const struct tconv_machine *machine; /* that costs are for */
};

/* False with a reason where the layer has more axes, exceeds 32-bit indices or has very large
 * tensors. */
bool tconv_fold(const struct tconv_request *request, struct tconv_folded_layer *folded,
                struct tconv_reason *reason);

/* The same for kernels that read and write whole rows, and find along z what the table's slices
 * say: of any number of axes, but false where the outer ones cannot be counted as one, the layer is
 * not contiguous along x or has very many rows. */
bool tconv_fold_rows(const struct tconv_request *request, struct tconv_folded_layer *folded,
                     struct tconv_reason *reason);

/* The same for kernels that follow the steps along x, in any data format. */
bool tconv_fold_any_format(const struct tconv_request *request, struct tconv_folded_layer *folded,
                           struct tconv_reason *reason);

/* The distance from a place to the input that tap k reads for it. The later the tap, the less. */
int64_t tconv_folded_distance(const struct tconv_axis *axis, int64_t k);

/* For tap k along x: the phase of the outputs that it reaches, and the input that it reads for
 * their place 0. */
void tconv_folded_tap(const struct tconv_folded_layer *folded, int64_t k, int64_t *phase,
                      int64_t *input);

/* Whether kernels can divide by a number, and the entry of the table with which they do: divisor.h
 * of cl/. */
bool tconv_divides(int64_t number);
int64_t tconv_divisor(int64_t number);

static inline double tconv_larger(double a, double b)
{
    return a > b ? a : b;
}

/* The pairs (output, tap) of an axis that have an input inside the data: the work along an axis
 * whose taps are clipped. */
double tconv_folded_pairs(const struct tconv_axis *axis);

/* The same of all axes that z stands for. */
double tconv_folded_slices(const struct tconv_folded_layer *folded);

/* The axes that z stands for: these many of the layer's, from the first on. */
int tconv_folded_outer_axes(const struct tconv_folded_layer *folded);

/* How many taps along z reach one output at most. */
int64_t tconv_folded_taps_z(const struct tconv_folded_layer *folded);

/* Whether a work-item has more loop iterations than devices stand whose work-items are lanes:
 * drivers end what runs long, and llvmpipe ends all loops of a work-item after 65535 iterations in
 * all. */
bool tconv_folded_too_long(double iterations, const tconv_device_info *device);

/* The same for kernels with many short work-items: only processors end their loops. */
bool tconv_folded_group_too_long(double iterations, const tconv_device_info *device);

/* Loop iterations of exact_output (taps.clh; gather's has no more) for one output, the mean of all
 * phases. A work-item whose weights are not finite may go there for each of its outputs; those of
 * integers are finite. */
double tconv_folded_exact_loops(const struct tconv_folded_layer *folded);

/* Of all batch items. */
double tconv_folded_data_bytes(const struct tconv_folded_layer *folded);
double tconv_folded_output_bytes(const struct tconv_folded_layer *folded);

/* Names the packed layout: the algorithm's own text, groups, channels and the kernel along z, y and
 * x. */
void tconv_folded_layout(struct tconv_kernel_plan *kernel_plan, const char *algorithm,
                         const struct tconv_folded_layer *folded);

/* Writes the first FOLDED_NUMBERS longs of a table: what cl/common/folded_table.h has before its
 * lists. `blocks` of output channels in a group, `tiles` of a row. */
void tconv_folded_write_numbers(const struct tconv_folded_layer *folded, int64_t blocks,
                                int64_t tiles, int64_t *table);

/* Names the layout of a filter packed in the order of its taps, for blocks of `mw` output channels,
 * and writes the launch that packs it: cl/cpu/parts/taps.clh. `run` is complete and computes with
 * the filter; its kernel packs, too, except words, which have a kernel of their own. `kind` is
 * "taps" where the lanes of a block are output channels. */
void tconv_folded_pack(struct tconv_kernel_plan *kernel_plan,
                       const struct tconv_folded_layer *folded, const char *kind, int mw,
                       int64_t blocks, const struct tconv_launch *run,
                       const struct tconv_request *request, enum tconv_packing packing);

/* False with a reason where such a filter is too large. */
bool tconv_folded_filter_fits(const struct tconv_folded_layer *folded, int mw, int64_t blocks,
                              const struct tconv_request *request, enum tconv_packing packing,
                              struct tconv_reason *reason);

/* The options of a kernel that writes out all taps along x: KX, DX, RX and LOW, as
 * cl/cpu/parts/taps.clh says. */
void tconv_folded_taps_options(const struct tconv_folded_layer *folded, struct tconv_launch *run);

/* Arguments and work-items of a kernel that computes with such a filter, one work-item in a group,
 * with `local_bytes` of local memory. */
void tconv_folded_run(struct tconv_launch *run, int64_t items, uint64_t local_bytes,
                      const tconv_device_info *device);

/* A tap's place in a filter packed in the order of its taps; k along z, y, x. */
int64_t tconv_folded_tap_index(const struct tconv_folded_layer *folded, const int64_t k[3]);

/* Writes for each phase (tz, ty, tx) of the outputs which taps reach it: `kinds` receives
 * KIND_LONGS numbers for each phase, `list` receives all taps, `entry_longs` numbers each, written
 * by `entry`. False only where host memory is missing. */
typedef void tconv_write_entry(const void *self, const int64_t k[3], int64_t *entry);
bool tconv_folded_write_phases(const struct tconv_folded_layer *folded, tconv_write_entry *entry,
                               const void *self, int entry_longs, int64_t *kinds, int64_t *list);

/* False with a reason where a table with the part below and `own` longs of an algorithm's own is
 * too large. */
bool tconv_folded_table_fits(const struct tconv_folded_layer *folded, double own,
                             struct tconv_reason *reason);

/* The slices of cl/common/folded_table.h, and behind them their taps: how many longs they are;
 * writes them to the table `t` from its long number `at` on, false only where host memory is
 * missing. */
double tconv_folded_slices_longs(const struct tconv_folded_layer *folded);
bool tconv_folded_write_slices(const struct tconv_folded_layer *folded, size_t at, int64_t *t);

/* How many longs the part of the table takes that cl/common/folded_table.h describes: its own lists
 * end the whole table, and an algorithm's own numbers and lists, `own` longs, stand between. */
size_t tconv_folded_table_size(const struct tconv_folded_layer *folded, size_t own);

/* Writes that part. `own` as above; `blocks` of output channels in a group, `tiles` of a row. False
 * only where host memory is missing. */
bool tconv_folded_write_table(const struct tconv_folded_layer *folded, int64_t blocks,
                              int64_t tiles, size_t own, int64_t *table);

#endif
