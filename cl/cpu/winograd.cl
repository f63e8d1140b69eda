/* SPDX-License-Identifier: Apache-2.0 */
/* The Winograd algorithm: fast arithmetic for layers with few taps. It needs fewer multiply-adds
 * than the direct sum, but rounds more, so it runs only on request.
 *
 * Outputs are split by their phases: o = u*s + t along each axis, phase t, position u. The outputs
 * of one phase are a correlation of T = ceil(K/s) taps with the unmodified input, and m neighbours
 * of them need P = m + T - 1 multiplications instead of m*T (Toom and Cook):
 *
 *   y[i] = sum over k of d[i + k] g[k]  =  sum over p of A[i][p] (sum over k of G[p][k] g[k])
 *                                                                (sum over j of B[p][j] d[j])
 *
 * A, B and G belong to P points: A[i][p] = q^i, G[p][k] = scale q^k for a finite point q, and for
 * the last point, infinity, 1 in A's last row and scale in G's last column.
 *
 *     P   points                  where it is used
 *     1   inf                     one tap: nothing is transformed
 *     2   0 inf                   m = 1, T = 2: neither
 *     3   0 1 inf                 m = 2, T = 2
 *     4   0 1 -1 inf              m = 3, T = 2; m = 2, T = 3
 *     5   0 -1 1/2 2 inf          m = 4, T = 2; m = 3, T = 3
 *     6   0 1 -1 1/2 -2 inf       m = 5, T = 2; m = 4, T = 3
 *
 * With several axes, each axis is transformed in turn. A tile is MZ x MY x MX positions of one
 * phase. Vectors run along tiles in the order (batch item, z, y, x), so that small images share
 * vectors.
 *
 *     work-item   WINOGRAD_ITEM_TEAMS teams of NX * VW tiles, WINOGRAD_ITEM_BLOCKS blocks of MW
 *                 output channels, one phase along z and y, all phases along x
 *
 *   1. gathers the inputs of its tiles for a chunk of the input channels and transforms them into
 *      local memory;
 *   2. for each point, phase and block multiplies and adds over the channels, in registers, as the
 *      packed algorithm does; the sums wait in local memory;
 *   3. after the last chunk, transforms the sums into outputs, and puts phases and positions side
 *      by side.
 *
 * If the pad is not a multiple of the stride, some phases along x begin one input later than the
 * others (AX = 2).
 *
 * Packed filter: [group][remainder z][remainder y][point][remainder x][block][ci][MW]; the phase
 * with (output + pad) mod s = r has taps r, r + s, ...; taps past the kernel and channels past the
 * last one are zero. In this order weights are read in sequence, while the inputs at one point stay
 * in the first-level cache for all blocks.
 *
 * The difference form (DIFFERENCE = 1) computes nearest upsampling by 2 and a convolution of three
 * taps w along each axis with the same transforms, and rounds little. The two outputs around an
 * enlarged input are
 *
 *   y[2i]   = w[0] x[i-1] + (w[1] + w[2]) x[i]  =  W x[i] + w[0] (x[i-1] - x[i])
 *   y[2i+1] = (w[0] + w[1]) x[i] + w[2] x[i+1]  =  W x[i] + w[2] (x[i+1] - x[i])
 *
 * with W = w[0] + w[1] + w[2]: three products for two outputs. These are A and B of the 3 points
 * with m = 2, T = 2; w[0], W and w[2] stand in place of the sums by G. The outputs of all phases
 * are the m positions, so there is one phase, and the next tile's window begins one input later,
 * not m. If the pad is such that output 0 is the second one of its tile, tiles lead by one output.
 * An axis that only copies has one point.
 *
 * A difference of infinite inputs is NaN, though an output may be infinite. So an output that is
 * not finite is computed again, from data and taps. The taps follow from the packed weights. If
 * those of a block are not finite or have such sums, its flag is set, and the taps themselves are
 * in the place of the packed weights. Packed filter: a word of flags for each [group][block],
 * padded; then as above.
 *
 *   macro        meaning                                        legal values
 *   DIFFERENCE   the difference form                            0, 1
 *   VW           lanes of a vector                              2, 4, 8, 16
 *   NX           vectors of a team                              1 to 4
 *   MW           output channels of a block                     1 to 16
 *   MZ MY MX     positions of a tile along each axis            1 to 5
 *   TZ TY TX     taps of a phase along each axis                1 to 3; M + T <= 7;
 *                                                               M = 1 if T = 1
 *   RX           the stride along x                             1 to 16
 *   AX           different first inputs of phases along x       1, 2
 *   ROUND        see products.clh                               1, 2, 4, 8
 *   CHUNKED      input channels come in chunks                  0, 1
 *
 * Registers: MW * NX vectors of sums. Local memory: a kernel argument; transformed inputs and sums
 * of all teams. */
#include "common/epilogue.clh"
#include "cpu/parts/products.clh"
#include "cpu/winograd_table.h"

#if !defined(VW) || !defined(NX) || !defined(MW) || !defined(MZ) || !defined(MY) ||                \
    !defined(MX) || !defined(TZ) || !defined(TY) || !defined(TX) || !defined(RX) ||                \
    !defined(AX) || !defined(CHUNKED) || !defined(DIFFERENCE)
#error "VW, NX, MW, MZ, MY, MX, TZ, TY, TX, RX, AX, CHUNKED and DIFFERENCE must be set"
#endif

#define PZ (MZ + TZ - 1)
#define PY (MY + TY - 1)
#define PX (MX + TX - 1)
#if PZ > 6 || PY > 6 || PX > 6
#error "a tile has too many points"
#endif
#define POINTS (PZ * PY * PX)

/* Inputs between the windows of neighbouring tiles, and the packed weights in front of the points.
 */
#if DIFFERENCE
#define STEP(positions) 1
#define HEADER(table) TAPS_HEADER((table)[FOLDED_GROUPS] * (table)[FOLDED_BLOCKS], sizeof(packed_t))
#else
#define STEP(positions) (positions)
#define HEADER(table) 0
#endif

/* WINDOW: inputs of a tile's row, for all phases. COLLECTED: inputs that are collected at once. */
#define WINDOW (PX + AX - 1)
#if WINDOW == 1
#define COLLECTED 1
#elif WINDOW <= 4
#define COLLECTED 4
#else
#define COLLECTED 8
#endif

