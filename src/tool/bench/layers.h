/* SPDX-License-Identifier: Apache-2.0 */
/* The layers that a command works on: a suite, the layers of a model, or one layer given by shapes
 * and attributes. */
#ifndef TCONV_TOOL_LAYERS_H
#define TCONV_TOOL_LAYERS_H

#include "tool/bench/opened.h"
#include "tool/io/suite.h"

/* The work of bench, check and tune: layers, and the device that runs them. */
struct work {
    struct suite suite;
    int number; /* of the device */
    struct opened opened;
};

/* Chooses the layers, as the options say. Without any option about layers, `otherwise` gives them.
 * Call suite_free in any case. */
enum exit_code choose_layers(struct suite *suite, enum exit_code (*otherwise)(struct suite *suite));

/* Chooses the layers and opens the device, as the options say. Without any option about layers,
 * `otherwise` gives them. An option that would be ignored is a wrong request. Call work_close in
 * any case. */
enum exit_code work_open(struct work *work, enum exit_code (*otherwise)(struct suite *suite));
void work_close(struct work *work);

/* Gives the built-in suite; for `otherwise`. */
enum exit_code built_in_suite(struct suite *suite);

/* Gives the built-in set of check: small problems, each for a reason. */
enum exit_code built_in_checks(struct suite *suite);

/* The failures of a command's work. */
struct failures {
    int count, wrong_requests;
    char first[1300];
};

/* Counts a failure of a layer. `algorithm` is the algorithm that failed, or NULL. */
void failures_add(struct failures *f, const struct entry *entry, const char *algorithm,
                  tconv_status status, const char *error);

/* False of a layer that is empty, was interrupted, or is one of many and does not fit. */
bool is_failure(tconv_status status, size_t layers);

/* Prints the closing sentence and returns the exit code. `so_far` says what was done, if the
 * command was interrupted. `what` says what is counted, for example "of 77 layers failed". */
enum exit_code failures_verdict(const struct failures *f, const char *so_far, const char *what);

#endif
