/* SPDX-License-Identifier: Apache-2.0 */
/* The orders of positions for layers whose images are small: slots of cl/gpu/tiled_table.h.
 *
 * At a border of the data some taps of a position have no input. A tile skips the taps that none of
 * its positions has an input for. In the usual order a tile of a small image has positions at all
 * borders, and skips nothing. So positions that need the same taps are put together, and a tile is
 * filled up with positions that need fewer. All batch items of a position, or of a divisor of their
 * number, are neighbours. */
#include "algorithm/gpu/positions_internal.h"

#include "base/checked.h"
#include "gpu/tiled_table.h"

enum {
    MOST_SLOTS = 1024,        /* of a phase: each coordinate has SLOT_BITS */
    MOST_INPUTS = 4096,       /* of a batch item */
    MOST_ALL_SLOTS = 1536,    /* 12 KiB of the table */
    MOST_POSITIONS = 1 << 17, /* of a phase: the host goes through their tiles */
    MOST_SETS = 32,           /* of positions with the same taps */
    MOST_WANTED = MOST_SETS * (MOST_SETS + 1) / 2 + 1,
    TRIED_TILES = 64, /* of the usual order, which repeats */
};
_Static_assert(MOST_SLOTS == 1 << SLOT_BITS, "a coordinate fits its bits");

/* Below this share of the usual order's work the positions are sorted. */
static const double worthwhile = 0.95;

static int64_t slots_of(const struct tconv_positions *p)
{
    return p->side[0].positions * p->side[1].positions * p->side[2].positions;
}

/* ---- taps of positions ---------------------------------------------------------------------- */

/* The taps of a phase along an axis: the distances to their inputs, and for each position which of
 * them an output needs and have an input, a bit for each. */
struct axis_taps {
    int taps;
    int64_t distance[ROUND_TAPS];
    uint32_t inside[MOST_SLOTS];
};

/* `phase` is the phase's number along the axis: its first output. */
static void find_axis_taps(const struct tconv_side *side, int64_t phase, struct axis_taps *taps)
{
    const struct tconv_axis *axis = side->axis;
    taps->taps = 0;
    for (int64_t u = 0; u < side->positions; u++) taps->inside[u] = 0;
    for (int64_t k = 0; k < side->taps; k++) {
        if (!side->merged && tconv_mod(phase + axis->pad - k * axis->dilation, axis->stride) != 0)
            continue;
        const int64_t distance = tconv_side_distance(side, k);
        for (int64_t u = 0; u < side->positions; u++) {
            const bool needed = side->merged || u * axis->stride + phase < axis->output;
            if (needed && u + distance >= 0 && u + distance < axis->input)
                taps->inside[u] |= UINT32_C(1) << taps->taps;
        }
        taps->distance[taps->taps++] = distance;
    }
}

/* The taps of a phase: along each axis, and for each position the mask that the kernel has, whose
 * highest bit is the first tap. A position without an output needs no taps. */
struct phase_taps {
    struct axis_taps axis[3];
    uint32_t masks[MOST_SLOTS];
};

static void find_taps(const struct tconv_positions *p, int64_t phase, struct phase_taps *taps)
{
    const struct tconv_side *side = p->side;
    const int64_t numbers[] = {phase / side[2].phases / side[1].phases,
                               phase / side[2].phases % side[1].phases, phase % side[2].phases};
    const struct axis_taps *axis = taps->axis;
    for (int a = 0; a < 3; a++) find_axis_taps(&side[a], numbers[a], &taps->axis[a]);
    for (int64_t slot = 0; slot < slots_of(p); slot++) {
        const uint32_t z = axis[0].inside[slot / side[2].positions / side[1].positions],
                       y = axis[1].inside[slot / side[2].positions % side[1].positions],
                       x = axis[2].inside[slot % side[2].positions];
        uint32_t mask = 0, bit = UINT32_C(1) << 31;
        for (int i = 0; i < axis[0].taps; i++)
            for (int j = 0; j < axis[1].taps; j++)
                for (int k = 0; k < axis[2].taps; k++, bit >>= 1)
                    if ((z >> i & y >> j & x >> k & 1) != 0) mask |= bit;
        taps->masks[slot] = mask;
    }
}

