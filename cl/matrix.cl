/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix algorithm: products of matrices by the matrix units of GPUs. Output-stationary and
 * exact in work.
 *
 * Outputs are split by their phases: o = u*s + t along each axis, phase t, place u. For each phase
 * (tz, ty, tx)
 *
 *     sum[channel][place] = sum over taps and words of filter[tap][word][channel] *
 *     data[word][place + distance of tap]
 *
 * is a product of matrices over all places of all batch items, a word being WORD neighbouring input
 * channels.
 *
 *     work-group   one phase, MT output channels x NT places; stages of KT words in local memory
 *     sub-group    LANES work-items: FM x FN fragments of sums in registers (matrix.clh)
 *
 * When all stages are added up, the sums go through local memory, so that neighbouring work-items
 * apply the epilogue to, and store, neighbours: places of one channel, or with LAST channels of one
 * place.
 *
 * A place whose tap lies outside the data has zeros there, for bytes the data's zero point, whose
 * products with all weights are taken away from the sums. A zero must not meet a weight that is
 * infinite or NaN: see exact_output of taps.clh, which also has the packed filter. matrix_table.h
 * has the table.
 *
 *   macro    meaning                                                        legal values
 *   MT, NT   see matrix.clh, as FM, FN, KT, BUFFERS, LAST and MATRIX
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
    const long all_places = table[FOLDED_BATCHES] * places_of(table);
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
        places->data[i] = n * table[FOLDED_DATA_BATCH_STEP] + z * table[FOLDED_DATA_Z_STEP] +
                          y * table[FOLDED_DATA_Y_STEP] + x * table[FOLDED_DATA_X_STEP];
        const long oz = z * table[FOLDED_STRIDE_Z] + tz, oy = y * table[FOLDED_STRIDE_Y] + ty,
                   ox = x * table[FOLDED_STRIDE_X] + tx;
        const bool output = there && oz < table[FOLDED_OUTPUT_Z] && oy < table[FOLDED_OUTPUT_Y] &&
                            ox < table[FOLDED_OUTPUT_X];
        places->output[i] =
            output ? n * table[FOLDED_OUTPUT_BATCH_STEP] + oz * table[FOLDED_OUTPUT_Z_STEP] +
                         oy * table[FOLDED_OUTPUT_Y_STEP] + ox * table[FOLDED_OUTPUT_X_STEP]
                   : -1;
    }
}

/* In front of loops that fill the tiles: Intel's compiler puts sums into memory where much is
 * unrolled beside them. */
#if MATRIX == 5
#define FILL _Pragma("unroll 1")
#else
#define FILL EACH
#endif

/* Accumulators that are to be stored: a fragment of each sub-group along channels, all places. Rows
 * are padded against conflicts of the banks of local memory: matrix.clh. */
#define FINISHED_ROWS (GM * FRAG_M)
#if LAST
#define FINISHED_STEP (FINISHED_ROWS + PAD_CHANNELS)
#define FINISHED_AT(row, n) ((n)*FINISHED_STEP + (row))
#define FINISHED_WORDS (NT * FINISHED_STEP)
#define FINISHED_ROW(i) ((i) % FINISHED_ROWS)
#define FINISHED_N(i) ((i) / FINISHED_ROWS)
#else
#define FINISHED_STEP (NT + PAD_PLACES)
#define FINISHED_AT(row, n) ((row)*FINISHED_STEP + (n))
#define FINISHED_WORDS (FINISHED_ROWS * FINISHED_STEP)
#define FINISHED_ROW(i) ((i) / NT)
#define FINISHED_N(i) ((i) % NT)
#endif
#define STAGE_WORDS (FILTER_WORDS + INPUT_WORDS)
#define TILES_WORDS (BUFFERS * STAGE_WORDS)
#define LOCAL_WORDS (TILES_WORDS > FINISHED_WORDS ? TILES_WORDS : FINISHED_WORDS)

