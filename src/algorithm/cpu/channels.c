/* SPDX-License-Identifier: Apache-2.0 */
/* The channels algorithm with its variants for large strides, and for bytes and bf16: parameters,
 * cost and kernel plan of cl/cpu/channels.cl. */
#include "algorithm/registry.h"

#include "algorithm/any/folded.h"
#include "algorithm/cost/cpu.h"
#include "algorithm/cpu/division.h"
#include "base/checked.h"
#include "base/element_types.h"
#include "cpu/channels_table.h"

#include <stdio.h>

enum {
    MOST_SEGMENT = 64,
    LEAST_CHUNK = 128,  /* input channels at a time, if there are more */
    SLICED_INPUTS = 16, /* both of these if a box has the inputs of many slices */
    LEAST_PHASES = 4,
    MOST_PHASES = 1 << 12,
    MOST_TAPS = 1 << 16,
    CACHE_LINE = 16,     /* elements */
    MOST_POSITIONS = 26, /* at a time */
    MOST_PAIRS = 4096,   /* of tiles and taps of a row that are counted one by one */
    MOST_WIDTHS = 64,
};

/* The lanes of a vector: output channels, or phases along x. */
enum lanes { LANES_CHANNELS, LANES_PHASES };

/* True if inputs and weights are words of several input channels: cl/cpu/parts/words.clh. */
static bool has_words(const struct tconv_algorithm *algorithm)
{
    return algorithm->packing == TCONV_PACK_CHANNEL_WORDS;
}

/* A division of rows into boxes, with the numbers that follow from it. */
struct width {
    int64_t box;         /* positions of a box */
    double visits;       /* how often taps reach tiles of a row */
    double whole_visits; /* visits to whole tiles that would take as long */
};

/* The parameters of a kernel, and the numbers that follow from them. Arrays for three axes are in
 * the order z, y, x. */
struct channels {
    struct tconv_folded folded;
    const struct tconv_axis *axis[3];
    struct tconv_axis slices; /* in place of z if z is counted by slices */
    int vw, mw, px, segment;
    bool batched;
    enum lanes lanes;
    int word;            /* input channels in an input of local memory */
    int products;        /* multiply-adds of two inputs, in instructions */
    int64_t inputs;      /* of an input point, in one group */
    struct tconv_axis x; /* LANES_PHASES: the axis x as the layer has it */
    int64_t positions[3], low[3], span[3], box[3], parts[3];
    struct width width; /* of box[2], while candidates are added */
    double pairs[3];    /* pairs of outputs and taps along each axis */
    int64_t taps, phases, blocks, item_blocks;
    int64_t chunk;  /* inputs at a time: all, or a multiple of the segment */
    int64_t images; /* groups of images */
    int64_t items;
    uint64_t local_bytes;
};

/* Turns the phases of each position along x into channels. The axis x keeps the positions. */
static void fold_phases(struct channels *g)
{
    struct tconv_axis *x = &g->folded.x;
    g->x = *x;
    x->kernel = tconv_ceil_div(x->kernel, x->stride);
    x->output = tconv_ceil_div(x->output + tconv_mod(x->pad, x->stride), x->stride);
    x->pad = tconv_floor_div(x->pad, g->x.stride);
    x->stride = 1;
    x->output_step *= g->x.stride;
}

/* Among block sizes that waste equally few lanes, prefer two vectors. For phases prefer four if
 * registers hold enough positions of them: positions are so far apart in memory that few can be
 * stored side by side without evicting each other's cache lines. */
static void choose_lanes(struct channels *g)
{
    enum { VECTORS = 4, POSITIONS = 4 };
    static const int order[VECTORS] = {VECTORS, 2, 3, 1};
    const bool phases = g->lanes == LANES_PHASES;
    const int skipped = !phases || tconv_folded_accumulators(&g->folded) < VECTORS * POSITIONS;
    tconv_folded_lanes(&g->folded, phases ? g->x.stride : g->folded.loops.out_channels,
                       order + skipped, VECTORS - skipped, &g->vw, &g->mw);
}

/* True if all lines of a plane of outputs follow each other in memory. */
static bool plane(const struct channels *g)
{
    return g->axis[1]->output_step == g->folded.x.output &&
           g->axis[1]->data_step == g->folded.x.input;
}

/* True if the layer has more than three axes. Then z is counted by slices, one to a box. */
static bool sliced(const struct channels *g)
{
    return tconv_folded_outer_axes(&g->folded) > 1;
}

