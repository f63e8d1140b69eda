/* SPDX-License-Identifier: Apache-2.0 */
/* Draws random problems. */
#include "random_problem.h"

#include "compile_watch.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 1000 };
static const int most_extent[] = {150, 19, 7, 4, 3, 2}; /* with 1 to 6 axes */

/* Some algorithms take few problems that are drawn without a bias: one of several hundred is
 * depthwise with channels last, one of fifty has a wide stride that divides its kernel. */
enum family {
    DEPTHWISE,
    WIDE_STRIDE, /* along the last axis, with a kernel that is its multiple */
    UNDILATED,
    ANY,
    DRAWN = 2 * ANY /* so that half of them are ANY */
};

tconv_problem random_problem(unsigned *seed, int axes, int most)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int family = random_between(seed, 0, DRAWN - 1);
    const bool depthwise = family == DEPTHWISE;
    const int kind = random_between(seed, depthwise, 3);
    const int64_t groups = kind == 0   ? 1
                           : depthwise ? random_between(seed, 2, 20)
                                       : random_between(seed, 1, 3);
    const int64_t in = depthwise ? 1 : random_between(seed, 1, 7);
    const int64_t out = depthwise ? 1 : random_between(seed, 1, 13);
    int64_t x[TCONV_MAX_AXES], k[TCONV_MAX_AXES], s[TCONV_MAX_AXES], d[TCONV_MAX_AXES],
        pb[TCONV_MAX_AXES], pe[TCONV_MAX_AXES], op[TCONV_MAX_AXES], y[TCONV_MAX_AXES];
    const bool output_given = random_between(seed, 0, 3) == 0;
    for (int a = 0; a < axes; a++) {
        do {
            x[a] = random_between(seed, 1, most);
            k[a] = random_between(seed, 1, 5);
            s[a] = random_between(seed, 1, 4);
            d[a] = family == UNDILATED ? 1 : random_between(seed, 1, 3);
            if (family == WIDE_STRIDE && a == axes - 1) {
                s[a] = random_between(seed, 4, 16);
                k[a] = s[a] * random_between(seed, 1, 2);
                d[a] = 1;
            }
            pb[a] = random_between(seed, 0, 4);
            pe[a] = random_between(seed, 0, 4);
            op[a] = random_between(seed, 0, 3);
            y[a] = random_between(seed, 1, (int)(s[a] * x[a] + d[a] * k[a] + 3));
        } while (!output_given &&
                 s[a] * (x[a] - 1) + d[a] * (k[a] - 1) + 1 - pb[a] - pe[a] + op[a] < 1);
    }
    set_list(&p.strides, axes, s);
    set_list(&p.dilations, axes, d);
    set_list(&p.pads_begin, axes, pb);
    set_list(&p.pads_end, axes, pe);
    set_list(&p.output_padding, axes, op);
    if (output_given) set_list(&p.output_shape, axes, y);
    p.rules = output_given ? (tconv_rules)random_between(seed, 0, 2) : TCONV_RULES_SPEC;
    p.auto_pad = output_given ? (tconv_auto_pad)random_between(seed, 0, 3) : TCONV_EXPLICIT;

    const bool nxc = kind == 2, xio = kind == 2 || kind == 3;
    int64_t data[TCONV_MAX_RANK], filter[TCONV_MAX_RANK];
    data[0] = random_between(seed, 1, 2);
    data[nxc ? axes + 1 : 1] = groups * in;
    memcpy(data + (nxc ? 1 : 2), x, (size_t)axes * sizeof *x);
    set_shape(&p.data, axes + 2, data);
    if (kind == 1) {
        p.operation = TCONV_GROUP_CONV_BACKPROP;
        filter[0] = groups;
        filter[1] = in;
        filter[2] = out;
        memcpy(filter + 3, k, (size_t)axes * sizeof *k);
    } else {
        filter[xio ? axes + 1 : 0] = groups * in;
        filter[xio ? axes : 1] = out;
        memcpy(filter + (xio ? 0 : 2), k, (size_t)axes * sizeof *k);
    }
    set_shape(&p.filter, axes + 2 + (kind == 1), filter);
    if (kind >= 2) {
        p.operation = TCONV_ONEAPI_CONV_BACKPROP;
        p.groups = groups;
        p.data_format = nxc ? TCONV_NXC : TCONV_NCX;
        p.filter_format = xio ? TCONV_XIO : TCONV_OIX;
    }
    return p;
}

