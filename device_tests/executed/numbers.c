/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits, and random ones. */
#include "numbers.h"

#include <CL/cl_half.h>

float half_to_float(uint16_t bits)
{
    return cl_half_to_float(bits);
}

uint16_t float_to_half(float value)
{
    return cl_half_from_float(value, CL_HALF_RTE);
}

uint64_t random_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t random_step(uint64_t *state, uint64_t count)
{
    uint64_t step = 1;
    if (*state == 0 || count < 3) return step;
    do step = 1 + random_number(state) % (count - 1);
    while (common_divisor(step, count) != 1);
    return step;
}
