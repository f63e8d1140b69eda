/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the features that each algorithm has met. */
#include "sample.h"

#include "compile_watch.h"
#include "failed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ALGORITHMS = 32 };

/* One bit each: 6 ranks, 2 formats, 6 operators, 3 rule sets, steps. */
static const char *const feature_names[] = {
    "1 axis",        "2 axes", "3 axes",     "4 axes",         "5 axes",      "6 axes",
    "NCX",           "NXC",    "plain",      "grouped form",   "oneAPI form", "upsampling",
    "pixel shuffle", "DCR",    "spec rules", "openvino rules", "onnx rules",  "steps"};
enum { FORMATS = 6, OPERATORS = 8, RULES = 14, STEPS = 17 }; /* the first bits */

static struct {
    unsigned accepted, met; /* bits of features */
} features[MOST_ALGORITHMS];

static unsigned covered = ~0u; /* bits of the features for whose sake a case is in the sample */

void sample_covers(enum coverage coverage)
{
    const unsigned operators = (1u << RULES) - (1u << OPERATORS), three_axes = 7;
    covered = coverage == OPERATORS_AND_AXES ? operators | three_axes : 0;
}

static int index_of(const char *algorithm)
{
    const size_t length = strcspn(algorithm, " "); /* a tile may follow */
    for (int a = 0; a < MOST_ALGORITHMS && tconv_algorithm_name(a) != NULL; a++)
        if (strncmp(tconv_algorithm_name(a), algorithm, length) == 0 &&
            tconv_algorithm_name(a)[length] == '\0')
            return a;
    failed("there is no algorithm %s", algorithm);
}

static unsigned features_of(const tconv_problem *p)
{
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    if (tconv_resolve(p, &g, NULL) != TCONV_OK) return 0;
    return 1u << (g.axes - 1) | 1u << (FORMATS + (g.data_format == TCONV_NXC)) |
           1u << (OPERATORS + (unsigned)p->operation - TCONV_CONV_BACKPROP) |
           1u << (RULES + (unsigned)p->rules) |
           (unsigned)(p->data_steps.count + p->output_steps.count != 0) << STEPS;
}

void sample_begin(const char *algorithm, const tconv_problem *problem, unsigned number)
{
    const int a = index_of(algorithm);
    const bool is_drawn = number != IF_NEEDED && drawn(number * 31 + (unsigned)a);
    const bool is_new = !sample_is_least() &&
                        (features_of(problem) & covered & ~features[a].met) != 0;
    const bool is_needed = number == ALWAYS || is_new;
    const bool wanted = number != IF_COMPILED && (sample_is_whole() || is_drawn || is_needed);
    refuse_to_compile(!wanted);
}

bool sample_end(const char *algorithm, const tconv_problem *problem, tconv_status status)
{
    const bool left_out = status == TCONV_ERROR_BUILD && compiling_was_refused();
    refuse_to_compile(false);
    const int a = index_of(algorithm);
    if (status == TCONV_OK || left_out) features[a].accepted |= features_of(problem);
    if (status == TCONV_OK) features[a].met |= features_of(problem);
    return !left_out;
}

void expect_all_features(void)
{
    if (sample_is_least()) return;
    for (int a = 0; tconv_algorithm_name(a) != NULL; a++)
        for (unsigned f = 0; f < sizeof feature_names / sizeof *feature_names; f++)
            if (features[a].accepted >> f & ~features[a].met >> f & 1)
                failed("%s accepted a problem with %s, but none was run", tconv_algorithm_name(a),
                       feature_names[f]);
}
