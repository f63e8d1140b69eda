/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a plan, from the rows of base/members.h: no member can be forgotten. */
#include "session/key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

/* Behind `math` there is padding. */
#define BYTES(kind, member) +sizeof(((tconv_plan_options *)NULL)->member)
TCONV_ROWS_ARE_COMPLETE(sizeof(size_t) TCONV_PLAN_OPTIONS_MEMBERS(BYTES) + sizeof(int32_t),
                        tconv_plan_options);

static void add(struct tconv_key *key, int64_t number)
{
    key->number[key->count++] = number;
}

static void add_real(struct tconv_key *key, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(key, bits);
}

static bool add_list(struct tconv_key *key, int count, int most, const int64_t *value)
{
    if (count < 0 || count > most) return false;
    add(key, count);
    for (int i = 0; i < count; i++) add(key, value[i]);
    return true;
}

/* An algorithm with its tile; -1: the library chooses. */
static int64_t algorithm_number(const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0 ? -1
                                                     : (int64_t)XXH3_64bits(name, strlen(name));
}

/* Numbers that must be 0, in one: a plan that exists must not hide that they are not. */
static int64_t reserved_number(const void *reserved, size_t bytes)
{
    return (int64_t)XXH3_64bits(reserved, bytes);
}

#define ADD(kind, member, ...) ADD_##kind(member)
#define ADD_OPTION(kind, member) ADD_##kind(member)
#define ADD_SHAPE(member)                                                                          \
    if (!add_list(key, of->member.rank, TCONV_MAX_RANK, of->member.dim)) return false;
#define ADD_LIST(member)                                                                           \
    if (!add_list(key, of->member.count, TCONV_MAX_AXES, of->member.value)) return false;
#define ADD_STEPS(member)                                                                          \
    if (!add_list(key, of->member.count, TCONV_MAX_AXES + 2, of->member.value)) return false;
#define ADD_NUMBER(member) add(key, (int64_t)of->member);
#define ADD_NAME(member) ADD_NUMBER(member)
#define ADD_IMPLIED(member) ADD_NUMBER(member)
#define ADD_REAL(member) add_real(key, of->member);
#define ADD_RESERVED(member) add(key, reserved_number(of->member, sizeof of->member));
#define ADD_ALGORITHM(member) add(key, algorithm_number(of->member));
#define ADD_EPILOGUE(member) add_epilogue(key, &of->member);
#define ADD_SEARCH(member)

#define ADD_IF(kind, member, option, reads, ...)                                                   \
    if (reads) {                                                                                   \
        ADD_##kind(member)                                                                         \
    }
#define ADD_IF_READING(kind, member, ...) ADD_IF(kind, member, __VA_ARGS__, 0)

static bool add_problem(struct tconv_key *key, const tconv_problem *of)
{
    TCONV_PROBLEM_MEMBERS(ADD)
    return true;
}

bool tconv_key_make_reading(const tconv_problem *of, struct tconv_key *key)
{
    key->count = 0;
    TCONV_PROBLEM_MEMBERS(ADD_IF_READING)
    return true;
}

static void add_epilogue(struct tconv_key *key, const tconv_epilogue *of)
{
    TCONV_EPILOGUE_MEMBERS(ADD)
}

static void add_options(struct tconv_key *key, const tconv_plan_options *of)
{
    TCONV_PLAN_OPTIONS_MEMBERS(ADD_OPTION)
}

bool tconv_key_make(const tconv_problem *problem, const tconv_plan_options *options,
                    struct tconv_key *key)
{
    key->count = 0;
    if (!add_problem(key, problem)) return false;
    add_options(key, options);
    return true;
}

bool tconv_key_equal(const struct tconv_key *a, const struct tconv_key *b)
{
    return a->count == b->count &&
           memcmp(a->number, b->number, (size_t)a->count * sizeof *a->number) == 0;
}