/* RUN: outputs of a tile's row. RUN_POWER: the same, rounded up to a power of two. */
#define RUN (MX * RX)
#if RUN <= 1
#define RUN_POWER 1
#elif RUN <= 2
#define RUN_POWER 2
#elif RUN <= 4
#define RUN_POWER 4
#elif RUN <= 8
#define RUN_POWER 8
#elif RUN <= 16
#define RUN_POWER 16
#elif RUN <= 32
#define RUN_POWER 32
#elif RUN <= 64
#define RUN_POWER 64
#else
#error "MX * RX is too large"
#endif

enum {
    CHANNELS_AHEAD = 8 /* channels by which inputs are prefetched early */
};

/* ---- The transforms. With constant arguments only the sums remain. ---- */

/* Finite point j of the set for P points; 0 is j = 0. */
static acc_t point(const int points, const int j)
{
    if (points == 5) return j == 0 ? 0.0f : j == 1 ? -1.0f : j == 2 ? 0.5f : 2.0f;
    return j == 0 ? 0.0f : j == 1 ? 1.0f : j == 2 ? -1.0f : j == 3 ? 0.5f : -2.0f;
}

/* Exponents are less than 8. No loop, because compilers warn about loops that they cannot
 * unroll. */
static acc_t power(const acc_t base, const int exponent)
{
    const acc_t square = base * base, one = 1;
    return (exponent & 1 ? base : one) * (exponent & 2 ? square : one) *
           (exponent & 4 ? square * square : one);
}

/* The factor of G's row p. */
static acc_t scale(const int points, const int p)
{
    if (points <= 3) return 1;
    if (points == 4) return p == 0 || p == 3 ? 1.0f : 0.5f;
    if (p == 0 || p == points - 1) return 0.5f;
    if (points == 5) return p == 1 ? 1.0f / 9 : p == 2 ? 8.0f / 9 : 1.0f / 18;
    return p <= 2 ? 1.0f / 6 : p == 3 ? 16.0f / 15 : 1.0f / 30;
}

/* G[p][k] */
static acc_t filter_factor(const int points, const int taps, const int p, const int k)
{
    if (points == 1) return 1;
    if (p == points - 1) return k == taps - 1 ? scale(points, p) : 0;
    return scale(points, p) * power(point(points, p), k);
}

/* Transformed inputs r = B d along one axis; neighbours are `from` and `to` vectors apart. */
static void to_points(const int points, const vec_t *d, const int from, vec_t *r, const int to)
{
    const vec_t d0 = d[0];
    if (points <= 2) {
        r[0] = d0;
        if (points == 2) r[to] = d[from];
        return;
    }
    const vec_t d1 = d[from], d2 = d[2 * from];
    if (points == 3) {
        r[0] = d0 - d1;
        r[to] = d1;
        r[2 * to] = d2 - d1;
        return;
    }
    const vec_t d3 = d[3 * from], two = (vec_t)(2), three = (vec_t)(3), five = (vec_t)(5);
    if (points == 4) {
        r[0] = d0 - d2;
        r[to] = d1 + d2;
        r[2 * to] = d2 - d1;
        r[3 * to] = d3 - d1;
        return;
    }
    const vec_t d4 = d[4 * from];
    if (points == 5) {
        r[0] = MULTIPLY_ADD(two, d0 + d3, -three * (d1 + d2));
        r[to] = MULTIPLY_ADD(five, d2, -two * (d1 + d3));
        r[2 * to] = MULTIPLY_ADD(two, d1, d2 - d3);
        r[3 * to] = MULTIPLY_ADD(two, d3, d2 - d1);
        r[4 * to] = MULTIPLY_ADD(two, d1 + d4, -three * (d2 + d3));
        return;
    }
    const vec_t d5 = d[5 * from], four = (vec_t)(4);
    r[0] = MULTIPLY_ADD(two, d0 + d4, MULTIPLY_ADD(three, d3 - d1, -four * d2));
    r[to] = MULTIPLY_ADD(two, d4 - d1, MULTIPLY_ADD(five, d3, d2));
    r[2 * to] = MULTIPLY_ADD(-two, d1 + d4, MULTIPLY_ADD(five, d2, -d3));
    r[3 * to] = MULTIPLY_ADD(two, d1 - d3, d2 - d4);
    r[4 * to] = MULTIPLY_ADD(two, d4 - d2, d1 - d3);
    r[5 * to] = MULTIPLY_ADD(two, d1 + d5, MULTIPLY_ADD(three, d4 - d2, -four * d3));
}

/* Outputs y = A r along one axis. */
static void from_points(const int points, const int positions, const vec_t *r, const int from,
                        vec_t *y, const int to)
{
#pragma unroll
    for (int i = 0; i < positions; i++) {
        vec_t sum = i == 0 ? r[0] : (vec_t)(0);
        bool any = i == 0;
#pragma unroll
        for (int p = 1; p + 1 < points; p++) {
            const acc_t factor = power(point(points, p), i);
            if (!any)
                sum = r[p * from] * (vec_t)(factor);
            else
                sum = MULTIPLY_ADD(r[p * from], (vec_t)(factor), sum);
            any = true;
        }
        if (i == positions - 1 && points > 1) sum += r[(points - 1) * from];
        y[i * to] = sum;
    }
}

/* ---- Packing the filter ---- */

#if DIFFERENCE
/* The taps along one axis whose sum is the weight of point p. */
static void taps_of(const int taps, const int p, const bool raw, int *first, int *last)
{
    const bool sum = taps > 1 && p == 1 && !raw;
    *first = sum ? 0 : p;
    *last = sum ? 2 : p;
}

/* The weight of a point of one input and output channel, whose first tap is at `w`. */
static acc_t point_weight(__global const filter_t *w, __global const long *table, const int pz,
                          const int py, const int px, const bool raw)
{
    int first[3], last[3];
    taps_of(TZ, pz, raw, &first[0], &last[0]);
    taps_of(TY, py, raw, &first[1], &last[1]);
    taps_of(TX, px, raw, &first[2], &last[2]);
    acc_t sum = 0;
    for (int z = first[0]; z <= last[0]; z++)
        for (int y = first[1]; y <= last[1]; y++)
            for (int x = first[2]; x <= last[2]; x++)
                sum += READ_FILTER(w + z * table[FOLDED_SOURCE_Z_STEP] +
                                       y * table[FOLDED_SOURCE_Y_STEP] +
                                       x * table[FOLDED_SOURCE_X_STEP],
                                   (acc_t)0);
    return sum;
}