/* True if sums go through local memory to be stored row by row: lanes are channels, but rows are
 * contiguous, and a row (or a plane of contiguous rows) is long enough for a vector. */
static bool transposed(const struct channels *g)
{
    return g->lanes == LANES_CHANNELS && g->folded.loops.output_channel_step != 1 &&
           g->folded.x.output_step == 1 && g->folded.x.data_step == 1 &&
           (g->folded.x.output >= g->vw ||
            (plane(g) && g->folded.x.output * g->folded.y.output >= g->vw));
}

/* True if the sums of all phases are kept in local memory, for the next chunk of input channels or
 * to be stored together. */
static bool kept(const struct channels *g)
{
    return g->chunk < g->inputs || (transposed(g) && g->folded.x.output < g->vw);
}

static int round_of(const struct channels *g)
{
    return tconv_folded_round(g->mw / g->vw * g->px, g->inputs, g->segment);
}

/* Cycles of one input channel of a tap for `positions` positions: the longest of multiply-adds,
 * loads, chains of multiply-adds and, with 16 registers, issue (tconv_folded_issue). */
static double channel_cycles(const struct channels *g, int positions)
{
    const struct tconv_machine *m = g->folded.machine;
    const double vectors = g->mw / (double)g->vw,
                 adds = vectors * positions * g->products / m->adds,
                 loads = (vectors + positions) / m->loads,
                 issue = m->registers < 32 ? 0 : (vectors * positions + vectors + 5) / m->issue,
                 weights = vectors * m->channels_weights;
    double most = adds > loads ? adds : loads;
    if (most < m->latency) most = m->latency;
    if (most < weights) most = weights;
    /* 0.5: prefetching weights takes half an instruction. */
    const double shared = tconv_folded_issue(&g->folded, vectors * positions + vectors + positions +
                                                             0.5 + m->round / round_of(g));
    if (most < shared) most = shared;
    return (most > issue ? most : issue) *
           (transposed(g) ? m->channels_rows_factor : m->channels_last_factor);
}

/* Elements of local memory for `inputs` inputs of each input point of a box. */
static double input_elements(const struct channels *g, int64_t inputs)
{
    const int64_t segments = tconv_ceil_div(inputs, g->segment);
    const int64_t row = g->batched ? (g->box[2] + g->span[2]) * g->px
                                   : tconv_ceil_div(g->box[2], g->px) * g->px + g->span[2];
    return (double)g->segment * (double)segments * (double)row * (double)(g->box[1] + g->span[1]) *
           (double)(g->box[0] + g->span[0]);
}

/* Bytes of local memory: the inputs and the sums of a box. If sums are kept for the next chunk,
 * those of all phases; else those of one phase along z and y. */
static double bytes_of(const struct channels *g)
{
    const double sums = (double)g->box[0] * (double)g->box[1] * (double)g->box[2] *
                        (double)g->axis[2]->stride * (g->batched ? g->px : 1) * g->mw;
    const double times = kept(g) ? (double)(g->item_blocks * g->phases / g->axis[2]->stride) : 1;
    return (double)g->folded.acc_bytes *
           (input_elements(g, g->chunk) +
            (kept(g) || transposed(g) ? sums * times + CACHE_LINE : 0));
}

/* Elements between the outputs of neighbouring lanes. */
static int64_t lane_step_of(const struct channels *g)
{
    return g->lanes == LANES_PHASES ? g->x.output_step : g->folded.loops.output_channel_step;
}

/* Cycles of storing one lane if lanes are not neighbours in memory. The further apart lanes are,
 * the fewer of their cache lines remain until the next position is stored. Neighbours in a row cost
 * less. */
static double scattered_cycles(const struct channels *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const double cycles = m->channels_scatter + (double)lane_step_of(g) / m->channels_scatter_step;
    return cycles < m->channels_scatter_most ? cycles : m->channels_scatter_most;
}

/* Cycles of keeping a sum and storing it row by row. They grow if the last vector of a row is
 * stored in parts or overlaps the vector before. */
static double transposed_cycles(const struct channels *g)
{
    int64_t row = tconv_min(g->box[2] * g->axis[2]->stride, g->axis[2]->output);
    if (kept(g) && plane(g) && row == g->axis[2]->output)
        row *= tconv_min(g->box[1] * g->axis[1]->stride, g->axis[1]->output);
    const struct tconv_machine *m = g->folded.machine;
    const double cycles = row < g->vw                           ? m->channels_row_part
                          : row < 2 * g->vw && row % g->vw != 0 ? m->channels_row_overlap
                                                                : m->channels_row;
    return tconv_type_is_byte(g->folded.loops.output_type) ? m->channels_row_bytes * cycles
                                                           : cycles;
}