static tconv_problem random_convolution(unsigned *seed, int axes, int most, bool shuffles)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    int64_t x[TCONV_MAX_AXES], k[TCONV_MAX_AXES], s[TCONV_MAX_AXES], d[TCONV_MAX_AXES],
        pb[TCONV_MAX_AXES], pe[TCONV_MAX_AXES], data[TCONV_MAX_RANK], filter[TCONV_MAX_RANK];
    do {
        const bool nxc = random_between(seed, 0, 1) != 0, xio = random_between(seed, 0, 1) != 0;
        const bool depthwise = random_between(seed, 0, 5) == 0;
        const bool dcr = shuffles && !depthwise && random_between(seed, 0, 2) == 0;
        const int64_t groups = dcr ? 1
                                   : random_between(seed, depthwise ? 2 : 1, depthwise ? 20 : 3);
        const int64_t in = depthwise ? 1 : random_between(seed, 1, 7);
        int64_t out = depthwise ? 1 : random_between(seed, 1, 13);
        for (int a = 0; a < axes; a++) {
            x[a] = random_between(seed, 1, most);
            k[a] = random_between(seed, 1, 5);
            s[a] = random_between(seed, 1, shuffles && axes > 2 ? 3 : 4);
            d[a] = random_between(seed, 0, 2) == 0 ? random_between(seed, 2, 3) : 1;
            if (s[a] > 1 && d[a] > s[a]) d[a] = s[a];
            if (s[a] > 1 && shuffles) d[a] = 1;
            if (shuffles) out *= s[a];
            /* Pads that cut, and pads of more than the taps. */
            const int least = shuffles ? 0 : 1 - (int)s[a];
            pb[a] = random_between(seed, least, (int)(d[a] * (k[a] - 1)) + 2);
            pe[a] = random_between(seed, least, (int)(d[a] * (k[a] - 1)) + 2);
        }
        set_list(&p.strides, axes, s);
        set_list(&p.dilations, axes, d);
        set_list(&p.pads_begin, axes, pb);
        set_list(&p.pads_end, axes, pe);
        p.operation = dcr        ? TCONV_CONV_PIXEL_SHUFFLE_DCR
                      : shuffles ? TCONV_CONV_PIXEL_SHUFFLE
                                 : TCONV_UPSAMPLE_CONV;
        p.auto_pad = random_between(seed, 0, 4) == 0 ? (tconv_auto_pad)random_between(seed, 1, 3)
                                                     : TCONV_EXPLICIT;
        p.groups = groups;
        p.data_format = nxc ? TCONV_NXC : TCONV_NCX;
        p.filter_format = xio ? TCONV_XIO : TCONV_OIX;
        data[0] = random_between(seed, 1, 2);
        data[nxc ? axes + 1 : 1] = groups * in;
        memcpy(data + (nxc ? 1 : 2), x, (size_t)axes * sizeof *x);
        set_shape(&p.data, axes + 2, data);
        filter[xio ? axes + 1 : 0] = groups * out;
        filter[xio ? axes : 1] = in;
        memcpy(filter + (xio ? 0 : 2), k, (size_t)axes * sizeof *k);
        set_shape(&p.filter, axes + 2, filter);
    } while (tconv_resolve(&p, &g, NULL) != TCONV_OK); /* no output is left */
    return p;
}

tconv_problem random_upsampling(unsigned *seed, int axes, int most)
{
    return random_convolution(seed, axes, most, false);
}

tconv_problem random_shuffle(unsigned *seed, int axes, int most)
{
    return random_convolution(seed, axes, most, true);
}

/* An upsampling of factor 2 and 3 taps along most axes, and of neither along the others. */
static tconv_problem random_doubling(unsigned *seed, int axes, int most)
{
    tconv_problem p = random_upsampling(seed, axes, most);
    int64_t *kernel = p.filter.dim + (p.filter_format == TCONV_XIO ? 0 : 2);
    for (int a = 0; a < axes; a++) {
        const bool doubles = random_between(seed, 0, 3) > 0;
        kernel[a] = doubles ? 3 : 1;
        p.strides.value[a] = doubles ? 2 : 1;
        p.dilations.value[a] = 1;
        const int least = doubles ? -1 : 0; /* cuts the first enlarged input, or the last */
        p.pads_begin.value[a] = random_between(seed, least, 3);
        p.pads_end.value[a] = random_between(seed, least, 3);
    }
    return p;
}

/* Sets `order` to the axes, the innermost first: mostly in their own order or with the channels
 * first or last. */
static void draw_order(unsigned *seed, int rank, int *order)
{
    const int kind = random_between(seed, 0, 4);
    for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
    if (kind == 3) { /* as the other format has it: channels move to the other end */
        const bool last = random_between(seed, 0, 1) != 0;
        const int from = last ? 0 : rank - 2, to = last ? rank - 2 : 0, axis = order[from];
        for (int i = from; i != to; i += last ? 1 : -1) order[i] = order[i + (last ? 1 : -1)];
        order[to] = axis;
    }
    for (int i = rank - 1; kind == 4 && i > 0; i--) {
        const int other = random_between(seed, 0, i), axis = order[i];
        order[i] = order[other];
        order[other] = axis;
    }
}