static int count_bits(uint32_t mask)
{
    int count = 0;
    for (; mask != 0; mask &= mask - 1) count++;
    return count;
}

/* ---- sorting -------------------------------------------------------------------------------- */

/* Positions of a phase that have the same taps: a set. */
struct tap_set {
    uint32_t mask;
    int64_t left; /* slots that have no place yet */
};

struct tap_sets {
    struct tap_set list[MOST_SETS];
    int count;
    uint32_t wanted[MOST_WANTED]; /* taps that a tile may be made for, fewest first */
    int wanted_count;
};

static void want(struct tap_sets *c, uint32_t mask)
{
    int i = 0;
    while (i < c->wanted_count && c->wanted[i] != mask) i++;
    if (i < c->wanted_count) return;
    for (c->wanted_count++; i > 0 && count_bits(c->wanted[i - 1]) > count_bits(mask); i--)
        c->wanted[i] = c->wanted[i - 1];
    c->wanted[i] = mask;
}

/* The sets of a phase, those with most taps first. False if there are too many. */
static bool find_sets(const uint32_t *masks, int64_t slots, struct tap_sets *c)
{
    c->count = c->wanted_count = 0;
    uint32_t all = 0;
    for (int64_t slot = 0; slot < slots; slot++) {
        int i = 0;
        while (i < c->count && c->list[i].mask != masks[slot]) i++;
        if (i == MOST_SETS) return false;
        if (i == c->count) {
            all |= masks[slot];
            for (c->count++; i > 0 && count_bits(c->list[i - 1].mask) < count_bits(masks[slot]);
                 i--)
                c->list[i] = c->list[i - 1];
            c->list[i] = (struct tap_set){masks[slot], 0};
        }
        c->list[i].left++;
    }
    for (int i = 0; i < c->count; i++)
        for (int j = 0; j <= i; j++) want(c, c->list[i].mask | c->list[j].mask);
    want(c, all);
    return true;
}

/* The fewest taps for which enough positions are left that need no others. */
static uint32_t taps_for(const struct tap_sets *c, uint32_t needed, int64_t positions,
                         int64_t items)
{
    for (int w = 0; w + 1 < c->wanted_count; w++) {
        int64_t left = 0;
        if ((needed & ~c->wanted[w]) != 0) continue;
        for (int i = 0; i < c->count; i++)
            if ((c->list[i].mask & ~c->wanted[w]) == 0) left += c->list[i].left * items;
        if (left >= positions) return c->wanted[w];
    }
    return c->wanted[c->wanted_count - 1];
}

/* The last slot of a set that has no place yet. */
static int16_t take(struct tap_set *set, const uint32_t *masks, int64_t slots)
{
    int64_t rest = set->left--, slot = 0;
    for (; slot < slots; slot++)
        if (masks[slot] == set->mask && --rest == 0) break;
    return (int16_t)slot;
}

/* Puts the positions of a phase in order. Tiles are made from the last one on, each for as few taps
 * as possible: the last one may be smaller than the others, and devices should begin with the long
 * ones. False if they have too many sets of taps. */
static bool sort_slots(const struct tconv_positions *p, int64_t items, const uint32_t *masks,
                       int16_t *order)
{
    const int64_t slots = slots_of(p);
    struct tap_sets c;
    if (!find_sets(masks, slots, &c)) return false;
    int64_t room = (items * slots - 1) % p->nt + 1; /* of the tile */
    uint32_t begun = 0; /* taps of a slot that the tile has only a part of */
    for (int64_t free = slots; free > 0;) {
        const uint32_t taps = taps_for(&c, begun, room, items);
        for (int i = 0; i < c.count && room > 0; i++)
            while ((c.list[i].mask & ~taps) == 0 && c.list[i].left > 0 && room > 0) {
                order[--free] = take(&c.list[i], masks, slots);
                room -= items;
                begun = c.list[i].mask;
            }
        if (room == 0) begun = 0;
        while (room <= 0) room += p->nt;
    }
    return true;
}