/* Cycles of copying an input of one channel: as part of a vector if neighbours in memory are
 * channels or if inputs are transposed, else one by one. */
static double copied_cycles(const struct channels *g)
{
    const struct tconv_machine *m = g->folded.machine;
    if (g->folded.loops.data_channel_step == 1) return m->channels_copy / g->vw;
    if (!transposed(g) || g->segment < g->vw) return m->channels_copy;
    int64_t row = tconv_min(g->box[2] + (g->batched ? 0 : g->span[2]), g->axis[2]->input);
    const bool together = plane(g) && row == g->axis[2]->input && row < g->vw;
    if (together) row *= tconv_min(g->box[1] + g->span[1], g->axis[1]->input);
    return row < g->vw ? m->channels_copy_part / (double)row
           : together  ? m->channels_copy_rows
                       : m->channels_copy_row;
}

/* The macro STREAM: whether outputs use non-temporal stores. Phases have little to add for each
 * output, so that plain stores are faster as long as outputs stay in the last cache. */
static int streams(const struct channels *g)
{
    enum { LONG_ROW = 1 << 10 }; /* bytes */
    if (transposed(g)) return tconv_folded_non_temporal(&g->folded, g->folded.x.output, LONG_ROW);
    if (lane_step_of(g) != 1) return 0;
    if (g->lanes == LANES_CHANNELS) return tconv_folded_point_stores(&g->folded);
    return tconv_folded_output_bytes(&g->folded) > g->folded.machine->l3 &&
           tconv_folded_non_temporal(&g->folded, g->folded.x.output_step, 0);
}

/* The cost of a tile, in multiply-adds at full speed. */
static double cost_of(const struct channels *g)
{
    const struct tconv_machine *m = g->folded.machine;
    const struct tconv_loops *loops = &g->folded.loops;
    const double in = (double)g->inputs, groups = (double)loops->groups;
    /* How often taps reach groups of PX positions, for one block. */
    const double rows = g->pairs[0] * g->pairs[1] * (double)(g->batched ? g->images : loops->batch);
    const double visits = rows * (g->batched ? g->pairs[2] : g->width.visits);
    const double whole_visits = rows * (g->batched ? g->pairs[2] : g->width.whole_visits);
    const double segments = (double)tconv_ceil_div(g->inputs, g->segment);
    const double chunks = (double)tconv_ceil_div(g->inputs, g->chunk);
    const double adds = groups * (double)g->blocks *
                        (whole_visits * in * channel_cycles(g, g->px) +
                         visits * (m->channels_segment * segments + m->channels_chunk * chunks));
    const double outputs = groups * (double)loops->batch * (double)g->folded.output_rows *
                           (double)g->axis[2]->output;
    const int64_t lane_step = lane_step_of(g);
    const double vectors = outputs * (double)g->blocks * g->mw / g->vw;
    const double stores =
        lane_step == 1
            ? m->channels_store * vectors + outputs * (double)g->blocks * m->channels_position
        : transposed(g)
            ? outputs * (double)(g->blocks * g->mw) * transposed_cycles(g)
            : outputs * (double)loops->out_channels *
                  (g->lanes == LANES_PHASES ? (double)g->x.stride : 1) * scattered_cycles(g);
    /* Cycles of keeping sums between chunks. */
    const double again = (chunks - 1) * vectors * m->channels_again;
    double copied = groups * (double)(g->batched ? g->images * g->px : loops->batch);
    for (int a = 0; a < 3; a++)
        copied *= a == 0 && sliced(g) ? g->pairs[0]
                                      : (double)g->parts[a] * (double)(g->box[a] + g->span[a]);
    const double passes = (double)tconv_ceil_div(g->blocks, g->item_blocks);
    /* Each piece of a cut row begins anew, and so do its outputs. */
    const double pieces = copied / (double)(g->box[2] + g->span[2]) * m->channels_copy_begin;
    const double copies =
        passes * (copied * (m->channels_copy_position * chunks + in * copied_cycles(g)) + pieces);
    /* Weights are read again for each box, and for each row of a box if a phase's weights do not
     * stay in a cache. */
    double live = 1; /* taps that reach any output from inside the data */
    for (int a = 0; a < 3; a++)
        live *= g->pairs[a] < (double)g->axis[a]->kernel ? g->pairs[a] : (double)g->axis[a]->kernel;
    const double weights = 4 * groups * (double)g->blocks * g->mw * in * live;
    const double boxes = (double)g->items / groups / passes;
    const double resident = 4.0 * g->mw * (double)g->chunk * (double)g->taps / (double)g->phases;
    const double row_times = resident > m->channels_held ? (double)(g->box[0] * g->box[1]) *
                                                               (g->batched ? (double)g->box[2] : 1)
                                                         : 1;
    const double streamed = weights * boxes * row_times /
                            (weights < m->channels_near * m->l2 ? m->channels_l2 : m->channels_l3);
    const double hidden = m->hidden * adds;
    const double waits = streamed * m->channels_wait + (streamed > hidden ? streamed - hidden : 0);
    /* A processor fetches a cache line before it writes a part of it. The outputs of a block are
     * far apart in memory, and processors prefetch the lines of few positions. They wait for the
     * others, unless enough additions hide the waits. */
    const double positions = (double)(g->box[0] * g->box[1] * g->box[2]);
    const double lines = vectors * g->vw * (double)tconv_type_size(loops->output_type) / m->line;
    const double fetches = lane_step == 1 && !streams(g) && g->blocks > 1 &&
                                   positions > m->channels_positions &&
                                   tconv_folded_output_bytes(&g->folded) > m->l2
                               ? m->channels_fetch * lines
                               : 0;
    const double late = fetches > adds ? fetches - adds : 0;
    const double items = (double)g->items;
    const double cycles = adds + stores + late + again + copies + waits + items * m->channels_item;
    double largest = passes * (double)g->item_blocks / (double)g->blocks / items;
    for (int a = 0; a < 3; a++)
        largest *= (double)(g->parts[a] * tconv_min(g->box[a], g->positions[a])) /
                   (double)g->positions[a];
    return tconv_cpu_launch_cost(&g->folded, cycles * m->adds * m->lanes, largest);
}

