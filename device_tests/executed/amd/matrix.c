/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the matrix units: wmma of gfx11 and gfx12, mfma of CDNA. They compute
 * D = C + A * B, each matrix spread over the lanes of a wave, with 16 rows and 16 columns. */
#include "wave.h"

enum { SIDE = 16, MOST_DEPTH = 16, MOST_SUMS = 8 };

/* Factor k of a row of A, or of a column of B, as the words of one lane have it. */
static double factor(const struct wave *w, const struct operand *o, int lane, int k,
                     enum number_type type, bool is_signed)
{
    if (type == F32) return (double)float_of(raw_word(w, o, lane, k));
    if (type == BYTES) {
        const uint8_t byte = (uint8_t)(raw_word(w, o, lane, k / 4) >> 8 * (k % 4));
        return is_signed ? (int8_t)byte : byte;
    }
    const uint16_t half = (uint16_t)(raw_word(w, o, lane, k / 2) >> 16 * (k % 2));
    return (double)(type == F16 ? half_to_float(half) : float_of((uint32_t)half << 16));
}

/* The parts into which a row's factors are divided: lane r + 16 * p has part p of row r. It is 4
 * for mfma and 2 for wmma of gfx12. It is 1 for wmma of gfx11, where lanes r and r + 16 must both
 * have all factors. */
static int parts_of(const struct operation *op)
{
    const int in_word = op->type == F32 ? 1 : op->type == BYTES ? 4 : 2;
    return op->depth / (op->operand[1].count * in_word);
}

/* Reads A or B. */
static bool read_factors(struct wave *w, const struct operation *op, int source,
                         double factors[SIDE][MOST_DEPTH])
{
    const int depth = op->depth, parts = parts_of(op), each = depth / parts;
    const struct operand *o = &op->operand[source];
    const bool is_signed = bit(op->negate_low, source - 1);
    for (int r = 0; r < SIDE; r++)
        for (int k = 0; k < depth; k++) {
            const int lane = r + SIDE * (k / each);
            factors[r][k] = factor(w, o, lane, k % each, op->type, is_signed);
            if (parts != 1) continue;
            const double other = factor(w, o, lane + SIDE, k, op->type, is_signed);
            if (other != factors[r][k] && !isnan(other)) {
                wave_fail(w, op, "lanes %d and %d have different factors", lane, lane + SIDE);
                return false;
            }
        }
    return true;
}

/* The row of sum `s` of a lane; its column is lane % 16. gfx11 gives even rows to one half of the
 * lanes and odd rows to the other; the other units give each 16 lanes neighbouring rows. */
static int row_of(int parts, int lane, int s)
{
    return parts == 1 ? 2 * s + lane / SIDE : SIDE / parts * (lane / SIDE) + s;
}

void multiply_matrices(struct wave *w, const struct operation *op)
{
    const int sums = SIDE * SIDE / w->lanes, parts = parts_of(op);
    const uint64_t all = w->lanes == 32 ? UINT32_MAX : UINT64_MAX;
    double a[SIDE][MOST_DEPTH], b[SIDE][MOST_DEPTH];
    uint32_t result[MOST_SUMS][MOST_LANES];
    if (w->lanes != (parts == 4 ? 64 : 32)) {
        wave_fail(w, op, "a wave of %d lanes has another layout", w->lanes);
        return;
    }
    if (register_mask(w, EXEC) != all) {
        wave_fail(w, op, "some lanes do not execute it");
        return;
    }
    if (!read_factors(w, op, 1, a) || !read_factors(w, op, 2, b)) return;
    for (int lane = 0; lane < w->lanes; lane++)
        for (int s = 0; s < sums; s++) {
            const int row = row_of(parts, lane, s), column = lane % SIDE;
            const struct operand *c = &op->operand[3];
            const uint32_t before = c->kind == LITERAL ? c->word : raw_word(w, c, lane, s);
            if (op->type == BYTES) {
                int64_t sum = (int32_t)before;
                for (int k = 0; k < op->depth; k++) sum += (int64_t)(a[row][k] * b[column][k]);
                result[s][lane] = (uint32_t)sum;
            } else {
                float sum = float_of(before);
                for (int k = 0; k < op->depth; k++)
                    sum = (float)((double)sum + a[row][k] * b[column][k]);
                result[s][lane] = bits_of(sum);
            }
        }
    for (int lane = 0; lane < w->lanes; lane++)
        for (int s = 0; s < sums; s++) put_word(w, &op->operand[0], lane, s, result[s][lane]);
}
