/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the table of cl/gpu/tiled_table.h: numbers, the phases of work-groups with their taps, and
 * the order that spreads them over compute units. */
#include "algorithm/gpu/positions_internal.h"

#include "base/checked.h"
#include "gpu/copy_table.h"
#include "gpu/tiled_table.h"

#include <stdlib.h>

_Static_assert(TILED_LONGS + TCONV_MOST_PHASES * TILED_KIND_LONGS + TCONV_MOST_TAPS * TAP_LONGS <=
                   TCONV_TABLE_LIMIT,
               "the largest table");

/* The taps of one phase along an axis: tap number `first` + i * `step` of the packed filter, and
 * how far from a position its input lies. */
struct reach {
    int64_t taps, first, step;
};

static struct reach reach_of(const struct tconv_side *side, const struct tconv_phase *phases,
                             int64_t first_output)
{
    if (side->merged) return (struct reach){side->taps, 0, 1};
    const struct tconv_phase *phase = tconv_phase_of(side->axis, phases, first_output);
    return (struct reach){phase->taps, phase->first, tconv_tap_step(side->axis)};
}

/* Writes where the weights of products begin. Corners of a tap of the other axes are neighbours in
 * the list and in the filter. */
static void write_products(const struct tconv_positions *g, const int64_t *tap, int64_t *products)
{
    const int64_t taps = tconv_positions_other_taps(g);
    for (int64_t i = 0; i < taps; i++)
        products[i] = tconv_positions_tap_weights(g) +
                      tap[i * g->merged * TAP_LONGS + TAP_WEIGHTS] /
                          (tconv_positions_tap_weights(g) / taps) *
                          (tconv_positions_product_weights(g) / taps);
}

/* Phases with more taps come first. */
static int by_taps(const void *one, const void *other)
{
    const int64_t *a = one, *b = other;
    if (a[KIND_TAPS] != b[KIND_TAPS]) return a[KIND_TAPS] > b[KIND_TAPS] ? -1 : 1;
    return (a[TILED_KIND_PHASE] > b[TILED_KIND_PHASE]) -
           (a[TILED_KIND_PHASE] < b[TILED_KIND_PHASE]);
}

/* Writes a kind for each phase of work-groups, and all taps. */
static bool write_phases(const struct tconv_positions *g, int64_t *kinds, int64_t *tap)
{
    const struct tconv_side *side = g->side;
    struct tconv_phase *phases[3] = {NULL, NULL, NULL};
    int64_t *kind = kinds;
    bool memory = true;
    for (int a = 0; a < 3; a++) {
        phases[a] = tconv_phases_of(side[a].axis);
        memory = memory && phases[a] != NULL;
    }
    int64_t start = 0;
    for (int64_t phase = 0; memory && phase < g->all_phases; phase++, kind += TILED_KIND_LONGS) {
        const int64_t t[] = {phase / side[2].phases / side[1].phases,
                             phase / side[2].phases % side[1].phases, phase % side[2].phases};
        struct reach reach[3];
        for (int a = 0; a < 3; a++) reach[a] = reach_of(&side[a], phases[a], t[a]);
        kind[KIND_TAPS] = reach[0].taps * reach[1].taps * reach[2].taps;
        kind[KIND_LIST] = start;
        kind[TILED_KIND_PHASE] = phase;
        start += kind[KIND_TAPS];
        for (int64_t i = 0; i < kind[KIND_TAPS]; i++, tap += TAP_LONGS) {
            int64_t rest = i, k[3];
            for (int a = 2; a >= 0; a--) {
                k[a] = reach[a].first + rest % reach[a].taps * reach[a].step;
                rest /= reach[a].taps;
                tap[TAP_Z + a] = tconv_side_distance(&side[a], k[a]);
                tap[TAP_OFFSET] += tap[TAP_Z + a] * side[a].axis->data_step;
            }
            tap[TAP_WEIGHTS] = ((k[0] * side[1].taps + k[1]) * side[2].taps + k[2]) *
                               g->packed_channels * g->matrix_rows;
        }
    }
    for (int a = 0; a < 3; a++) free(phases[a]);
    qsort(kinds, (size_t)g->all_phases, TILED_KIND_LONGS * sizeof *kinds, by_taps);
    return memory;
}

enum { MOST_UNITS = 1 << 12 };

