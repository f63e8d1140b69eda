/* SPDX-License-Identifier: Apache-2.0 */
/* What tells the plans of a layer apart, and the filters that it packs: numbers, from the rows of
 * base/members.h. Structures cannot be compared byte by byte: they have padding, and lists have
 * places that are not used. */
#ifndef TCONV_LAYER_KEY_H
#define TCONV_LAYER_KEY_H

#include "base/members.h"
#include "tconv_cl/plan.h"

/* The most numbers that a member of each kind has. */
#define TCONV_KEY_SHAPE (1 + TCONV_MAX_RANK)
#define TCONV_KEY_LIST (1 + TCONV_MAX_AXES)
#define TCONV_KEY_STEPS (1 + TCONV_MAX_RANK)
#define TCONV_KEY_NAME 1
#define TCONV_KEY_NUMBER 1
#define TCONV_KEY_IMPLIED 1
#define TCONV_KEY_REAL 1
#define TCONV_KEY_RESERVED 1
#define TCONV_KEY_ALGORITHM 1
#define TCONV_KEY_EPILOGUE 0 /* its members count for themselves */
#define TCONV_KEY_SEARCH 0
#define TCONV_KEY_WINDOW 2 /* of each end: together rows of output and input, and a pad */
#define TCONV_KEY(kind, member, ...) +TCONV_KEY_##kind
#define TCONV_KEY_OPTION(kind, member) +TCONV_KEY_##kind
#define TCONV_READING(kind, member, ...) TCONV_READING_IF(kind, __VA_ARGS__, 0)
#define TCONV_READING_IF(kind, option, reads, ...) +((reads) ? TCONV_KEY_##kind : 0)
enum {
    TCONV_KEY_NUMBERS = TCONV_PROBLEM_MEMBERS(TCONV_KEY) TCONV_EPILOGUE_MEMBERS(TCONV_KEY)
        TCONV_PLAN_OPTIONS_MEMBERS(TCONV_KEY_OPTION),
    TCONV_READING_NUMBERS = TCONV_PROBLEM_MEMBERS(TCONV_READING)
};

/* All that a plan depends on. Windows with the same rows and pads have the same plan, wherever they
 * are. */
struct tconv_key {
    int count;
    int64_t number[TCONV_KEY_NUMBERS];
};

/* Which of a filter's elements stands for which weight. Two problems with an equal reading and the
 * same packed layout use a packed filter alike. */
struct tconv_reading {
    int count;
    int64_t number[TCONV_READING_NUMBERS];
};

/* False if a list or shape is longer than its limit, or if the window is none of the problem's;
 * tconv_plan_create refuses it, too. */
bool tconv_key_make(const tconv_problem *problem, const tconv_plan_options *options,
                    struct tconv_key *key);

/* The problem has a plan. */
void tconv_reading_make(const tconv_problem *problem, struct tconv_reading *reading);

bool tconv_key_equal(const struct tconv_key *a, const struct tconv_key *b);
bool tconv_reading_equal(const struct tconv_reading *a, const struct tconv_reading *b);

#endif