/* Counts the taps that tiles have in the usual order. */
static double usual_taps(const struct tconv_positions *p, const uint32_t *masks)
{
    const int64_t slots = slots_of(p), tiles = tconv_min(p->tiles, TRIED_TILES);
    int64_t sum = 0;
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t first = tile * p->nt, last = tconv_min(first + p->nt, p->all_positions) - 1;
        uint32_t mask = 0;
        for (int64_t i = first; i <= last && i < first + slots; i++) mask |= masks[i % slots];
        sum += count_bits(mask);
    }
    return (double)sum * (double)p->tiles / (double)tiles;
}

/* The inputs of a batch item that a tile's slots read, each counted once, and once for each tap. */
struct reads {
    int64_t inputs, all;
};

static void count_reads(const struct tconv_positions *p, const struct phase_taps *taps,
                        const int16_t *order, int64_t count, struct reads *reads)
{
    bool read[MOST_INPUTS] = {false};
    const struct tconv_side *side = p->side;
    for (int64_t s = 0; s < count; s++) {
        uint32_t bit = UINT32_C(1) << 31;
        const int64_t z = order[s] / side[2].positions / side[1].positions,
                      y = order[s] / side[2].positions % side[1].positions,
                      x = order[s] % side[2].positions;
        for (int i = 0; i < taps->axis[0].taps; i++)
            for (int j = 0; j < taps->axis[1].taps; j++)
                for (int k = 0; k < taps->axis[2].taps; k++, bit >>= 1) {
                    if ((taps->masks[order[s]] & bit) == 0) continue;
                    bool *input = &read[((z + taps->axis[0].distance[i]) * side[1].axis->input + y +
                                         taps->axis[1].distance[j]) *
                                            side[2].axis->input +
                                        x + taps->axis[2].distance[k]];
                    reads->inputs += !*input;
                    reads->all++;
                    *input = true;
                }
    }
}

/* Counts the taps that the tiles of a sorted phase have. */
static void count_taps(const struct tconv_positions *p, const struct phase_taps *taps,
                       const int16_t *slots, struct tconv_sorting *order, struct reads *reads)
{
    const int64_t positions = order->items * p->slots;
    const double times = (double)(p->folded.loops.batch / order->items);
    for (int64_t first = 0; first < positions; first += p->nt) {
        const int64_t last = tconv_min(first + p->nt, positions) - 1, slot = first / order->items,
                      end = last / order->items + 1;
        uint32_t mask = 0;
        for (int64_t i = slot; i < end; i++) mask |= taps->masks[slots[i]];
        order->taps += times * count_bits(mask);
        order->most_taps = tconv_max(order->most_taps, count_bits(mask));
        if (last + 1 == positions) order->last_taps += count_bits(mask);
        count_reads(p, taps, slots + slot, end - slot, reads);
    }
}

/* ---- decisions ------------------------------------------------------------------------------ */

int64_t tconv_positions_slots(const struct tconv_positions *p)
{
    const struct tconv_loops *loops = &p->folded.loops;
    if (p->packing != TCONV_PACK_WORDS || !p->last || p->most_taps > ROUND_TAPS ||
        !tconv_divides(loops->batch) || p->all_positions > MOST_POSITIONS)
        return 0;
    for (int a = 0; a < 3; a++)
        if (p->side[a].positions > MOST_SLOTS) return 0;
    const int64_t slots = slots_of(p);
    double inputs = 1;
    for (int a = 0; a < 3; a++) inputs *= (double)p->side[a].axis->input;
    if (inputs > MOST_INPUTS || slots > MOST_SLOTS || slots * p->all_phases > MOST_ALL_SLOTS)
        return 0;
    double pairs = 1, all = 1;
    for (int a = 0; a < 3; a++) {
        const struct tconv_side *side = &p->side[a];
        double inside = 0;
        for (int64_t phase = 0; phase < side->phases; phase++) {
            struct axis_taps axis;
            find_axis_taps(side, phase, &axis);
            for (int64_t u = 0; u < side->positions; u++) inside += count_bits(axis.inside[u]);
        }
        pairs *= inside;
        all *= (double)side->positions * (double)side->taps;
    }
    return pairs < worthwhile * all ? slots : 0;
}