#if FLOATING
#define SUM_BITS(sum) as_uint(sum)
#define BITS_SUM(bits) as_float(bits)
#else
#define SUM_BITS(sum) (sum)
#define BITS_SUM(bits) (bits)
#endif

/* What is the same for all stages of a work-group. */
struct work {
    __local const struct places *places;
    __global const data_t *data; /* of the group, for distance 0 */
    __global const packed_t *weights;
    __global const long *list; /* of taps */
    int words, channels;
    uint end_z, end_y, end_x;
    long channel_step, z_step, y_step, x_step;
    uint outside; /* what stands where there is no input */
    bool aligned; /* quads are where aligned_quad_at takes them */
};

static struct work work_of(__local const struct places *places, __global const data_t *data,
                           __global const packed_t *weights, __global const long *table,
                           __global const long *list)
{
    struct work work;
    work.places = places;
    work.data = data;
    work.weights = weights;
    work.list = list;
    work.channels = (int)table[FOLDED_IN_CHANNELS];
    work.words = PACKED_CHANNELS(work.channels);
    work.end_z = (uint)table[FOLDED_INPUT_Z];
    work.end_y = (uint)table[FOLDED_INPUT_Y];
    work.end_x = (uint)table[FOLDED_INPUT_X];
    work.channel_step = table[FOLDED_DATA_CHANNEL_STEP];
    work.z_step = table[FOLDED_DATA_Z_STEP];
    work.y_step = table[FOLDED_DATA_Y_STEP];
    work.x_step = table[FOLDED_DATA_X_STEP];
    work.outside = ((uint)DATA_ZERO(table) & 0xff) * 0x01010101u; /* of bytes; else 0 */
    const long quad = 4 * WORD;                                   /* elements */
    work.aligned = LAST && (size_t)data % 16 == 0 && work.channels % quad == 0 &&
                   table[FOLDED_DATA_BATCH_STEP] % quad == 0 && work.z_step % quad == 0 &&
                   work.y_step % quad == 0 && work.x_step % quad == 0;
    return work;
}

/* One stage: KT words, from word number `first` on, of one tap. */
struct stage {
    __global const data_t *data; /* of distance dz, dy, dx and channel 0 */
    __global const packed_t *weights;
    int first;
    int dz, dy, dx;
};

static struct stage stage_of(const struct work *work, const int tap, const int first)
{
    __global const long *pair = work->list + tap * PAIR_LONGS;
    struct stage stage;
    stage.first = first;
    stage.weights = work->weights + (pair[PAIR_TAP] * work->words + first) * MT;
    stage.dz = (int)pair[PAIR_Z];
    stage.dy = (int)pair[PAIR_Y];
    stage.dx = (int)pair[PAIR_X];
    stage.data = work->data + stage.dz * work->z_step + stage.dy * work->y_step +
                 stage.dx * work->x_step;
    return stage;
}

/* Quads of a row of a tile, and which of them a work-item moves: neighbours in global memory by
 * neighbouring work-items. */
#define QUADS (KT / 4)
#define INPUT_PARTS ((NT * QUADS + ITEMS - 1) / ITEMS)
#if LAST
#define INPUT_QUAD(own) ((own) % QUADS)
#define INPUT_PLACE(own) ((own) / QUADS)
#else
#define INPUT_QUAD(own) ((own) / NT)
#define INPUT_PLACE(own) ((own) % NT)
#endif
#define IS_INPUT(own) (NT * QUADS % ITEMS == 0 || (own) < NT * QUADS)

static void fill_filters(const struct stage *stage, const struct work *work, __local uint *filters)
{
    FILL for (uint i = 0; i < MT * QUADS; i += ITEMS)
    {
        const uint own = i + (uint)get_local_id(0), quad = own / MT;
        if (MT * QUADS % ITEMS != 0 && own >= MT * QUADS) continue;
        __local uint *to = filters + TILE_AT(quad * 4, own % MT);
        if (stage->first + (int)quad * 4 < work->words)
            copy_quad(to, stage->weights + own * 4);
        else
            *(__local uint4 *)to = (uint4)(0);
    }
}