/* True if a work-item of this division has too many loop iterations. */
static bool too_long(const struct channels *g, const tconv_device_info *device)
{
    double inputs = 1, positions = 1;
    for (int a = 0; a < 3; a++) {
        inputs *= (double)(g->box[a] + g->span[a]);
        positions *= (double)(a == 2 && !g->batched ? tconv_ceil_div(g->box[a], g->px) : g->box[a]);
    }
    const double in = (double)g->inputs;
    const double exact_loops = g->batched ? 0 : tconv_folded_exact_loops(&g->folded);
    const double sums =
        (double)g->item_blocks * positions *
        ((double)g->taps * (in + 4) + (2 + exact_loops) * g->mw * g->px * (double)g->phases);
    return tconv_folded_too_long(sums + inputs * (g->batched ? g->px : 1) * in, device);
}

/* Bytes of local memory for boxes. */
static double budget_of(const struct channels *g, const tconv_device_info *device)
{
    return tconv_local_budget(&g->folded, g->folded.machine->channels_budget, device);
}

static int64_t least_chunk(const struct channels *g)
{
    return sliced(g) ? SLICED_INPUTS : LEAST_CHUNK;
}

/* True if a box is too large for local memory with any other parameters. */
static bool too_large(const struct channels *g, const tconv_device_info *device)
{
    const int64_t inputs = tconv_min(g->inputs, least_chunk(g));
    return (double)g->folded.acc_bytes * input_elements(g, inputs) > budget_of(g, device);
}

/* Derives numbers from the division, without local memory. Returns the number of work-items, as a
 * double because it can exceed 64 bits. */
static double derive_division(struct channels *g)
{
    g->images = g->batched ? tconv_ceil_div(g->folded.loops.batch, g->px) : g->folded.loops.batch;
    double items = (double)g->folded.loops.groups * (double)g->images *
                   (double)tconv_ceil_div(g->blocks, g->item_blocks);
    for (int a = 0; a < 3; a++) {
        g->parts[a] = tconv_ceil_div(g->positions[a], g->box[a]);
        items *= (double)g->parts[a];
    }
    g->items = items > INT32_MAX ? INT32_MAX : (int64_t)items;
    return items;
}

/* Adds candidates for one division of the positions and blocks: all inputs at once, then fewer and
 * fewer. */