/* Sorts positions for the tile's width. False if that does not save work. */
static bool sort(const struct tconv_positions *p, struct tconv_sorting *order)
{
    struct reads reads = {0, 0};
    double usual = 0;
    for (int64_t phase = 0; phase < p->all_phases; phase++) {
        struct phase_taps taps;
        int16_t slots[MOST_SLOTS];
        find_taps(p, phase, &taps);
        if (!sort_slots(p, order->items, taps.masks, slots)) return false;
        count_taps(p, &taps, slots, order, &reads);
        usual += usual_taps(p, taps.masks);
    }
    order->reuses = reads.inputs == 0 ? 1 : (double)reads.all / (double)reads.inputs;
    if (order->taps >= worthwhile * usual) return false;
    if (p->rows_last || order->items == 1) return true;
    /* Neighbours along x are stored apart from each other. */
    const double saved = (usual - order->taps) / (double)p->tiles / (double)p->phases *
                         (double)p->folded.loops.in_channels;
    return saved > p->apart * (double)(p->side[2].positions - 1);
}

/* Adds the orders for the tile's width, and behind them the usual one. With fewer batch items more
 * neighbours are in a tile, which reads fewer inputs. Their tiles must be whole. */
static void add_orders(struct tconv_positions *p)
{
    enum { MOST_ORDERS = 4 };
    const int64_t batch = p->folded.loops.batch;
    int added = 0;
    for (int64_t items = batch; items > 0 && added < MOST_ORDERS; items--) {
        const int64_t positions = items * p->slots;
        if (batch % items != 0 || (items < batch && positions % p->nt != 0)) continue;
        if (positions < 2 * p->nt) break;
        struct tconv_sorting order = {.nt = p->nt, .items = items};
        if (sort(p, &order)) {
            p->kept[p->kept_count++] = order;
            added++;
        }
    }
    p->kept[p->kept_count++] = (struct tconv_sorting){.nt = p->nt};
}

bool tconv_positions_set_order(struct tconv_positions *p, int number, int columns)
{
    enum { KEPT = sizeof p->kept / sizeof *p->kept };
    p->order = (struct tconv_sorting){.nt = p->nt};
    p->columns = columns;
    if (number == 0) return true;
    if (p->slots == 0) return false;
    int i = 0;
    while (i < p->kept_count && p->kept[i].nt != p->nt) i++;
    if (i == p->kept_count) {
        if (p->kept_count + 5 > KEPT) return false;
        add_orders(p);
    }
    for (; number > 1 && p->kept[i].items > 0; number--) i++;
    p->order = p->kept[i];
    return p->order.items > 0;
}

void tconv_positions_write_slots(const struct tconv_positions *p, int64_t phase, int64_t *slot)
{
    struct phase_taps taps;
    int16_t order[MOST_SLOTS];
    find_taps(p, phase, &taps);
    sort_slots(p, p->order.items, taps.masks, order);
    for (int64_t i = 0; i < slots_of(p); i++) {
        const int64_t x = order[i] % p->side[2].positions, yz = order[i] / p->side[2].positions,
                      y = yz % p->side[1].positions, z = yz / p->side[1].positions;
        slot[i] = (int64_t)((uint64_t)taps.masks[order[i]] << 32) | z << 2 * SLOT_BITS |
                  y << SLOT_BITS | x;
    }
}
