/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the public structures that make up a request: a row for each. From the rows follow
 * all lists that must have every member: the key of a layer's plans, the problem's text, the key of
 * stored searches, the checks of lists, the tool's options, columns of its suites and attributes of
 * models, and the tests of all of these. A member without a row does not compile.
 *
 * The rows of the problem stand in the order of its text. Expressions in a row call the structure
 * `p`, or `e`. `absent` is the value that stands for the default; every other one must be legal.
 *
 *   P(SHAPE, member, "option", reads)              extents of a tensor
 *   P(LIST, member, "option", reads, absent, least)
 *                                                  a number for each spatial axis, its value if the
 *                                                  list is absent, its least legal value
 *   P(STEPS, member, "option", reads, least)       element steps of a tensor, the least legal one
 *   P(NAME, member, "option", reads, when, kind)   an enumerator with tconv_KIND_name and
 *                                                  tconv_KIND_from_name; the text has it `when`
 *   P(NUMBER, member, "option", reads, when, absent, least, most)
 *                                                  an integer, with its legal values
 *   P(IMPLIED, member, NULL, reads)                follows from other options
 *
 * `reads` is true if the member changes which of the filter's elements stands for which weight.
 * Weights are packed again for a problem that differs in such a member: the packed layout tells
 * how weights lie after packing, not how they lay before.
 *
 *   E(NUMBER, member, set, word)                  an integer, enumerator or flag; the key of a
 *                                                 stored search has the word where `set`
 *   E(REAL, member, set, word)                    a floating-point number
 *   E(RESERVED, member, set, word)                numbers that must be 0
 *
 *   O(NUMBER, member)                             of tconv_plan_options
 *   O(ALGORITHM, member)                          a name, perhaps with a tile
 *   O(EPILOGUE, member)                           the structure above
 *   O(WINDOW, member)                             one end of a window of rows
 *   O(SEARCH, member)                             how long a search takes and what it calls: not a
 *                                                 part of a plan's key */
#ifndef TCONV_BASE_MEMBERS_H
#define TCONV_BASE_MEMBERS_H

#include "tconv_cl/epilogue.h"
#include "tconv_cl/problem.h"

/* clang-format off */

#define TCONV_PROBLEM_SHAPES(P)                                                                    \
    P(SHAPE, data, "data-shape", false)                                                            \
    P(SHAPE, filter, "filter-shape", true)

#define TCONV_PROBLEM_LISTS(P)                                                                     \
    P(LIST, strides, "strides", true, 1, 1)                                                       \
    P(LIST, dilations, "dilations", true, 1, 1)                                                   \
    P(LIST, pads_begin, "pads-begin", false, 0, 0)                                                 \
    P(LIST, pads_end, "pads-end", false, 0, 0)                                                     \
    P(LIST, output_padding, "output-padding", false, 0, 0)                                         \
    P(LIST, output_shape, "output-shape", false, 1, 1)

#define TCONV_PROBLEM_STEPS(P)                                                                     \
    P(STEPS, data_steps, "data-steps", false, 1)                                                   \
    P(STEPS, output_steps, "output-steps", false, 1)                                               \
    P(STEPS, residual_steps, "residual-steps", false, 0)                                           \
    P(STEPS, filter_steps, "filter-steps", true, 1)

#define TCONV_PROBLEM_NUMBERS(P)                                                                   \
    P(NAME, auto_pad, "auto-pad", false, p->auto_pad != TCONV_EXPLICIT, auto_pad)                  \
    P(NAME, rules, "rules", false, p->rules != TCONV_RULES_SPEC, rules)                            \
    P(NAME, data_type, "type", false, p->data_type != TCONV_F32, type)                             \
    P(NAME, filter_type, "filter-type", true, p->filter_type != p->data_type, type)                \
    P(NAME, output_type, "output-type", false, p->output_type != TCONV_TYPE_DEFAULT, type)         \
    P(NUMBER, groups, "groups", true, p->operation >= TCONV_ONEAPI_CONV_BACKPROP, 0, 1, INT64_MAX) \
    P(NAME, data_format, "data-format", false, p->operation >= TCONV_ONEAPI_CONV_BACKPROP,         \
      data_format)                                                                                 \
    P(NAME, filter_format, "filter-format", true, p->operation >= TCONV_ONEAPI_CONV_BACKPROP,      \
      filter_format)

