/* SPDX-License-Identifier: Apache-2.0 */
/* Asks whether a CPU's products of words are right, by a kernel of their own: probe.h. */
#include "plan/probe.h"

#include "base/error.h"
#include "common/words_probe.h"
#include "device/device.h"
#include "plan/probe_parts.h"

#include <stdio.h>
#include <string.h>

enum { MOST_LANES = 16 };

/* The words that are multiplied: the extremes that they may hold, and others. */
static uint32_t probe_data(bool floating, int word, int i)
{
    static const uint32_t brains[PROBE_WORDS] = {0x3f80c000, 0x4000bf80, 0x42ff0000, 0x404043ab};
    static const uint32_t quads[PROBE_WORDS] = {0xffffffff, 0x80ff017f, 0x00010203, 0xfffefdfc};
    static const uint32_t pairs[PROBE_WORDS] = {0xff01ff01, 0x00ffff01, 0x000300fa, 0xfffe00ff};
    return floating ? brains[i] : word == 4 ? quads[i] : pairs[i];
}

static uint32_t probe_weights(bool floating, int word, int i, int lane)
{
    static const uint32_t brains[] = {0x3f804000, 0xc2fe4040, 0x00003f00, 0x41d0be80, 0xbf803f80};
    static const uint32_t quads[] = {0x80808080, 0x7f7f7f7f, 0x807f01ff, 0x10e02030, 0x00000080};
    static const uint32_t pairs[] = {0xff01ff01, 0x00ff00ff, 0xff0100ff, 0x00030007, 0x0000ff80};
    return (floating ? brains : word == 4 ? quads : pairs)[(i * 3 + lane) % 5];
}

static uint32_t probe_start(bool floating, int lane)
{
    return floating ? 0x41200000u : 0x7fffff00u + (uint32_t)lane * 0x1000001u;
}

/* A number of a word, of `bits` bits, with its sign. */
static int32_t signed_number(uint32_t word, int bits, int i)
{
    const uint32_t number = word >> bits * i & ((1u << bits) - 1);
    return (int32_t)number - (number >> (bits - 1) != 0 ? 1 << bits : 0);
}

static uint32_t probe_sum(int word, int lane)
{
    const int bits = 32 / word;
    uint32_t sum = probe_start(false, lane);
    for (int i = 0; i < PROBE_WORDS; i++)
        for (int n = 0; n < word; n++) {
            const uint32_t data = probe_data(false, word, i);
            const int32_t x = word == 4 ? (int32_t)(data >> 8 * n & 0xff)
                                        : signed_number(data, bits, n);
            sum += (uint32_t)(x * signed_number(probe_weights(false, word, i, lane), bits, n));
        }
    return sum;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The same for bf16: a sum that no order of additions rounds. */
static float probe_float_sum(int lane)
{
    float sum = float_of(probe_start(true, lane));
    for (int i = 0; i < PROBE_WORDS; i++)
        for (int n = 0; n < 2; n++)
            sum += float_of(probe_data(true, 2, i) >> 16 * n << 16) *
                   float_of(probe_weights(true, 2, i, lane) >> 16 * n << 16);
    return sum;
}

/* A number in the middle between two elements of bf16 becomes the even one. */
static uint16_t rounded_to_bf16(uint32_t bits)
{
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static bool sum_is_right(bool floating, int word, int lane, uint32_t sum, uint16_t rounded)
{
    return floating ? float_of(sum) == probe_float_sum(lane) && rounded == rounded_to_bf16(sum)
                    : sum == probe_sum(word, lane);
}

static tconv_status enqueue_words(const struct tconv_probe *p, cl_program program,
                                  tconv_error *error)
{
    const size_t one = 1;
    const char *call = "clCreateKernel";
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, "tconv_words_probe", &code);
    if (code == CL_SUCCESS) {
        call = "clSetKernelArg";
        code = clSetKernelArg(kernel, 0, sizeof p->output, &p->output);
    }
    if (code == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        code = clEnqueueNDRangeKernel(p->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    }
    if (kernel != NULL) clReleaseKernel(kernel);
    if (code == CL_SUCCESS) return TCONV_OK;
    return tconv_fail_opencl(error, code, call, "trying the processor's dot products");
}

static tconv_status run_words(struct tconv_probe *p, tconv_device *device, tconv_type type,
                              int word, bool *right, tconv_error *error)
{
    const tconv_device_info *info = tconv_device_properties(device);
    const int lanes = info->vector_width < MOST_LANES ? (int)info->vector_width : MOST_LANES;
    uint32_t numbers[PROBE_WORDS + (PROBE_WORDS + 2) * MOST_LANES] = {0};
    uint16_t rounded[MOST_LANES];
    uint32_t *weights = numbers + PROBE_WORDS, *sums = weights + PROBE_WORDS * lanes;
    const bool floating = tconv_type_is_floating(type);
    char options[300];
    cl_program program = NULL;
    tconv_status status;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 %s -DPACKED=u32 -DQUANTIZED=0 -DRAW=0 -DUSE_FMA=0 -DWORD=%d -DDOTS=%d "
             "-DVW=%d",
             floating ? "-DDATA=bf16 -DFILTER=bf16 -DOUTPUT=f32 -DBIAS_TYPE=f32 -DACC=float "
                        "-DRESULT=float"
                      : "-DDATA=u8 -DFILTER=i8 -DOUTPUT=i32 -DBIAS_TYPE=i32 -DACC=uint "
                        "-DRESULT=uint",
             word, tconv_dots(info, type), lanes);
    for (int i = 0; i < PROBE_WORDS; i++) {
        numbers[i] = probe_data(floating, word, i);
        for (int lane = 0; lane < lanes; lane++)
            weights[i * lanes + lane] = probe_weights(floating, word, i, lane);
    }
    for (int lane = 0; lane < lanes; lane++) sums[lane] = probe_start(floating, lane);
    if ((status = tconv_device_program(device, "cpu/parts/words_probe.cl", options, &p->retry,
                                       &program, error)) != TCONV_OK)
        return status;
    if ((status = tconv_probe_queue(device, &p->queue, error)) == TCONV_OK &&
        (status = tconv_probe_buffer(device, sizeof numbers, numbers, &p->output, error)) ==
            TCONV_OK &&
        (status = enqueue_words(p, program, error)) == TCONV_OK)
        status = tconv_probe_read(p, numbers, sizeof numbers, error);
    clReleaseProgram(program);
    memcpy(rounded, sums + lanes, (size_t)lanes * sizeof *rounded);
    *right = true;
    for (int lane = 0; lane < lanes; lane++)
        *right = *right && sum_is_right(floating, word, lane, sums[lane], rounded[lane]);
    return status;
}

tconv_status tconv_probe_words(tconv_device *device, tconv_type type, int word,
                               struct tconv_retry *retry, bool *right, tconv_error *error)
{
    /* Which type of bytes does not matter. */
    const char *name = type == TCONV_BF16 ? "words of bf16"
                       : word == 4        ? "words of 4 bytes"
                                          : "words of 2 bytes";
    bool known;
    atomic_int *verdict = tconv_probe_verdict(device, name, &known, right, error);
    if (verdict == NULL) return TCONV_ERROR_HOST_MEMORY;
    if (known) return TCONV_OK;
    struct tconv_probe p = {.retry = {.begun = retry->begun, .insist = retry->insist}};
    tconv_error own;
    const tconv_status status = run_words(&p, device, type, word, right, &own);
    tconv_probe_clear(&p);
    tconv_retry_join(retry, &p.retry);
    return tconv_probe_keep(verdict, status, &own, &p.retry, right, error);
}
