/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma: products of matrices of a warpgroup, four warps, that are made after the operation and
 * before a wait. They read factors in shared memory by the asynchronous proxy. Until the wait, the
 * registers of the sums are NaN, and nobody may write the factors. */
#include "warp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_PRODUCTS = 64,
    ROWS = 64,
    CHUNKS = 2,
    CHUNK_BYTES = 16,
    MOST_FACTORS = 32,
    MOST_COLUMNS = 256,
    IN_REGISTERS = 4
};

/* A product under way. Its descriptors say where factors are; a is 0 for factors in registers. */
struct product {
    const struct operation *op;
    uint64_t a, b;
    uint32_t group;
    uint8_t waited; /* a bit of each warp */
};

struct products {
    struct product list[MOST_PRODUCTS];
    int count;
    uint32_t committed[WARPGROUP];
    uint8_t *flying[WARPGROUP]; /* products under way that write a register, by its number */
};

bool products_begin(struct group *group)
{
    const int groups = group->warp_count / WARPGROUP;
    const size_t registers = group->kernel->register_bytes / LANES + 1;
    group->products = calloc((size_t)groups + 1, sizeof *group->products);
    if (group->products == NULL) return false;
    for (int i = 0; i < groups * WARPGROUP; i++) {
        uint8_t **flying = &group->products[i / WARPGROUP].flying[i % WARPGROUP];
        *flying = calloc(registers, 1);
        if (*flying == NULL) return false;
    }
    return true;
}

void products_free(struct group *group)
{
    const int groups = group->warp_count / WARPGROUP;
    for (int i = 0; i < groups * WARPGROUP && group->products != NULL; i++)
        free(group->products[i / WARPGROUP].flying[i % WARPGROUP]);
    free(group->products);
}

bool products_are_running(const struct group *group)
{
    int count = 0;
    for (int g = 0; g < group->warp_count / WARPGROUP; g++) count += group->products[g].count;
    return count != 0;
}

static struct products *products_of(const struct warp *w)
{
    return &w->group->products[w->number / WARPGROUP];
}

/* ---- factors ---- */

/* The address of 16 bytes of a row. Without a swizzle, 8 rows of 16 bytes are neighbours. A swizzle
 * changes bits 4 to 6 of an address by bits 7 to 9. */
static uint64_t chunk_at(uint64_t descriptor, int row, int chunk)
{
    static const uint32_t mask[4] = {0, 7, 3, 1}, row_bytes[4] = {16, 128, 64, 32};
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4;
    const uint32_t leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4;
    const uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    const int swizzle = (int)(descriptor >> 62);
    const uint32_t step = swizzle == 0 ? leading : CHUNK_BYTES;
    const uint32_t at = start + (uint32_t)(row / 8) * stride +
                        (uint32_t)(row % 8) * row_bytes[swizzle] + (uint32_t)chunk * step;
    return at ^ (at >> 7 & mask[swizzle]) << 4;
}

static double factor(const uint8_t *bytes, int i, enum number_type type)
{
    uint16_t half;
    uint32_t word;
    memcpy(&half, bytes + 2 * (i % 8), 2);
    memcpy(&word, bytes + 4 * (i % 4), 4);
    switch (type) {
    case F16: return (double)half_to_float(half);
    case BF16: return (double)float_of((uint32_t)half << 16);
    case TF32: return (double)float_of(word & 0xffffe000u);
    case U8: return bytes[i];
    case S8: return (int8_t)bytes[i];
    default: return (double)NAN;
    }
}

/* Reads rows that a descriptor names, and marks them as read by a product. */
static bool read_factors(struct warp *w, const struct operation *op, uint64_t descriptor, int rows,
                         enum number_type type, double (*factors)[MOST_FACTORS])
{
    const int each = op->depth / CHUNKS;
    if ((descriptor >> 49 & 7) != 0) {
        warp_fail(w, op, "a descriptor with a base offset is refused: let chunk_at add it");
        return false;
    }
    for (int row = 0; row < rows; row++)
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
            char why[200];
            const uint64_t at = chunk_at(descriptor, row, chunk);
            const uint8_t *bytes = shared_access(&w->group->shared, at, CHUNK_BYTES, CHUNK_BYTES,
                                                 w->number, PRODUCT_READS, why, sizeof why);
            if (bytes == NULL) {
                warp_fail(w, op, "row %d of a factor: warp %d %s", row, w->number, why);
                return false;
            }
            for (int i = 0; i < each; i++) factors[row][chunk * each + i] = factor(bytes, i, type);
            shared_product(&w->group->shared, at, CHUNK_BYTES, 1);
        }
    return true;
}

