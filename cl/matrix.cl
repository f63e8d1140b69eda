/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix family: products of matrices by the matrix units of GPUs. Output-stationary and exact in work.
 *
 * Outputs are split by their residues: o = u*s + t along each axis, residue t, place u. For each residue (tz, ty, tx)
 *
 *     sum[channel][place] = sum over taps and words of filter[tap][word][channel] * data[word][place + distance of tap]
 *
 * is a product of matrices over all places of all batch items, a word being WORD neighbouring input channels.
 *
 *     work-group   one residue, MT output channels x NT places; stages of KT words in local memory
 *     sub-group    LANES work-items: FM x FN fragments of sums in registers (matrix.clh)
 *
 * When all stages are added up, the sums go through local memory, so that neighbouring work-items finish and store
 * neighbours: places of one channel, or with LAST channels of one place.
 *
 * A place whose tap lies outside the data has zeros there, for bytes the data's zero point, whose products with all weights
 * are taken away from the sums. A zero must not meet a weight that is infinite or NaN: see careful_output of taps.clh, which
 * also has the packed filter. matrix_table.h has the table.
 *
 *   macro    meaning                                                        legal values
 *   MT, NT   see matrix.clh, as FM, FN, KT, LAST and MATRIX
 *   GM, GN   sub-groups of a work-group along channels and along places     at least 1
 *
 * Registers: FM * FN * SUMS sums. */
#if !defined(GM) || !defined(GN)
#error "GM and GN must be set"
#endif
#if MT != GM * FM * FRAG_M || NT != GN * FN * FRAG_N || KT % DEPTH != 0
#error "MT, NT and KT do not fit to the fragments"
#endif

#define ITEMS (GM * GN * LANES)

/* Where the places of a work-group are. */
struct places {
    long data[NT];           /* in the data, for distance 0 and the first channel */
    long output[NT];         /* in the output, for the first channel; negative: no output */
    int z[NT], y[NT], x[NT]; /* the input for distance 0 */
};

/* Places of a batch item. */
static long places_of(__global const long *table)
{
    return table[MATRIX_PLACES_Z] * table[MATRIX_PLACES_Y] * table[MATRIX_PLACES_X];
}

static void find_places(__local struct places *places, __global const long *table, const long first,
                        const int tz, const int ty, const int tx)
{
    const int count_x = (int)table[MATRIX_PLACES_X], count_y = (int)table[MATRIX_PLACES_Y],
              count_z = (int)table[MATRIX_PLACES_Z];
    const long all_places = table[ROWS_BATCHES] * places_of(table);
    for (int i = (int)get_local_id(0); i < NT; i += ITEMS) {
        const bool there = first + i < all_places;
        int rest = there ? (int)first + i : 0;
        const int x = rest % count_x;
        rest /= count_x;
        const int y = rest % count_y;
        rest /= count_y;
        const int z = rest % count_z, n = rest / count_z;
        places->x[i] = x;
        places->y[i] = y;
        places->z[i] = there ? z : -(1 << 30); /* outside for every tap */
        places->data[i] = n * table[ROWS_DATA_BATCH_STEP] + z * table[ROWS_DATA_Z_STEP] +
                          y * table[ROWS_DATA_Y_STEP] + x * table[ROWS_DATA_X_STEP];
        const long oz = z * table[ROWS_STRIDE_Z] + tz, oy = y * table[ROWS_STRIDE_Y] + ty,
                   ox = x * table[ROWS_STRIDE_X] + tx;
        const bool output = there && oz < table[ROWS_OUTPUT_Z] && oy < table[ROWS_OUTPUT_Y] &&
                            ox < table[ROWS_OUTPUT_X];
        places->output[i] =
            output ? n * table[ROWS_OUTPUT_BATCH_STEP] + oz * table[ROWS_OUTPUT_Z_STEP] +
                         oy * table[ROWS_OUTPUT_Y_STEP] + ox * table[ROWS_OUTPUT_X_STEP]
                   : -1;
    }
}

/* In front of loops that fill the tiles: Intel's compiler puts sums into memory where much is unrolled beside them. */
#if MATRIX == 5
#define FILL _Pragma("unroll 1")
#else
#define FILL EACH
#endif