static void add_chunks(struct channels *g, const tconv_device_info *device,
                       struct tconv_candidates *candidates)
{
    const double budget = budget_of(g, device);
    if (too_long(g, device) || derive_division(g) > INT32_MAX) return;
    for (g->chunk = g->inputs;;
         g->chunk = tconv_ceil_div(tconv_ceil_div(g->chunk, 2), g->segment) * g->segment) {
        const double bytes = bytes_of(g);
        if (bytes <= budget) {
            g->local_bytes = (uint64_t)bytes;
            const struct tconv_tile tile = {.vw = g->vw,
                                            .mw = g->mw,
                                            .px = g->px,
                                            .batched = g->batched,
                                            .box_z = (int)g->box[0],
                                            .box_y = (int)g->box[1],
                                            .box_x = (int)g->box[2],
                                            .blocks = (int)g->item_blocks,
                                            .chunk = (int)g->chunk};
            tconv_candidates_add(candidates, &tile, cost_of(g));
        }
        if (g->chunk < 2 * least_chunk(g)) break;
    }
}

/* ---- parts of tiles ------------------------------------------------------------------------- */

/* True if a tap that misses part of a tile updates only a part of it. With few inputs the code
 * around their loop takes longer than a part saves. With words of four, the sums of a tap's
 * weights would have to be subtracted from the part, too. */
static bool has_parts(const struct channels *g)
{
    enum { LEAST_INPUTS = 16 };
    return !g->batched && g->word < 4 && g->inputs >= LEAST_INPUTS * g->word;
}

/* How many positions of a tile are updated for a tap that reaches the positions from `first` to
 * `end` - 1, as in cl/cpu/channels.cl. */
static int part_of(const struct channels *g, int first, int end)
{
    enum { LEAST_POSITIONS = 4 };
    if (g->px < LEAST_POSITIONS) return g->px;
    const int half = (g->px + 1) / 2;
    if (end <= half || first >= g->px - half) return half;
    for (int less = 2; less > 0; less--)
        if (end <= g->px - less || first >= less) return g->px - less;
    return g->px;
}

/* Counts how often taps reach tiles of a row with inputs inside the data. */
static void count_visits(const struct channels *g, struct width *width)
{
    const struct tconv_axis *x = g->axis[2];
    const bool parts = has_parts(g);
    /* Cycles of a part of so many positions, as a share of a whole tile's. */
    double share[MOST_POSITIONS + 1];
    for (int n = 1; n <= g->px; n++) share[n] = channel_cycles(g, n) / channel_cycles(g, g->px);
    width->visits = width->whole_visits = 0;
    for (int64_t k = 0; k < x->kernel; k++) {
        const int64_t phase = tconv_mod(k * x->dilation - x->pad, x->stride);
        const int64_t distance = tconv_folded_distance(x, k);
        const int64_t positions = tconv_ceil_div(x->output - phase, x->stride);
        for (int64_t begin = 0; begin < positions; begin += width->box) {
            const int64_t box_end = tconv_min(begin + width->box, positions);
            for (int64_t tile = begin; tile < box_end; tile += g->px) {
                const int64_t input = tile + distance;
                const int64_t first = tconv_max(-input, 0),
                              end = tconv_min(tconv_min(g->px, box_end - tile), x->input - input);
                if (first >= end) continue;
                width->visits++;
                width->whole_visits += parts ? share[part_of(g, (int)first, (int)end)] : 1;
            }
        }
    }
}

/* The division of rows into boxes of `box` positions, and its visits. */
static struct width width_of(const struct channels *g, int64_t box)
{
    const double pairs = (double)g->axis[2]->kernel * (double)tconv_ceil_div(g->positions[2], box) *
                         (double)tconv_ceil_div(box, g->px);
    /* Long rows: their ends do not matter. */
    struct width width = {.box = box, .visits = pairs, .whole_visits = pairs};
    if (!g->batched && pairs <= MOST_PAIRS) count_visits(g, &width);
    return width;
}

/* ---- candidates ----------------------------------------------------------------------------- */

/* Lists the divisions of rows for one PX. Returns their number. */
static int divide_rows(const struct channels *g, struct width widths[MOST_WIDTHS])
{
    int count = 0;
    for (int64_t box = g->positions[2]; count < MOST_WIDTHS; box = tconv_ceil_div(box, 2)) {
        if (!g->batched && box < g->positions[2]) box = tconv_ceil_div(box, g->px) * g->px;
        widths[count++] = width_of(g, box);
        if (box <= (g->batched ? 1 : g->px)) break;
    }
    return count;
}