/* The flag of block `b` of all groups: whether a sum of its taps may not be finite. */
static acc_t flag_of(__global const filter_t *weights, __global const long *table, const long b)
{
    const long blocks = table[FOLDED_BLOCKS], co = b % blocks * MW;
    for (long ci = 0; ci < table[FOLDED_IN_CHANNELS]; ci++)
        for (int m = 0; m < MW && co + m < table[FOLDED_OUT_CHANNELS]; m++) {
            __global const filter_t *w = weights + b / blocks * table[FOLDED_SOURCE_GROUP_STEP] +
                                         ci * table[FOLDED_SOURCE_IN_STEP] +
                                         (co + m) * table[FOLDED_SOURCE_OUT_STEP];
            acc_t sum = 0;
            for (int p = 0; p < POINTS; p++)
                sum += fabs(point_weight(w, table, p / PX / PY, p / PX % PY, p % PX, true));
            if (!isfinite(sum)) return 1;
        }
    return 0;
}

__kernel void tconv_difference_flags(__global const filter_t *restrict weights,
                                     const ulong weights_offset, __global packed_t *restrict filter,
                                     const ulong filter_offset, __global const long *restrict table,
                                     SHARE_PARAMETER)
{
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[FOLDED_GROUPS] * table[FOLDED_BLOCKS])
        filter[filter_offset + SHARED_ITEM(i)] =
            flag_of(weights + weights_offset, table, SHARED_ITEM(i));
}
#endif

/* Packs the MW weights of one (group, remainders z and y, point, remainder x), block and ci. */
static NOINLINE void pack_point(__global const filter_t *restrict weights,
                                __global packed_t *restrict filter,
                                __global const long *restrict table, const long p, const long b,
                                const long ci)
{
    const long in_channels = table[FOLDED_IN_CHANNELS], blocks = table[FOLDED_BLOCKS];
    const long stride_z = table[FOLDED_STRIDE_Z], stride_y = table[FOLDED_STRIDE_Y];
    const int px = (int)(p / RX % PX), py = (int)(p / RX / PX % PY);
    const int pz = (int)(p / RX / PX / PY % PZ);
    const long rx = p % RX, rest = p / RX / POINTS, co = b * MW;
    const long ry = rest % stride_y, rz = rest / stride_y % stride_z;
    const long g = rest / stride_y / stride_z;
    __global const filter_t *from = weights + g * table[FOLDED_SOURCE_GROUP_STEP] +
                                    ci * table[FOLDED_SOURCE_IN_STEP] +
                                    co * table[FOLDED_SOURCE_OUT_STEP];
    __global packed_t *to = filter + HEADER(table) + ((p * blocks + b) * in_channels + ci) * MW;
#if DIFFERENCE
    const bool raw = filter[g * blocks + b] != 0;
    for (int m = 0; m < MW; m++)
        to[m] = co + m < table[FOLDED_OUT_CHANNELS]
                    ? point_weight(from + m * table[FOLDED_SOURCE_OUT_STEP], table, pz, py, px, raw)
                    : 0;
#else
    acc_t sum[MW];
    for (int m = 0; m < MW; m++) sum[m] = 0;
    for (int z = 0; z < TZ; z++)
        for (int y = 0; y < TY; y++)
            for (int x = 0; x < TX; x++) {
                /* A correlation's taps are in the order of the inputs; the filter's are in the
                 * opposite order. */
                const long kz = rz + (TZ - 1 - z) * stride_z;
                const long ky = ry + (TY - 1 - y) * stride_y;
                const long kx = rx + (TX - 1 - x) * RX;
                if (kz >= table[FOLDED_KERNEL_Z] || ky >= table[FOLDED_KERNEL_Y] ||
                    kx >= table[FOLDED_KERNEL_X])
                    continue;
                const acc_t factor = filter_factor(PZ, TZ, pz, z) * filter_factor(PY, TY, py, y) *
                                     filter_factor(PX, TX, px, x);
                if (factor == 0) continue;
                __global const filter_t *w = from + kz * table[FOLDED_SOURCE_Z_STEP] +
                                             ky * table[FOLDED_SOURCE_Y_STEP] +
                                             kx * table[FOLDED_SOURCE_X_STEP];
                for (int m = 0; m < MW; m++)
                    if (co + m < table[FOLDED_OUT_CHANNELS])
                        sum[m] = MULTIPLY_ADD(
                            factor, READ_FILTER(w + m * table[FOLDED_SOURCE_OUT_STEP], (acc_t)0),
                            sum[m]);
            }
    for (int m = 0; m < MW; m++) to[m] = sum[m];
#endif
}

/* A work-item packs one input channel after the other. */
__kernel void tconv_winograd_pack(__global const filter_t *restrict weights,
                                  const ulong weights_offset, __global packed_t *restrict filter,
                                  const ulong filter_offset, __global const long *restrict table,
                                  SHARE_PARAMETER)
{
    const long blocks = table[FOLDED_BLOCKS];
    const long all = table[FOLDED_GROUPS] * table[FOLDED_STRIDE_Z] * table[FOLDED_STRIDE_Y] *
                     POINTS * RX;
    EACH_SHARED(i)
    if (SHARED_ITEM(i) < table[FOLDED_IN_CHANNELS])
        for (long p = (long)get_global_id(2); p < all; p += (long)get_global_size(2))
            for (long b = (long)get_global_id(1); b < blocks; b += (long)get_global_size(1))
                pack_point(weights + weights_offset, filter + filter_offset, table, p, b,
                           SHARED_ITEM(i));
}

/* ---- Tiles ---- */

/* Tiles of a vector that are neighbours in one row. */
struct run {
    int lane, count; /* the first one's lane; how many */
    int n, z, y, x;  /* the first one's batch item and number along each axis */
};

