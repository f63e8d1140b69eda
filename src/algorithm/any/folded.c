/* SPDX-License-Identifier: Apache-2.0 */
/* Folding a layer to three axes, and the limits of its 32-bit indices. */
#include "algorithm/any/folded.h"

#include "base/checked.h"
#include "geometry/count.h"

enum {
    INDEX_LIMIT = 1 << 30,
    STRIDE_LIMIT = 1 << 16,
    KERNEL_LIMIT = 1 << 20,
};

/* The most elements of a tensor. It keeps every count of the algorithms (tiles, blocks, weights
 * with the padding of the last block) below 2^63. */
#define ELEMENT_LIMIT (INT64_C(1) << 44)

static bool fits(const struct tconv_axis *axis)
{
    return axis->input < INDEX_LIMIT && axis->output < INDEX_LIMIT && axis->kernel < KERNEL_LIMIT &&
           axis->stride < STRIDE_LIMIT && axis->dilation < INDEX_LIMIT && axis->pad < INDEX_LIMIT &&
           axis->pad > -INDEX_LIMIT;
}

static bool spans(const struct tconv_axis *axis)
{
    return axis->kernel * axis->dilation < INDEX_LIMIT;
}

static bool multiply(int64_t *elements, int64_t factor)
{
    return tconv_mul(*elements, factor, elements) && *elements <= ELEMENT_LIMIT;
}

/* True if all tensors are within the limit. Batch and channels were checked before. */
static bool countable(const struct tconv_loops *loops)
{
    int64_t data = loops->batch * loops->groups * loops->in_channels;
    int64_t output = loops->batch * loops->groups * loops->out_channels;
    int64_t filter = loops->groups * loops->in_channels;
    bool fit = multiply(&filter, loops->out_channels);
    for (int a = 0; a < loops->axes && fit; a++) {
        const struct tconv_axis *axis = &loops->axis[a];
        fit = multiply(&data, axis->input) && multiply(&output, axis->output) &&
              multiply(&filter, axis->kernel);
    }
    return fit;
}

/* True if a tensor's elements are near enough to each other: `image` elements along the spatial
 * axes. */
static bool near(double image, const struct tconv_loops *loops, int64_t channels,
                 int64_t channel_step, int64_t batch_step)
{
    const double all = image + (double)loops->groups * (double)channels * (double)channel_step +
                       (double)loops->batch * (double)batch_step;
    return image < INDEX_LIMIT && all < (double)ELEMENT_LIMIT;
}

/* False if a kernel's 32-bit indices within an image, or its 64-bit indices past the end of a
 * tensor, might overflow. Dense tensors are checked by their extents. */
static bool reaches(const struct tconv_loops *loops)
{
    double data = 0, output = 0;
    for (int a = 0; a < loops->axes; a++) {
        data += (double)loops->axis[a].input * (double)loops->axis[a].data_step;
        output += (double)loops->axis[a].output * (double)loops->axis[a].output_step;
    }
    return !loops->spaced || (near(data, loops, loops->in_channels, loops->data_channel_step,
                                   loops->data_batch_step) &&
                              near(output, loops, loops->out_channels, loops->output_channel_step,
                                   loops->output_batch_step));
}

int tconv_folded_outer_axes(const struct tconv_folded *folded)
{
    return folded->loops.axes > 2 ? folded->loops.axes - 2 : 0;
}

/* Makes one axis of all axes but the last two. False if their points are too many or do not lie at
 * even distances. */
