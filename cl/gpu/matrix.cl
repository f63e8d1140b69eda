/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix algorithm: computes layers as matrix products on the matrix units of GPUs. It is
 * output-stationary.
 *
 * positions.clh has phases, rows, positions and the packed filter. For each phase of work-groups
 *
 *     sum[row][position] = sum over taps and words of
 *                          filter[tap][word][row] * data[word][position + distance of tap]
 *
 * is a product of matrices over all positions of all batch items, a word being WORD neighbouring
 * input channels.
 *
 *     work-group   one phase, MT rows x NT positions; stages of KT words of one tap in local memory
 *     slice        a part of the work-group, with its words of each stage
 *     sub-group    LANES work-items: FM x FN fragments of sums in registers (matrix.clh)
 *
 * The outer loop goes over taps, the inner one over words, or with TAPS_INSIDE the other way round.
 * A work-item fetches the same positions in all stages, so that an address moves by a constant from
 * stage to stage. A mask, computed before the stages, has a bit for each of up to 32 taps: it is
 * set if the position has an input for this tap. Taps that reach no position of the tile are
 * skipped. With several BUFFERS the next stages are loaded while one is multiplied.
 *
 * After the last stage the sums go through local memory, in as many passes as needed. Then
 * neighbouring work-items finish and store neighbours: outputs of one channel, or with FOLDED_LAST
 * channels of one position. The sums of slices are added up there in a fixed order. With
 * SHORT_SUMS, 16-bit outputs are finished in registers, and local memory holds them. With SPLIT,
 * work-groups have parts of the channels, and write their sums to the workspace;
 * tconv_matrix_finish adds them up in a fixed order.
 *
 * An input outside the data is a zero; for bytes it is the data's zero point, whose products with
 * all weights are subtracted from the sums. A zero must not meet a weight that is infinite or NaN.
 * Packing therefore marks groups with such weights, and their outputs are computed one by one. If a
 * phase lacks a tap, the zero weight in its place may meet such an input: outputs whose sums are
 * not finite are also computed one by one.
 *
 *   macro        meaning                                                     legal values
 *   MT, NT       see matrix.clh, as FM, FN, KT, BUFFERS, LAST and MATRIX
 *   GM, GN       sub-groups of a slice along rows and along positions        at least 1
 *   SLICES       parts of the work-group                                     divides KT / DEPTH
 *   WHOLE        1: stages divide the number of input channels               0, 1
 *   WHOLE_QUADS  1: quads of words divide that number                        0, 1
 *   QUADS        1: with LAST, quads of words are aligned to their size      0, 1
 *                if the tensor begins at such an address
 *   TAPS_INSIDE  1: a stage is followed by the next tap of its channels:     0, 1
 *                struct order
 *   HALO         positions whose inputs a tile has beyond those of its own:   absent, multiples
 *                matrix_shared.clh                                            of 16
 *   EARLY_ENDS   1: the places of outputs, scales and biases are found while  absent, 1
 *                the first stages are copied, and local memory has room for
 *                them behind the stages. Not with SPLIT or ROUNDS
 *   COPY         1: the data are a copy with neighbouring channels: copy.clh  absent, 1
 *   OUTPUT_QUADS 1: with FOLDED_LAST, four output channels are aligned to     0, 1, 2
 *                their size if the tensor is; 2: and so are eight
 *   FOLDED_LAST, ROUNDS, LACKING, SPLIT, PZ, PY, PX: see tiled.cl
 *
 * Registers: FM * FN * SUMS sums. */
#include "gpu/copy.clh"
#include "gpu/matrix_shared.clh"
#include "gpu/matrix_stages.clh"

#if !defined(GM) || !defined(GN) || !defined(SLICES) || !defined(WHOLE) ||                         \
    !defined(WHOLE_QUADS) || !defined(QUADS) || !defined(OUTPUT_QUADS) || !defined(ROUNDS) ||      \
    !defined(LACKING)
#error "GM, GN, SLICES, WHOLE, WHOLE_QUADS, QUADS, OUTPUT_QUADS, ROUNDS and LACKING must be set"
#endif
#ifndef EARLY_ENDS
#define EARLY_ENDS 0
#endif
#if EARLY_ENDS && (SPLIT || ROUNDS)
#error "parts have no ends, and with ROUNDS the first stages are copied several times"
#endif
#if MT != GM * FM * FRAG_M || NT != GN * FN * FRAG_N || KT % (DEPTH * SLICES) != 0
#error "MT, NT and KT do not fit to the fragments"
#endif
#if SPLIT < 2 && ITEMS != SLICES * GM * GN * LANES
#error "ITEMS must be the work-items of the tile"
#endif

#if FLOATING
#define SUM_BITS(sum) as_uint(sum)
#define BITS_SUM(bits) as_float(bits)
#define BITS_SUMS(bits) as_float4(bits)
#else
#define SUM_BITS(sum) (sum)
#define BITS_SUM(bits) (bits)
#define BITS_SUMS(bits) (bits)
#endif

/* ---- epilogue ------------------------------------------------------------------------------- */

/* Accumulators of a pass in local memory: FP fragments of each sub-group along rows, for all
 * positions. Rows are padded against bank conflicts: matrix.clh. With HALVES 2 a pass has half of
 * one fragment, because the stages take less memory than a fragment. */