/* The first run of vector number `vector`. Its count is 0 if the vector has no tiles. */
static struct run first_run(__global const long *table, const int vector)
{
    struct run run;
    const long first = (long)vector * VW;
    const bool real = first < table[WINOGRAD_TILES];
    long rest = real ? first : 0;
    run.lane = 0;
    run.x = (int)(rest % table[WINOGRAD_TILES_X]);
    rest /= table[WINOGRAD_TILES_X];
    run.y = (int)(rest % table[WINOGRAD_TILES_Y]);
    rest /= table[WINOGRAD_TILES_Y];
    run.z = (int)(rest % table[WINOGRAD_TILES_Z]);
    run.n = (int)(rest / table[WINOGRAD_TILES_Z]);
    run.count = real ? (int)min(min((long)VW, table[WINOGRAD_TILES_X] - run.x),
                                table[WINOGRAD_TILES] - first)
                     : 0;
    return run;
}

/* Moves on to the next run. False if there is none. */
static bool next_run(__global const long *table, const int vector, struct run *run)
{
    run->lane += run->count;
    const long left = table[WINOGRAD_TILES] - (long)vector * VW - run->lane;
    if (run->lane >= VW || left <= 0) return false;
    run->x = 0;
    if (++run->y == table[WINOGRAD_TILES_Y]) {
        run->y = 0;
        if (++run->z == table[WINOGRAD_TILES_Z]) {
            run->z = 0;
            run->n++;
        }
    }
    run->count = (int)min(min((long)(VW - run->lane), table[WINOGRAD_TILES_X]), left);
    return true;
}

/* ---- Inputs ---- */

/* Copies a piece of a row, and prefetches the same piece of a later channel, `ahead` elements
 * further on: hardware prefetchers do not reach that far. */
static void copy_in(__global const data_t *from, const long step, acc_t *to, const int count,
                    const long ahead)
{
    int i = 0;
    PREFETCH(1, from + ahead);
    if (step == 1) {
        for (; i + VW <= count; i += VW) {
            PREFETCH(1, from + i + VW + ahead);
            STORE(READS_DATA(from + i, (acc_t)0), to + i);
        }
#if VW > 4 && PASTE(PLAIN_, DATA)
        for (; i + 4 <= count; i += 4) vstore4(vload4(0, from + i), 0, to + i);
#endif
    }
    for (; i < count; i++) to[i] = READ_DATA(from + i * step, (acc_t)0);
}

/* Inputs 0, 1, ... of VW tiles' windows, which begin at row + at[lane]: result[j] has input j of
 * each tile. */
static void collect(const acc_t *row, const int *at, vec_t result[COLLECTED])
{
#if DIFFERENCE
    if (at[VW - 1] - at[0] == VW - 1) { /* tiles of one row */
#pragma unroll
        for (int j = 0; j < WINDOW; j++) result[j] = LOAD(row + at[0] + j);
        return;
    }
#endif
#if COLLECTED == 1
    result[0] = LOAD(row); /* nothing overlaps */
#elif VW >= COLLECTED
    vec_t in[COLLECTED];
#pragma unroll
    for (int k = 0; k < COLLECTED; k++) {
#if VW == COLLECTED
        in[k] = LOAD(row + at[k]);
#elif VW == 2 * COLLECTED
        in[k].lo = PASTE(vload, COLLECTED)(0, row + at[2 * k]);
        in[k].hi = PASTE(vload, COLLECTED)(0, row + at[2 * k + 1]);
#else
        in[k].lo.lo = PASTE(vload, COLLECTED)(0, row + at[4 * k]);
        in[k].lo.hi = PASTE(vload, COLLECTED)(0, row + at[4 * k + 1]);
        in[k].hi.lo = PASTE(vload, COLLECTED)(0, row + at[4 * k + 2]);
        in[k].hi.hi = PASTE(vload, COLLECTED)(0, row + at[4 * k + 3]);
#endif
    }
    /* Each step moves the lowest bit of an element's number to the top, until tiles are
     * innermost. */
#pragma unroll
    for (int bit = 1; bit < COLLECTED; bit *= 2) {
#pragma unroll
        for (int k = 0; k < COLLECTED / 2; k++) {
            result[k].lo = in[2 * k].even;
            result[k].hi = in[2 * k + 1].even;
            result[k + COLLECTED / 2].lo = in[2 * k].odd;
            result[k + COLLECTED / 2].hi = in[2 * k + 1].odd;
        }
#pragma unroll
        for (int k = 0; k < COLLECTED; k++) in[k] = result[k];
    }
#else
#pragma unroll
    for (int j = 0; j < WINDOW; j++) {
        acc_t lane[VW];
        for (int i = 0; i < VW; i++) lane[i] = row[at[i] + j];
        result[j] = LOAD(lane);
    }
#endif
}

/* Elements of a row of inputs of a vector's tiles: runs one after another, each with the zeros
 * around it, and some more, because whole vectors are collected. */
enum { ROW = VW * WINDOW + 16 };

/* The inputs to copy for one run. */
struct piece {
    long from; /* the begin of the window's first row in the channel's data */
    int to, count;
    int z, y; /* inputs of the window's first row */
};

/* Lays out the runs of a vector. Returns how many there are. */
static int lay_out(__global const long *table, const int vector, const int z_begin,
                   const int y_begin, struct piece *piece, int *at)
{
    struct run run = first_run(table, vector);
    int pieces = 0, used = 0;
    for (int i = 0; i < VW; i++) at[i] = 0;
    if (run.count == 0) return 0;
    do {
        const int x = run.x * STEP(MX) + (int)table[WINOGRAD_SHIFT_X] - (TX - 1);
        const int width = run.count * STEP(MX) + WINDOW - STEP(MX);
        const int begin = clamp(-x, 0, width);
        const int end = clamp((int)table[FOLDED_INPUT_X] - x, begin, width);
        struct piece *p = &piece[pieces++];
        p->z = run.z * STEP(MZ) + z_begin;
        p->y = run.y * STEP(MY) + y_begin;
        p->from = run.n * table[FOLDED_DATA_BATCH_STEP] + p->z * table[FOLDED_DATA_Z_STEP] +
                  p->y * table[FOLDED_DATA_Y_STEP] + (x + begin) * table[FOLDED_DATA_X_STEP];
        p->to = used + begin;
        p->count = end - begin;
        for (int i = 0; i < run.count; i++) at[run.lane + i] = used + i * STEP(MX);
        used += width;
    } while (next_run(table, vector, &run));
    return pieces;
}

/* Transforms the window of one channel of a vector's tiles; `to` is the first point's index in
 * local memory. */
