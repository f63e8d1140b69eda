/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the tests of a short run (smoke.h). */
#include "smoke.h"

#include "percent.h"
#include "tconv_cl/tconv_cl.h"

#include <string.h>

char smoke_mark;

#ifdef CALLS_ARE_FAKED_TOO
static bool all_are_pocl(void)
{
    int count = 0;
    if (tconv_device_count(&count, NULL) != TCONV_OK) return false;
    for (int i = 0; i < count; i++) {
        cl_device_id id;
        tconv_device_info info = {.struct_size = sizeof info};
        if (tconv_device_at(i, NULL, &id, NULL) != TCONV_OK ||
            tconv_device_describe(id, &info, NULL) != TCONV_OK ||
            strstr(info.platform, "Portable Computing Language") == NULL)
            return false;
    }
    return true;
}

bool smoke_suffices(void)
{
    return !sample_is_whole() && all_are_pocl();
}
#else
bool smoke_suffices(void)
{
    return false;
}
#endif

size_t keep_smoke_tests(struct CMUnitTest *tests, size_t count)
{
    size_t kept = 0;
    if (!smoke_suffices()) return count;
    for (size_t i = 0; i < count; i++)
        if (tests[i].initial_state == &smoke_mark) tests[kept++] = tests[i];
    if (kept < count)
        print_message("%d of %d tests; all of them run on the fake implementation\n", (int)kept,
                      (int)count);
    return kept;
}
