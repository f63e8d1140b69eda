/* SPDX-License-Identifier: Apache-2.0 */
/* What positions.c counts for positions_table.c and positions_launches.c. Only these files and
 * positions_sorted.c include it. */
#ifndef TCONV_ALGORITHM_POSITIONS_INTERNAL_H
#define TCONV_ALGORITHM_POSITIONS_INTERNAL_H

#include "algorithm/gpu/positions.h"

#include "base/checked.h"

enum {
    TCONV_MOST_PHASES = 1 << 12,
    TCONV_MOST_TAPS = 1 << 16,
};

/* How far from a position the input of a tap lies. */
static inline int64_t tconv_side_distance(const struct tconv_side *side, int64_t tap)
{
    return side->merged ? tconv_floor_div(side->axis->pad, side->axis->stride) - tap
                        : tconv_folded_distance(side->axis, tap);
}

/* Work-groups of the copy along the channels of a point. */
int64_t tconv_copy_channel_tiles(const struct tconv_copy *copy, tconv_type type);

/* Positions of a batch item if they may be sorted, else 0. */
int64_t tconv_positions_slots(const struct tconv_positions *p);

/* Writes a phase's positions in p->order: slots of cl/gpu/tiled_table.h. */
void tconv_positions_write_slots(const struct tconv_positions *p, int64_t phase, int64_t *slot);

/* Tiles of a phase. */
double tconv_positions_phase_tiles(const struct tconv_positions *p);

/* Work-groups of one part, and of all parts. */
double tconv_positions_part_groups(const struct tconv_positions *p);
double tconv_positions_groups(const struct tconv_positions *p);

/* Input channels of a part: whole stages. */
int64_t tconv_positions_part_channels(const struct tconv_positions *p);

/* Bytes that parts leave for the second launch: the sums of all tiles, with alignment. */
double tconv_positions_workspace_bytes(const struct tconv_positions *p);

/* Weights of a group in the packed filter: those of all taps, and of the difference form's products
 * behind them. */
int64_t tconv_positions_tap_weights(const struct tconv_positions *p);
int64_t tconv_positions_product_weights(const struct tconv_positions *p);

/* Taps of the axes without differences. */
static inline int64_t tconv_positions_other_taps(const struct tconv_positions *p)
{
    return p->difference == 0 ? 0 : p->list_taps / p->merged;
}

/* Elements of the packed filter, `bytes` each, with its header. */
double tconv_positions_filter_elements(const struct tconv_positions *p, size_t bytes);

/* True if all phases that have taps have the same number of them. */
bool tconv_positions_even(const struct tconv_positions *p);

/* Chunks but the last one: own_tile of cl/gpu/positions.clh. */
int64_t tconv_positions_full_chunks(const struct tconv_positions *p);

/* 64-bit numbers of the table. */
size_t tconv_positions_table_longs(const struct tconv_positions *p);

#endif
