/* SPDX-License-Identifier: Apache-2.0 */
/* Costs on CPUs, and the choices of vectors, blocks and rounds that depend on them. */
#include "algorithm/cost/cpu.h"

#include "base/checked.h"

double tconv_cpu_launch_cost(const struct tconv_folded *folded, double cost, double largest)
{
    /* A thread wakes after some 10 us and reaches full speed later, but never so late that it takes
     * no part in the work. */
    const struct tconv_machine *m = folded->machine;
    const double most_late = m->wake * m->adds * m->lanes, most_share = cost * m->wake_share;
    const double item = cost * largest;
    if (item <= 0 || 1 / largest > INT32_MAX) return cost; /* many, however they are shared */
    const int64_t items = (int64_t)(1 / largest + 0.999999), units = (int64_t)m->units;
    const double least = (most_late < most_share ? most_late : most_share) / item; /* in items */
    const double late = least < (double)items ? least : (double)items;
    const int64_t missed = (int64_t)late;
    /* The unit that begins first also ends last, or another does. */
    const double first =
        (double)tconv_min(tconv_ceil_div(items + (units - 1) * (missed + 1), units), items);
    const double other = (double)tconv_ceil_div(items - missed, units) + late;
    return (first < other ? first : other) * item * (double)units;
}

int tconv_folded_widest(const struct tconv_folded *folded)
{
    const double lanes = folded->machine->lanes;
    return lanes <= 1 ? 4 : lanes < 16 ? (int)lanes : 16;
}

int tconv_folded_accumulators(const struct tconv_folded *folded)
{
    return (int)folded->machine->sums;
}

void tconv_folded_lanes(const struct tconv_folded *folded, int64_t channels, const int *order,
                        int count, int *vw, int *mw)
{
    *vw = tconv_folded_widest(folded);
    while (*vw > 4 && *vw / 2 >= channels) *vw /= 2;
    int64_t least = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int64_t block = (int64_t)order[i] * *vw,
                      lanes = tconv_ceil_div(channels, block) * block;
        if (lanes < least) {
            least = lanes;
            *mw = (int)block;
        }
    }
}

int tconv_folded_round(int sums, int64_t channels, int64_t step)
{
    enum { MOST_CHANNELS = 8, MOST_ADDITIONS = 48 };
    int round = MOST_CHANNELS;
    while (round > 1 && (round * sums > MOST_ADDITIONS || channels % round != 0 ||
                         (step < channels && step % round != 0)))
        round /= 2;
    return round;
}

int64_t tconv_folded_chunk(int64_t channels, int64_t chunks)
{
    enum { STEP = 8 };
    return tconv_ceil_div(tconv_ceil_div(channels, chunks), STEP) * STEP;
}

double tconv_folded_issue(const struct tconv_folded *folded, double instructions)
{
    const struct tconv_machine *m = folded->machine;
    return m->registers < 32 ? instructions / m->issue : 0;
}

double tconv_folded_inefficiency(const struct tconv_folded *folded, int nx, int mw)
{
    const struct tconv_machine *m = folded->machine;
    const double adds = mw * nx / m->adds;
    if (m->registers < 32) {
        const int round =
            tconv_folded_round(mw * nx, folded->loops.in_channels, folded->loops.in_channels);
        const double issue =
            tconv_folded_issue(folded, mw * nx + mw + m->crossing * nx + m->round / round);
        const double least = adds > m->latency ? adds : m->latency;
        return (issue > least ? issue : least) / adds;
    }
    const double loads = (mw + nx + 1) / m->loads, issue = (mw * nx + mw + nx + 4) / m->issue;
    const double most = loads > m->latency ? loads : m->latency;
    const double cycles = adds > most ? adds : most;
    return (cycles > issue ? cycles : issue) / adds * (nx == 1 ? m->narrow : 1) + m->overhead;
}

/* Whether the output is so large that it would not stay in a processor's caches. */
static bool streams(const struct tconv_folded *folded)
{
    return tconv_folded_output_bytes(folded) >
           folded->machine->streamed_output * folded->machine->l3;
}

bool tconv_folded_non_temporal(const struct tconv_folded *folded, int64_t run, int64_t long_run)
{
    const int64_t line = (int64_t)folded->machine->line,
                  bytes = run * (int64_t)tconv_type_size(folded->loops.output_type);
    const struct tconv_axis *y = &folded->y, *x = &folded->x;
    const bool gaps = folded->loops.spaced && y->output > 1 &&
                      !tconv_is_product(y->output_step, x->output, x->output_step);
    return streams(folded) && ((bytes % line == 0 && !gaps) || (long_run > 0 && bytes >= long_run));
}

int tconv_folded_point_stores(const struct tconv_folded *folded)
{
    const struct tconv_loops *loops = &folded->loops;
    if (!loops->spaced) return tconv_folded_non_temporal(folded, folded->x.output_step, 0);
    const int64_t distances[] = {loops->groups * loops->out_channels, loops->output_batch_step,
                                 folded->z.output_step, folded->y.output_step,
                                 folded->x.output_step};
    const int64_t line = (int64_t)folded->machine->line;
    bool whole = streams(folded);
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
        whole = whole && distances[i] * (int64_t)tconv_type_size(loops->output_type) % line == 0;
    return whole ? 2 : 0;
}
