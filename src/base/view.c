/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how tensors lie in memory, counts what they reach, and copies them. */
#include "base/view.h"

#include "base/checked.h"

#include <string.h>

int tconv_channels_axis(const tconv_problem *p)
{
    const bool last = p->data_format == TCONV_NXC || (p->data_format == TCONV_DATA_DEFAULT &&
                                                      p->operation == TCONV_ONEAPI_CONV_BACKPROP);
    return last ? p->data.rank - 1 : 1;
}

const tconv_steps *tconv_given_steps(const tconv_problem *p, enum tconv_spaced tensor)
{
    return tensor == TCONV_SPACED_DATA       ? &p->data_steps
           : tensor == TCONV_SPACED_OUTPUT   ? &p->output_steps
           : tensor == TCONV_SPACED_RESIDUAL ? &p->residual_steps
                                             : &p->filter_steps;
}

/* Sets the steps of a dense tensor with the view's extents. Their product fits into 63 bits. */
static void make_dense(struct tconv_view *view)
{
    int64_t step = 1;
    for (int a = view->rank - 1; a >= 0; a--) {
        view->step[a] = step;
        step *= tconv_max(view->extent[a], 1);
    }
}

/* The step along an axis with one element reaches nothing. It becomes what a dense tensor has, so
 * that algorithms recognise memory orders. */
static void tidy_steps(struct tconv_view *view)
{
    int64_t next = 1;
    for (int a = view->rank - 1; a >= 0; a--) {
        if (view->extent[a] <= 1) view->step[a] = next;
        if (!tconv_mul(view->step[a], tconv_max(view->extent[a], 1), &next)) next = 1;
    }
}

struct tconv_view tconv_view_of(const tconv_problem *problem, const tconv_geometry *g,
                                enum tconv_spaced tensor)
{
    const bool data = tensor == TCONV_SPACED_DATA, nxc = g->data_format == TCONV_NXC;
    const int channels = nxc ? g->axes + 1 : 1;
    struct tconv_view view = {.rank = g->axes + 2};
    if (tensor == TCONV_SPACED_FILTER) {
        view.rank = problem->filter.rank;
        memcpy(view.extent, problem->filter.dim, (size_t)view.rank * sizeof *view.extent);
    } else {
        view.extent[0] = g->batch;
        view.extent[channels] = g->groups * (data ? g->group_in_channels : g->group_out_channels);
        memcpy(view.extent + (nxc ? 1 : 2), data ? g->input : g->output,
               (size_t)g->axes * sizeof *view.extent);
    }
    const tconv_steps *steps = tconv_given_steps(problem, tensor);
    if (steps->count == 0)
        make_dense(&view);
    else
        memcpy(view.step, steps->value, (size_t)view.rank * sizeof *view.step);
    tidy_steps(&view);
    return view;
}

bool tconv_view_is_dense(const struct tconv_view *view)
{
    int64_t step = 1;
    for (int a = view->rank - 1; a >= 0; a--) {
        if (view->extent[a] > 1 && view->step[a] != step) return false;
        step *= tconv_max(view->extent[a], 1);
    }
    return true;
}

int tconv_view_order(const struct tconv_view *view, int order[TCONV_TENSOR_AXES])
{
    int count = 0;
    for (int a = 0; a < view->rank; a++) {
        if (view->extent[a] <= 1 || view->step[a] == 0) continue;
        int place = count++;
        for (; place > 0 && view->step[order[place - 1]] > view->step[a]; place--)
            order[place] = order[place - 1];
        order[place] = a;
    }
    return count;
}

void tconv_view_lay_out(const struct tconv_view *like, struct tconv_view *view)
{
    int order[TCONV_TENSOR_AXES];
    const int count = tconv_view_order(like, order);
    memcpy(view->step, like->step, sizeof view->step);
    for (int i = 1; i < count; i++) {
        const int in = order[i - 1], out = order[i];
        const int64_t fits = like->step[out] / like->step[in],
                      rest = like->step[out] % like->step[in];
        const int64_t room = fits - like->extent[in]; /* between rows */
        if (room >= 0) /* else the rows overlap, as they may in data */
            view->step[out] = view->step[in] * (tconv_max(view->extent[in], 1) + room) + rest;
    }
}

bool tconv_view_span(const struct tconv_view *view, int64_t *elements)
{
    int64_t last = 0, distance;
    bool empty = false;
    for (int a = view->rank - 1; a >= 0; a--) {
        const int64_t extent = tconv_max(view->extent[a], 1);
        if (!tconv_mul(extent - 1, view->step[a], &distance) || !tconv_add(last, distance, &last))
            return false;
        empty = empty || view->extent[a] == 0;
    }
    if (!tconv_add(last, 1, elements)) return false;
    if (empty) *elements = 0;
    return true;
}

static uint64_t bytes_of(const struct tconv_view *view, tconv_type type)
{
    int64_t elements = 0;
    tconv_view_span(view, &elements);
    return (uint64_t)elements * tconv_type_size(type);
}

