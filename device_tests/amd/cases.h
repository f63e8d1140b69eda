/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cases: which layers are executed for which AMD processors, and how. */
#ifndef DEVICE_TESTS_AMD_CASES_H
#define DEVICE_TESTS_AMD_CASES_H

#include "tconv_cl/tconv_cl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One case; `text` says all of it. */
struct amd_case {
    char target[16];     /* gfx1100 */
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
    bool may_refuse; /* left out if the algorithm refuses the layer; else that is a failure */
    int pieces;      /* of each launch that can be divided */
    uint64_t most;   /* multiply-adds of a layer; larger ones are left out; 0: any */
    uint64_t seed;   /* of a random schedule; 0: none */
    uint64_t banks;  /* the most cycles of local memory for 100 without conflicts; 0: any */
};

struct amd_cases {
    struct amd_case *list;
    size_t count;
};

/* Reads a file as cases.txt, which explains the form. `layers` are the ids that "*" stands for,
 * NULL at the end. False after a message on stderr. */
bool amd_cases_read(const char *path, const char *const *layers, struct amd_cases *cases);

/* Adds a copy of a case for another algorithm, as it is named. False if memory is missing. */
bool amd_cases_add(struct amd_cases *cases, const struct amd_case *one, const char *algorithm);

void amd_cases_free(struct amd_cases *cases);

#endif