#if FOLDED_LAST
#define FINISHED_STEP(fp) (GM * (fp)*FRAG_M / HALVES + 4)
#define FINISHED_WORDS(fp) (NT * FINISHED_STEP(fp))
#define FINISHED_AT(row, n) ((n)*FINISHED_STEP(FP) + (row))
#else
#define FINISHED_STEP(fp) (NT + PAD_POSITIONS)
#define FINISHED_WORDS(fp) (GM * (fp)*FRAG_M / HALVES * FINISHED_STEP(fp))
#define FINISHED_AT(row, n) ((row)*FINISHED_STEP(FP) + (n))
#endif
/* In front of them are the numbers of outputs and rows, struct ends; with EARLY_ENDS these are
 * behind the stages. */
#if SPLIT
#define ENDS_WORDS 0
#else
#define ENDS_WORDS (NT * (2 + (PZ > 1) + (PY > 1) + (PX > 1)) + MT * (2 + !FOLDED_LAST))
#endif
#if HALVES_ROWS && NT * (GM * FRAG_M + (FOLDED_LAST ? 4 : 0)) +                                    \
                           GM * FRAG_M * (FOLDED_LAST ? 0 : PAD_POSITIONS) +                       \
                           (EARLY_ENDS ? 0 : ENDS_WORDS) >                                         \
                       TILES_WORDS
#define HALVES 2
#else
#define HALVES 1
#endif
#define PASS_WORDS(fp) (SLICES * FINISHED_WORDS(fp) + ENDS_WORDS)
#if EARLY_ENDS
#define MOST_WORDS                                                                                 \
    (TILES_WORDS + ENDS_WORDS > PASS_WORDS(1) ? TILES_WORDS + ENDS_WORDS : PASS_WORDS(1))
#define ENDS_AT (MOST_WORDS - ENDS_WORDS)
#define SUMS_AT 0
#else
#define MOST_WORDS (TILES_WORDS > PASS_WORDS(1) ? TILES_WORDS : PASS_WORDS(1))
#define ENDS_AT 0
#define SUMS_AT ENDS_WORDS
#endif
#if HALVES == 1 && PASS_WORDS(FM) <= MOST_WORDS
#define FP FM
#elif HALVES == 1 && FM % 2 == 0 && PASS_WORDS(FM / 2) <= MOST_WORDS
#define FP (FM / 2)
#elif HALVES == 1 && FM % 4 == 0 && PASS_WORDS(FM / 4) <= MOST_WORDS
#define FP (FM / 4)
#else
#define FP 1
#endif

/* Rows of a pass, and their numbers in the tile. The second launch has a work-group for each
 * pass. */
#if SPLIT < 2
#define PASSES (FM / FP * HALVES)
#define PASS_ROWS (GM * FP * FRAG_M / HALVES)
#if HALVES == 1
#define ROW_IN_TILE(pass, row)                                                                     \
    ((row) / (FP * FRAG_M) * (FM * FRAG_M) + (pass) * (FP * FRAG_M) + (row) % (FP * FRAG_M))
#define ROW_IN_PASS(row) (row)
#else
#define ROW_IN_TILE(pass, row)                                                                     \
    ((row) / (FRAG_M / 2) * (FM * FRAG_M) + (pass) / 2 * FRAG_M + (row) % (FRAG_M / 2) / 8 * 16 +  \
     (pass) % 2 * 8 + (row) % 8)
#define ROW_IN_PASS(row) ((row) / 16 * 8 + (row) % 8) /* of the first half */
#endif
#else
#define PASS_ROWS FINISHED_ROWS
#define ROW_IN_TILE(pass, row) ((pass)*PASS_ROWS + (row))
#endif

/* The sums of parts in the workspace: for each part and tile all sums, in the order in which they
 * are stored. */
#if FOLDED_LAST
#define WORKSPACE_AT(m, n) ((n)*MT + (m))
#else
#define WORKSPACE_AT(m, n) ((m)*NT + (n))
#endif

/* The sums of a pass in local memory or in the workspace. */
struct finished {
    int pass;
#if SPLIT < 2
    __local const uint *words;
    __local const uint *weight_sums;
    acc_t zero; /* of the data */
#else
    __global const acc_t *sums;
    long step;
    int parts;
#endif
};

static acc_t sum_of(const struct finished *from, const int row, const int n)
{
    acc_t sum = 0;
#if SPLIT < 2
    EACH for (int s = 0; s < SLICES; s++)
        sum += BITS_SUM(from->words[s * FINISHED_WORDS(FP) + FINISHED_AT(row, n)]);
#if QUANTIZED
    sum -= from->zero * from->weight_sums[ROW_IN_TILE(from->pass, row)];
#endif
#else
    __global const acc_t *sums = from->sums + WORKSPACE_AT(ROW_IN_TILE(from->pass, row), n);
    for (int part = 0; part < from->parts; part++, sums += from->step) sum += *sums;
#endif
    return sum;
}

