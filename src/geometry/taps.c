/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the phases of one axis: taps.h explains them. */
#include "geometry/taps.h"

#include "base/checked.h"

#include <stdlib.h>

int64_t tconv_tap_step(const struct tconv_axis *axis)
{
    return axis->stride / tconv_common_divisor(axis->stride, axis->dilation);
}

int64_t tconv_input_step(const struct tconv_axis *axis)
{
    return axis->dilation / tconv_common_divisor(axis->stride, axis->dilation);
}

int64_t tconv_most_taps(const struct tconv_axis *axis)
{
    return tconv_ceil_div(axis->kernel, tconv_tap_step(axis));
}

void tconv_find_phases(const struct tconv_axis *axis, struct tconv_phase *phases)
{
    const int64_t step = tconv_tap_step(axis);
    for (int64_t r = 0; r < axis->stride; r++) phases[r] = (struct tconv_phase){0, 0, 0};
    for (int64_t k = 0; k < tconv_min(step, axis->kernel); k++) {
        const int64_t reached = k * axis->dilation; /* o + pad of input 0 */
        phases[reached % axis->stride] =
            (struct tconv_phase){tconv_ceil_div(axis->kernel - k, step), k, reached / axis->stride};
    }
}

struct tconv_phase *tconv_phases_of(const struct tconv_axis *axis)
{
    struct tconv_phase *phases = malloc((size_t)axis->stride * sizeof *phases);
    if (phases != NULL) tconv_find_phases(axis, phases);
    return phases;
}

const struct tconv_phase *tconv_phase_of(const struct tconv_axis *axis,
                                         const struct tconv_phase *phases, int64_t output)
{
    return &phases[tconv_mod(output + axis->pad, axis->stride)];
}

struct tconv_reach tconv_reach_of(const struct tconv_axis *axis, const struct tconv_phase *phases,
                                  int64_t output)
{
    const struct tconv_phase *phase = tconv_phase_of(axis, phases, output);
    if (phase->taps == 0) return (struct tconv_reach){0, 0, 0};
    const int64_t common = tconv_common_divisor(axis->stride, axis->dilation),
                  step = axis->dilation / common;
    const int64_t input = tconv_floor_div(output + axis->pad, axis->stride) -
                          phase->shift; /* of tap 0 of the phase */
    const int64_t past = input - (axis->input - 1);
    const int64_t from = past <= 0 ? 0 : tconv_ceil_div(past, step);
    const int64_t to = input >= (phase->taps - 1) * step ? phase->taps
                                                         : tconv_floor_div(input, step) + 1;
    if (from >= to) return (struct tconv_reach){0, 0, 0};
    return (struct tconv_reach){to - from, phase->first + from * (axis->stride / common),
                                input - from * step};
}
