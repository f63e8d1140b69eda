/* SPDX-License-Identifier: Apache-2.0 */
/* Divides by numbers that the host knows with a multiplication and shifts: a division takes 25
 * instructions on GPUs. Read by the host (C) and by the kernels (OpenCL C).
 *
 * A divisor d, 1 <= d < 2^26, is one number of the table: d in the bits below 26; in the bits from
 * 26 on l, with 2^l >= d > 2^(l - 1); in the bits from 32 on factor = ceil(2^(31 + l) / d). For 0
 * <= n < 2^31 floor(n / d) is (2 n * factor >> 32) >> l (Granlund and Montgomery, "Division by
 * Invariant Integers using Multiplication", 1994). */
#ifndef TCONV_DIVISOR_H
#define TCONV_DIVISOR_H

enum { DIVISOR_BITS = 26 };

#ifdef __OPENCL_VERSION__
#include "common/types.clh"

/* The number d. */
static int divisor_of(const long divisor)
{
    return (int)divisor & ((1 << DIVISOR_BITS) - 1);
}

/* Divides `number`, and returns the remainder. */
static int split(int *number, const long divisor)
{
    const int before = *number;
    *number = (int)(mul_hi((uint)before * 2, (uint)((ulong)divisor >> 32)) >>
                    ((uint)divisor >> DIVISOR_BITS));
    return before - *number * divisor_of(divisor);
}
#endif

#endif