#if FOLDED_LAST
/* The sums of four rows. */
static vec_t four_sums_of(const struct finished *from, const int row, const int n)
{
    vec_t sum = (vec_t)(0);
#if SPLIT < 2
    EACH for (int s = 0; s < SLICES; s++) sum += BITS_SUMS(
        *(__local const uint4 *)(from->words + s * FINISHED_WORDS(FP) + FINISHED_AT(row, n)));
#if QUANTIZED
    const int m = ROW_IN_TILE(from->pass, row);
    sum -= from->zero * (vec_t)(from->weight_sums[m], from->weight_sums[m + 1],
                                from->weight_sums[m + 2], from->weight_sums[m + 3]);
#endif
#else
    __global const acc_t *sums = from->sums + WORKSPACE_AT(ROW_IN_TILE(from->pass, row), n);
    for (int part = 0; part < from->parts; part++, sums += from->step)
        sum += *(__global const vec_t *)sums;
#endif
    return sum;
}
#endif

/* For each row of a tile: scale, bias and, if neighbours are positions, the offset of its outputs;
 * negative if the row has no outputs. */
struct rows {
#if !FOLDED_LAST
    int at[MT]; /* less than a batch item has */
#endif
#if FACTOR
    result_t factor[MT];
#endif
    result_t bias[MT];
};
#if FACTOR
#define ROW_FACTOR(rows, m) (rows)->factor[m]
#else
#define ROW_FACTOR(rows, m) 1
#endif
#define ROW_BIAS(rows, m) (rows)->bias[m]

/* The arguments of the functions that store outputs. */
struct store {
    const struct epilogue *f;
    __local const struct outputs *outputs;
    __global const data_t *data; /* of the group */
    __global const packed_t *weights;
    table_t table;
    struct tile tile;
    __local const struct rows *rows;
    bool exact; /* all outputs are computed one by one */
};

#if HEAVY || defined(SUBGROUP) || COMPACT
#define SEVERAL _Pragma("unroll 1")
#else
#define SEVERAL _Pragma("unroll 4")
#endif

#if LACKING && FLOATING
#define IS_RIGHT(sum) isfinite(sum)
#else
#define IS_RIGHT(sum) true
#endif

/* What the epilogue needs to know, in local memory. */
struct ends {
    struct outputs outputs;
    struct rows rows;
};

/* Finds the outputs and rows of a tile. A barrier must follow. The loads of the rows are on their
 * way while the outputs are found. */
static void find_ends(__local struct ends *ends, const struct epilogue *f, const struct tile *tile,
                      table_t table)
{
#define OWN_ROWS ((MT + ITEMS - 1) / ITEMS)
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS], item = ITEM;
    result_t factor[OWN_ROWS], bias[OWN_ROWS];
    EACH for (int i = 0; i < OWN_ROWS; i++)
    {
        const int all =
            (int)tile->group * out_channels +
            min(channel_of(tile->first_row + i * ITEMS + item, table), out_channels - 1);
        factor[i] = factor_of(f, all);
        bias[i] = BIAS_OF(f, all);
    }
    find_tile_outputs(&ends->outputs, tile, table);
    EACH for (int i = 0; i < OWN_ROWS; i++)
    {
        const int m = i * ITEMS + item;
        if (MT % ITEMS != 0 && m >= MT) continue;
#if !FOLDED_LAST
        const int row = tile->first_row + m, channel = channel_of(row, table);
        ends->rows.at[m] = channel < out_channels
                               ? (int)row_offset(tile, channel, phase_of(row, table), table)
                               : -1;
#endif
#if FACTOR
        ends->rows.factor[m] = factor[i];
#endif
        ends->rows.bias[m] = bias[i];
    }
}

/* The arguments of find_ends, for add_stages. */
struct meanwhile {
    __local struct ends *ends;
    const struct epilogue *f;
    const struct tile *tile;
    table_t table;
};
static void do_meanwhile(const struct meanwhile *work)
{
#if EARLY_ENDS
    find_ends(work->ends, work->f, work->tile, work->table);
#endif
}

/* QUAD_BYTES: bytes of four outputs that are converted at once; 0: they are not, or the epilogue
 * needs the output's index. */
#if !NATIVE && !PLACED
#define QUAD_f32(v) (v)
#define QUAD_bf16(v) bf16_vector_of(v)
#define QUAD_f16(v) halves_in(v)
#define QUAD_BYTES_f32 16
#define QUAD_BYTES_bf16 8
#define QUAD_BYTES_f16 8
#define QUAD_BYTES PASTE(QUAD_BYTES_, OUTPUT)
#define IS_F16_f16 1
#if PASTE(IS_F16_, OUTPUT) == 1
static ushort4 halves_in(const float4 v)
{
#if HALF
    return as_ushort4(HALVES_OF(v));
#else
    ushort4 halves;
    vstore_half4(v, 0, (half *)&halves);
    return halves;
#endif
}
#endif
#else
#define QUAD_BYTES 0
#endif

/* STORED_QUADS: quads of neighbouring channels that are stored at once; 0: outputs are stored by
 * put_lanes or one by one. */
#if FOLDED_LAST && OUTPUT_QUADS && QUAD_BYTES > 0
#if QUAD_BYTES == 8 && OUTPUT_QUADS == 2
#define STORED_QUADS 2
typedef uint4 stored_t; /* compilers store eight elements of 16 bits in two parts */
#else
#define STORED_QUADS 1
typedef PASTE(PASTE(STORED_, OUTPUT), 4) stored_t;
#endif
#else
#define STORED_QUADS 0
#endif

