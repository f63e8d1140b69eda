/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cases: which layers are executed for which processors, and how. A line of a list has
 * columns, and stands for a case of each combination of what its columns list with commas:
 *
 *   targets     processors, as the compiler names them
 *   algorithms  names, with tile parameters behind colons, as in tiled_group:split=1 and
 *               tiled_group:* (all tiles), or auto (what selection takes)
 *   types       of data, filter and output: f32, u8/i8, u8/i8/i32
 *   layers      ids in layers.csv; * stands for all
 *   options     no_bias scale residual beta requantize, activation=A,B, format=NXC, math=fast
 *               pieces=N     divide a launch that can be divided
 *               seed=N       waves take turns at random, work-groups come in another order
 *               wave64       waves of 64 lanes on RDNA
 *               shifted      buffers begin one element behind an aligned address, and the packed
 *                            filter 64 bytes
 *               may_refuse   the layer may be refused; else that is a failure
 *               most=N       leave out layers with more multiply-adds
 *               banks=N      the accesses to local memory take at most N cycles for 100 that they
 *                            would take without bank conflicts
 *
 * Lines that are empty or begin with # are comments. A new case is a new word or line. Compiling
 * takes most of the time: combinations that share programs are cheap, for example schedules, and
 * layers that differ in channels only. A short run has at least one case of each line, and each
 * word of the list in some case (sample_of in executed_code.py). */
#ifndef DEVICE_TESTS_EXECUTED_CASES_H
#define DEVICE_TESTS_EXECUTED_CASES_H

#include "tconv_cl/tconv_cl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One case; `text` says all of it. */
struct executed_case {
    char target[16];     /* gfx1100, sm_90 */
    char algorithm[160]; /* "tiled_group mt=16": a name, and tile parameters if they are given */
    char layer[16];      /* id in the suite */
    char text[300];
    tconv_type data_type, filter_type, output_type;
    tconv_data_format format;
    tconv_math math;
    tconv_activation activation;
    bool no_bias, scale, residual, beta, requantize;
    bool wave64;     /* waves of 64 lanes on RDNA */
    bool shifted;    /* buffers begin one element behind an aligned address */
    bool may_refuse; /* left out if the layer is refused; else that is a failure */
    int pieces;      /* of each launch that can be divided */
    uint64_t most;   /* multiply-adds of a layer; larger ones are left out; 0: any */
    uint64_t seed;   /* of a random schedule; 0: none */
    uint64_t banks;  /* the most cycles of local memory for 100 without conflicts; 0: any */
    int line;        /* of the list */
};

struct executed_cases {
    struct executed_case *list;
    size_t count;
};

/* Reads a file of this form. `layers` are the ids that "*" stands for,
 * NULL at the end. False after a message on stderr. */
bool executed_cases_read(const char *path, const char *const *layers, struct executed_cases *cases);

/* Adds a copy of a case for another algorithm, as it is named. False if memory is missing. */
bool executed_cases_add(struct executed_cases *cases, const struct executed_case *one,
                        const char *algorithm);

void executed_cases_free(struct executed_cases *cases);

#endif