static void transform_inputs(acc_t rows[PZ * PY][ROW], const int *at, const int slab,
                             __local acc_t *to)
{
    vec_t by_x[AX * PZ * PY * PX]; /* flat, as are all arrays that are read across their rows */
#pragma unroll
    for (int r = 0; r < PZ * PY; r++) {
        vec_t in[COLLECTED];
        collect(rows[r], at, in);
#pragma unroll
        for (int a = 0; a < AX; a++) to_points(PX, in + a, 1, by_x + (a * PZ * PY + r) * PX, 1);
    }
#pragma unroll
    for (int a = 0; a < AX; a++) {
        vec_t by_y[POINTS];
        for (int z = 0; z < PZ; z++)
#pragma unroll
            for (int x = 0; x < PX; x++)
                to_points(PY, by_x + (a * PZ + z) * PY * PX + x, PX, by_y + z * PY * PX + x, PX);
#if PZ > 1
        for (int yx = 0; yx < PY * PX; yx++) {
            vec_t out[PZ];
            to_points(PZ, by_y + yx, PY * PX, out, 1);
#pragma unroll
            for (int z = 0; z < PZ; z++) STORE(out[z], to + (z * PY * PX + yx) * slab);
        }
        to += POINTS * slab;
#else
#pragma unroll
        for (int p = 0; p < POINTS; p++, to += slab) STORE(by_y[p], to);
#endif
    }
}

/* Gathers and transforms `channels` input channels of one team for phase (tz, ty). `data` is the
 * first of them in the group. */
static void prepare_team(__global const data_t *data, __global const long *table,
                         __local acc_t *inputs, const int team, const int z_begin,
                         const int y_begin, const int channels)
{
    const long channel_step = table[FOLDED_DATA_CHANNEL_STEP], x_step = table[FOLDED_DATA_X_STEP];
    const int input_z = (int)table[FOLDED_INPUT_Z], input_y = (int)table[FOLDED_INPUT_Y];
    const int slab = (int)table[WINOGRAD_SLAB];
    for (int v = 0; v < NX; v++) {
        acc_t rows[PZ * PY][ROW];
        struct piece piece[VW];
        int at[VW];
        const int pieces = lay_out(table, team * NX + v, z_begin, y_begin, piece, at);
        for (int r = 0; r < PZ * PY; r++)
            for (int i = 0; i < ROW; i++) rows[r][i] = 0;
        __global const data_t *from = data;
        for (int ci = 0; ci < channels; ci++, from += channel_step) {
            for (int i = 0; i < pieces; i++) {
                const struct piece *p = &piece[i];
                for (int r = 0; r < PZ * PY; r++) {
                    const int z = r / PY, y = r % PY;
                    if (p->z + z >= 0 && p->z + z < input_z && p->y + y >= 0 && p->y + y < input_y)
                        copy_in(from + p->from + z * table[FOLDED_DATA_Z_STEP] +
                                    y * table[FOLDED_DATA_Y_STEP],
                                x_step, rows[r] + p->to, p->count, CHANNELS_AHEAD * channel_step);
                }
            }
            transform_inputs(rows, at, slab, inputs + (ci * NX + v) * VW);
        }
    }
}

/* ---- Products ---- */

/* Adds `channels` input channels of one block, point and phase to the sums in local memory. */
static void multiply(__local const acc_t *in, __global const packed_t *w, __local acc_t *sums,
                     const int channels, const long skip, const bool first)
{
    vec_t sum[MW][NX];
#pragma unroll
    for (int m = 0; m < MW; m++)
#pragma unroll
        for (int v = 0; v < NX; v++)
#if CHUNKED
            sum[m][v] = first ? (vec_t)(0) : LOAD(sums + (m * NX + v) * VW);
#else
            sum[m][v] = (vec_t)(0);
#endif
    add_products(sum, in, VW, w, channels, skip);
#pragma unroll
    for (int m = 0; m < MW; m++)
#pragma unroll
        for (int v = 0; v < NX; v++) STORE(sum[m][v], sums + (m * NX + v) * VW);
}

/* ---- Outputs ---- */

static void copy_out(const struct epilogue *f, const lane_t *from, const long to, const long step,
                     const int count, const long channel)
{
    int i = 0;
    if (step == 1) {
        for (; i + VW <= count; i += VW) put_row(f, from + i, to + i, channel);
#if VW > 4
        for (; i + 4 <= count; i += 4) put_four(f, from + i, to + i, channel);
#endif
    }
    for (; i < count; i++) PUT_LANE(f, from[i], to + i * step, channel);
}

/* Before, vector j has output j of VW tiles' rows. Afterwards the vectors are these rows, RUN_POWER
 * elements each. */
static void spread(vec_t out[RUN_POWER])
{
    vec_t next[RUN_POWER];
    /* Each step moves the highest bit of an element's number to the bottom, until tiles are
     * outermost. */
#pragma unroll
    for (int bit = 1; bit < RUN_POWER; bit *= 2) {
#pragma unroll
        for (int k = 0; k < RUN_POWER / 2; k++)
            interleave_pairs(out[k], out[k + RUN_POWER / 2], next + 2 * k);
#pragma unroll
        for (int k = 0; k < RUN_POWER; k++) out[k] = next[k];
    }
}

/* Computes the outputs of one channel, phase along x and vector from the sums at all points. In
 * `to`, outputs along x are RX vectors apart, rows RUN_POWER vectors. */
static void transform_sums(const struct epilogue *f, __local const acc_t *sums, const long channel,
                           vec_t *to)
{
    vec_t by_y[PZ * MY * MX];
    for (int z = 0; z < PZ; z++) {
        vec_t by_x[PY * MX];
#pragma unroll
        for (int y = 0; y < PY; y++) {
            vec_t in[PX];
#pragma unroll
            for (int x = 0; x < PX; x++)
                in[x] = LOAD(sums + ((z * PY + y) * PX + x) * RX * MW * NX * VW);
            from_points(PX, MX, in, 1, by_x + y * MX, 1);
        }
#pragma unroll
        for (int x = 0; x < MX; x++) from_points(PY, MY, by_x + x, MX, by_y + z * MY * MX + x, MX);
    }
#if PZ > 1
    for (int y = 0; y < MY; y++)
#else
#pragma unroll
    for (int y = 0; y < MY; y++)
#endif
#pragma unroll
        for (int x = 0; x < MX; x++) {
            vec_t out[MZ];
            from_points(PZ, MZ, by_y + y * MX + x, MY * MX, out, 1);
#pragma unroll
            for (int z = 0; z < MZ; z++)
                to[(z * MY + y) * RUN_POWER + x * RX] = affine(f, out[z], channel);
        }
}

