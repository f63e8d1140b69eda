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