/* Groups of the last chunk in rounds of one for each unit, and the taps of each group. */
struct rounds {
    const int64_t *kinds;
    int64_t tiles, groups, units;
};

/* Adds `times` the taps of a round's groups to the loads of the units that run them. The groups of
 * a turned round are in the opposite order. */
static void add_round(const struct rounds *r, int64_t round, bool turned, int64_t times,
                      int64_t *load)
{
    const int64_t first = round * r->units, count = tconv_min(r->units, r->groups - first);
    for (int64_t i = 0; i < count; i++)
        load[turned ? count - 1 - i : i] +=
            times * r->kinds[(first + i) / r->tiles * TILED_KIND_LONGS + KIND_TAPS];
}

static bool is_turned(uint64_t turns, int64_t round)
{
    return round < TILED_TURN_BITS && (turns >> round & 1) != 0;
}

/* Changes the loads from those of `turns` to those of `other`. */
static void turn(const struct rounds *r, uint64_t turns, uint64_t other, int64_t *load)
{
    for (int64_t round = 0; round < TILED_TURN_BITS && turns != other; round++) {
        const uint64_t bit = UINT64_C(1) << round;
        if (((turns ^ other) & bit) == 0) continue;
        add_round(r, round, is_turned(turns, round), -1, load);
        add_round(r, round, is_turned(other, round), 1, load);
        turns ^= bit;
    }
}

/* The load of the busiest unit; equal ones by the sum of squares. */
static double unevenness(const struct rounds *r, const int64_t *load)
{
    int64_t most = 0;
    double squares = 0, all = 1;
    for (int64_t u = 0; u < r->units; u++) {
        most = tconv_max(most, load[u]);
        squares += (double)load[u] * (double)load[u];
        all += (double)load[u];
    }
    return (double)most + squares / (all * all);
}

/* Chooses which rounds are turned: from every other round on, turns single rounds and pairs of
 * neighbours as long as it helps. */
static uint64_t choose_turns(const struct rounds *r)
{
    enum { MOST_TRIES = 8 };
    const int64_t all = tconv_ceil_div(r->groups, r->units),
                  rounds = tconv_min(all, TILED_TURN_BITS);
    uint64_t turns = UINT64_C(0x5555555555555555);
    int64_t load[MOST_UNITS] = {0};
    for (int64_t round = 0; round < all; round++)
        add_round(r, round, is_turned(turns, round), 1, load);
    double least = unevenness(r, load);
    bool better = true;
    for (int tries = 0; better && tries < MOST_TRIES; tries++) {
        better = false;
        for (int64_t i = 0; i < 2 * rounds - 1; i++) {
            const uint64_t flipped = turns ^
                                     (i < rounds ? UINT64_C(1) << i : UINT64_C(3) << (i - rounds));
            turn(r, turns, flipped, load);
            const double own = unevenness(r, load);
            if (own < least) {
                least = own;
                turns = flipped;
                better = true;
            } else {
                turn(r, flipped, turns, load);
            }
        }
    }
    return turns;
}

bool tconv_positions_even(const struct tconv_positions *p)
{
    return p->list_taps == p->phases * p->most_taps;
}

/* Tiles of a chunk, and how many chunks have that many. */
static int64_t spread_of(const struct tconv_positions *p)
{
    return tconv_positions_even(p) ? 1 : tconv_min(tconv_max((int64_t)p->units, 1), MOST_UNITS);
}

int64_t tconv_positions_full_chunks(const struct tconv_positions *p)
{
    const int64_t tiles = (int64_t)tconv_positions_phase_tiles(p) * p->parts;
    const int64_t spread = spread_of(p), full = tiles / spread;
    /* The last chunk has up to two tiles for a unit, so that there is more to choose from. */
    return tiles % spread == 0 ? full : tconv_max(full - 1, 0);
}

