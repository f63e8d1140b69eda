/* SPDX-License-Identifier: Apache-2.0 */
/* Any problem through tconv_resolve, and what it resolves to through the rest of the geometry,
 * against exact.c; then through selection and kernel plans for a described device.
 *
 * The input is text: each letter is a number, blanks do not count, and where it ends, zeros follow
 * (for = the fitting number).
 *
 *   0-9 a-z   0 to 35                 -x     the negative of the number that follows
 *   A-Z       2^6, 2^8, ... 2^56      <x >x  the number before it, behind it
 *   ! ~       INT64_MAX, INT64_MIN    *xy    the product of two numbers
 *   #bytes    the next eight bytes    =      what fits: the data's type, channels, ranks, one value
 *                                            for each axis
 *
 * in this order: operation, rules, auto_pad, data, filter and output type, data and filter format,
 * groups; rank and extents of the data; rank and extents of the filter; strides, dilations,
 * pads_begin, pads_end, output_padding, output_shape, each as a count and values; the number of an
 * algorithm from 1 on (0: one that the input draws, or all of them), the number of a described
 * device, math, workspace_limit; of the epilogue what it has (1 bias, 2 scale, 4 residual, 8
 * requantize, 16 alpha, 32 beta), activation and the zero points of data, filter and output;
 * element steps of data, output and residual, each as a count and values. So "100 1=0 000 41k88
 * ==a33 =22" is a layer of 20 channels in f32 with stride 2. */
#include "described.h"
#include "exact.h"
#include "fuzz.h"
#include "kernel_plans.h"

#include "base/members.h"
#include "geometry/count.h"
#include "geometry/loops.h"
#include "geometry/taps.h"
#include "geometry/window.h"
#include "plan/plan_internal.h"

#include <string.h>

struct input {
    const uint8_t *at, *end;
};

static int64_t raw(struct input *in)
{
    uint64_t bits = 0;
    for (int i = 0; i < 8 && in->at < in->end; i++) bits |= (uint64_t)*in->at++ << (8 * i);
    return (int64_t)bits;
}

/* Wraps around: whatever comes out is a number, too. */
static int64_t number(struct input *in, int64_t fitting)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n')) in->at++;
    if (in->at == in->end) return 0;
    const uint8_t c = *in->at++;
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z') return INT64_C(1) << (6 + 2 * (c - 'A'));
    switch (c) {
    case '=': return fitting;
    case '!': return INT64_MAX;
    case '~': return INT64_MIN;
    case '#': return raw(in);
    case '-': return (int64_t)(0 - (uint64_t)number(in, fitting));
    case '<': return (int64_t)((uint64_t)number(in, fitting) - 1);
    case '>': return (int64_t)((uint64_t)number(in, fitting) + 1);
    case '*': {
        const uint64_t one = (uint64_t)number(in, fitting);
        return (int64_t)(one * (uint64_t)number(in, fitting));
    }
    default: return c;
    }
}

static void read_shape(struct input *in, int fitting_rank, const int64_t *fitting,
                       tconv_shape *shape)
{
    shape->rank = (int)number(in, fitting_rank);
    for (int i = 0; i < shape->rank && i < TCONV_MAX_RANK; i++)
        shape->dim[i] = number(in, fitting[i]);
}

static void read_list(struct input *in, int axes, tconv_list *list)
{
    list->count = (int)number(in, axes);
    for (int i = 0; i < list->count && i < TCONV_MAX_AXES; i++) list->value[i] = number(in, 1);
}

/* A number of the problem that was not drawn under its name does not compile. */
#define DRAW(type, member, fitting) const type member = (type)number(in, fitting)
#define TAKE(kind, member, ...) p.member = member;
#define LIST(kind, member, ...) read_list(in, rank - 2, &p.member);