/* Input quad number `own` of a stage; NULL where its place lies outside the data, or its channels
 * past the last one. */
static __global const bits_t *source_at(const struct stage *stage, const struct work *work,
                                        const uint own)
{
    const int word = stage->first + (int)INPUT_QUAD(own) * 4;
    const uint n = INPUT_PLACE(own);
    __local const struct places *places = work->places;
    const bool inside = (uint)(places->z[n] + stage->dz) < work->end_z &&
                        (uint)(places->y[n] + stage->dy) < work->end_y &&
                        (uint)(places->x[n] + stage->dx) < work->end_x && word < work->words;
    return inside ? (__global const bits_t *)(stage->data + places->data[n]) +
                        word * WORD * work->channel_step
                  : (__global const bits_t *)0;
}

/* What is there. */
static uint4 input_at(const struct stage *stage, const struct work *work, const uint own,
                      __global const bits_t *source)
{
    if (source == 0) return (uint4)(work->outside);
    if (work->aligned) return aligned_quad_at(source);
    return quad_at(source, work->channel_step,
                   work->channels - (stage->first + (int)INPUT_QUAD(own) * 4) * WORD,
                   work->outside);
}

static __local uint4 *input_in(__local uint *inputs, const uint own)
{
    return (__local uint4 *)(inputs + TILE_AT(INPUT_QUAD(own) * 4, INPUT_PLACE(own)));
}

/* Where quads can be copied as they are, nobody need wait for them. */
#define COPIED (MATRIX == 2 && LAST && WORD > 1)

static void fill_inputs(const struct stage *stage, const struct work *work, __local uint *inputs)
{
    FILL for (uint i = 0; i < NT * QUADS; i += ITEMS)
    {
        const uint own = i + (uint)get_local_id(0);
        if (!IS_INPUT(own)) continue;
        __global const bits_t *source = source_at(stage, work, own);
        if (COPIED && work->aligned && source != 0)
            copy_quad((__local uint *)input_in(inputs, own), source);
        else
            *input_in(inputs, own) = input_at(stage, work, own, source);
    }
}

static void fill(const struct stage *stage, const struct work *work, __local uint *tile)
{
    fill_filters(stage, work, tile);
    fill_inputs(stage, work, tile + FILTER_WORDS);
}

static void multiply_stage(sums_t sums[FM][FN], __local const uint *tile, const int m, const int n,
                           const int lane)
{
    LANES_MEET;
    EACH for (int k = 0; k < KT; k += DEPTH)
        add_products(sums, tile, tile + FILTER_WORDS, k, m, n, lane);
}

