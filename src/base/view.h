/* SPDX-License-Identifier: Apache-2.0 */
/* How tensors lie in memory: by the element steps that a problem gives, or densely. */
#ifndef TCONV_BASE_VIEW_H
#define TCONV_BASE_VIEW_H

#include "tconv_cl/problem.h"

enum { TCONV_TENSOR_AXES = TCONV_MAX_RANK };

/* The tensors that may have steps, in the order of their rows in base/members.h. */
enum tconv_spaced {
    TCONV_SPACED_DATA,
    TCONV_SPACED_OUTPUT,
    TCONV_SPACED_RESIDUAL,
    TCONV_SPACED_TENSORS, /* of an execution: those above */
    TCONV_SPACED_FILTER = TCONV_SPACED_TENSORS
};

/* Extent and element step of each axis, in the tensor's own axis order. */
struct tconv_view {
    int rank;
    int64_t extent[TCONV_TENSOR_AXES], step[TCONV_TENSOR_AXES];
};

/* The axis of the data's channels. */
int tconv_channels_axis(const tconv_problem *problem);

/* The steps that the problem gives; their count may be 0. */
const tconv_steps *tconv_given_steps(const tconv_problem *problem, enum tconv_spaced tensor);

/* The view of a tensor of a resolved problem; `geometry` may be narrowed to a window. A window
 * keeps given steps. Steps along axes with one element are not kept. */
struct tconv_view tconv_view_of(const tconv_problem *problem, const tconv_geometry *geometry,
                                enum tconv_spaced tensor);

/* True if the elements of the view follow each other in memory in the order of the axes. */
bool tconv_view_is_dense(const struct tconv_view *view);

/* Sets `order` to the axes with more than one element and a step, those with small steps first.
 * Returns how many they are. */
int tconv_view_order(const struct tconv_view *view, int order[TCONV_TENSOR_AXES]);

/* Gives `view`, whose extents are set, the steps of a tensor that lies in memory as `like` does:
 * the axes in the same order, with as many elements between their rows. No extent is larger than
 * that of `like`. */
void tconv_view_lay_out(const struct tconv_view *like, struct tconv_view *view);

/* Elements from the first one to the last one, with both; 0 if the tensor is empty. False if an
 * index needs more than 63 bits. */
bool tconv_view_span(const struct tconv_view *view, int64_t *elements);

/* The axis along which the tensor reaches furthest. */
int tconv_view_longest(const struct tconv_view *view);

/* True if two tensors of one buffer are known to share no byte, although their ranges overlap: they
 * lie in different parts of a period, such as different channels of a tensor whose channels are the
 * last axis. `begin` is the first byte, `element` the bytes of an element. */
struct tconv_placed {
    const struct tconv_view *view;
    uint64_t begin, element;
};
bool tconv_placed_apart(const struct tconv_placed *a, const struct tconv_placed *b);

/* How many elements the tensor has, and where element number `index` lies, counted in the order of
 * the axes. */
int64_t tconv_view_elements(const struct tconv_view *view);
int64_t tconv_view_place(const struct tconv_view *view, int64_t index);

/* Sets the bytes of data, output, residual and filter of a geometry whose extents were checked. */
void tconv_count_bytes(const tconv_problem *problem, tconv_geometry *geometry);

/* Copies the elements of a tensor, of `element` bytes each, between a view and a dense array, or
 * between two arrays with the same view. */
void tconv_view_gather(const struct tconv_view *view, size_t element, const void *from,
                       void *dense);
void tconv_view_scatter(const struct tconv_view *view, size_t element, const void *dense, void *to);
void tconv_view_copy(const struct tconv_view *view, size_t element, const void *from, void *to);

#endif
