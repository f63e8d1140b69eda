/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as the bits of registers, and random ones. */
#ifndef DEVICE_TESTS_EXECUTED_NUMBERS_H
#define DEVICE_TESTS_EXECUTED_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t wide_bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value); /* to nearest, ties to even */

static inline bool bit(uint64_t bits, int number)
{
    return bits >> number & 1;
}

/* 31 random bits; changes the state. */
uint64_t random_number(uint64_t *state);

/* A step with which g * step % count comes to each number below `count` once, g from 0 to count -
 * 1: 1 if the state is 0, else a random one. For the order of a launch's work-groups. */
uint64_t random_step(uint64_t *state, uint64_t count);

#endif
