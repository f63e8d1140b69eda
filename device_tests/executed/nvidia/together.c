/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that all lanes of a warp execute together: shuffles, matrices of shared memory, and
 * products of matrices in registers. */
#include "warp.h"

#include <math.h>

enum { SIDE = 8, MOST_MATRICES = 4, MOST_DEPTH = 32 };

bool all_lanes(struct warp *w, const struct operation *op)
{
    if (w->active == ALL_LANES) return true;
    warp_fail(w, op, "%d lanes of warp %d execute it, not all", __builtin_popcount(w->active),
              w->number);
    return false;
}

void meet_in_warp(struct warp *w, const struct operation *op)
{
    if (w->active != w->present)
        warp_fail(w, op, "%d lanes of warp %d come to it, not all %d",
                  __builtin_popcount(w->active), w->number, __builtin_popcount(w->present));
}

/* shfl.sync.MODE.b32 d[|p], a, b, c, mask */
void shuffle(struct warp *w, const struct operation *op)
{
    const char mode = op->name[10];
    uint32_t values[LANES];
    bool there[LANES];
    if (!all_lanes(w, op)) return;
    for (int lane = 0; lane < LANES; lane++) {
        const uint32_t b = (uint32_t)lane_bits(w, &op->slot[2].list[0], lane) & 31;
        const uint32_t c = (uint32_t)lane_bits(w, &op->slot[3].list[0], lane);
        const int clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
        const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        int from = mode == 'u'   ? lane - (int)b
                   : mode == 'd' ? lane + (int)b
                   : mode == 'b' ? lane ^ (int)b
                                 : least | ((int)b & ~segment);
        there[lane] = mode == 'u' ? from >= most : from <= most;
        if (!there[lane]) from = lane;
        values[lane] = word_of(w, &op->slot[1].list[0], from);
    }
    for (int lane = 0; lane < LANES; lane++) {
        put_lane(w, &op->slot[0].list[0], lane, values[lane]);
        if (op->slot[0].count > 1) put_lane(w, &op->slot[0].list[1], lane, there[lane]);
    }
}

/* ---- matrices of 8 by 8 elements of 16 bits ---- */

/* The element in a row and column of a matrix that lanes have as ldmatrix gives it. */
static uint16_t element(const uint32_t words[LANES], int row, int column)
{
    return (uint16_t)(words[4 * row + column / 2] >> 16 * (column % 2));
}

static void transpose(const uint32_t from[LANES], uint32_t to[LANES])
{
    for (int lane = 0; lane < LANES; lane++)
        to[lane] = element(from, 2 * (lane % 4), lane / 4) |
                   (uint32_t)element(from, 2 * (lane % 4) + 1, lane / 4) << 16;
}

/* Moves the rows of matrix m, whose addresses lanes 8 * m to 8 * m + 7 have. */
static bool move_rows(struct warp *w, const struct operation *op, const struct slot *address, int m,
                      uint32_t words[LANES], bool writes)
{
    for (int row = 0; row < SIDE; row++) {
        const int lane = SIDE * m + row;
        uint8_t *bytes = accessed(w, op, IN_SHARED, lane, address_of(w, address, lane), 16, writes);
        if (bytes == NULL) return false;
        if (writes)
            memcpy(bytes, &words[4 * row], 16);
        else
            memcpy(&words[4 * row], bytes, 16);
    }
    return true;
}

void load_matrices(struct warp *w, const struct operation *op)
{
    const struct slot *to = &op->slot[0];
    uint32_t words[MOST_MATRICES][LANES], turned[LANES];
    if (!all_lanes(w, op)) return;
    for (int m = 0; m < to->count; m++)
        if (!move_rows(w, op, &op->slot[1], m, words[m], false)) return;
    for (int m = 0; m < to->count; m++) {
        transpose(words[m], turned);
        put_all(w, &to->list[m], op->transposed ? turned : words[m]);
    }
}