/* Adds candidates for all divisions of the positions and blocks with one PX. */
static void divide(struct channels *g, const tconv_device_info *device,
                   struct tconv_candidates *candidates)
{
    struct width widths[MOST_WIDTHS];
    int64_t item_blocks[TCONV_BLOCK_DIVISIONS];
    const int width_count = divide_rows(g, widths),
              block_count = tconv_divide_blocks(g->blocks, item_blocks);
    for (g->box[0] = sliced(g) ? 1 : g->positions[0];; g->box[0] = tconv_ceil_div(g->box[0], 2)) {
        for (g->box[1] = g->positions[1];; g->box[1] = tconv_ceil_div(g->box[1], 2)) {
            for (int w = 0; w < width_count; w++) {
                g->width = widths[w];
                g->box[2] = g->width.box;
                if (too_large(g, device)) continue;
                for (int b = 0; b < block_count; b++) {
                    g->item_blocks = item_blocks[b];
                    add_chunks(g, device, candidates);
                }
            }
            if (g->box[1] == 1) break;
        }
        if (g->box[0] == 1) break;
    }
}

/* Sets what all candidates have in common. */
static bool prepare(const struct tconv_request *request, const struct tconv_algorithm *algorithm,
                    struct channels *g, struct tconv_reason *reason)
{
    const struct tconv_loops *loops = request->loops;
    const enum lanes lanes = algorithm == &tconv_phases ? LANES_PHASES : LANES_CHANNELS;
    const bool words = has_words(algorithm);
    *g = (struct channels){
        .taps = 1, .phases = 1, .segment = 1, .lanes = lanes, .word = 1, .products = 1};
    if (words && !tconv_type_is_byte(loops->data_type) && loops->data_type != TCONV_BF16)
        return tconv_refuse(reason, "it multiplies bytes and bf16, not %s",
                            tconv_type_name(loops->data_type));
    if (words) g->word = tconv_word_channels(request);
    /* Without an instruction for products of bf16, each number needs shifts: slower than plain
     * channels. */
    if (words && loops->data_type == TCONV_BF16 && tconv_dots(request->device, TCONV_BF16) == 0)
        g->products = 4;
    g->inputs = tconv_ceil_div(loops->in_channels, g->word);
    if (!tconv_fold_any_format(request, &g->folded, reason)) return false;
    if (lanes == LANES_PHASES && (g->folded.x.dilation != 1 || g->folded.x.stride < LEAST_PHASES))
        return tconv_refuse(
            reason,
            "stride %lld and dilation %lld along the last axis; it takes strides from %d on, "
            "without dilation",
            (long long)g->folded.x.stride, (long long)g->folded.x.dilation, LEAST_PHASES);
    /* Otherwise some phases would have fewer taps, and the zeros that fill them up would be
     * multiplied by infinite or NaN data. */
    if (lanes == LANES_PHASES && g->folded.x.kernel % g->folded.x.stride != 0)
        return tconv_refuse(reason,
                            "kernel %lld along the last axis is not a multiple of the stride %lld",
                            (long long)g->folded.x.kernel, (long long)g->folded.x.stride);
    if (lanes == LANES_PHASES) fold_phases(g);
    while (g->segment < (sliced(g) ? SLICED_INPUTS : MOST_SEGMENT) && g->segment < g->inputs)
        g->segment *= 2;
    if (sliced(g)) { /* a box has the inputs of all taps that reach a slice */
        g->slices = g->folded.z;
        g->slices.kernel = tconv_folded_taps_z(&g->folded);
    }
    g->axis[0] = sliced(g) ? &g->slices : &g->folded.z;
    g->axis[1] = &g->folded.y;
    g->axis[2] = &g->folded.x;
    int64_t reads = 1;
    for (int a = 0; a < 3; a++) reads *= tconv_most_taps(g->axis[a]);
    if (reads > MOST_READS)
        return tconv_refuse(reason, "more than %d taps reach one output", MOST_READS);
    double positions = (double)g->folded.loops.batch;
    for (int a = 0; a < 3; a++) {
        const struct tconv_axis *axis = g->axis[a];
        g->taps *= a == 0 ? g->folded.z.kernel : axis->kernel;
        if (g->taps > MOST_TAPS) return tconv_refuse(reason, "more than %d taps", MOST_TAPS);
        g->phases *= axis->stride;
        if (g->phases > MOST_PHASES)
            return tconv_refuse(reason, "more than %d phases", MOST_PHASES);
        g->positions[a] = tconv_ceil_div(axis->output, axis->stride);
        g->low[a] = tconv_folded_distance(axis, axis->kernel - 1);
        g->span[a] = tconv_folded_distance(axis, 0) - g->low[a];
        g->pairs[a] = tconv_folded_pairs(axis);
        positions *= (double)g->positions[a];
    }
    if (sliced(g)) {
        g->low[0] = 0;
        g->pairs[0] = tconv_folded_slices(&g->folded);
        if (!tconv_table_fits(
                (double)(CHANNELS_LONGS + g->phases * KIND_LONGS + g->taps * READ_LONGS) +
                    tconv_folded_slices_longs(&g->folded),
                reason))
            return false;
    }
    if (positions > INT32_MAX / 2)
        return tconv_refuse(reason, "more positions than its 32-bit indices count");
    choose_lanes(g);
    const struct tconv_loops *own = &g->folded.loops;
    g->blocks = lanes == LANES_PHASES ? own->out_channels * tconv_ceil_div(g->x.stride, g->mw)
                                      : tconv_ceil_div(own->out_channels, g->mw);
    if ((double)g->blocks * (double)own->groups > INT32_MAX / 2)
        return tconv_refuse(reason, "more blocks of lanes than its 32-bit indices count");
    return tconv_folded_filter_fits(&g->folded, g->mw, g->blocks, request, algorithm->packing,
                                    reason);
}