/* SHORT_SUMS 1: a work-item finishes its sums in registers, and all of them go through local memory
 * at once, as numbers of 16 bits. Local memory has SHORT_STEP words for each position, with its
 * rows, or, if neighbours are positions, for each row. 16 bytes of padding spread them over the
 * banks. */
#define SHORT_STEP ((FOLDED_LAST ? MT : NT) / 2 + 4)
#define SHORT_WORDS ((FOLDED_LAST ? NT : MT) * SHORT_STEP)
#if QUAD_BYTES == 8 && (!FOLDED_LAST || STORED_QUADS == 2) && defined(PUT_SHORT) && SLICES == 1 && \
    !SPLIT && !HEAVY_ACTIVATION && ENDS_WORDS + SHORT_WORDS + 1 <= MOST_WORDS
#define SHORT_SUMS 1
#ifndef PAIRS_OF
#define PAIRS_OF(v) as_uint2(PASTE(QUAD_, OUTPUT)(v))
#endif
#else
#define SHORT_SUMS 0
#endif

#if FOLDED_LAST
/* Stores the sums of a pass. Rows are quads of channels of a phase. A work-item has a vector of
 * rows for some positions. Returns whether outputs are left over. */
static INLINED bool store_sums(const struct store *s, const struct finished *from)
{
#define VECTOR_QUADS (STORED_QUADS > 1 ? STORED_QUADS : 1)
#define VECTOR_ROWS (4 * VECTOR_QUADS)
#define PASS_VECTORS (PASS_ROWS / VECTOR_ROWS)
#define VECTOR_LANES (PASS_VECTORS < ITEMS ? PASS_VECTORS : ITEMS)
#define VECTOR_STEP (ITEMS / VECTOR_LANES)
/* Positions whose sums are read before the first of them is stored. */
#if HEAVY || defined(SUBGROUP) || COMPACT
#define VECTORS_READ 1
#else
#define VECTORS_READ (4 / VECTOR_QUADS)
#endif
    const struct epilogue *f = s->f;
    const int item = ITEM, out_channels = (int)s->table[FOLDED_OUT_CHANNELS];
    const struct position extents = extents_of(s->table);
    bool left = false;
#pragma unroll 1
    for (int vector = item % VECTOR_LANES; vector < PASS_VECTORS; vector += VECTOR_LANES) {
        const int m = ROW_IN_TILE(from->pass, vector * VECTOR_ROWS), row = s->tile.first_row + m;
        if (row >= (int)s->table[TILED_ROWS]) continue;
        const int channel = channel_of(row, s->table), phase = phase_of(row, s->table),
                  count = out_channels - channel;
        const long offset = row_offset(&s->tile, channel, phase, s->table),
                   all = s->tile.group * out_channels + channel;
        result_vec_t factor[VECTOR_QUADS], bias[VECTOR_QUADS];
        slope_vec_t slope[VECTOR_QUADS];
        EACH for (int q = 0; q < VECTOR_QUADS; q++)
        {
            factor[q] = FOUR_OF(ROW_FACTOR, s->rows, m + q * 4, 4);
            bias[q] = FOUR_OF(ROW_BIAS, s->rows, m + q * 4, 4);
            slope[q] = EACH_SLOPE(FOUR_OF, f, all + q * 4, count - q * 4);
        }
#pragma unroll 1
        for (int first = item / VECTOR_LANES; first < NT; first += VECTORS_READ * VECTOR_STEP) {
            vec_t sum[VECTORS_READ][VECTOR_QUADS];
            long at[VECTORS_READ];
            bool there[VECTORS_READ];
            EACH for (int i = 0; i < VECTORS_READ; i++)
            {
                const int n = first + i * VECTOR_STEP,
                          own = NT % (VECTORS_READ * VECTOR_STEP) == 0 ? n : min(n, NT - 1);
                there[i] = (n < NT) & has_output(s->outputs, own, phase, &extents);
                at[i] = s->outputs->at[own] + offset;
                EACH for (int q = 0; q < VECTOR_QUADS; q++)
                    sum[i][q] = four_sums_of(from, vector * VECTOR_ROWS + q * 4, own);
            }
            EACH for (int i = 0; i < VECTORS_READ; i++)
            {
                bool right = true;
                EACH for (int q = 0; q < VECTOR_QUADS; q++)
                    right &= IS_RIGHT(sum[i][q].s0) & IS_RIGHT(sum[i][q].s1) &
                             IS_RIGHT(sum[i][q].s2) & IS_RIGHT(sum[i][q].s3);
                left |= there[i] & !right;
                if (!(there[i] & right)) continue;
#define VALUE(q) affine_lanes(sum[i][q], factor[q], bias[q])
#if STORED_QUADS > 0
#define BITS(q) PASTE(QUAD_, OUTPUT)(finished(f, VALUE(q), slope[q]))
#if STORED_QUADS == 2
                *(__global stored_t *)(f->output + at[i]) =
                    (uint4)(as_uint2(BITS(0)), as_uint2(BITS(1)));
#else
                *(__global stored_t *)(f->output + at[i]) = BITS(0);
#endif
#elif OUTPUT_QUADS
                put_lanes(f, VALUE(0), at[i], slope[0]);
#else
                const result_vec_t value = VALUE(0);
                EACH for (int j = 0; j < 4; j++) if (j < count)
                    put_one(f, LANE(value, j), at[i] + j, all + j);
#endif
            }
        }
    }
    return left;
}
#else
/* Stores the sums of a pass. Neighbouring work-items have neighbouring outputs of a row: positions
 * with their phases along x. */
