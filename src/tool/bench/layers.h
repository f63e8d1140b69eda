/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers a command works on: a suite, the layers of a model, or one layer by its shapes and
 * attributes. */
#ifndef TCONV_TOOL_LAYERS_H
#define TCONV_TOOL_LAYERS_H

#include "tool/io/suite.h"

/* What bench, check and tune work with: layers, and the device that is to run them. */
struct work {
    struct suite suite;
    int number; /* of the device */
    tconv_session *session;
};

/* Chooses the layers and opens the device, as the options say. Without any option about layers,
 * `otherwise` gives them. Options that would not be used are a wrong request. To be closed in any
 * case. */
enum exit_code work_open(struct work *work, enum exit_code (*otherwise)(struct suite *suite));
void work_close(struct work *work);

/* The suite inside the tool, for `otherwise`. */
enum exit_code built_in_suite(struct suite *suite);

/* What failed of a command's work. */
struct failures {
    int count, wrong_requests;
    char first[1300];
};

/* Counts a failure of a layer. `algorithm`: which one failed, or NULL. */
void failures_add(struct failures *f, const struct entry *entry, const char *algorithm,
                  tconv_status status, const char *error);

/* The sentence and the exit code at the end: `so_far` is what was done, for an interrupted command,
 * and `what` is what is counted, for example "of 77 layers". */
enum exit_code failures_verdict(const struct failures *f, const char *so_far, const char *what);

#endif
