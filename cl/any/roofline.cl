/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that measure the two ceilings of a device for `tconv-cl bench`: f32 multiply-adds and
 * memory bandwidth. Not a part of the library.
 *
 *   macro    meaning                                   legal values
 *   VW       lanes of a vector                         1, 2, 4, 8, 16
 *   CHAINS   independent sums of a work-item           1 to 32
 *   USE_FMA  as in common.clh                          0, 1
 *   CHUNK    vectors that a work-item of triad moves   at least 1 */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if VW == 1
typedef float vec_t;
#define LOAD(i, p) ((p)[i])
#define STORE(v, i, p) ((p)[i] = (v))
#else
typedef PASTE(float, VW) vec_t;
#define LOAD(i, p) PASTE(vload, VW)(i, p)
#define STORE(v, i, p) PASTE(vstore, VW)(v, i, p)
#endif
#if USE_FMA
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
#pragma OPENCL FP_CONTRACT ON
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

/* steps * CHAINS * VW multiply-adds in each work-item. Neighbouring chains do not depend on each
 * other. */
__kernel void peak(__global float *out, const float a, const float b, const int steps)
{
    vec_t sum[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; c++) sum[c] = (vec_t)((float)(c + get_global_id(0)));
    for (int s = 0; s < steps; s++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++) sum[c] = MULTIPLY_ADD(sum[c], (vec_t)(a), (vec_t)(b));
    }
#pragma unroll
    for (int c = 1; c < CHAINS; c++) sum[0] += sum[c];
    float lanes[VW];
    STORE(sum[0], 0, lanes);
    float all = 0;
    for (int i = 0; i < VW; i++) all += lanes[i];
    out[get_global_id(0)] = all;
}

/* a = b + s * c; 12 bytes for each element. Neighbouring work-items of a group take neighbouring
 * vectors. */
__kernel void triad(__global float *restrict a, __global const float *restrict b,
                    __global const float *restrict c, const float s)
{
    const size_t first = get_group_id(0) * get_local_size(0) * CHUNK + get_local_id(0);
    for (size_t i = 0; i < CHUNK; i++) {
        const size_t at = first + i * get_local_size(0);
        STORE(MULTIPLY_ADD(LOAD(at, c), (vec_t)(s), LOAD(at, b)), at, a);
    }
}

/* Does nothing, to measure the time of a launch. */
__kernel void empty(void)
{
}
