/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of one layer on the device, for `bench` and `check`: tensors, a plan, a first run,
 * verification against the oracle. After an interruption every step fails with
 * TCONV_ERROR_CANCELLED. */
#ifndef TCONV_TOOL_TRIAL_H
#define TCONV_TOOL_TRIAL_H

#include "oracle/oracle.h"
#include "tool/bench/opened.h"
#include "tool/io/suite.h"

enum { TILE_TEXT = 240 }; /* bytes that suffice for what tconv_plan_tile writes */

/* A text about a plan, from malloc. NULL if it is empty or memory is missing. */
char *plan_text(const tconv_plan *plan, int (*write)(const tconv_plan *, char *, size_t));

/* Notices which faster algorithms a plan passed over, and why the result of its search is not
 * stored; either may be NULL. `layer` stands before them, if it is not empty. */
void tell_plan(const char *layer, const char *passed_over, const char *not_stored);

/* Where a command is among its layers, for the progress bar of a search. */
struct place {
    const struct entry *entry;
    int layer, layers;
};

/* The options of a plan that the command line gives, without the algorithm; with a place, its
 * progress is shown. */
tconv_plan_options trial_options(const struct place *place);

/* Says in JSON what a max_error is a fraction of. */
#define MAX_ERROR_IS                                                                               \
    "the largest error against the f64 reference, as a fraction of error_bound: above 1 is wrong"

/* Whether a device can hold a layer's tensors, each in one buffer. Otherwise `why` gets a text. */
bool tensors_fit(const tconv_device_info *d, const tconv_geometry *g, char *why, size_t size);

struct trial {
    const struct opened *opened;
    struct opened again; /* the device, opened anew by trial_run_anew if it has threads */
    const tconv_problem *problem;
    tconv_geometry geometry;
    tconv_epilogue epilogue;
    struct tconv_operands operands; /* host arrays */
    void *output;                   /* valid after trial_verify downloaded it */
    cl_mem weights;
    tconv_plan *plan;
    tconv_packed_filter *packed;
    tconv_tensors args;
    double first_call_seconds; /* plan, pack and first run, including compilation */
    double warm_call_seconds;  /* the same with a new device object, when all is compiled */
    double max_error;          /* the largest error seen, over its bound */
    double error_bound;        /* the bound of that element */
    size_t compared;           /* how many output elements were compared */
    bool empty;                /* a valid problem with nothing to compute */
    char error[1100];          /* not empty: why it could not be run */
    tconv_status status;       /* the status of `error` */
};

/* Makes the tensors of a layer (its weights, or any if it has none; those of the epilogue as the
 * options say) and uploads them. False with trial->error if that fails, or if the layer could
 * not be read. */
bool trial_prepare(struct trial *trial, const struct opened *opened, const struct entry *entry);

/* Plans, packs and runs `algorithm` (NULL: the library's choice) once, into an output full of NaNs.
 * May be called again with another algorithm. */
bool trial_run(struct trial *trial, const char *algorithm);

/* Plans, packs and runs once more with a new device object: the time that a process takes if an
 * earlier process compiled its programs. Call it after trial_run. */
bool trial_run_anew(struct trial *trial);

/* Runs `times` more times, one run behind the other, and waits for the last. Returns the mean time
 * of one in seconds, or a negative number with trial->error if one fails. */
double trial_repeat(struct trial *trial, int times);

/* Downloads the output and compares it with the oracle: all elements, or `most` elements spread
 * over a larger output. Every element is checked for NaN. False with trial->error at the first
 * wrong element. */
bool trial_verify(struct trial *trial, size_t most);

void trial_free(struct trial *trial);

#endif