static INLINED bool store_sums(const struct store *s, const struct finished *from)
{
#if FRAG_M % PX == 0
#define ROW_PHASES PX
#else
#define ROW_PHASES 1
#endif
#define COLUMNS (NT * ROW_PHASES)
#define COLUMN_LANES (COLUMNS < ITEMS ? COLUMNS : ITEMS)
    const struct epilogue *f = s->f;
    const int item = ITEM;
    const struct position extents = extents_of(s->table);
    const long first_channel = s->tile.group * s->table[FOLDED_OUT_CHANNELS];
    bool left = false;
#pragma unroll 1
    for (int column = item % COLUMN_LANES; column < COLUMNS; column += COLUMN_LANES) {
        const int n = column / ROW_PHASES;
        if (PHASE_ROWS == 1 && !has_output(s->outputs, n, 0, &extents)) continue;
        const long first = s->outputs->at[n];
        SEVERAL for (int i = item / COLUMN_LANES; i < PASS_ROWS / ROW_PHASES;
                     i += ITEMS / COLUMN_LANES)
        {
            const int own = i * ROW_PHASES + column % ROW_PHASES, m = ROW_IN_TILE(from->pass, own),
                      row = s->tile.first_row + m;
            const acc_t sum = sum_of(from, own, n);
            const bool single = PHASE_ROWS ==
                                1; /* a variable: compilers warn about a constant condition */
            const bool right = IS_RIGHT(sum),
                       there =
                           (s->rows->at[m] >= 0) &
                           (single || has_output(s->outputs, n, phase_of(row, s->table), &extents));
            left |= !right;
            if (there & right)
                put_one(f, affine_with(sum, ROW_FACTOR(s->rows, m), ROW_BIAS(s->rows, m)),
                        first + s->rows->at[m], first_channel + channel_of(row, s->table));
        }
    }
    return left;
}
#endif

#if SHORT_SUMS
/* Finishes the sums of a work-item and puts them into local memory. */
static INLINED void put_short(const struct store *s, const sums_t sums[FM][FN],
                              const struct own *own, __local uint *to)
{
#define TWO_OF(one, from, first, second)                                                           \
    (result_vec_t)(one(from, first), one(from, first), one(from, second), one(from, second))
    const int out_channels = (int)s->table[FOLDED_OUT_CHANNELS];
    EACH for (int i = 0; i < FM; i++)
    {
        const int first = own->m + i * FRAG_M + ROW_OF(own->lane, 0),
                  second = own->m + i * FRAG_M + ROW_OF(own->lane, 2);
        const result_vec_t factor = TWO_OF(ROW_FACTOR, s->rows, first, second),
                           bias = TWO_OF(ROW_BIAS, s->rows, first, second);
#define EXISTING_CHANNEL(row)                                                                      \
    (s->tile.group * out_channels +                                                                \
     min(channel_of(s->tile.first_row + (row), s->table), out_channels - 1))
        const slope_vec_t slope =
            EACH_SLOPE(TWO_OF, s->f, EXISTING_CHANNEL(first), EXISTING_CHANNEL(second));
        EACH for (int j = 0; j < FN; j++)
            PUT_SHORT(to, SHORT_STEP, own->m + i * FRAG_M, own->n + j * FRAG_N, own->lane,
                      PAIRS_OF(finished(s->f, affine_lanes(sums[i][j], factor, bias), slope)));
    }
}

/* Stores what put_short put there. */
#if FOLDED_LAST
/* A work-item has eight rows of some positions. */
static INLINED void store_short(const struct store *s, __local const uint *from)
{
#define EIGHTS (MT / 8)
    const int item = ITEM, eight = item % EIGHTS, row = s->tile.first_row + eight * 8;
    if (row >= (int)s->table[TILED_ROWS]) return;
    const struct position extents = extents_of(s->table);
    const int phase = phase_of(row, s->table);
    __global output_t *output = s->f->output +
                                row_offset(&s->tile, channel_of(row, s->table), phase, s->table);
#pragma unroll 4
    for (int n = item / EIGHTS; n < NT; n += ITEMS / EIGHTS)
        if (has_output(s->outputs, n, phase, &extents))
            *(__global uint4 *)(output + s->outputs->at[n]) =
                *(__local const uint4 *)(from + n * SHORT_STEP + eight * 4);
}
#else
/* As store_sums does, neighbouring work-items have neighbouring outputs of a row. */
static INLINED void store_short(const struct store *s, __local const uint *from)
{
#define PHASES_APART (PHASE_ROWS == ROW_PHASES) /* a column has outputs of one phase */
    __local const ushort *numbers = (__local const ushort *)from;
    __global ushort *output = (__global ushort *)s->f->output;
    const int item = ITEM;
    const struct position extents = extents_of(s->table);
#pragma unroll 1
    for (int column = item % COLUMN_LANES; column < COLUMNS; column += COLUMN_LANES) {
        const int n = column / ROW_PHASES, own_phase = column % ROW_PHASES;
        if (PHASES_APART && !has_output(s->outputs, n, own_phase, &extents)) continue;
        const long first = s->outputs->at[n];
        const bool apart = PHASES_APART; /* a variable: as in store_sums */
#pragma unroll 4
        for (int i = item / COLUMN_LANES; i < MT / ROW_PHASES; i += ITEMS / COLUMN_LANES) {
            const int m = i * ROW_PHASES + own_phase, at = s->rows->at[m];
            if ((at >= 0) &
                (apart ||
                 has_output(s->outputs, n, phase_of(s->tile.first_row + m, s->table), &extents)))
                output[first + at] = numbers[m * (2 * SHORT_STEP) + n];
        }
    }
}
#endif