static tconv_problem read_problem(struct input *in)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    DRAW(tconv_operation, operation, TCONV_ONEAPI_CONV_BACKPROP);
    DRAW(tconv_rules, rules, TCONV_RULES_ONNX);
    DRAW(tconv_auto_pad, auto_pad, TCONV_SAME_UPPER);
    DRAW(tconv_type, data_type, TCONV_F32);
    DRAW(tconv_type, filter_type, data_type);
    DRAW(tconv_type, output_type, data_type);
    DRAW(tconv_data_format, data_format, TCONV_NCX);
    DRAW(tconv_filter_format, filter_format, TCONV_OIX);
    DRAW(int64_t, groups, 1);
    p.operation = operation;
    TCONV_PROBLEM_NUMBERS(TAKE)
    int64_t fitting[TCONV_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    read_shape(in, 4, fitting, &p.data);
    const bool grouped = p.operation == TCONV_GROUP_CONV_BACKPROP;
    const bool oneapi = p.operation == TCONV_ONEAPI_CONV_BACKPROP;
    const int rank = p.data.rank >= 3 && p.data.rank <= 8 ? p.data.rank : 3;
    const int64_t channels = p.data.dim[oneapi && p.data_format != TCONV_NCX ? rank - 1 : 1];
    fitting[oneapi && p.filter_format != TCONV_OIX ? rank - 1 : grouped ? 1 : 0] = channels;
    read_shape(in, rank + grouped, fitting, &p.filter);
    TCONV_PROBLEM_LISTS(LIST)
    return p;
}

/* Steps stand behind everything else, so that inputs without them mean what they meant before. */
static void read_steps(struct input *in, tconv_steps *steps)
{
    steps->count = (int)number(in, 0);
    for (int i = 0; i < steps->count && i < TCONV_MAX_RANK; i++) steps->value[i] = number(in, 1);
}
#define STEPS(kind, member, ...) read_steps(&in, &p.member);

/* What is not in the problem: where and how to compute it. */
struct setting {
    uint64_t algorithm;
    tconv_device_info device;
    tconv_math math;
    uint64_t workspace_limit;
    tconv_epilogue epilogue;
};

static struct setting read_setting(struct input *in)
{
    int count = 0;
    while (described_devices[count].name != NULL) count++;
    struct setting setting = {.algorithm = (uint64_t)number(in, 0),
                              .epilogue = TCONV_EPILOGUE_INIT};
    setting.device = described_devices[(uint64_t)number(in, 0) % (unsigned)count].info;
    setting.math = (number(in, 1) & 1) != 0 ? TCONV_MATH_FAST : TCONV_MATH_EXACT;
    setting.workspace_limit = (uint64_t)number(in, 0);
    tconv_epilogue *e = &setting.epilogue;
    const int64_t has = number(in, 0);
    e->bias = (has & 1) != 0;
    e->scale = (has & 2) != 0;
    e->residual = (has & 4) != 0;
    e->requantize = (has & 8) != 0;
    e->alpha = (has & 16) != 0 ? 0.5 : 1;
    e->beta = (has & 32) != 0 ? 0.5 : 0;
    e->activation = (tconv_activation)(int)number(in, 0);
    e->data_zero_point = (int32_t)number(in, 0);
    e->filter_zero_point = (int32_t)number(in, 0);
    e->output_zero_point = (int32_t)number(in, 0);
    return setting;
}

static void compare(const char *what, int axis, exact expected, exact got)
{
    if (expected != got)
        fuzz_fail("%s at axis %d is %lld, but exactly it is %lld", what, axis, (long long)got,
                  (long long)expected);
}

