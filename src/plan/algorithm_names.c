/* SPDX-License-Identifier: Apache-2.0 */
/* Names and summaries of the algorithms, for programs that make no plans. */
#include "algorithm/algorithm.h"
#include "tconv_cl/plan.h"

const char *tconv_algorithm_name(int index)
{
    const struct tconv_algorithm *algorithm = tconv_algorithm_at(index);
    return algorithm == NULL ? NULL : algorithm->name;
}

const char *tconv_algorithm_summary(const char *name)
{
    const struct tconv_algorithm *algorithm = name == NULL ? NULL : tconv_algorithm_named(name);
    return algorithm == NULL ? NULL : algorithm->summary;
}
