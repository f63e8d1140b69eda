/* SPDX-License-Identifier: Apache-2.0 */
/* A layer folded to three axes (z, y, x), and what the algorithms on three axes share: costs,
 * packing, tables, and the limits of 32-bit indices. */
#ifndef TCONV_ALGORITHM_FOLDED_H
#define TCONV_ALGORITHM_FOLDED_H

#include "algorithm/algorithm.h"
#include "geometry/taps.h"

/* A layer of three axes. Missing axes are single points. Vectors run along x. If the layer has more
 * than three axes, z counts the points and taps of all axes but the last two. Such a z has no
 * stride, dilation and pad: kernels find inputs and outputs by the table's slices. */
struct tconv_folded {
    struct tconv_loops loops; /* folded; use z, y and x below instead of its axes */
    struct tconv_axis z, y, x;
    int64_t output_rows, input_rows;     /* z and y together */
    int64_t positions;                   /* along x: outputs of one phase, ceil(output / stride) */
    size_t acc_bytes;                    /* of an accumulator */
    int64_t low, high;                   /* position u reads inputs u + low to u + high at most */
    const struct tconv_machine *machine; /* the machine that costs are for */
};

/* Folds a layer. False with a reason if the layer has more than three axes, exceeds 32-bit indices
 * or has very large tensors. */
bool tconv_fold(const struct tconv_request *request, struct tconv_folded *folded,
                struct tconv_reason *reason);

/* As tconv_fold, for kernels that read and write whole rows, and find their way along z by the
 * table's slices. Takes any number of axes. False if the outer axes cannot be counted as one, or if
 * the layer is not contiguous along x or has very many rows. */
bool tconv_fold_rows(const struct tconv_request *request, struct tconv_folded *folded,
                     struct tconv_reason *reason);

/* As tconv_fold_rows, for kernels that follow the steps along x, in any data format. */
bool tconv_fold_any_format(const struct tconv_request *request, struct tconv_folded *folded,
                           struct tconv_reason *reason);

/* The distance from a position to the input that tap k reads for it. Later taps have smaller
 * distances. */
int64_t tconv_folded_distance(const struct tconv_axis *axis, int64_t k);

/* The number that an axis with several taps had before folding. */
int tconv_folded_number(const struct tconv_loops *given, const struct tconv_axis *axis);

/* True if the layer is a convolution of three taps along this axis, behind nearest upsampling by 2:
 * for the difference form. */
bool tconv_folded_is_doubled(const struct tconv_loops *given, const struct tconv_axis *axis);

/* True if kernels can divide by this number. tconv_divisor gives the entry of the table with which
 * they divide: cl/common/divisor.h. */
bool tconv_divides(int64_t number);
int64_t tconv_divisor(int64_t number);

static inline double tconv_larger(double a, double b)
{
    return a > b ? a : b;
}

/* The number of pairs (output, tap) of an axis whose input lies inside the data: the work along an
 * axis whose taps are clipped. */
double tconv_folded_pairs(const struct tconv_axis *axis);

/* The product of these numbers for all axes that z stands for. */
double tconv_folded_slices(const struct tconv_folded *folded);

/* How many of the layer's axes z stands for, from the first on. */
int tconv_folded_outer_axes(const struct tconv_folded *folded);

/* The most taps along z that reach one output. */
int64_t tconv_folded_taps_z(const struct tconv_folded *folded);

/* True if a work-item has more loop iterations than a device with work-items as lanes allows:
 * drivers abort long kernels, and llvmpipe ends all loops of a work-item after 65535 iterations in
 * total. */
bool tconv_folded_too_long(double iterations, const tconv_device_info *device);

/* True if the device ends the loops of long kernels, as llvmpipe does: wrong results without an
 * error. */
bool tconv_folded_ends_loops(const tconv_device_info *device);

/* As tconv_folded_too_long, for kernels with many short work-items: only processors end their
 * loops. */
bool tconv_folded_group_too_long(double iterations, const tconv_device_info *device);

/* Loop iterations of exact_output (taps.clh; gather's has no more) for one output, the mean of all
 * phases. A work-item whose weights are not finite may call it for each of its outputs; integers
 * are always finite. */