/* Sums on their way out: a fragment of each sub-group along channels, all places. */
#define FINISHED_ROWS (GM * FRAG_M)
#if LAST
#define FINISHED_STEP (FINISHED_ROWS + 1)
#define FINISHED_AT(row, n) ((n)*FINISHED_STEP + (row))
#define FINISHED_WORDS (NT * FINISHED_STEP)
#define FINISHED_ROW(i) ((i) % FINISHED_ROWS)
#define FINISHED_N(i) ((i) / FINISHED_ROWS)
#else
#define FINISHED_STEP (NT + 1)
#define FINISHED_AT(row, n) ((row)*FINISHED_STEP + (n))
#define FINISHED_WORDS (FINISHED_ROWS * FINISHED_STEP)
#define FINISHED_ROW(i) ((i) / NT)
#define FINISHED_N(i) ((i) % NT)
#endif
#define STAGE_WORDS (FILTER_WORDS + INPUT_WORDS)
#define LOCAL_WORDS (STAGE_WORDS > FINISHED_WORDS ? STAGE_WORDS : FINISHED_WORDS)

#if FLOATING
#define SUM_BITS(sum) as_uint(sum)
#define BITS_SUM(bits) as_float(bits)
#else
#define SUM_BITS(sum) (sum)
#define BITS_SUM(bits) (bits)
#endif

/* One stage: KT words, from word number `first` on, of one tap; and where a group's words come from. */
struct stage {
    __global const data_t *data; /* of distance dz, dy, dx */
    __global const packed_t *weights;
    int first, words;
    int dz, dy, dx;
};

static struct stage stage_of(const int number, const int tap_stages, __global const data_t *data,
                             __global const packed_t *weights, __global const long *table,
                             __global const long *list)
{
    __global const long *pair = list + number / tap_stages * PAIR_LONGS;
    struct stage stage;
    stage.words = (int)PACKED_CHANNELS(table[ROWS_IN_CHANNELS]);
    stage.first = number % tap_stages * KT;
    stage.weights = weights + (pair[PAIR_TAP] * stage.words + stage.first) * MT;
    stage.dz = (int)pair[PAIR_Z];
    stage.dy = (int)pair[PAIR_Y];
    stage.dx = (int)pair[PAIR_X];
    stage.data = data + stage.dz * table[ROWS_DATA_Z_STEP] + stage.dy * table[ROWS_DATA_Y_STEP] +
                 stage.dx * table[ROWS_DATA_X_STEP];
    return stage;
}

/* Whether the input that place n has in a stage is inside the data; and where its first channel is. */
static bool source_of(const struct stage *stage, const uint n, __local const struct places *places,
                      __global const long *table, __global const bits_t **source)
{
    const int z = places->z[n] + stage->dz, y = places->y[n] + stage->dy,
              x = places->x[n] + stage->dx;
    *source = (__global const bits_t *)(stage->data + places->data[n]);
    return z >= 0 && z < table[ROWS_INPUT_Z] && y >= 0 && y < table[ROWS_INPUT_Y] && x >= 0 &&
           x < table[ROWS_INPUT_X];
}

/* Fills the tiles with a stage. */
static void fill(const struct stage *stage, __local uint *filters, __local uint *inputs,
                 __local const struct places *places, __global const long *table)
{
    const uint item = (uint)get_local_id(0);
    const int left = stage->words - stage->first; /* words */
    FILL for (uint i = 0; i < MT * KT; i += ITEMS)
    {
        const uint own = i + item, k = own / MT;
        if (MT * KT % ITEMS == 0 || own < MT * KT)
            filters[FILTER_AT(k, own % MT)] = (int)k < left ? stage->weights[own] : 0;
    }
    const long step = table[ROWS_DATA_CHANNEL_STEP];
    const int channels = (int)table[ROWS_IN_CHANNELS] -
                         stage->first * WORD; /* from the stage's first on */
    const uint outside = ((uint)DATA_ZERO(table) & 0xff) * 0x01010101u; /* of bytes; else 0 */
    __global const bits_t *source;
#if !LAST && ITEMS % NT == 0 /* a work-item has words of one place */
    const bool inside = source_of(stage, item % NT, places, table, &source);
#endif
    FILL for (uint i = 0; i < NT * KT; i += ITEMS)
    {
        const uint own = i + item, k = LAST ? own % KT : own / NT, n = LAST ? own / KT : own % NT;
        if (NT * KT % ITEMS != 0 && own >= NT * KT) continue;
#if LAST || ITEMS % NT != 0
        const bool inside = source_of(stage, n, places, table, &source);
#endif
        inputs[INPUT_AT(k, n)] = inside && (int)k < left
                                     ? word_at(source + (stage->first + (int)k) * WORD * step, step,
                                               min(WORD, channels - (int)k * WORD))
                                     : outside;
    }
}