static void release_factors(struct group *group, uint64_t descriptor, int rows)
{
    for (int row = 0; row < rows; row++)
        for (int chunk = 0; chunk < CHUNKS; chunk++)
            shared_product(&group->shared, chunk_at(descriptor, row, chunk), CHUNK_BYTES, -1);
}

/* The first factor, in four registers of each warp, as mma.sync has it. */
static void read_registers(const struct warp *warps, const struct operation *op,
                           double (*factors)[MOST_FACTORS])
{
    const int in_word = op->depth / 8;
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < op->depth; k++) {
            const int lane = 4 * (row % 8) + k / in_word % 4;
            const int number = row % 16 / 8 + 2 * (k / in_word / 4);
            const uint32_t word = word_of(&warps[row / 16], &op->slot[1].list[number], lane);
            uint8_t bytes[CHUNK_BYTES];
            memcpy(bytes, &word, sizeof word);
            factors[row][k] = factor(bytes, k % in_word, op->from);
        }
}

/* ---- products ---- */

/* The second factor's type stands behind the first's. */
static enum number_type type_of_b(const struct operation *op)
{
    return op->from == S8 || op->from == U8 ? op->type : op->from;
}

/* Sum number s of a lane of one of four warps. */
static uint32_t sum_of(const struct operation *op, uint32_t before, int row, int column,
                       const double (*a)[MOST_FACTORS], const double (*b)[MOST_FACTORS])
{
    double sum = 0;
    for (int k = 0; k < op->depth; k++) sum += a[row][k] * b[column][k];
    if (op->to == S32) return before + (uint32_t)(int32_t)sum;
    return bits_of((float)(sum + (double)float_of(before)));
}

static void add_products(struct group *group, int warpgroup, const struct operation *op, bool adds,
                         const double (*a)[MOST_FACTORS], const double (*b)[MOST_FACTORS])
{
    struct products *products = &group->products[warpgroup];
    for (int i = 0; i < WARPGROUP; i++) {
        struct warp *w = &group->warps[warpgroup * WARPGROUP + i];
        for (int s = 0; s < op->slot[0].count; s++) {
            const struct operand *o = &op->slot[0].list[s];
            uint8_t *flying = &products->flying[i][o->offset / LANES];
            bits32 *sums = (bits32 *)(void *)(w->sums + o->offset);
            bits32 *registers = (bits32 *)(void *)(w->registers + o->offset);
            for (int lane = 0; lane < LANES; lane++) {
                const int row = 16 * i + lane / 4 + 8 * (s / 2 % 2);
                const int column = 8 * (s / 4) + 2 * (lane % 4) + s % 2;
                const uint32_t before = !adds ? 0 : *flying ? sums[lane] : registers[lane];
                sums[lane] = sum_of(op, before, row, column, a, b);
                registers[lane] = UINT32_MAX; /* NaN */
            }
            ++*flying;
        }
    }
}