static bool stack(struct tconv_folded *folded)
{
    const struct tconv_axis *axis = folded->loops.axis;
    const int last = tconv_folded_outer_axes(folded) - 1;
    struct tconv_axis *z = &folded->z;
    *z = (struct tconv_axis){
        .input = 1,
        .kernel = 1,
        .stride = 1,
        .dilation = 1,
        .output = 1,
        .data_step = axis[last].data_step,
        .filter_step = axis[last].filter_step,
        .output_step = axis[last].output_step,
    };
    for (int a = last; a >= 0; a--) {
        if (!fits(z) || !fits(&axis[a]) || !spans(&axis[a]) ||
            !tconv_is_product(axis[a].data_step, z->input, z->data_step) ||
            !tconv_is_product(axis[a].filter_step, z->kernel, z->filter_step) ||
            !tconv_is_product(axis[a].output_step, z->output, z->output_step))
            return false;
        z->input *= axis[a].input;
        z->kernel *= axis[a].kernel;
        z->output *= axis[a].output;
    }
    return true;
}

static bool fold(const struct tconv_request *request, struct tconv_folded *folded, int most_axes,
                 struct tconv_reason *reason)
{
    const struct tconv_axis point = {
        .input = 1, .kernel = 1, .stride = 1, .dilation = 1, .output = 1};
    struct tconv_loops *loops = &folded->loops;
    *loops = *request->loops;
    folded->machine = &request->machine;
    folded->acc_bytes = tconv_acc_bytes(loops);
    tconv_loops_fold(loops);
    if (loops->axes > most_axes)
        return tconv_refuse(reason, "it has %d spatial axes that cannot be folded into %d",
                            loops->axes, most_axes);
    folded->x = loops->axis[loops->axes - 1];
    folded->y = loops->axes > 1 ? loops->axis[loops->axes - 2] : point;
    folded->z = loops->axes > 2 ? loops->axis[loops->axes - 3] : point;
    if (loops->axes > 3 && !stack(folded))
        return tconv_refuse(reason, "its outer axes cannot be counted as one");
    if (!fits(&folded->x) || !fits(&folded->y) || !fits(&folded->z))
        return tconv_refuse(reason, "an extent, stride or pad exceeds its 32-bit indices");
    int64_t images;
    if (!tconv_mul(loops->batch, loops->groups, &images) ||
        !tconv_mul(images, loops->out_channels, &images) || images >= INDEX_LIMIT ||
        loops->in_channels * loops->groups >= INDEX_LIMIT || loops->batch >= INDEX_LIMIT / 2 ||
        loops->batch * loops->groups * loops->in_channels >= INDEX_LIMIT)
        return tconv_refuse(reason, "channels or batch exceed its 32-bit indices");
    if (!countable(loops)) return tconv_refuse(reason, "a tensor has more than 2^44 elements");
    if (!reaches(loops))
        return tconv_refuse(reason, "its steps lead further than its 32-bit indices count");
    if (!spans(&folded->x) || !spans(&folded->y) || !spans(&folded->z))
        return tconv_refuse(reason, "the dilated kernel exceeds its 32-bit indices");
    folded->output_rows = folded->z.output * folded->y.output;
    folded->input_rows = folded->z.input * folded->y.input;
    folded->positions = tconv_ceil_div(folded->x.output, folded->x.stride);
    /* The later the tap, the earlier its input. */
    folded->high = tconv_folded_distance(&folded->x, 0);
    folded->low = tconv_folded_distance(&folded->x, folded->x.kernel - 1);
    return true;
}

bool tconv_fold(const struct tconv_request *request, struct tconv_folded *folded,
                struct tconv_reason *reason)
{
    return fold(request, folded, 3, reason);
}

bool tconv_fold_rows(const struct tconv_request *request, struct tconv_folded *folded,
                     struct tconv_reason *reason)
{
    if (!tconv_fold_any_format(request, folded, reason)) return false;
    if (folded->x.data_step != 1 || folded->x.output_step != 1)
        return tconv_refuse(reason, "its vectors run along the last axis, which is not contiguous "
                                    "in this format or by these steps");
    return true;
}

