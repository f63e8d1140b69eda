/* SPDX-License-Identifier: Apache-2.0 */
/* Makes keys of plans and readings of filters from the rows of base/members.h: no member can be
 * forgotten. */
#include "layer/key.h"

#include "geometry/window.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

/* Behind `math` there is padding. */
#define BYTES(kind, member) +sizeof(((tconv_plan_options *)NULL)->member)
TCONV_ROWS_ARE_COMPLETE(sizeof(size_t) TCONV_PLAN_OPTIONS_MEMBERS(BYTES) + sizeof(int32_t),
                        tconv_plan_options);

/* The numbers of a key or a reading, as they are added. */
struct numbers {
    int64_t *number;
    int count;
};

static void add(struct numbers *to, int64_t number)
{
    to->number[to->count++] = number;
}

static void add_real(struct numbers *to, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(to, bits);
}

static bool add_list(struct numbers *to, int count, int most, const int64_t *value)
{
    if (count < 0 || count > most) return false;
    add(to, count);
    for (int i = 0; i < count; i++) add(to, value[i]);
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
    if (!add_list(to, of->member.rank, TCONV_MAX_RANK, of->member.dim)) return false;
#define ADD_LIST(member)                                                                           \
    if (!add_list(to, of->member.count, TCONV_MAX_AXES, of->member.value)) return false;
#define ADD_STEPS(member)                                                                          \
    if (!add_list(to, of->member.count, TCONV_MAX_RANK, of->member.value)) return false;
#define ADD_NUMBER(member) add(to, (int64_t)of->member);
#define ADD_NAME(member) ADD_NUMBER(member)
#define ADD_IMPLIED(member) ADD_NUMBER(member)
#define ADD_REAL(member) add_real(to, of->member);
#define ADD_RESERVED(member) add(to, reserved_number(of->member, sizeof of->member));
#define ADD_ALGORITHM(member) add(to, algorithm_number(of->member));
#define ADD_EPILOGUE(member) add_epilogue(to, &of->member);
#define ADD_SEARCH(member)
#define ADD_WINDOW(member) /* add_window */
#define ADD_READING(kind, member, ...) ADD_IF(kind, member, __VA_ARGS__, 0)
#define ADD_IF(kind, member, option, reads, ...)                                                   \
    if (reads) {                                                                                   \
        ADD_##kind(member)                                                                         \
    }

static bool add_problem(struct numbers *to, const tconv_problem *of)
{
    TCONV_PROBLEM_MEMBERS(ADD)
    return true;
}

static bool add_reading(struct numbers *to, const tconv_problem *of)
{
    TCONV_PROBLEM_MEMBERS(ADD_READING)
    return true;
}

static void add_epilogue(struct numbers *to, const tconv_epilogue *of)
{
    TCONV_EPILOGUE_MEMBERS(ADD)
}

static void add_options(struct numbers *to, const tconv_plan_options *of)
{
    TCONV_PLAN_OPTIONS_MEMBERS(ADD_OPTION)
}

/* What a plan depends on of a window: its output rows, and the pad before its input rows. Together
 * they say how many input rows it has. */
static bool add_window(struct numbers *to, const tconv_problem *problem,
                       const tconv_plan_options *options)
{
    if (options->output_begin == 0 && options->output_end == 0) return true;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    if (tconv_resolve_window(problem, options->output_begin, options->output_end, &geometry,
                             NULL) != TCONV_OK)
        return false;
    add(to, geometry.output[0]);
    add(to, geometry.input[0]);
    add(to, geometry.pad_begin[0]);
    return true;
}

bool tconv_key_make(const tconv_problem *problem, const tconv_plan_options *options,
                    struct tconv_key *key)
{
    struct numbers to = {key->number, 0};
    if (!add_problem(&to, problem)) return false;
    add_options(&to, options);
    if (!add_window(&to, problem, options)) return false;
    key->count = to.count;
    return true;
}

void tconv_reading_make(const tconv_problem *problem, struct tconv_reading *reading)
{
    struct numbers to = {reading->number, 0};
    add_reading(&to, problem);
    reading->count = to.count;
}

static bool equal(const int64_t *a, int a_count, const int64_t *b, int b_count)
{
    return a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof *a) == 0;
}

bool tconv_key_equal(const struct tconv_key *a, const struct tconv_key *b)
{
    return equal(a->number, a->count, b->number, b->count);
}

bool tconv_reading_equal(const struct tconv_reading *a, const struct tconv_reading *b)
{
    return equal(a->number, a->count, b->number, b->count);
}