static tconv_steps draw_steps(unsigned *seed, const int64_t *extent, int rank)
{
    tconv_steps steps = {rank, {0}};
    int order[TCONV_MAX_RANK];
    draw_order(seed, rank, order);
    int64_t next = random_between(seed, 0, 5) == 0 ? random_between(seed, 2, 3) : 1;
    for (int i = 0; i < rank; i++) {
        steps.value[order[i]] = next;
        next *= extent[order[i]];
        if (random_between(seed, 0, 2) == 0) next += random_between(seed, 1, 9);
    }
    return steps;
}

void random_steps(unsigned *seed, tconv_problem *problem)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    problem->data_steps.count = problem->output_steps.count = 0;
    if (tconv_resolve(problem, &g, NULL) != TCONV_OK) return;
    const int which = random_between(seed, 0, 3); /* 3: both */
    if (which != 1) problem->data_steps = draw_steps(seed, problem->data.dim, problem->data.rank);
    if (which != 0)
        problem->output_steps = draw_steps(seed, g.output_shape.dim, g.output_shape.rank);
}

void random_filter_steps(unsigned *seed, tconv_problem *problem)
{
    problem->filter_steps = draw_steps(seed, problem->filter.dim, problem->filter.rank);
}

void random_residual_steps(unsigned *seed, tconv_problem *problem)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    if (tconv_resolve(problem, &g, NULL) != TCONV_OK) return;
    problem->residual_steps = draw_steps(seed, g.output_shape.dim, g.output_shape.rank);
    for (int zeros = random_between(seed, -1, 2); zeros > 0; zeros--)
        problem->residual_steps.value[random_between(seed, 0, g.output_shape.rank - 1)] = 0;
}

/* Whether the algorithm has candidates for the problem; nothing is compiled. */
static bool takes(const struct device *device, const char *algorithm, const tconv_problem *problem)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = algorithm;
    options.math = TCONV_MATH_FAST;
    tconv_plan *plan = NULL;
    refuse_to_compile(true);
    const tconv_status status = tconv_plan_create(device->device, problem, &options, &plan, NULL);
    const bool refused = compiling_was_refused();
    refuse_to_compile(false);
    tconv_plan_release(plan);
    return status == TCONV_OK || (status == TCONV_ERROR_BUILD && refused);
}

/* Multiply-adds and outputs; more than any limit where the problem does not resolve. */
static double work_of(const tconv_problem *problem)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    if (tconv_resolve(problem, &g, NULL) != TCONV_OK) return HUGE_VAL;
    return (double)g.macs + (double)g.output_bytes / (double)tconv_type_size(g.output_type);
}

bool random_problem_for(const struct device *device, const char *algorithm, double most_work,
                        unsigned *seed, tconv_problem *problem)
{
    static const tconv_type types[] = {TCONV_F16, TCONV_BF16, TCONV_I8, TCONV_U8};
    for (int i = 0; i < DRAWS; i++) {
        const int axes = random_between(seed, 1, 6);
        *problem = is_difference_form(algorithm)
                       ? random_doubling(seed, axes, most_extent[axes - 1])
                       : random_problem(seed, axes, most_extent[axes - 1]);
        const int type = random_between(seed, 0, 9);
        if (type < 4) problem->data_type = problem->filter_type = types[type];
        if (type > 7) problem->filter_type = types[type - 8]; /* beside data of f32 */
        if (random_between(seed, 0, 2) == 0) random_steps(seed, problem);
        if (random_between(seed, 0, 4) == 0) random_filter_steps(seed, problem);
        if (work_of(problem) <= most_work && takes(device, algorithm, problem)) return true;
    }
    return false;
}

bool random_relative(const tconv_problem *of, double most_work, unsigned *seed,
                     tconv_problem *problem)
{
    const int axes = of->strides.count;
    int64_t *extent = of->data_format == TCONV_NXC ? &problem->data.dim[1] : &problem->data.dim[2];
    for (int i = 0; i < DRAWS; i++) {
        *problem = *of;
        problem->data.dim[0] = random_between(seed, 1, 4);
        for (int a = 0; a < axes; a++) {
            extent[a] = random_between(seed, 1, 3 * most_extent[axes - 1]);
            problem->pads_begin.value[a] = random_between(seed, 0, 6);
            problem->pads_end.value[a] = random_between(seed, 0, 6);
            problem->output_padding.value[a] = random_between(seed, 0, 5);
            problem->output_shape.value[a] =
                random_between(seed, 1, (int)(of->strides.value[a] * extent[a]) + 8);
        }
        problem->residual_steps.count = 0;
        problem->data_steps.count = problem->output_steps.count = 0;
        if (of->data_steps.count + of->output_steps.count != 0) random_steps(seed, problem);
        if (work_of(problem) <= most_work) return true;
    }
    return false;
}