static bool enumerate(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason)
{
    /* Not every number of positions: each compiles a program of its own. */
    static const int positions_at_a_time[] = {
        1, 2, 3, 4, 6, 7, 8, 10, 12, 13, 14, 16, 20, 24, MOST_POSITIONS};
    struct channels g;
    if (!prepare(request, candidates->algorithm, &g, reason)) return false;
    const int64_t batch = g.folded.loops.batch;
    const int limit = tconv_folded_accumulators(&g.folded) * g.vw / g.mw;
    for (int batched = 0; batched <= (batch > 1); batched++)
        for (size_t i = 0; i < sizeof positions_at_a_time / sizeof *positions_at_a_time; i++) {
            g.batched = batched != 0;
            g.px = positions_at_a_time[i];
            if (g.px > 1 && (g.px > limit || g.px > (batched ? batch : g.positions[2]))) break;
            divide(&g, request->device, candidates);
        }
    return candidates->count > 0 ||
           tconv_refuse(reason, "no part of the work is small enough for a work-item");
}

static void use_tile(struct channels *g, const struct tconv_tile *tile)
{
    g->vw = tile->vw;
    g->mw = tile->mw;
    g->px = tile->px;
    g->batched = tile->batched != 0;
    g->box[0] = tile->box_z;
    g->box[1] = tile->box_y;
    g->box[2] = tile->box_x;
    g->item_blocks = tile->blocks;
    g->chunk = tile->chunk;
    derive_division(g);
    g->local_bytes = (uint64_t)bytes_of(g);
}

static void write_read(const void *channels, const int64_t k[3], int64_t *read)
{
    const struct channels *g = channels;
    read[READ_TAP] = tconv_folded_tap_index(&g->folded, k);
    read[READ_Z] = tconv_folded_distance(&g->folded.z, k[0]) - g->low[0];
    read[READ_Y] = tconv_folded_distance(&g->folded.y, k[1]) - g->low[1];
    read[READ_X] = tconv_folded_distance(&g->folded.x, k[2]) - g->low[2];
}

_Static_assert(CHANNELS_LONGS + MOST_PHASES * KIND_LONGS + MOST_TAPS * READ_LONGS <=
                   TCONV_TABLE_LIMIT,
               "the largest table");

static bool write_table(const struct channels *g, struct tconv_kernel_plan *kernel_plan)
{
    const size_t phases_at = CHANNELS_LONGS, list_at = phases_at + (size_t)g->phases * KIND_LONGS;
    struct tconv_folded lines = g->folded; /* the layer whose taps are listed */
    if (sliced(g)) lines.z.kernel = 1;
    const size_t slices_at = list_at + (size_t)(lines.z.kernel * lines.y.kernel * lines.x.kernel) *
                                           READ_LONGS;
    const size_t slices = sliced(g) ? (size_t)tconv_folded_slices_longs(&g->folded) : 0;
    if (!tconv_kernel_plan_table(kernel_plan, slices_at + slices)) return false;
    int64_t *t = kernel_plan->table;
    tconv_folded_write_numbers(&g->folded, g->blocks, 0, t);
    for (int a = 0; a < 3; a++) {
        t[CHANNELS_POSITIONS_Z + a] = g->positions[a];
        t[CHANNELS_BOX_Z + a] = g->box[a];
        t[CHANNELS_LOW_Z + a] = g->low[a];
        t[CHANNELS_SPAN_Z + a] = g->span[a];
    }
    t[CHANNELS_ITEM_BLOCKS] = g->item_blocks;
    t[CHANNELS_LANE_STEP] = lane_step_of(g);
    t[CHANNELS_CHUNK] = g->chunk;
    t[CHANNELS_KEPT_AT] = tconv_ceil_div((int64_t)input_elements(g, g->chunk), CACHE_LINE) *
                          CACHE_LINE;
    if (g->lanes == LANES_PHASES) {
        t[CHANNELS_STRIDE] = g->x.stride;
        t[CHANNELS_CROP] = tconv_mod(g->x.pad, g->x.stride);
        t[CHANNELS_OUTPUT] = g->x.output;
        t[CHANNELS_PHASE_BLOCKS] = tconv_ceil_div(g->x.stride, g->mw);
    }
    t[CHANNELS_PHASES_AT] = (int64_t)phases_at;
    t[CHANNELS_TAP_LIST_AT] = (int64_t)list_at;
    t[CHANNELS_SLICES_AT] = (int64_t)slices_at;
    return tconv_folded_write_phases(&lines, write_read, g, READ_LONGS, t + phases_at,
                                     t + list_at) &&
           (!sliced(g) || tconv_folded_write_slices(&g->folded, slices_at, t));
}