/* True if all sums of a work-item are finite. */
static bool all_right(const sums_t sums[FM][FN])
{
    bool right = true;
    EACH for (int i = 0; i < FM; i++) EACH for (int j = 0; j < FN; j++)
        EACH for (int s = 0; s < SUMS; s++) right &= IS_RIGHT(SUM_NUMBER(sums[i][j], s));
    return right;
}
#endif

/* Stores an output if it was left over, or if all are. */
static void store_left_one(const struct store *s, const struct finished *from, const int own,
                           const int n, const struct position *extents, const bool all_left)
{
    const int row = s->tile.first_row + ROW_IN_TILE(from->pass, own);
    const int channel = channel_of(row, s->table), phase = phase_of(row, s->table);
    if (row >= (int)s->table[TILED_ROWS] || channel >= (int)s->table[FOLDED_OUT_CHANNELS] ||
        !has_output(s->outputs, n, phase, extents))
        return;
    acc_t sum = sum_of(from, own, n);
#if FLOATING
    bool right = IS_RIGHT(sum);
#if FOLDED_LAST && LACKING /* a vector was left together */
    for (int j = 0; j < VECTOR_ROWS; j++)
        right = right && IS_RIGHT(sum_of(from, own / VECTOR_ROWS * VECTOR_ROWS + j, n));
#endif
    if (right && !all_left) return;
    if (s->exact || !IS_RIGHT(sum)) {
        const struct position position = own_position(&s->tile, n, s->table);
        sum = exact_output(s->data, s->weights, s->table, kind_at(s->tile.kind, s->table),
                           &position, row);
    }
#endif
    const long all = s->tile.group * s->table[FOLDED_OUT_CHANNELS] + channel;
    put_one(s->f, affine_one(s->f, sum, all),
            s->outputs->at[n] + row_offset(&s->tile, channel, phase, s->table), all);
}

/* Stores outputs one by one, in the order of store_sums: a work-item has those that it left
 * over. */
static void store_left(const struct store *s, const struct finished *from, const bool all_left)
{
    const struct position extents = extents_of(s->table);
    const int item = ITEM;
#if FOLDED_LAST
#pragma unroll 1
    for (int vector = item % VECTOR_LANES; vector < PASS_VECTORS; vector += VECTOR_LANES)
#pragma unroll 1
        for (int n = item / VECTOR_LANES; n < NT; n += VECTOR_STEP)
#pragma unroll 1
            for (int j = 0; j < VECTOR_ROWS; j++)
                store_left_one(s, from, vector * VECTOR_ROWS + j, n, &extents, all_left);
#else
#pragma unroll 1
    for (int column = item % COLUMN_LANES; column < COLUMNS; column += COLUMN_LANES)
#pragma unroll 1
        for (int i = item / COLUMN_LANES; i < PASS_ROWS / ROW_PHASES; i += ITEMS / COLUMN_LANES)
            store_left_one(s, from, i * ROW_PHASES + column % ROW_PHASES, column / ROW_PHASES,
                           &extents, all_left);
#endif
}