bool tconv_fold_any_format(const struct tconv_request *request, struct tconv_folded *folded,
                           struct tconv_reason *reason)
{
    if (!fold(request, folded, TCONV_MAX_AXES, reason)) return false;
    if (folded->output_rows >= INDEX_LIMIT || folded->input_rows >= INDEX_LIMIT)
        return tconv_refuse(reason, "rows exceed its 32-bit indices");
    return true;
}

int64_t tconv_folded_distance(const struct tconv_axis *axis, int64_t k)
{
    return -tconv_floor_div(k * axis->dilation - axis->pad, axis->stride);
}

int tconv_folded_number(const struct tconv_loops *given, const struct tconv_axis *axis)
{
    int a = 0;
    while (given->axis[a].kernel == 1 || given->axis[a].filter_step != axis->filter_step) a++;
    return a;
}

bool tconv_folded_is_doubled(const struct tconv_loops *given, const struct tconv_axis *axis)
{
    if (axis->kernel == 1 || !tconv_has_sums(&given->equivalent)) return false;
    const struct tconv_equivalent *e = &given->equivalent;
    const int a = tconv_folded_number(given, axis);
    return e->factor[a] == 2 && e->kernel[a] == 3 && e->dilation[a] == 1;
}

double tconv_folded_pairs(const struct tconv_axis *axis)
{
    uint64_t pairs = 0;
    const bool fit = tconv_count_pairs(axis->input, axis->kernel, axis->stride, axis->dilation,
                                       axis->pad, axis->output, &pairs);
    return fit ? (double)pairs : 0;
}

double tconv_folded_slices(const struct tconv_folded *folded)
{
    double pairs = 1;
    for (int a = 0; a < tconv_folded_outer_axes(folded); a++)
        pairs *= tconv_folded_pairs(&folded->loops.axis[a]);
    return pairs;
}

int64_t tconv_folded_taps_z(const struct tconv_folded *folded)
{
    int64_t taps = 1;
    for (int a = 0; a < tconv_folded_outer_axes(folded); a++)
        taps *= tconv_most_taps(&folded->loops.axis[a]);
    return taps;
}

bool tconv_folded_too_long(double iterations, const tconv_device_info *device)
{
    enum { MOST_ITERATIONS = 30000 };
    return device->vector_width <= 1 && iterations > MOST_ITERATIONS;
}

bool tconv_folded_ends_loops(const tconv_device_info *device)
{
    return device->kind == TCONV_DEVICE_CPU && device->vector_width <= 1;
}

bool tconv_folded_group_too_long(double iterations, const tconv_device_info *device)
{
    return tconv_folded_ends_loops(device) && tconv_folded_too_long(iterations, device);
}

double tconv_folded_exact_loops(const struct tconv_folded *folded)
{
    if (!tconv_type_is_floating(folded->loops.data_type)) return 0;
    const double taps = (double)(folded->z.kernel * folded->y.kernel * folded->x.kernel);
    const double phases = (double)(folded->z.stride * folded->y.stride * folded->x.stride);
    return taps * (1 + (double)folded->loops.in_channels / phases);
}

/* A dense batch item has as many elements as its step. */
double tconv_folded_data_bytes(const struct tconv_folded *folded)
{
    const struct tconv_loops *loops = &folded->loops;
    double elements = (double)loops->data_batch_step;
    if (loops->spaced) elements = (double)loops->groups * (double)loops->in_channels;
    for (int a = 0; loops->spaced && a < loops->axes; a++) elements *= (double)loops->axis[a].input;
    return (double)loops->batch * elements * (double)tconv_type_size(loops->data_type);
}

double tconv_folded_output_bytes(const struct tconv_folded *folded)
{
    const struct tconv_loops *loops = &folded->loops;
    double elements = (double)loops->output_batch_step;
    if (loops->spaced) elements = (double)loops->groups * (double)loops->out_channels;
    for (int a = 0; loops->spaced && a < loops->axes; a++)
        elements *= (double)loops->axis[a].output;
    return (double)loops->batch * elements * (double)tconv_type_size(loops->output_type);
}
