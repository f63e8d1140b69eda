/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as the bits of registers, and random ones. */
#ifndef DEVICE_TESTS_EXECUTED_NUMBERS_H
#define DEVICE_TESTS_EXECUTED_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A number whose bits are those of another type's number. */
#define SAME_BITS(name, type, other)                                                               \
    static inline type name(other number)                                                          \
    {                                                                                              \
        type same;                                                                                 \
        memcpy(&same, &number, sizeof same);                                                       \
        return same;                                                                               \
    }
SAME_BITS(float_of, float, uint32_t)
SAME_BITS(bits_of, uint32_t, float)
SAME_BITS(double_of, double, uint64_t)
SAME_BITS(wide_bits_of, uint64_t, double)

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value); /* to nearest, ties to even */

static inline bool bit(uint64_t bits, int number)
{
    return bits >> number & 1;
}

/* 31 random bits; changes the state. */
uint64_t random_number(uint64_t *state);

#endif
