/* SPDX-License-Identifier: Apache-2.0 */
/* How evenly the work-groups of the suite's layers load the compute units of GPUs. Group i runs on
 * unit i modulo the number of units, as far as groups fit; the counts are exact, for the kernel
 * plans that selection takes. */
#include "common/divisor.h"
#include "described.h"
#include "gpu/tiled_table.h"
#include "selecting.h"
#include "suite_fixture.h"
#include "suite_layer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Work-groups of a launch, as own_tile of cl/gpu/positions.clh numbers them: written again, in
 * plain arithmetic. */
struct order {
    const int64_t *t; /* the table */
    int positions;    /* of a tile */
};

static int64_t divisor(const struct order *o, int at)
{
    return o->t[at] & ((1 << DIVISOR_BITS) - 1);
}

struct group {
    int64_t kind, tile, part; /* the tile counts along blocks, positions and groups */
};

static struct group group_at(const struct order *o, int64_t number)
{
    const int64_t units = divisor(o, TILED_UNITS), tiles = divisor(o, TILED_PHASE_TILES),
                  full = o->t[TILED_FULL_CHUNKS], groups = divisor(o, TILED_CHUNK),
                  chunk = number / groups < full ? number / groups : full;
    int64_t in_chunk = number - chunk * groups, spread = divisor(o, TILED_SPREAD);
    const int64_t first_tile = chunk * spread;
    if (chunk == full) {
        const int64_t round = in_chunk / units, left = o->t[TILED_LAST_GROUPS] - round * units,
                      count = left < units ? left : units;
        if (round < TILED_TURN_BITS && ((uint64_t)o->t[TILED_TURNS] >> round & 1) != 0)
            in_chunk = round * units + count - 1 - in_chunk % units;
        spread = divisor(o, TILED_LAST_SPREAD);
    }
    const int64_t tile = first_tile + in_chunk % spread;
    return (struct group){in_chunk / spread, tile % tiles, tile / tiles};
}

/* The same for sorted positions: the taps that the table has for them. */
static int64_t sorted_taps(const struct order *o, int64_t kind, int64_t tile)
{
    const int64_t *t = o->t, *slots = t + t[TILED_SLOTS_AT] + kind * t[TILED_SLOTS];
    const int64_t items = divisor(o, TILED_ITEMS), sorted = divisor(o, TILED_SORTED);
    uint32_t mask = 0;
    assert_int_equal(sorted, items * t[TILED_SLOTS]);
    for (int64_t n = 0; n < o->positions; n++) {
        const int64_t number = tile * o->positions + n;
        if (number < t[TILED_ALL_POSITIONS])
            mask |= (uint32_t)((uint64_t)slots[number % sorted / items] >> 32);
    }
    int64_t taps = 0;
    for (; mask != 0; mask &= mask - 1) taps++;
    return taps;
}

/* Taps of a phase that reach a tile of positions from number `tile` on. */
static int64_t reaching_taps(const struct order *o, int64_t kind, int64_t tile)
{
    const int64_t *t = o->t, *k = t + t[TILED_PHASES_AT] + kind * TILED_KIND_LONGS;
    if (t[TILED_SLOTS] > 0) return sorted_taps(o, kind, tile);
    const int64_t inputs[] = {t[FOLDED_INPUT_Z], t[FOLDED_INPUT_Y], t[FOLDED_INPUT_X]};
    int64_t a = tile * o->positions, b = a + o->positions - 1, first[3], last[3], reaching = 0;
    if (b >= t[TILED_ALL_POSITIONS]) b = t[TILED_ALL_POSITIONS] - 1;
    for (int axis = 2; axis >= 0; axis--) {
        const int64_t positions = divisor(o, TILED_POSITIONS_Z + axis);
        first[axis] = a % positions;
        last[axis] = b % positions;
        a /= positions;
        b /= positions;
        for (int inner = axis; a != b && inner < 3; inner++) {
            first[inner] = 0;
            last[inner] = divisor(o, TILED_POSITIONS_Z + inner) - 1;
        }
    }
    for (int64_t i = 0; i < k[KIND_TAPS]; i++) {
        const int64_t *tap = t + t[TILED_LIST_AT] + (k[KIND_LIST] + i) * TAP_LONGS + TAP_Z;
        bool reaches = true;
        for (int axis = 0; axis < 3; axis++)
            reaches = reaches && last[axis] + tap[axis] >= 0 &&
                      first[axis] + tap[axis] < inputs[axis];
        reaching += reaches;
    }
    return reaching;
}

/* The busiest unit's work divided by the mean of all units: as numbered, and the least that any
 * order of these groups could reach if each unit has its share of their number. */
struct balance {
    double own, least;
};