static const char *refusal(const struct group *group, int warpgroup, const struct operation *op)
{
    const struct warp *warps = &group->warps[warpgroup * WARPGROUP];
    for (int i = 0; i < WARPGROUP; i++)
        if (warps[i].unfenced) return "no wgmma.fence stands behind what wrote the sums";
    for (int i = 6; i < op->slot_count; i++)
        if (lane_bits(warps, &op->slot[i].list[0], 0) != 0)
            return "transposed factors are refused: let read_factors transpose them";
    for (int i = 4; i < op->slot_count && i < 6; i++)
        if (lane_bits(warps, &op->slot[i].list[0], 0) != 1)
            return "negated factors are refused: let sum_of negate them";
    for (int i = 0; i < WARPGROUP; i++)
        for (int lane = 0; lane < LANES; lane++)
            for (int slot = 1; slot < 4; slot++)
                if (op->slot[slot].count == 1 &&
                    lane_bits(&warps[i], &op->slot[slot].list[0], lane) !=
                        lane_bits(warps, &op->slot[slot].list[0], 0))
                    return "the lanes' descriptors differ";
    if (group->products[warpgroup].count == MOST_PRODUCTS) return "too many products are under way";
    if (op->rows != ROWS || op->columns > MOST_COLUMNS || op->columns * 2 != op->slot[0].count * 4)
        return "this shape is refused: let add_products place its sums in registers";
    return op->to == F32 || op->to == S32 ? NULL
                                          : "sums of this type are refused: let sum_of round to it";
}

void products_run(struct group *group, int warpgroup)
{
    static double a[ROWS][MOST_FACTORS], b[MOST_COLUMNS][MOST_FACTORS];
    struct products *products = &group->products[warpgroup];
    struct warp *warps = &group->warps[warpgroup * WARPGROUP];
    const struct operation *op = warps->product;
    const char *why = refusal(group, warpgroup, op);
    if (why != NULL) {
        warp_fail(warps, op, "%s", why);
        return;
    }
    const bool in_registers = op->slot[1].count == IN_REGISTERS;
    struct product *product = &products->list[products->count];
    *product = (struct product){.op = op,
                                .a = in_registers ? 0 : lane_bits(warps, &op->slot[1].list[0], 0),
                                .b = lane_bits(warps, &op->slot[2].list[0], 0),
                                .group = products->committed[0]};
    if (in_registers)
        read_registers(warps, op, a);
    else if (!read_factors(warps, op, product->a, ROWS, op->from, a))
        return;
    if (!read_factors(warps, op, product->b, op->columns, type_of_b(op), b)) return;
    const bool adds = lane_bits(warps, &op->slot[3].list[0], 0) != 0;
    add_products(group, warpgroup, op, adds, (const double(*)[MOST_FACTORS])a,
                 (const double(*)[MOST_FACTORS])b);
    products->count++;
    for (int i = 0; i < WARPGROUP; i++) warps[i].state = RUNNING;
}

void multiply_later(struct warp *w, const struct operation *op)
{
    if (!all_lanes(w, op)) return;
    w->state = AT_PRODUCT;
    w->product = op;
}

void fence_products(struct warp *w, const struct operation *op)
{
    if (all_lanes(w, op)) w->unfenced = false;
}

void commit_products(struct warp *w, const struct operation *op)
{
    if (all_lanes(w, op)) products_of(w)->committed[w->number % WARPGROUP]++;
}

/* Gives a warp the sums of a product, unless others that follow it write them, too. */
static void end_product(struct warp *w, const struct product *product)
{
    uint8_t *flying = products_of(w)->flying[w->number % WARPGROUP];
    for (int s = 0; s < product->op->slot[0].count; s++) {
        const struct operand *o = &product->op->slot[0].list[s];
        if (--flying[o->offset / LANES] == 0)
            memcpy(w->registers + o->offset, w->sums + o->offset, 4 * LANES);
    }
}

void wait_for_products(struct warp *w, const struct operation *op)
{
    struct products *products = products_of(w);
    const int me = w->number % WARPGROUP;
    const uint32_t left = (uint32_t)lane_bits(w, &op->slot[0].list[0], 0);
    int kept = 0;
    if (!all_lanes(w, op)) return;
    for (int i = 0; i < products->count; i++) {
        struct product product = products->list[i];
        if (!bit(product.waited, me) && product.group + left < products->committed[me]) {
            product.waited |= (uint8_t)(1 << me);
            end_product(w, &product);
        }
        if (product.waited != (1 << WARPGROUP) - 1) {
            products->list[kept++] = product;
            continue;
        }
        if (product.a != 0) release_factors(w->group, product.a, ROWS);
        release_factors(w->group, product.b, product.op->columns);
    }
    products->count = kept;
}

void fence_proxy(struct warp *w, const struct operation *op)
{
    (void)op;
    shared_fence_proxy(&w->group->shared, w->number);
}