/* Writes the order of work-groups: own_tile of cl/gpu/positions.clh. */
static void write_order(const struct tconv_positions *g, const int64_t *kinds, int64_t *t)
{
    const int64_t tiles = (int64_t)tconv_positions_phase_tiles(g) * g->parts;
    const int64_t units = tconv_min(tconv_max((int64_t)g->units, 1), MOST_UNITS);
    const int64_t spread = spread_of(g), whole = tconv_positions_full_chunks(g),
                  last = tiles - whole * spread;
    t[TILED_FULL_CHUNKS] = whole;
    t[TILED_KINDS] = g->phases;
    t[TILED_LAST_GROUPS] = g->phases * last;
    t[TILED_PHASE_TILES] = tconv_divisor((int64_t)tconv_positions_phase_tiles(g));
    t[TILED_CHUNK] = tconv_divisor(g->phases * spread);
    t[TILED_SPREAD] = tconv_divisor(spread);
    t[TILED_LAST_SPREAD] = tconv_divisor(tconv_max(last, 1));
    t[TILED_UNITS] = tconv_divisor(units);
    if (last == 0) return;
    const struct rounds rounds = {kinds, last, g->phases * last, units};
    t[TILED_TURNS] = (int64_t)choose_turns(&rounds);
}

bool tconv_positions_write_table(const struct tconv_positions *g,
                                 struct tconv_kernel_plan *kernel_plan)
{
    const size_t phases_at = TILED_LONGS,
                 list_at = phases_at + (size_t)g->all_phases * TILED_KIND_LONGS;
    if (!tconv_kernel_plan_table(kernel_plan, tconv_positions_table_longs(g))) return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, g->tiles, t);
    for (int a = 0; a < 3; a++) {
        t[TILED_POSITIONS_Z + a] = tconv_divisor(g->side[a].positions);
        t[TILED_FIRST_Z + a] = g->side[a].first;
        t[TILED_PHASES_Z + a] = tconv_divisor(g->side[a].phases);
        if (g->side[a].merged) t[TILED_NEAREST_Z + a] = tconv_side_distance(&g->side[a], 0);
        t[TILED_TAPS_Z + a] = g->side[a].taps;
    }
    t[TILED_ALL_POSITIONS] = g->all_positions;
    t[TILED_ROWS] = g->matrix_rows;
    t[TILED_GROUP_WEIGHTS] = tconv_positions_tap_weights(g) + tconv_positions_product_weights(g);
    t[TILED_CHANNELS] = tconv_divisor(tconv_ceil_div(g->folded.loops.out_channels, 4) * 4);
    t[TILED_OUTPUT_QUADS] = tconv_positions_has_groups(g, true, 4);
    t[TILED_PARTS] = g->parts;
    t[TILED_PART_CHANNELS] = tconv_positions_part_channels(g);
    t[TILED_PART] = tconv_divisor((int64_t)tconv_positions_part_groups(g));
    t[TILED_BLOCKS] = tconv_divisor(g->blocks);
    t[TILED_TILES] = tconv_divisor(g->tiles);
    if (g->copy.elements > 0) {
        t[TILED_COPY_POINTS] = g->copy.points;
        t[TILED_COPY_CHANNELS] = g->copy.channels;
        t[TILED_COPY_ROW] = g->copy.row;
        t[TILED_COPY_BATCH_STEP] = g->copy.batch_step;
        t[TILED_COPY_CHANNEL_STEP] = g->copy.channel_step;
        t[TILED_COPY_POINT_TILES] = tconv_divisor(tconv_ceil_div(g->copy.points, COPIED_POINTS));
        t[TILED_COPY_CHANNEL_TILES] =
            tconv_divisor(tconv_copy_channel_tiles(&g->copy, g->folded.loops.data_type));
    }
    if (g->order.items > 0) {
        t[TILED_SLOTS] = g->slots;
        t[TILED_SLOTS_AT] = (int64_t)list_at + g->list_taps * TAP_LONGS;
        t[TILED_ITEMS] = tconv_divisor(g->order.items);
        t[TILED_SORTED] = tconv_divisor(g->order.items * g->slots);
    }
    t[TILED_PHASES_AT] = (int64_t)phases_at;
    t[TILED_LIST_AT] = (int64_t)list_at;
    if (!write_phases(g, t + phases_at, t + list_at)) return false;
    for (int64_t kind = 0; g->order.items > 0 && kind < g->all_phases; kind++)
        tconv_positions_write_slots(
            g, t[(int64_t)phases_at + kind * TILED_KIND_LONGS + TILED_KIND_PHASE],
            t + t[TILED_SLOTS_AT] + kind * g->slots);
    if (g->difference != 0) {
        t[TILED_PRODUCTS_AT] =
            (int64_t)(tconv_positions_table_longs(g) - (size_t)tconv_positions_other_taps(g));
        write_products(g, t + list_at, t + t[TILED_PRODUCTS_AT]);
    }
    write_order(g, t + phases_at, t);
    return true;
}