static void compare_geometry(const tconv_problem *p, const struct exact_geometry *e,
                             const tconv_geometry *g)
{
    compare("axes", -1, e->axes, g->axes);
    compare("batch", -1, e->batch, g->batch);
    compare("groups", -1, e->groups, g->groups);
    compare("group_in_channels", -1, e->in_channels, g->group_in_channels);
    compare("group_out_channels", -1, e->out_channels, g->group_out_channels);
    compare("data_bytes", -1, e->data_bytes, (exact)g->data_bytes);
    compare("filter_bytes", -1, e->filter_bytes, (exact)g->filter_bytes);
    compare("output_bytes", -1, e->output_bytes, (exact)g->output_bytes);
    compare("residual_bytes", -1, e->residual_bytes, (exact)g->residual_bytes);
    compare("output_type", -1, (exact)e->output_type, (exact)g->output_type);
    compare("data_format", -1, e->nxc ? TCONV_NXC : TCONV_NCX, (exact)g->data_format);
    compare("rank of the output", -1, p->data.rank, g->output_shape.rank);
    compare("output_shape", 0, e->batch, g->output_shape.dim[0]);
    compare("output_shape", -1, e->groups * e->out_channels,
            g->output_shape.dim[e->nxc ? e->axes + 1 : 1]);
    for (int a = 0; a < e->axes; a++) {
        compare("input", a, e->input[a], g->input[a]);
        compare("kernel", a, e->kernel[a], g->kernel[a]);
        compare("stride", a, e->stride[a], g->stride[a]);
        compare("dilation", a, e->dilation[a], g->dilation[a]);
        compare("pad_begin", a, e->pad_begin[a], g->pad_begin[a]);
        compare("pad_end", a, e->pad_end[a], g->pad_end[a]);
        compare("output", a, e->output[a], g->output[a]);
        compare("output_shape", a, e->output[a], g->output_shape.dim[(e->nxc ? 1 : 2) + a]);
        /* The count in logarithmic time does not change where data and filter change places. */
        uint64_t pairs = 0, same = 0;
        if (tconv_count_pairs(g->input[a], g->kernel[a], g->stride[a], g->dilation[a],
                              g->pad_begin[a], g->output[a], &pairs) !=
                tconv_count_pairs(g->kernel[a], g->input[a], g->dilation[a], g->stride[a],
                                  g->pad_begin[a], g->output[a], &same) ||
            pairs != same)
            fuzz_fail("axis %d has %llu pairs one way and %llu the other", a,
                      (unsigned long long)pairs, (unsigned long long)same);
    }
    if (e->macs_known) compare("macs", -1, e->macs, (exact)g->macs);
}

/* A window in the middle: its inputs must be those that the exact bounds name, and its work is part
 * of the whole. */
static void check_window(const tconv_problem *p, const tconv_geometry *g)
{
    const int64_t begin = g->output[0] / 3, end = begin + (g->output[0] - begin + 1) / 2;
    int64_t first, last;
    tconv_geometry part = *g;
    if (tconv_window_input(g, begin, end, &first, &last, NULL) != TCONV_OK ||
        tconv_resolve_window(p, begin, end, &part, NULL) != TCONV_OK)
        fuzz_fail("rows %lld to %lld are refused", (long long)begin, (long long)end);
    const bool none = first == last && g->input[0] == 0;
    if (first < 0 || last < first || last > g->input[0] || (first == last && !none))
        fuzz_fail("the window's inputs are %lld to %lld", (long long)first, (long long)last);
    const exact span = (exact)g->dilation[0] * (g->kernel[0] - 1), stride = g->stride[0];
    /* The neighbours on both sides must not reach the window: their outputs are i*s - pb to i*s +
     * span - pb. */
    const bool before = first > 0 && (first - 1) * stride + span - g->pad_begin[0] >= begin;
    const bool behind = last < g->input[0] && last * stride - g->pad_begin[0] < end;
    if (before || behind)
        fuzz_fail("an input %s the window is missing", before ? "before" : "behind");
    if (part.macs > g->macs || part.output_bytes > g->output_bytes ||
        part.data_bytes > g->data_bytes)
        fuzz_fail("a part is more than the whole");
}