double tconv_folded_exact_loops(const struct tconv_folded *folded);

/* Bytes of the tensor, of all batch items. */
double tconv_folded_data_bytes(const struct tconv_folded *folded);
double tconv_folded_output_bytes(const struct tconv_folded *folded);

/* Names the packed layout: the algorithm's own text, groups, channels and the kernel along z, y and
 * x. */
void tconv_folded_layout(struct tconv_kernel_plan *kernel_plan, const char *algorithm,
                         const struct tconv_folded *folded);

/* Writes the first FOLDED_NUMBERS longs of a table: what cl/common/folded_table.h has before its
 * lists. A group has `blocks` of output channels, a row has `tiles`. */
void tconv_folded_write_numbers(const struct tconv_folded *folded, int64_t blocks, int64_t tiles,
                                int64_t *table);

/* Names the layout of a filter packed in the order of its taps, for blocks of `mw` output channels,
 * and writes the launch that packs it: cl/cpu/parts/taps.clh. `run` is the complete launch that
 * computes with the filter. The kernel of `run` also packs. `kind` is "taps" if the lanes of a
 * block are output channels. */
void tconv_folded_pack(struct tconv_kernel_plan *kernel_plan, const struct tconv_folded *folded,
                       const char *kind, int mw, int64_t blocks, const struct tconv_launch *run,
                       const struct tconv_request *request, enum tconv_packing packing);

/* False with a reason if such a filter is too large. */
bool tconv_folded_filter_fits(const struct tconv_folded *folded, int mw, int64_t blocks,
                              const struct tconv_request *request, enum tconv_packing packing,
                              struct tconv_reason *reason);

/* Sets the options of a kernel that unrolls all taps along x: KX, DX, RX and LOW of
 * cl/cpu/parts/taps.clh. */
void tconv_folded_taps_options(const struct tconv_folded *folded, struct tconv_launch *run);

/* Sets arguments and work-items of a kernel that computes with such a filter: one work-item in a
 * group, with `local_bytes` of local memory. */
void tconv_folded_run(struct tconv_launch *run, int64_t items, uint64_t local_bytes,
                      const tconv_device_info *device);

/* A tap's index in a filter packed in the order of its taps; k along z, y, x. */
int64_t tconv_folded_tap_index(const struct tconv_folded *folded, const int64_t k[3]);

/* Writes the taps of each phase, in the order of first outputs (tz, ty, tx). `kinds` receives
 * KIND_LONGS numbers for each phase. `list` receives all taps, `entry_longs` numbers each, written
 * by `entry`. False only if host memory is missing. */
typedef void tconv_write_entry(const void *self, const int64_t k[3], int64_t *entry);
bool tconv_folded_write_phases(const struct tconv_folded *folded, tconv_write_entry *entry,
                               const void *self, int entry_longs, int64_t *kinds, int64_t *list);

/* False with a reason if a table is too large that has the part below and `own` longs of an
 * algorithm's own. */
bool tconv_folded_table_fits(const struct tconv_folded *folded, double own,
                             struct tconv_reason *reason);

/* The slices of cl/common/folded_table.h with their taps behind them. The first function returns
 * how many longs they take. The second writes them to the table `t` from long number `at` on; false
 * only if host memory is missing. */
double tconv_folded_slices_longs(const struct tconv_folded *folded);
bool tconv_folded_write_slices(const struct tconv_folded *folded, size_t at, int64_t *t);

/* Longs of the whole table: the numbers of cl/common/folded_table.h, then `own` longs of an
 * algorithm's numbers and lists, then the lists of cl/common/folded_table.h. */
size_t tconv_folded_table_size(const struct tconv_folded *folded, size_t own);

/* Writes what cl/common/folded_table.h describes, with `own` longs left free between. A group has
 * `blocks` of output channels, a row has `tiles`. False only if host memory is missing. */
bool tconv_folded_write_table(const struct tconv_folded *folded, int64_t blocks, int64_t tiles,
                              size_t own, int64_t *table);

#endif