void store_matrices(struct warp *w, const struct operation *op)
{
    const struct slot *from = &op->slot[1];
    if (!all_lanes(w, op)) return;
    for (int m = 0; m < from->count; m++) {
        uint32_t words[LANES], turned[LANES];
        for (int lane = 0; lane < LANES; lane++) words[lane] = word_of(w, &from->list[m], lane);
        transpose(words, turned);
        if (!move_rows(w, op, &op->slot[0], m, op->transposed ? turned : words, true)) return;
    }
}

void transpose_matrix(struct warp *w, const struct operation *op)
{
    uint32_t words[LANES], turned[LANES];
    if (!all_lanes(w, op)) return;
    for (int lane = 0; lane < LANES; lane++) words[lane] = word_of(w, &op->slot[1].list[0], lane);
    transpose(words, turned);
    put_all(w, &op->slot[0].list[0], turned);
}

/* ---- mma.sync: D = A * B + C, of 16 rows and 8 columns ---- */

/* Factor i of a word. */
static double factor(uint32_t word, int i, enum number_type type)
{
    switch (type) {
    case F16: return (double)half_to_float((uint16_t)(word >> 16 * i));
    case BF16: return (double)float_of(word >> 16 * i << 16);
    case TF32: return (double)float_of(word & 0xffffe000u);
    case U8: return (uint8_t)(word >> 8 * i);
    case S8: return (int8_t)(word >> 8 * i);
    default: return (double)NAN;
    }
}

/* Sets a factor for each word of a slot: word r of a lane has factors of row lane / 4, plus 8 for
 * odd r of A, from `in_word` * (lane % 4 + 4 * part) on. */
static void read_factors(const struct warp *w, const struct slot *slot, enum number_type type,
                         int depth, bool rows_of_16, double *factors)
{
    const int in_word = depth / (rows_of_16 ? slot->count / 2 : slot->count) / 4;
    for (int r = 0; r < slot->count; r++)
        for (int lane = 0; lane < LANES; lane++) {
            const uint32_t word = word_of(w, &slot->list[r], lane);
            const int row = lane / 4 + (rows_of_16 ? SIDE * (r % 2) : 0);
            const int first = in_word * (lane % 4 + 4 * (rows_of_16 ? r / 2 : r));
            for (int i = 0; i < in_word; i++)
                factors[row * MOST_DEPTH + first + i] = factor(word, i, type);
        }
}

/* The types are those of D, A, B and C, of which `to` and `from` are the first two. */
static enum number_type type_of_b(const struct operation *op)
{
    if (op->from != S8 && op->from != U8) return op->from;
    const char *first = strstr(op->name, op->from == S8 ? ".s8" : ".u8");
    return strncmp(first + 3, ".s8", 3) == 0 ? S8 : U8;
}

void multiply_matrices(struct warp *w, const struct operation *op)
{
    double a[2 * SIDE * MOST_DEPTH], b[SIDE * MOST_DEPTH];
    uint32_t sums[4][LANES];
    if (!all_lanes(w, op)) return;
    if (op->rows != 16 || op->columns != 8 || op->depth > MOST_DEPTH || op->slot[3].count != 4 ||
        (op->to != F32 && op->to != S32)) {
        unknown_operation(w, op);
        return;
    }
    read_factors(w, &op->slot[1], op->from, op->depth, true, a);
    read_factors(w, &op->slot[2], type_of_b(op), op->depth, false, b);
    for (int s = 0; s < 4; s++)
        for (int lane = 0; lane < LANES; lane++) {
            const int row = lane / 4 + SIDE * (s / 2), column = 2 * (lane % 4) + s % 2;
            const uint32_t before = word_of(w, &op->slot[3].list[s], lane);
            double sum = 0; /* exact for bytes */
            for (int k = 0; k < op->depth; k++)
                sum += a[row * MOST_DEPTH + k] * b[column * MOST_DEPTH + k];
            sums[s][lane] = op->to == S32 ? before + (uint32_t)(int32_t)sum
                                          : bits_of((float)(sum + (double)float_of(before)));
        }
    for (int s = 0; s < 4; s++) put_all(w, &op->slot[0].list[s], sums[s]);
}
