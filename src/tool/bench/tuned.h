/* SPDX-License-Identifier: Apache-2.0 */
/* Files of results that tune --share wrote, maybe on another machine. */
#ifndef TCONV_TOOL_TUNED_H
#define TCONV_TOOL_TUNED_H

#include "tool/tool.h"

/* A result of a search: a layer and its fastest algorithm. */
struct tuned_result {
    tconv_problem problem;
    tconv_plan_options options; /* epilogue and math of the layer */
    tconv_stored_search found;  /* texts of the file's JSON; origin and layer among them */
};

struct tuned_file {
    json_t *json; /* owns the texts */
    char origin[160];
    const json_t *device; /* an object: what ran it, of tuned_device's members */
    struct tuned_result *results;
    size_t count;
};

/* What such a file says of a device, and the number of members at its begin that must be equal on
 * the device that uses it: results hold for other driver versions and for other cards of the
 * architecture. */
enum { TUNED_SAME = 4 };
extern const char *const tuned_device[];

/* Reads a file; "-" is stdin. Whatever its bytes are, it is refused as a whole unless all of its
 * layers are valid problems and all numbers times: a message names the line or the member. Whether
 * an algorithm takes its layer is another question. */
enum exit_code tuned_read(const char *path, struct tuned_file *file);
void tuned_free(struct tuned_file *file);

#endif