KERNEL __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_matrix(__global const data_t *restrict data, const ulong data_offset,
             __global const packed_t *restrict filter, const ulong filter_offset,
             __global const uint *restrict flags, const ulong flags_offset, FINISH_PARAMETERS,
             __global const long *restrict table)
{
    __local uint words[LOCAL_WORDS];
    __local struct places places;
#if QUANTIZED
    __local uint weight_sums[MT];
#endif
    /* Residues first: they write between each other's outputs. */
    const int stride_x = (int)table[ROWS_STRIDE_X], stride_y = (int)table[ROWS_STRIDE_Y];
    const int classes = (int)table[ROWS_STRIDE_Z] * stride_y * stride_x,
              tiles = (int)table[ROWS_TILES];
    const int group = (int)get_group_id(0), class = group % classes;
    const int tile = group / classes % tiles, all_blocks = group / classes / tiles;
    const int blocks = (int)table[ROWS_BLOCKS];
    const int g = all_blocks / blocks, block = all_blocks % blocks;
    const int tx = class % stride_x, ty = class / stride_x % stride_y,
              tz = class / stride_x / stride_y;
    const int item = (int)get_local_id(0), lane = item % LANES;
    const int sub_group_m = item / LANES / GN, own_m = sub_group_m * (FM * FRAG_M),
              own_n = item / LANES % GN * (FN * FRAG_N);
    find_places(&places, table, (long)tile * NT, tz, ty, tx);
#if QUANTIZED
    for (int m = item; m < MT; m += ITEMS) weight_sums[m] = 0;
#endif

    __global const long *kind = table + table[MATRIX_CLASSES_AT] + class * KIND_LONGS;
    __global const long *list = table + table[MATRIX_TAP_LIST_AT] + kind[KIND_LIST] * PAIR_LONGS;
    const int in_channels = (int)table[ROWS_IN_CHANNELS];
    const int tap_stages = (PACKED_CHANNELS(in_channels) + KT - 1) / KT,
              stages = (int)kind[KIND_TAPS] * tap_stages;
    __global const data_t *own_data = data + data_offset +
                                      (long)g * in_channels * table[ROWS_DATA_CHANNEL_STEP];
    __global const packed_t *weights = weights_of(filter + filter_offset, table, all_blocks);

    sums_t sums[FM][FN];
    EACH for (int i = 0; i < FM; i++) EACH for (int j = 0; j < FN; j++) sums[i][j] = (sums_t)(0);

    for (int number = 0; number < stages; number++) {
        const struct stage stage = stage_of(number, tap_stages, own_data, weights, table, list);
        barrier(CLK_LOCAL_MEM_FENCE); /* the stage before is multiplied */
        fill(&stage, words, words + FILTER_WORDS, &places, table);
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH for (int k = 0; k < KT; k += DEPTH)
            add_products(sums, words, words + FILTER_WORDS, k, own_m, own_n, lane);
#if QUANTIZED
        for (int m = item; m < MT; m += ITEMS)
            for (int k = 0; k < KT; k++) weight_sums[m] += sum_of_quad(words[FILTER_AT(k, m)]);
#endif
    }

    FINISH(finish, table)
    const int out_channels = (int)table[ROWS_OUT_CHANNELS];
    /* Not unrolled, since some compilers do not unroll so much; the sums move up instead, so that no register has an index. */
#pragma unroll 1
    for (int i = 0; i < FM; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH for (int j = 0; j < FN; j++) EACH for (int s = 0; s < SUMS; s++) words[FINISHED_AT(
            sub_group_m * FRAG_M + ROW_OF(lane, s), own_n + j * FRAG_N + COLUMN_OF(lane, s))] =
            SUM_BITS(SUM_NUMBER(sums[0][j], s));
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
        for (int own = item; own < FINISHED_ROWS * NT; own += ITEMS) {
            const int row = FINISHED_ROW(own), n = FINISHED_N(own);
            const int m = row / FRAG_M * (FM * FRAG_M) + i * FRAG_M + row % FRAG_M;
            if (block * MT + m >= out_channels || places.output[n] < 0) continue;
            acc_t sum = BITS_SUM(words[FINISHED_AT(row, n)]);
#if FLOATING
            if (flags[flags_offset + (ulong)all_blocks] != 0)
                sum = careful_output(own_data + ((long)tile * NT + n) / places_of(table) *
                                                    table[ROWS_DATA_BATCH_STEP],
                                     weights, table, places.z[n] * table[ROWS_STRIDE_Z] + tz,
                                     places.y[n] * table[ROWS_STRIDE_Y] + ty,
                                     places.x[n] * table[ROWS_STRIDE_X] + tx, m);
#elif QUANTIZED
            sum -= DATA_ZERO(table) * weight_sums[m];
#endif
            const long channel = (long)g * out_channels + block * MT + m;
            put_one(&finish, affine_one(&finish, sum, channel),
                    places.output[n] + channel * table[ROWS_OUTPUT_CHANNEL_STEP], channel);
        }
        EACH for (int next = 1; next < FM; next++) EACH for (int j = 0; j < FN; j++)
            sums[next - 1][j] = sums[next][j];
    }
}