/* Loads the units. Every tile of every part and phase with taps must be there once. */
static struct balance balance_of(const struct order *o, int64_t groups, int64_t units)
{
    const int64_t tiles = divisor(o, TILED_PHASE_TILES), parts = o->t[TILED_PARTS],
                  kinds = o->t[TILED_KINDS], along = divisor(o, TILED_TILES);
    int64_t *work = malloc((size_t)(kinds * along) * sizeof *work);
    int64_t *load = calloc((size_t)units, sizeof *load);
    char *seen = calloc((size_t)groups, 1);
    assert_true(work != NULL && load != NULL && seen != NULL);
    assert_int_equal(groups, kinds * tiles * parts);
    for (int64_t i = 0; i < kinds * along; i++) work[i] = reaching_taps(o, i / along, i % along);
    int64_t all = 0, most = 0, heaviest = 0, lightest = INT64_MAX;
    for (int64_t i = 0; i < groups; i++) {
        const struct group g = group_at(o, i);
        assert_in_range(g.kind, 0, kinds - 1);
        assert_in_range(g.part, 0, parts - 1);
        char *is_seen = &seen[(g.part * kinds + g.kind) * tiles + g.tile];
        assert_int_equal(*is_seen, 0);
        *is_seen = 1;
        const int64_t w = work[g.kind * along + g.tile / divisor(o, TILED_BLOCKS) % along];
        load[i % units] += w;
        all += w;
        heaviest = w > heaviest ? w : heaviest;
        lightest = w < lightest ? w : lightest;
    }
    for (int64_t u = 0; u < units; u++) most = load[u] > most ? load[u] : most;
    free(work);
    free(load);
    free(seen);
    const double mean = (double)all / (double)units, each = (double)all / (double)groups;
    const double equal = (double)((groups + units - 1) / units) * each / mean,
                 one = (double)(heaviest + (groups / units - 1) * lightest) / mean;
    return (struct balance){(double)most / mean, equal > one ? equal : one};
}

/* A layer of the suite on a card of NVIDIA's with a number of units, and what selection takes. */
struct selected {
    struct tconv_loops loops;
    tconv_device_info device;
    tconv_epilogue epilogue;
    struct tconv_request request;
    struct tconv_candidate best;
};

static void take_layer(const struct entry *entry, tconv_type type, tconv_data_format format,
                       int units, const char *algorithm, struct selected *s)
{
    tconv_device_info card = *described_device("NVIDIA mma");
    struct tconv_pattern pattern;
    struct tconv_reason reason;
    assert_true(suite_layer(entry, type, format, &s->loops));
    card.compute_units = (uint32_t)units;
    s->device = tconv_device_for(&card, &s->loops);
    s->epilogue = (tconv_epilogue){.bias = true, .alpha = 1};
    s->request = request_for(&s->loops, &s->device, &s->epilogue, TCONV_MATH_EXACT);
    assert_true(tconv_pattern_read(algorithm, &pattern, &reason));
    assert_true(tconv_choose(&s->request, &pattern, 0, &s->best, &reason));
}

/* Writes the kernel plan of what was taken. Returns its launch that multiplies. */
static const struct tconv_launch *
write_taken(const struct selected *s, struct tconv_kernel_plan *kernel_plan, struct order *order)
{
    *kernel_plan = (struct tconv_kernel_plan){0};
    assert_int_equal(tconv_kernel_plan_write(&s->request, &s->best, kernel_plan, NULL), TCONV_OK);
    const struct tconv_launch *run = kernel_plan->run;
    while (run->macs == 0) run++; /* a copy is made first */
    *order = (struct order){kernel_plan->table, (int)option_of(run, "NT")};
    return run;
}

/* The balance of what selection takes for a layer. False if it is not of these algorithms, or has
 * fewer than two groups for each unit. */
static bool layer_balance(const struct entry *entry, tconv_type type, tconv_data_format format,
                          int units, struct balance *balance)
{
    struct selected s;
    struct tconv_kernel_plan kernel_plan;
    struct order order;
    take_layer(entry, type, format, units, "auto", &s);
    if (s.best.algorithm != &tconv_tiled_group && s.best.algorithm != &tconv_matrix_group)
        return false;
    const struct tconv_launch *run = write_taken(&s, &kernel_plan, &order);
    assert_true(order.positions > 0);
    const int64_t groups = (int64_t)(run->global[0] / run->local[0]);
    const bool counts = groups >= 2 * units;
    if (counts) *balance = balance_of(&order, groups, units);
    tconv_kernel_plan_clear(&kernel_plan);
    return counts;
}

/* Units are even up to this factor. Where groups are too few for it, borders of the data may cost
 * this much more than the least: the order does not know of them. */
#define EVEN 1.3
#define TOLERANCE 1.16