#define TCONV_PROBLEM_MEMBERS(P)                                                                   \
    TCONV_PROBLEM_SHAPES(P) TCONV_PROBLEM_LISTS(P) TCONV_PROBLEM_STEPS(P)                          \
    TCONV_PROBLEM_NUMBERS(P)                                                                       \
    P(IMPLIED, operation, NULL, true)

#define TCONV_EPILOGUE_MEMBERS(E)                                                                  \
    E(NUMBER, bias, e->bias, "bias")                                                               \
    E(NUMBER, scale, e->scale, "scale")                                                            \
    E(NUMBER, residual, e->residual, "residual")                                                   \
    E(REAL, alpha, e->alpha != 1, "alpha")                                                         \
    E(REAL, beta, e->beta != 0, "beta")                                                            \
    E(NUMBER, requantize, e->requantize, "requantize")                                             \
    E(NUMBER, data_zero_point, e->data_zero_point != 0, "data_zero")                               \
    E(NUMBER, filter_zero_point, e->filter_zero_point != 0, "filter_zero")                         \
    E(NUMBER, output_zero_point, e->output_zero_point != 0, "output_zero")                         \
    E(NUMBER, activation, e->activation != TCONV_ACTIVATION_NONE,                                  \
      tconv_activation_name(e->activation))                                                        \
    E(REAL, a, false, "") /* speed does not depend on a, b */                                      \
    E(REAL, b, false, "")                                                                          \
    E(RESERVED, reserved, false, "")

#define TCONV_PLAN_OPTIONS_MEMBERS(O)                                                              \
    O(ALGORITHM, algorithm)                                                                        \
    O(EPILOGUE, epilogue)                                                                          \
    O(NUMBER, workspace_limit)                                                                     \
    O(NUMBER, math)                                                                                \
    O(WINDOW, output_begin)                                                                        \
    O(WINDOW, output_end)                                                                          \
    O(NUMBER, search)                                                                              \
    O(SEARCH, search_ms)                                                                           \
    O(SEARCH, search_progress)                                                                     \
    O(SEARCH, search_context)

/* clang-format on */

/* No member lacks its row: with 64-bit pointers the bytes of the rows, and of the padding that the
 * structure has, are those of the structure. No row stands twice: enumerators of the same name
 * would not compile. */
#define TCONV_ROWS_ARE_COMPLETE(bytes, structure)                                                  \
    _Static_assert(sizeof(void *) != 8 || (bytes) == sizeof(structure),                            \
                   "a member of " #structure " has no row in base/members.h, or the structure "    \
                   "ends with padding, which a later member would share")

#define TCONV_ROW(kind, member, ...) TCONV_PROBLEM_##member,
enum { TCONV_PROBLEM_MEMBERS(TCONV_ROW) TCONV_PROBLEM_ROWS };
#undef TCONV_ROW
#define TCONV_ROW(kind, member, ...) TCONV_EPILOGUE_##member,
enum { TCONV_EPILOGUE_MEMBERS(TCONV_ROW) TCONV_EPILOGUE_ROWS };
#undef TCONV_ROW

#define TCONV_ROW(kind, member, ...) +sizeof(((tconv_problem *)NULL)->member)
TCONV_ROWS_ARE_COMPLETE(sizeof(size_t) TCONV_PROBLEM_MEMBERS(TCONV_ROW), tconv_problem);
#undef TCONV_ROW
#define TCONV_ROW(kind, member, ...) +sizeof(((tconv_epilogue *)NULL)->member)
TCONV_ROWS_ARE_COMPLETE(0 TCONV_EPILOGUE_MEMBERS(TCONV_ROW), tconv_epilogue);
#undef TCONV_ROW

#endif