/* The taps of all outputs of an axis, one by one, are its pairs. */
static void check_taps(const struct tconv_axis *axis)
{
    enum { MOST = 64 };
    struct tconv_phase phases[MOST];
    if (axis->stride > MOST || axis->kernel > MOST || axis->output > MOST) return;
    tconv_find_phases(axis, phases);
    uint64_t pairs, found = 0;
    if (!tconv_count_pairs(axis->input, axis->kernel, axis->stride, axis->dilation, axis->pad,
                           axis->output, &pairs))
        fuzz_fail("a small axis has too many pairs");
    for (int64_t o = 0; o < axis->output; o++) {
        const struct tconv_reach reach = tconv_reach_of(axis, phases, o);
        found += (uint64_t)reach.taps;
        for (int64_t j = 0; j < reach.taps; j++) {
            const int64_t k = reach.first_tap + j * tconv_tap_step(axis);
            const int64_t i = reach.first_input - j * tconv_input_step(axis);
            if (k < 0 || k >= axis->kernel || i < 0 || i >= axis->input ||
                (exact)i * axis->stride + (exact)k * axis->dilation != (exact)o + axis->pad)
                fuzz_fail("output %lld takes tap %lld from input %lld", (long long)o, (long long)k,
                          (long long)i);
        }
    }
    compare("number of reaching taps", -1, (exact)pairs, (exact)found);
}

static void check_text(const tconv_problem *p)
{
    char whole[2000], part[60];
    const int length = tconv_problem_text(p, whole, sizeof whole);
    if (length != (int)strlen(whole) || tconv_problem_text(p, part, sizeof part) != length ||
        strncmp(whole, part, sizeof part - 1) != 0 || tconv_problem_text(p, NULL, 0) != length)
        fuzz_fail("the problem's text has other lengths: %s", whole);
}

/* As tconv_plan_create asks. */
static void check_setting(const tconv_problem *p, const tconv_geometry *g,
                          const struct tconv_loops *resolved, const struct setting *setting)
{
    if (tconv_check_epilogue(p, g, &setting->epilogue, NULL) != TCONV_OK ||
        (p->data_type == TCONV_F64 && !setting->device.double_arithmetic))
        return;
    struct tconv_loops loops = *resolved;
    if (loops.batch == 0) loops.batch = 1;
    const tconv_device_info device = tconv_device_for(&setting->device, &loops);
    const struct tconv_request request = {
        .loops = &loops,
        .device = &device,
        .epilogue = &setting->epilogue,
        .workspace_limit = setting->workspace_limit,
        .math = setting->math,
        .machine = tconv_machine_of(&device, tconv_acc_bytes(&loops)),
    };
    fuzz_check_kernel_plans(&request, setting->algorithm);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input in = {bytes, bytes + size};
    tconv_problem p = read_problem(&in);
    struct setting setting = read_setting(&in);
    TCONV_PROBLEM_STEPS(STEPS)
    if (setting.algorithm == 0) /* asking all of them takes most of the time */
        for (size_t i = 0; i < size; i++) setting.algorithm = setting.algorithm * 31 + bytes[i];
    check_text(&p);
    struct exact_geometry e;
    const bool valid = exact_resolve(&p, &e);
    const bool countable = valid && (!e.macs_known || e.macs <= UINT64_MAX);
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    const tconv_geometry before = g;
    tconv_error error = {TCONV_OK, 0, ""};
    const tconv_status status = tconv_resolve(&p, &g, &error);
    if (status != TCONV_OK) {
        /* Where nobody counted one by one, the library may find too many multiply-adds. */
        const bool uncounted = valid && !e.macs_known &&
                               strstr(error.message, "multiply-adds") != NULL;
        if (countable && !uncounted) fuzz_fail("a valid problem is refused: %s", error.message);
        if (status != error.status || error.message[0] == '\0' || !tconv_status_is_request(status))
            fuzz_fail("a refusal with status %d", (int)status);
        if (memcmp(&g, &before, sizeof g) != 0) fuzz_fail("a refusal writes the geometry");
        return 0;
    }
    /* exact_resolve knows transposed convolutions only. */
    if (p.operation > TCONV_ONEAPI_CONV_BACKPROP && p.operation <= TCONV_CONV_PIXEL_SHUFFLE_DCR)
        return 0;
    if (!countable) fuzz_fail("a wrong problem is accepted");
    compare_geometry(&p, &e, &g);
    check_window(&p, &g);
    struct tconv_loops loops;
    tconv_loops_init(&loops, &p, &g);
    for (int a = 0; a < loops.axes; a++) check_taps(&loops.axis[a]);
    check_setting(&p, &g, &loops, &setting);
    tconv_loops_fold(&loops);
    return 0;
}