/* Stores a row of every tile, if all tiles are whole. The row of tile i begins at to + at[i]. */
#if PLAIN && !LATE && RUN == RUN_POWER && (RUN >= VW || 2 * RUN == VW || 4 * RUN == VW) && RUN > 1
#define STORES_TILES 1
static void store_tiles(const vec_t *row, __global output_t *to, const int *at)
{
#pragma unroll
    for (int k = 0; k < RUN; k++) {
#if RUN >= VW
        STORE(row[k], to + at[k * VW / RUN] + k * VW % RUN);
#elif 2 * RUN == VW
        PASTE(vstore, RUN_POWER)(row[k].lo, 0, to + at[2 * k]);
        PASTE(vstore, RUN_POWER)(row[k].hi, 0, to + at[2 * k + 1]);
#else
        PASTE(vstore, RUN_POWER)(row[k].lo.lo, 0, to + at[4 * k]);
        PASTE(vstore, RUN_POWER)(row[k].lo.hi, 0, to + at[4 * k + 1]);
        PASTE(vstore, RUN_POWER)(row[k].hi.lo, 0, to + at[4 * k + 2]);
        PASTE(vstore, RUN_POWER)(row[k].hi.hi, 0, to + at[4 * k + 3]);
#endif
    }
}
#else
#define STORES_TILES 0
#endif

/* Where the outputs of one run go. */
struct strip {
    long to; /* the begin of the run's first row in the channel's output */
    int lane, count;
    int rows_z, rows_y;       /* rows to the end of the output */
    int left;                 /* elements to the end of the output's row */
    int skip_z, skip_y, skip; /* rows and elements in front of the output */
};

static int lay_out_strips(__global const long *table, const int vector, const int tz, const int ty,
                          struct strip *strip)
{
    struct run run = first_run(table, vector);
    int strips = 0;
    if (run.count == 0) return 0;
    do {
        const int stride_z = (int)table[FOLDED_STRIDE_Z], stride_y = (int)table[FOLDED_STRIDE_Y];
        const int z = run.z * MZ * stride_z + tz - (int)table[WINOGRAD_LEAD_Z];
        const int y = run.y * MY * stride_y + ty - (int)table[WINOGRAD_LEAD_Y];
        const int x = run.x * RUN - (int)table[WINOGRAD_LEAD_X];
        struct strip *p = &strip[strips++];
        p->to = run.n * table[FOLDED_OUTPUT_BATCH_STEP] + z * table[FOLDED_OUTPUT_Z_STEP] +
                y * table[FOLDED_OUTPUT_Y_STEP] + x * table[FOLDED_OUTPUT_X_STEP];
        p->lane = run.lane;
        p->count = run.count;
        p->rows_z = ((int)table[FOLDED_OUTPUT_Z] - z + stride_z - 1) / stride_z;
        p->rows_y = ((int)table[FOLDED_OUTPUT_Y] - y + stride_y - 1) / stride_y;
        p->left = (int)table[FOLDED_OUTPUT_X] - x;
        p->skip_z = max(-z, 0);
        p->skip_y = max(-y, 0);
        p->skip = max(-x, 0);
    } while (next_run(table, vector, &run));
    return strips;
}

/* Stores the part of every tile's row that is inside the output. */
static void store_pieces(const struct epilogue *f, const vec_t *out, const long channel,
                         const long first, const long x_step, const struct strip *strip,
                         const int strips, const int z, const int y, const long offset)
{
    lane_t row[VW * RUN_POWER];
#pragma unroll
    for (int k = 0; k < RUN_POWER; k++) TO_LANES(f, out[k], SLOPES_OF(f, channel), row + k * VW);
    for (int i = 0; i < strips; i++) {
        const struct strip *p = &strip[i];
        if (z >= p->rows_z || y >= p->rows_y || z < p->skip_z || y < p->skip_y) continue;
        const long to = first + p->to + offset;
#if RUN == RUN_POWER
        copy_out(f, row + p->lane * RUN + p->skip, to + p->skip * x_step, x_step,
                 min(p->left, p->count * RUN) - p->skip, channel);
#else
        for (int j = 0; j < p->count; j++)
            copy_out(f, row + (p->lane + j) * RUN_POWER, to + (long)j * RUN * x_step, x_step,
                     min(p->left - j * RUN, RUN), channel);
#endif
    }
}

#if DIFFERENCE
/* The two terms of output `o` along one axis. Each has an input and a weight: that of point `a`,
 * and added to it (raw) or subtracted that of point `b`, if it is not negative. An axis that only
 * copies has one term. */
struct terms {
    int input[2], a[2], b[2];
};

static void find_terms(const int taps, const long o, const long pad, const bool raw,
                       struct terms *t)
{
    const int centre = (int)(o + pad) - (taps - 1), i = taps == 1 ? centre : centre >> 1;
    const int odd = taps > 1 ? centre & 1 : 0;
    t->input[0] = taps > 1 && odd == 0 ? i - 1 : i;
    t->input[1] = t->input[0] + 1;
    t->a[0] = odd;
    t->a[1] = 1 + odd;
    const int own = 2 * odd; /* the point of the outer tap */
    t->b[odd] = t->b[1 - odd] = -1;
    if (taps > 1) t->b[1 - odd] = raw ? 2 - own : own;
}

/* The weight of three terms: the sum of up to eight packed weights, which are `step` apart. */
static acc_t term_weight(__global const packed_t *w, const struct terms t[3], const int k[3],
                         const acc_t sign, const long step)
{
    acc_t sum = 0;
    for (int c = 0; c < 8; c++) {
        acc_t factor = 1;
        int at[3];
        bool exists = true;
        for (int axis = 0; axis < 3; axis++) {
            const bool second = c >> axis & 1;
            at[axis] = second ? t[axis].b[k[axis]] : t[axis].a[k[axis]];
            if (second) factor *= sign;
            exists = exists && at[axis] >= 0;
        }
        if (exists) sum += factor * w[((at[0] * PY + at[1]) * PX + at[2]) * step];
    }
    return sum;
}

