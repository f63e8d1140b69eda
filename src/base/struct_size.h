/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the public structures that begin with `size_t struct_size`, for programs that
 * were compiled with older or newer headers (tconv_cl.h has the rules). */
#ifndef TCONV_BASE_STRUCT_SIZE_H
#define TCONV_BASE_STRUCT_SIZE_H

#include "tconv_cl/status.h"

#include <stddef.h>

/* One of these structures. */
struct tconv_sized {
    const char *argument, *start; /* for messages: the argument's name, and what to start from */
    size_t least;                 /* bytes of the shortest one that is accepted */
    size_t size;                  /* bytes in this version */
};

/* `last` is the last member that the structure must have; the members behind it default to 0. */
#define TCONV_SIZED(type, last, argument, start)                                                   \
    ((struct tconv_sized){argument, start, offsetof(type, last) + sizeof(((type *)NULL)->last),    \
                          sizeof(type)})

#define TCONV_SIZED_PROBLEM TCONV_SIZED(tconv_problem, filter, "problem", "TCONV_PROBLEM_INIT")
#define TCONV_SIZED_GEOMETRY TCONV_SIZED(tconv_geometry, output, "geometry", "TCONV_GEOMETRY_INIT")
#define TCONV_SIZED_DEVICE_INFO                                                                    \
    TCONV_SIZED(tconv_device_info, kind, "info", "TCONV_DEVICE_INFO_INIT")
#define TCONV_SIZED_PLAN_OPTIONS                                                                   \
    TCONV_SIZED(tconv_plan_options, algorithm, "options", "TCONV_PLAN_OPTIONS_INIT")
#define TCONV_SIZED_CHOICE TCONV_SIZED(tconv_choice, best_ms, "choice", "TCONV_CHOICE_INIT")
#define TCONV_SIZED_TENSORS TCONV_SIZED(tconv_tensors, output, "tensors", "TCONV_TENSORS_INIT")
#define TCONV_SIZED_RUN TCONV_SIZED(tconv_run, done, "run", "TCONV_RUN_INIT")
#define TCONV_SIZED_LAYER_COUNTS                                                                   \
    TCONV_SIZED(tconv_layer_counts, filters_packed, "counts", "TCONV_LAYER_COUNTS_INIT")

#define TCONV_SIZED_STREAM_OPTIONS                                                                 \
    TCONV_SIZED(tconv_stream_options, columns, "streaming", "TCONV_STREAM_OPTIONS_INIT")
#define TCONV_SIZED_STREAM_INFO                                                                    \
    TCONV_SIZED(tconv_stream_info, bytes, "info", "TCONV_STREAM_INFO_INIT")

/* Copies the caller's structure to `own`, which has the defaults. Bytes of `given` that this
 * version does not know must be 0. With `given` NULL nothing is copied. Returns
 * TCONV_ERROR_ARGUMENT, _UNSUPPORTED. */
tconv_status tconv_struct_read(struct tconv_sized sized, const void *given, void *own,
                               tconv_error *error);

/* Checks the size of a structure that is to be written. Returns TCONV_ERROR_ARGUMENT. */
tconv_status tconv_struct_check(struct tconv_sized sized, const void *given, tconv_error *error);

/* Copies `own` to the caller's structure, whose size was checked: as much as fits. Bytes that this
 * version does not know become 0, struct_size stays. */
void tconv_struct_write(struct tconv_sized sized, const void *own, void *given);

#endif
