/* SPDX-License-Identifier: Apache-2.0 */
/* What tells the plans of a layer apart: all that a plan depends on, as numbers. Structures cannot
 * be compared byte by byte: they have padding, and lists have places that are not used. */
#ifndef TCONV_SESSION_KEY_H
#define TCONV_SESSION_KEY_H

#include "base/members.h"
#include "tconv_cl/plan.h"

/* The most numbers that a member of each kind has. */
#define TCONV_KEY_SHAPE (1 + TCONV_MAX_RANK)
#define TCONV_KEY_LIST (1 + TCONV_MAX_AXES)
#define TCONV_KEY_STEPS (1 + TCONV_MAX_AXES + 2)
#define TCONV_KEY_NAME 1
#define TCONV_KEY_NUMBER 1
#define TCONV_KEY_IMPLIED 1
#define TCONV_KEY_REAL 1
#define TCONV_KEY_RESERVED 1
#define TCONV_KEY_ALGORITHM 1
#define TCONV_KEY_EPILOGUE 0 /* its members count for themselves */
#define TCONV_KEY_SEARCH 0
#define TCONV_KEY(kind, member, ...) +TCONV_KEY_##kind
#define TCONV_KEY_OPTION(kind, member) +TCONV_KEY_##kind
enum {
    TCONV_KEY_NUMBERS = TCONV_PROBLEM_MEMBERS(TCONV_KEY) TCONV_EPILOGUE_MEMBERS(TCONV_KEY)
        TCONV_PLAN_OPTIONS_MEMBERS(TCONV_KEY_OPTION)
};

struct tconv_key {
    int count;
    int64_t number[TCONV_KEY_NUMBERS];
};

/* False if a list or shape is longer than its limit; tconv_plan_create refuses it, too. */
bool tconv_key_make(const tconv_problem *problem, const tconv_plan_options *options,
                    struct tconv_key *key);

/* The members of the problem that say which of the filter's elements stands for which weight: the
 * column `reads` of base/members.h. Two problems with equal ones and the same packed layout read a
 * filter alike. False as above. */
bool tconv_key_make_reading(const tconv_problem *problem, struct tconv_key *key);

bool tconv_key_equal(const struct tconv_key *a, const struct tconv_key *b);

#endif