/* Computes one output from the data of its batch item and group, term by term. `w` is the weight of
 * the first point and input channel. */
static acc_t exact_sum(__global const data_t *data, __global const packed_t *w,
                       __global const long *table, const long oz, const long oy, const long ox,
                       const bool raw)
{
    const long in_channels = table[FOLDED_IN_CHANNELS];
    const long step = table[FOLDED_BLOCKS] * in_channels * MW;
    const int extent[3] = {(int)table[FOLDED_INPUT_Z], (int)table[FOLDED_INPUT_Y],
                           (int)table[FOLDED_INPUT_X]};
    struct terms t[3];
    find_terms(TZ, oz, table[FOLDED_PAD_Z], raw, &t[0]);
    find_terms(TY, oy, table[FOLDED_PAD_Y], raw, &t[1]);
    find_terms(TX, ox, table[FOLDED_PAD_X], raw, &t[2]);
    acc_t sum = 0;
    for (int c = 0; c < TZ * TY * TX; c++) {
        const int k[3] = {c / TX / TY, c / TX % TY, c % TX};
        const int z = t[0].input[k[0]], y = t[1].input[k[1]], x = t[2].input[k[2]];
        if (z < 0 || z >= extent[0] || y < 0 || y >= extent[1] || x < 0 || x >= extent[2]) continue;
        __global const data_t *from = data + z * table[FOLDED_DATA_Z_STEP] +
                                      y * table[FOLDED_DATA_Y_STEP] + x * table[FOLDED_DATA_X_STEP];
        for (long ci = 0; ci < in_channels; ci++) {
            const acc_t weight = term_weight(w + ci * MW, t, k, raw ? 1 : -1, step);
            sum = MULTIPLY_ADD(READ_DATA(from + ci * table[FOLDED_DATA_CHANNEL_STEP], (acc_t)0),
                               weight, sum);
            if (isnan(sum)) return sum;
        }
    }
    return sum;
}

/* Computes those outputs of a vector's tiles again that are not finite, or with raw weights all.
 * The first tile is number `tile`; `data` is the first batch item's of the group. */
static COLD void mend(const struct epilogue *f, __global const data_t *data,
                      __global const packed_t *w, __global const long *table, const long tile,
                      const long channel, const bool raw, vec_t *out)
{
    for (int lane = 0; lane < VW && tile + lane < table[WINOGRAD_TILES]; lane++) {
        long rest = tile + lane;
        const long tile_x = rest % table[WINOGRAD_TILES_X];
        rest /= table[WINOGRAD_TILES_X];
        const long tile_y = rest % table[WINOGRAD_TILES_Y];
        rest /= table[WINOGRAD_TILES_Y];
        const long tile_z = rest % table[WINOGRAD_TILES_Z], n = rest / table[WINOGRAD_TILES_Z];
        for (int k = 0; k < MZ * MY * MX; k++) {
            acc_t *sum = (acc_t *)&out[k / MX * RUN_POWER + k % MX] + lane;
            const long z = tile_z * MZ + k / MX / MY - table[WINOGRAD_LEAD_Z];
            const long y = tile_y * MY + k / MX % MY - table[WINOGRAD_LEAD_Y];
            const long x = tile_x * MX + k % MX - table[WINOGRAD_LEAD_X];
            if (raw || !isfinite(*sum))
                *sum = affine_one(
                    f, exact_sum(data + n * table[FOLDED_DATA_BATCH_STEP], w, table, z, y, x, raw),
                    channel);
        }
    }
}

/* Whether all lanes of some vectors are finite. */
static bool all_finite(const vec_t *v, const int count)
{
    vec_t zero = (vec_t)(0);
#pragma unroll
    for (int i = 0; i < count; i++) zero = MULTIPLY_ADD(v[i], (vec_t)(0), zero);
    return !any(isnan(zero));
}
#endif

/* The outputs of one block of channels and one team. `data` and `w` are the group's data and the
 * block's first weight, `raw` whether these are taps. */