void tconv_count_bytes(const tconv_problem *p, tconv_geometry *g)
{
    const struct tconv_view data = tconv_view_of(p, g, TCONV_SPACED_DATA),
                            output = tconv_view_of(p, g, TCONV_SPACED_OUTPUT),
                            residual = tconv_view_of(p, g, TCONV_SPACED_RESIDUAL),
                            filter = tconv_view_of(p, g, TCONV_SPACED_FILTER);
    g->filter_bytes = bytes_of(&filter, p->filter_type);
    g->data_bytes = bytes_of(&data, p->data_type);
    g->output_bytes = bytes_of(&output, g->output_type);
    g->residual_bytes = bytes_of(&residual, g->output_type);
}

int tconv_view_longest(const struct tconv_view *view)
{
    int longest = 0;
    for (int a = 1; a < view->rank; a++)
        if ((double)(view->extent[a] - 1) * (double)view->step[a] >
            (double)(view->extent[longest] - 1) * (double)view->step[longest])
            longest = a;
    return longest;
}

/* Bytes that the axes with steps below `period` reach. False if another step is not a multiple of
 * the period, or if they reach further than a period. */
static bool reach_within(const struct tconv_placed *p, uint64_t period, uint64_t *reach)
{
    *reach = p->element;
    for (int a = 0; a < p->view->rank; a++) {
        const uint64_t step = (uint64_t)p->view->step[a] * p->element;
        if (p->view->extent[a] <= 1) continue;
        if (step >= period && step % period != 0) return false;
        if (step < period) *reach += (uint64_t)(p->view->extent[a] - 1) * step;
    }
    return *reach <= period;
}

/* The bytes of a lie in [begin, begin + reach) modulo the period, and those of b likewise. */
static bool apart_in(const struct tconv_placed *a, const struct tconv_placed *b, uint64_t period)
{
    uint64_t own, other;
    if (period == 0 || !reach_within(a, period, &own) || !reach_within(b, period, &other))
        return false;
    const uint64_t distance = (b->begin % period + period - a->begin % period) % period;
    return distance >= own && period - distance >= other;
}

bool tconv_placed_apart(const struct tconv_placed *a, const struct tconv_placed *b)
{
    for (int i = 0; i < a->view->rank; i++)
        if (a->view->extent[i] > 1 && apart_in(a, b, (uint64_t)a->view->step[i] * a->element))
            return true;
    return false;
}

int64_t tconv_view_elements(const struct tconv_view *view)
{
    int64_t elements = 1;
    for (int a = 0; a < view->rank; a++) elements *= view->extent[a];
    return elements;
}

int64_t tconv_view_place(const struct tconv_view *view, int64_t index)
{
    int64_t place = 0;
    for (int a = view->rank - 1; a >= 0; a--) {
        place += index % view->extent[a] * view->step[a];
        index /= view->extent[a];
    }
    return place;
}

/* Copies `count` elements that lie `to_step` and `from_step` bytes apart. */
static void copy_run(char *to, const char *from, size_t to_step, size_t from_step, int64_t count,
                     size_t element)
{
    if (to_step == element && from_step == element) {
        memcpy(to, from, (size_t)count * element);
        return;
    }
    for (; count > 0; count--, to += to_step, from += from_step) memcpy(to, from, element);
}

/* Copies runs along the last axis, all other axes counted like the digits of a number. */
static void copy(const struct tconv_view *to_view, const struct tconv_view *from_view,
                 size_t element, char *to, const char *from)
{
    const int last = to_view->rank - 1;
    const int64_t *extent = to_view->extent;
    int64_t digit[TCONV_TENSOR_AXES] = {0}, to_at = 0, from_at = 0;
    for (int a = 0; a <= last; a++)
        if (extent[a] == 0) return;
    for (;;) {
        copy_run(to + (size_t)to_at * element, from + (size_t)from_at * element,
                 (size_t)to_view->step[last] * element, (size_t)from_view->step[last] * element,
                 extent[last], element);
        int a = last - 1;
        for (; a >= 0; a--) {
            to_at += to_view->step[a];
            from_at += from_view->step[a];
            if (++digit[a] < extent[a]) break;
            to_at -= digit[a] * to_view->step[a];
            from_at -= digit[a] * from_view->step[a];
            digit[a] = 0;
        }
        if (a < 0) return;
    }
}

void tconv_view_gather(const struct tconv_view *view, size_t element, const void *from, void *dense)
{
    struct tconv_view to = *view;
    make_dense(&to);
    copy(&to, view, element, dense, from);
}

void tconv_view_scatter(const struct tconv_view *view, size_t element, const void *dense, void *to)
{
    struct tconv_view from = *view;
    make_dense(&from);
    copy(view, &from, element, to, dense);
}

void tconv_view_copy(const struct tconv_view *view, size_t element, const void *from, void *to)
{
    copy(view, view, element, to, from);
}