static tconv_status write(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error)
{
    struct channels g;
    struct tconv_reason reason;
    const struct tconv_algorithm *algorithm = candidate->algorithm;
    prepare(request, algorithm, &g, &reason);
    const bool phases = g.lanes == LANES_PHASES;
    use_tile(&g, &candidate->tile);
    if (!write_table(&g, kernel_plan)) return tconv_fail_table(error, kernel_plan);
    struct tconv_launch *run = tconv_kernel_plan_run(kernel_plan, "tconv_channels");
    tconv_launch_option(run, "VW", g.vw);
    tconv_launch_option(run, "MW", g.mw);
    tconv_launch_option(run, "PX", g.px);
    tconv_launch_option(run, "SEGMENT", g.segment);
    tconv_launch_option(run, "ROUND", round_of(&g));
    tconv_launch_option(run, "BATCHED", g.batched);
    tconv_launch_option(run, "PHASE_LANES", phases);
    tconv_launch_option(run, "TRANSPOSED", transposed(&g));
    tconv_launch_option(run, "KEPT", kept(&g));
    tconv_launch_option(run, "SLICED", sliced(&g));
    tconv_launch_option(run, "STREAM", streams(&g));
    tconv_launch_option(run, "PARTS", has_parts(&g));
    if (has_words(algorithm)) {
        tconv_launch_option(run, "WORD", g.word);
        tconv_launch_option(run, "DOTS", tconv_dots(request->device, g.folded.loops.data_type));
    }
    char kind[60] = "taps";
    if (phases) snprintf(kind, sizeof kind, "%lldphases", (long long)g.x.stride);
    tconv_folded_run(run, g.items, g.local_bytes, request->device);
    if (has_words(algorithm)) snprintf(kind, sizeof kind, "%dchannels", g.word);
    tconv_folded_pack(kernel_plan, &g.folded, kind, g.mw, g.blocks, run, request,
                      algorithm->packing);
    return TCONV_OK;
}

/* The common members of the three algorithms, which are one source with different options. */
#define COMMON                                                                                     \
    .source = "cpu/channels.cl", .made_for = TCONV_FOR_VECTORS, .stages_locally = true,            \
    .order = TCONV_ORDER_BY_PARAMETERS, .order_parameters = "mw chunk", .program_parameters = 4,   \
    .parameters = {TCONV_TILE(vw),      TCONV_TILE(mw),     TCONV_TILE(px),                        \
                   TCONV_TILE(batched), TCONV_TILE(box_z),  TCONV_TILE(box_y),                     \
                   TCONV_TILE(box_x),   TCONV_TILE(blocks), TCONV_TILE(chunk)},                    \
    .enumerate = enumerate, .write = write

const struct tconv_algorithm tconv_channels = {
    .name = "channels_vector",
    .summary =
        "lanes are output channels: channels-last tensors, small images with many channels; wide "
        "vectors: for CPUs",
    .packing = TCONV_PACK_RAW,
    COMMON,
};

const struct tconv_algorithm tconv_phases = {
    .name = "phases_vector",
    .summary = "lanes are the phases of one position: large strides along the last axis; wide "
               "vectors: for CPUs",
    .packing = TCONV_PACK_RAW,
    COMMON,
};

const struct tconv_algorithm tconv_dot = {
    .name = "dot_vector",
    .summary =
        "bytes and bf16, several input channels in one dot product, lanes are output channels; "
        "wide vectors: for CPUs",
    .packing = TCONV_PACK_CHANNEL_WORDS,
    COMMON,
};