static void finish_team(__local const acc_t *sums, const struct epilogue *f,
                        __global const data_t *data, __global const packed_t *w, const bool raw,
                        __global const long *table, const int team, const long co,
                        const int channels, const int tz, const int ty)
{
    const long z_step = table[FOLDED_OUTPUT_Z_STEP] * table[FOLDED_STRIDE_Z];
    const long y_step = table[FOLDED_OUTPUT_Y_STEP] * table[FOLDED_STRIDE_Y];
    const long x_step = table[FOLDED_OUTPUT_X_STEP],
               channel_step = table[FOLDED_OUTPUT_CHANNEL_STEP];
    for (int v = 0; v < NX; v++) {
        struct strip strip[VW];
        int at[VW];
        const int strips = lay_out_strips(table, team * NX + v, tz, ty, strip);
        if (strips == 0) continue;
        /* True if all tiles are whole and near each other. */
        bool whole = STORES_TILES && x_step == 1;
        int lanes = 0;
        for (int i = 0; i < strips; i++) {
            const struct strip *p = &strip[i];
            const long distance = p->to - strip[0].to;
            whole = whole && p->left >= p->count * RUN && p->rows_z >= MZ && p->rows_y >= MY &&
                    distance < INT_MAX / 2 && p->skip_z + p->skip_y + p->skip == 0;
            for (int j = 0; j < p->count; j++) at[lanes++] = (int)distance + j * RUN;
        }
        whole = whole && lanes == VW;
        for (int m = 0; m < channels; m++) {
            vec_t out[MZ * MY * RUN_POWER];
#pragma unroll
            for (int t = 0; t < RX; t++)
                transform_sums(f, sums + ((t * MW + m) * NX + v) * VW, co + m, out + t);
#if DIFFERENCE
            if (raw || !all_finite(out, MZ * MY * RUN)) {
                vec_t copy[MZ * MY * RUN]; /* so that `out` stays in registers */
#pragma unroll
                for (int i = 0; i < MZ * MY * RUN; i++) copy[i] = out[i];
                mend(f, data, w + m, table, ((long)team * NX + v) * VW, co + m, raw, copy);
#pragma unroll
                for (int i = 0; i < MZ * MY * RUN; i++) out[i] = copy[i];
            }
#endif
#if PZ > 1
            for (int r = 0; r < MZ * MY; r++) {
#else
#pragma unroll
            for (int r = 0; r < MZ * MY; r++) {
#endif
#pragma unroll
                for (int i = RUN; i < RUN_POWER; i++) out[r * RUN_POWER + i] = (vec_t)(0);
                spread(out + r * RUN_POWER);
                const long offset = r / MY * z_step + r % MY * y_step;
                const long first = (co + m) * channel_step;
#if STORES_TILES
                if (whole) {
                    __global output_t *own_output = f->output + first;
                    /* Prefetch the next channel's cache lines, which are then written. */
                    for (int i = 0; i < VW; i += RUN < 16 ? 16 / RUN : 1)
                        for (int j = 0; j < RUN; j += 16)
                            PREFETCH_TO_WRITE(own_output + channel_step + strip[0].to + offset +
                                              at[i] + j);
                    store_tiles(out + r * RUN_POWER, own_output + strip[0].to + offset, at);
                    continue;
                }
#endif
                store_pieces(f, out + r * RUN_POWER, co + m, first, x_step, strip, strips, r / MY,
                             r % MY, offset);
            }
        }
    }
}

/* The whole work of work-item number `item`. */
static NOINLINE void winograd_item(const int item, __global const data_t *restrict data,
                                   __global const packed_t *restrict filter,
                                   const struct epilogue *f, __global const long *restrict table,
                                   __local acc_t *restrict local_memory)
{
    const int blocks = (int)table[FOLDED_BLOCKS], all_teams = (int)table[WINOGRAD_TEAMS];
    const int item_teams = (int)table[WINOGRAD_ITEM_TEAMS];
    const int item_blocks = (int)table[WINOGRAD_ITEM_BLOCKS];
    const int block_parts = (blocks + item_blocks - 1) / item_blocks;
    const int team_parts = (all_teams + item_teams - 1) / item_teams;
    const int stride_z = (int)table[FOLDED_STRIDE_Z], stride_y = (int)table[FOLDED_STRIDE_Y];

    /* The work-item's group, phase, blocks and teams. Neighbouring work-items share their
     * weights. */
    int rest = item;
    const int first_team = rest % team_parts * item_teams;
    rest /= team_parts;
    const int first_block = rest % block_parts * item_blocks;
    rest /= block_parts;
    const int ty = rest % stride_y;
    rest /= stride_y;
    const int tz = rest % stride_z, g = rest / stride_z;
    const int teams = min(item_teams, all_teams - first_team);
    const int last_block = min(first_block + item_blocks, blocks);
    if (tz >= table[FOLDED_OUTPUT_Z] || ty >= table[FOLDED_OUTPUT_Y]) return;

    /* The phase's remainder, and the first input that position 0 reads. */
    const int phase_z = tz + (int)table[WINOGRAD_PAD_PHASE_Z];
    const int phase_y = ty + (int)table[WINOGRAD_PAD_PHASE_Y];
    const int remainder = phase_z % stride_z * stride_y + phase_y % stride_y;
    const int z_begin = (int)table[WINOGRAD_SHIFT_Z] + phase_z / stride_z - (TZ - 1);
    const int y_begin = (int)table[WINOGRAD_SHIFT_Y] + phase_y / stride_y - (TY - 1);
    const int phase_x = (int)table[WINOGRAD_PAD_PHASE_X];

    const int in_channels = (int)table[FOLDED_IN_CHANNELS];
    const int out_channels = (int)table[FOLDED_OUT_CHANNELS];
    const int chunk = (int)table[WINOGRAD_CHUNK], slab = (int)table[WINOGRAD_SLAB];
    const int team_elements = AX * POINTS * slab, block_sums = POINTS * RX * MW * NX * VW;
    const struct epilogue epilogue = *f; /* in registers */
    __global const data_t *own_data = data +
                                      (long)g * in_channels * table[FOLDED_DATA_CHANNEL_STEP];
    __global const packed_t *own_filter = filter + HEADER(table) +
                                          (long)(g * stride_z * stride_y + remainder) * blocks *
                                              POINTS * RX * in_channels * MW;
    __local acc_t *sums = local_memory + item_teams * team_elements;

    for (int ci = 0; ci < in_channels; ci += chunk) {
        const int channels = min(chunk, in_channels - ci);
        for (int t = 0; t < teams; t++)
            prepare_team(own_data + ci * table[FOLDED_DATA_CHANNEL_STEP], table,
                         local_memory + t * team_elements, first_team + t, z_begin, y_begin,
                         channels);
        for (int p = 0; p < POINTS; p++)
            for (int rx = 0; rx < RX; rx++) { /* in the order of the weights */
                const int tx = (rx + RX - phase_x) % RX, begin_x = (tx + phase_x) / RX;
                __local const acc_t *in = local_memory +
                                          ((AX > 1 ? begin_x : 0) * POINTS + p) * slab;
                __local acc_t *out = sums + (p * RX + tx) * MW * NX * VW;
                __global const packed_t *w =
                    own_filter + ((long)(p * RX + rx) * blocks + first_block) * in_channels * MW +
                    ci * MW;
                for (int block = first_block; block < last_block; block++, w += in_channels * MW)
                    for (int t = 0; t < teams; t++, out += block_sums)
                        multiply(in + t * team_elements, w, out, channels,
                                 (long)(in_channels - channels) * MW, ci == 0);
            }
    }
    for (int block = first_block; block < last_block; block++)
        for (int t = 0; t < teams; t++, sums += block_sums) {
            const long co = (long)g * out_channels + block * MW;
            const bool raw = DIFFERENCE && filter[g * blocks + block] != 0;
            finish_team(sums, &epilogue, own_data, own_filter + (long)block * in_channels * MW, raw,
                        table, first_team + t, co, min(MW, out_channels - block * MW), tz, ty);
        }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
tconv_winograd(__global const data_t *restrict data, const ulong data_offset,
               __global const packed_t *restrict filter, const ulong filter_offset,
               EPILOGUE_PARAMETERS, __global const long *restrict table,
               __local acc_t *restrict local_memory, SHARE_PARAMETER)
{
    EPILOGUE(epilogue, table)
    EACH_SHARED(i)
    winograd_item(SHARED_GROUP(i), data + data_offset, filter + filter_offset, &epilogue, table,
                  local_memory);
}