static void units_have_equal_work(void **state)
{
    (void)state;
    static const int units[] = {108, 132, 144};
    static const tconv_type types[] = {TCONV_F32, TCONV_F16};
    int counted = 0, bound = 0;
    for (size_t i = 0; i < suite.count; i++)
        for (int v = 0; v < 12; v++) {
            const tconv_data_format format = v % 2 == 0 ? TCONV_NCX : TCONV_NXC;
            const tconv_type type = types[v / 2 % 2];
            struct balance balance;
            if (!layer_balance(&suite.entries[i], type, format, units[v / 4], &balance)) continue;
            counted++;
            if (balance.own <= EVEN) continue;
            bound++;
            if (balance.own > balance.least * TOLERANCE)
                fail_msg("%s %s %s on %d units: the busiest unit has %.2f of the mean; %.2f is "
                         "possible",
                         suite.entries[i].id, tconv_type_name(type),
                         format == TCONV_NCX ? "NCX" : "NXC", units[v / 4], balance.own,
                         balance.least);
        }
    print_message("%d of %d layers above %.1f: their groups are too few to divide evenly\n", bound,
                  counted, EVEN);
    assert_true(counted > 500 && bound < counted / 10);
}

/* The most multiply-adds that a layer of small images may issue in f16, over those that it needs.
 * Positions in the usual order: 1.49 and 1.50. */
static const struct {
    const char *id;
    double most;
} small_images[] = {{"B67", 1.15}, {"B11", 1.15}};

/* What the launch is said to issue over what the layer needs. It must be what the table's slots
 * say, and positions must be complete. */
static double issued_over_needed(const struct entry *entry, tconv_data_format format, int units)
{
    struct selected s;
    struct tconv_kernel_plan kernel_plan;
    struct order order;
    take_layer(entry, TCONV_F16, format, units, "matrix_group", &s);
    const struct tconv_launch *run = write_taken(&s, &kernel_plan, &order);
    const int64_t *t = kernel_plan.table;
    const double issued = run->macs;
    if (t[TILED_SLOTS] > 0) {
        const int64_t own = order.positions / option_of(run, "GN"),
                      along = divisor(&order, TILED_TILES);
        int64_t products = 0; /* of a tap with a position */
        for (int64_t kind = 0; kind < t[TILED_KINDS]; kind++) {
            char seen[1 << 10] = {0};
            for (int64_t i = 0; i < t[TILED_SLOTS]; i++) {
                const int64_t slot = t[t[TILED_SLOTS_AT] + kind * t[TILED_SLOTS] + i],
                              coordinate = (1 << SLOT_BITS) - 1;
                const int64_t z = slot >> 2 * SLOT_BITS & coordinate,
                              y = slot >> SLOT_BITS & coordinate, x = slot & coordinate;
                char *position = &seen[(z * divisor(&order, TILED_POSITIONS_Y) + y) *
                                           divisor(&order, TILED_POSITIONS_X) +
                                       x];
                assert_int_equal(*position, 0);
                *position = 1;
            }
            for (int64_t tile = 0; tile < along; tile++) {
                const int64_t left = t[TILED_ALL_POSITIONS] - tile * order.positions,
                              count = left < order.positions ? left : order.positions;
                products += reaching_taps(&order, kind, tile) * ((count + own - 1) / own * own);
            }
        }
        const double rows = (double)(divisor(&order, TILED_BLOCKS) * option_of(run, "MT")),
                     each = rows * (double)s.loops.in_channels * (double)s.loops.groups;
        assert_true(issued == (double)products * each); /* in_channels are whole stages */
    }
    tconv_kernel_plan_clear(&kernel_plan);
    return issued / (double)s.loops.macs;
}

static void small_images_issue_few_zeros(void **state)
{
    (void)state;
    static const int units[] = {108, 132, 144};
    int found = 0;
    for (size_t i = 0; i < suite.count; i++)
        for (size_t s = 0; s < sizeof small_images / sizeof *small_images; s++) {
            if (strcmp(suite.entries[i].id, small_images[s].id) != 0) continue;
            for (int v = 0; v < 6; v++, found++) {
                const tconv_data_format format = v % 2 == 0 ? TCONV_NCX : TCONV_NXC;
                const double share = issued_over_needed(&suite.entries[i], format, units[v / 2]);
                if (share > small_images[s].most)
                    fail_msg("%s %s on %d units issues %.3f times its multiply-adds, at most %g",
                             small_images[s].id, format == TCONV_NCX ? "NCX" : "NXC", units[v / 2],
                             share, small_images[s].most);
            }
        }
    assert_int_equal(found, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(units_have_equal_work),
                                       cmocka_unit_test(small_images_issue_few_zeros)};
    return cmocka_run_group_tests(tests, read_suite, free_suite);
}