KERNEL __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
tconv_matrix(__global const data_t *restrict data, const ulong data_offset,
             __global const packed_t *restrict filter, const ulong filter_offset,
             __global const uint *restrict flags, const ulong flags_offset, EPILOGUE_PARAMETERS,
             __global const long *restrict table)
{
    __local uint words[LOCAL_WORDS] __attribute__((aligned(16)));
    __local struct places places;
#if QUANTIZED
    __local uint weight_sums[MT];
#endif
    /* Phases first: they write between each other's outputs. */
    const int stride_x = (int)table[FOLDED_STRIDE_X], stride_y = (int)table[FOLDED_STRIDE_Y];
    const int classes = (int)table[FOLDED_STRIDE_Z] * stride_y * stride_x,
              tiles = (int)table[FOLDED_TILES];
    const int group = (int)get_group_id(0), class = group % classes;
    const int tile = group / classes % tiles, all_blocks = group / classes / tiles;
    const int blocks = (int)table[FOLDED_BLOCKS];
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
    __global const data_t *own_data =
        data + data_offset + (long)g * table[FOLDED_IN_CHANNELS] * table[FOLDED_DATA_CHANNEL_STEP];
    __global const packed_t *weights = weights_of(filter + filter_offset, table, all_blocks);

    sums_t sums[FM][FN];
    EACH for (int i = 0; i < FM; i++) EACH for (int j = 0; j < FN; j++) sums[i][j] = (sums_t)(0);

    const struct work work = work_of(&places, own_data, weights, table, list);
    const int stages = (int)kind[KIND_TAPS] * ((work.words + KT - 1) / KT);
    int tap = 0, first = 0; /* of the stage that is filled next */
#define ADVANCE                                                                                    \
    first = first + KT < work.words ? first + KT : 0;                                              \
    tap += first == 0;
#if BUFFERS == 2
    barrier(CLK_LOCAL_MEM_FENCE); /* places are known */
    if (stages > 0) {
        const struct stage stage = stage_of(&work, 0, 0);
        fill(&stage, &work, words);
    }
    ADVANCE
#endif
    for (int number = 0; number < stages; number++) {
        __local uint *tile = words + number % BUFFERS * STAGE_WORDS;
#if BUFFERS == 1
        const struct stage stage = stage_of(&work, tap, first);
        barrier(CLK_LOCAL_MEM_FENCE); /* the stage before is multiplied */
        fill(&stage, &work, tile);
        COPIES_ARE_THERE;
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_stage(sums, tile, own_m, own_n, lane);
#else
        COPIES_ARE_THERE;
        barrier(CLK_LOCAL_MEM_FENCE); /* this stage is there, the one before is multiplied */
        const bool more = number + 1 < stages, copied = COPIED && work.aligned;
        const struct stage next = stage_of(&work, more ? tap : 0, first);
        __local uint *next_tile = words + (number + 1) % BUFFERS * STAGE_WORDS;
        uint4 waiting[INPUT_PARTS]; /* for the next tile, read while this one is multiplied */
        if (more) {
            fill_filters(&next, &work, next_tile);
            if (copied) fill_inputs(&next, &work, next_tile + FILTER_WORDS);
        }
        EACH for (int i = 0; i < INPUT_PARTS; i++)
        {
            const uint own = (uint)(i * ITEMS + item);
            waiting[i] = more && !copied && IS_INPUT(own)
                             ? input_at(&next, &work, own, source_at(&next, &work, own))
                             : (uint4)(0);
        }
        multiply_stage(sums, tile, own_m, own_n, lane);
        EACH for (int i = 0; i < INPUT_PARTS; i++)
        {
            const uint own = (uint)(i * ITEMS + item);
            if (more && !copied && IS_INPUT(own))
                *input_in(next_tile + FILTER_WORDS, own) = waiting[i];
        }
#endif
        ADVANCE
#if QUANTIZED
        for (int m = item; m < MT; m += ITEMS)
            for (int k = 0; k < KT; k++) weight_sums[m] += sum_of_quad(tile[TILE_AT(k, m)]);
#endif
    }

    EPILOGUE(epilogue, table)
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    /* Not unrolled, since some compilers do not unroll so much; the sums move up instead, so that
     * no register has an index. */
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
                sum = exact_output(own_data + ((long)tile * NT + n) / places_of(table) *
                                                  table[FOLDED_DATA_BATCH_STEP],
                                   weights, table, places.z[n] * table[FOLDED_STRIDE_Z] + tz,
                                   places.y[n] * table[FOLDED_STRIDE_Y] + ty,
                                   places.x[n] * table[FOLDED_STRIDE_X] + tx, m);
#elif QUANTIZED
            sum -= DATA_ZERO(table) * weight_sums[m];
#endif
            const long channel = (long)g * out_channels + block * MT + m;
            put_one(&epilogue, affine_one(&epilogue, sum, channel),
                    places.output[n] + channel * table[FOLDED_OUTPUT_CHANNEL_STEP], channel);
        }
        EACH for (int next = 1; next < FM; next++) EACH for (int j = 0; j < FN; j++)
            sums[next - 1][j] = sums[next][j];
    }
}