static void store_pass(const struct store *s, const struct finished *from)
{
    bool all_left = s->exact;
#if STORED_QUADS > 0
    all_left = all_left || (size_t)s->f->output % sizeof(stored_t) != 0;
#endif
    bool left = all_left;
    if (!all_left) left = store_sums(s, from);
#if (FLOATING && (LACKING || !QUANTIZED)) || STORED_QUADS > 0
    if (left) store_left(s, from, all_left);
#endif
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* True if a weight of the group is infinite or NaN. */
#if FLOATING
#define IS_EXACT(group) (flags[flags_offset + (ulong)(group)] != 0)
#else
#define IS_EXACT(group) false
#endif

#if SPLIT < 2
#if SHORT_SUMS
/* Finishes all sums in registers and stores them through `words`. False if it stored none: some
 * sums are not finite, all are computed one by one, or the output is not aligned to 16 bytes. */
static INLINED bool store_at_once(const struct store *store, const sums_t sums[FM][FN],
                                  const struct own *own, __local uint *words, const int item)
{
    __local uint *passes = words + SHORT_WORDS;
    if (item == 0) *passes = store->exact || (FOLDED_LAST && (size_t)store->f->output % 16 != 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (LACKING && !all_right(sums)) *passes = 1;
    if (LACKING) barrier(CLK_LOCAL_MEM_FENCE);
    const bool at_once = *passes == 0;
    if (at_once) put_short(store, sums, own, words);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (at_once) store_short(store, words);
    return at_once;
}
#endif

#if SPLIT
/* Writes the sums of a pass to the workspace. */
static INLINED void store_part(__global acc_t *to, const struct finished *from, const int item)
{
    SEVERAL for (int i = item; i < PASS_ROWS * NT; i += ITEMS)
    {
        const int row = FOLDED_LAST ? i % PASS_ROWS : i / NT,
                  n = FOLDED_LAST ? i / PASS_ROWS : i % NT;
        to[WORKSPACE_AT(ROW_IN_TILE(from->pass, row), n)] = sum_of(from, row, n);
    }
}
#endif

KERNEL OF_LANES __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_matrix(__global const data_t *restrict data, const ulong data_offset,
             __global const packed_t *restrict filter, const ulong filter_offset,
             __global const uint *restrict flags, const ulong flags_offset,
#if SPLIT
             __global acc_t *restrict workspace, const ulong workspace_offset,
#else
             EPILOGUE_PARAMETERS,
#endif
             table_t restrict table)
{
    __local uint words[MOST_WORDS] __attribute__((aligned(WORDS_ALIGNMENT)));
    SHARES_UNIT;
    const struct tile tile = own_tile(GROUP_NUMBER, table);
    /* Before all branches: after them some compilers no longer know that these values are the same
     * for all work-items. */
    table_t kind = kind_at(tile.kind, table);
    table_t list = list_of(kind, table);
    int left = (int)kind[KIND_TAPS];
    const int item = ITEM;
#if QUANTIZED
    __local uint weight_sums[MT];
    for (int m = item; m < MT; m += ITEMS) weight_sums[m] = 0;
#else
    __local uint *weight_sums = words; /* not used */
#endif
    struct own own;
    own.lane = item % LANES;
    own.k = SLICES > 1 ? item / SLICE_ITEMS * (KT / SLICES) : 0;
    own.m = item % SLICE_ITEMS / LANES / GN * (FM * FRAG_M);
    own.n = item / LANES % GN * (FN * FRAG_N);
    own.count = tile.count;
    own.filters = FILTER_START(own.k, own.m, own.lane);
#ifdef HALO
    own.inputs = INPUT_START(own.k, own.n, own.lane);
#else
    own.inputs = FILTER_WORDS + INPUT_START(own.k, own.n, own.lane);
#endif
    __global const data_t *own_data = data + data_offset + group_data(tile.group, table);
    __global const packed_t *weights = weights_of(filter + filter_offset, table, tile.group);

    struct fetch fetch;
    fetch.channel = FETCHED_QUAD(item) * QUAD_CHANNELS;
    fetch.in_channels = (int)table[FOLDED_IN_CHANNELS];
    fetch.rows = (int)table[TILED_ROWS];
    fetch.channel_step = (uint)STEP(table, DATA_CHANNEL);
    fetch.outside = ((uint)DATA_ZERO(table) & 0xff) *
                    0x01010101u; /* the zero point in each byte; 0 for other types */
    __global const data_t *part_data = own_data;
    __global const packed_t *part_weights = weights;
#if SPLIT
    const int skipped = tile.part * (int)table[TILED_PART_CHANNELS];
    part_data += (ulong)skipped * fetch.channel_step;
    part_weights += (long)(skipped / WORD) * fetch.rows;
    fetch.in_channels = min(fetch.in_channels - skipped, (int)table[TILED_PART_CHANNELS]);
#endif
    fetch.first = own_data;
    __global const data_t *first_data = part_data + (ulong)fetch.channel * fetch.channel_step;
    EACH for (int i = 0; i < OWN_WEIGHTS; i++)
    {
        /* Rows past the last one are other tiles' rows; their sums are not stored. */
        const int number = (i * ITEMS + item) % (MT * STAGE_QUADS);
        fetch.weights[i] = number / MT * (fetch.rows * 4) +
                           min(tile.first_row + number % MT, fetch.rows - 1) * 4;
    }
    /* One work-item finds each position, and others read it. The memory of the last stage is free
     * until then. */
    __local struct places *places = (__local struct places *)(words + (BUFFERS - 1) * STAGE_WORDS);

    sums_t sums[FM][FN];
    EACH for (int i = 0; i < FM; i++) EACH for (int j = 0; j < FN; j++) sums[i][j] = (sums_t)(0);
    struct meanwhile work;
#if EARLY_ENDS
    EPILOGUE(before, table)
    work.ends = (__local struct ends *)(words + ENDS_AT);
    work.f = &before;
    work.tile = &tile;
    work.table = table;
#endif
#ifdef HALO
    find_shared_places(places, &tile, list, left, table);
    barrier(CLK_LOCAL_MEM_FENCE);
    find_shared_inputs(&fetch, first_data, places);
#if QUADS
    if ((size_t)part_data % 16 == 0)
        add_shared_stages(sums, left, list, part_weights, &fetch, &own, words, weight_sums, table,
                          &work, true);
    else
#endif
        add_shared_stages(sums, left, list, part_weights, &fetch, &own, words, weight_sums, table,
                          &work, false);
#else
#if ROUNDS
    for (; left > 0; left -= ROUND_TAPS, list += ROUND_TAPS * TAP_LONGS)
#endif
    {
#if ROUNDS
        barrier(CLK_LOCAL_MEM_FENCE); /* the products of the round before are done */
#endif
        find_places(places, &tile, list, min(left, ROUND_TAPS), table);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint taps = places->taps;
        EACH for (int p = 0; p < OWN_POSITIONS; p++)
        {
            const int n = FETCHED_POSITION(item) + p * POSITIONS_APART,
                      existing = NT % POSITIONS_APART == 0 ? n : min(n, NT - 1);
            fetch.data[p] = HELD(first_data + places->at[existing]);
            fetch.inside[p] = places->inside[existing];
        }
#if BUFFERS == 1
        barrier(CLK_LOCAL_MEM_FENCE); /* the first stage takes the places' place */
#endif
#if QUADS
        if ((size_t)part_data % 16 == 0)
            add_stages(sums, taps, list, part_weights, &fetch, &own, words, weight_sums, &work,
                       true);
        else
#endif
            add_stages(sums, taps, list, part_weights, &fetch, &own, words, weight_sums, &work,
                       false);
    }
#endif

    table = table_again(table);
    struct finished finished = {
        .words = words + SUMS_AT, .weight_sums = weight_sums, .zero = DATA_ZERO(table)};
    barrier(CLK_LOCAL_MEM_FENCE); /* the products of the last stage are done */
#if SPLIT
    __global acc_t *to = tile_accumulators(workspace, workspace_offset, tile.number) +
                         tile.part * part_step(table);
#else
    EPILOGUE(epilogue, table)
    __local struct ends *ends = (__local struct ends *)(words + ENDS_AT);
#if !EARLY_ENDS
    find_ends(ends, &epilogue, &tile, table);
#endif
    struct store store;
    store.rows = &ends->rows;
    store.f = &epilogue;
    store.outputs = &ends->outputs;
    store.data = own_data;
    store.weights = weights;
    store.table = table;
    store.tile = tile;
    store.exact = IS_EXACT(tile.group);
#endif
#if SHORT_SUMS
    const int first_pass = store_at_once(&store, sums, &own, words + SUMS_AT, item) ? PASSES : 0;
#else
    const int first_pass = 0;
#endif
    /* A loop that is not unrolled handles the first sums and moves the others up: some compilers do
     * not unroll so much code, and registers cannot be indexed. */
#pragma unroll 1
    for (int pass = first_pass; pass < PASSES; pass++) {
        finished.pass = pass;
        if (pass > 0) barrier(CLK_LOCAL_MEM_FENCE);
        EACH for (int i = 0; i < FP; i++) EACH for (int j = 0; j < FN; j++)
            EACH for (int s = 0; s < SUMS / HALVES; s++)
                words[SUMS_AT + item / SLICE_ITEMS * FINISHED_WORDS(FP) +
                      FINISHED_AT(own.m / FM * FP / HALVES +
                                      ROW_IN_PASS(i * FRAG_M + ROW_OF(own.lane, s)),
                                  own.n + j * FRAG_N + COLUMN_OF(own.lane, s))] =
                    SUM_BITS(SUM_NUMBER(sums[i][j], s));
        barrier(CLK_LOCAL_MEM_FENCE);
#if SPLIT
        store_part(to, &finished, item);
#else
        store_pass(&store, &finished);
#endif
#if HALVES == 1
        EACH for (int i = FP; i < FM; i++) EACH for (int j = 0; j < FN; j++)
            sums[i - FP][j] = sums[i][j];
#else
        EACH for (int i = 0; i < FM; i++) EACH for (int j = 0; j < FN; j++)
        {
            sums[i][j].lo = sums[i][j].hi;
            sums[i][j].hi = i + 1 < FM ? sums[(i + 1) % FM][j].lo : 0; /* 0: no registers */
        }
#endif
    }
}

#else
/* Adds up the sums of all parts in a fixed order, and finishes them. A work-group for each
 * PASS_ROWS rows of a tile. */
KERNEL __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_matrix_finish(__global const data_t *restrict data, const ulong data_offset,
                    __global const packed_t *restrict filter, const ulong filter_offset,
                    __global const uint *restrict flags, const ulong flags_offset,
                    __global acc_t *restrict workspace, const ulong workspace_offset,
                    EPILOGUE_PARAMETERS, table_t restrict table)
{
    __local struct ends ends;
    const int group = GROUP_NUMBER;
    const struct tile tile = own_tile(group / (MT / PASS_ROWS), table);
    EPILOGUE(epilogue, table)
    find_ends(&ends, &epilogue, &tile, table);
    struct store store;
    store.rows = &ends.rows;
    store.f = &epilogue;
    store.outputs = &ends.outputs;
    store.data = data + data_offset + group_data(tile.group, table);
    store.weights = weights_of(filter + filter_offset, table, tile.group);
    store.table = table;
    store.tile = tile;
    store.exact = IS_EXACT(tile.group);
    barrier(CLK_LOCAL_MEM_FENCE); /* outputs and rows are in local memory */
    const struct finished finished = {
        .pass = group % (MT / PASS_ROWS),
        .sums = tile_accumulators(workspace, workspace_offset, tile.number),
        .step = part_step(table),
        .parts = (int)table[TILED_PARTS],
    };
    store_pass(&store, &finished);
}
#endif
