/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which process uses OpenCL, and refuses calls in its forked children. */
#include "base/process.h"

#include "base/error.h"
#include "base/os.h"

#include <stdatomic.h>

static atomic_long user; /* the process that uses OpenCL; 0: none is known yet */
static atomic_bool entered;

tconv_status tconv_process_enter(tconv_error *error)
{
    const long own = tconv_os_process();
    long known = atomic_load(&user);
    if (!atomic_load(&entered)) atomic_store(&entered, true);
    if (known == own) return TCONV_OK;
    if (known == 0) {
        const long other = tconv_os_find_mark(own);
        if (atomic_compare_exchange_strong(&user, &known, other == 0 ? own : other)) {
            known = other == 0 ? own : other;
            if (other == 0) tconv_os_leave_mark(own);
        }
    }
    if (known == own) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_FORKED,
                      "process %ld was forked from process %ld, which had used OpenCL before: "
                      "OpenCL does not work in a child. Fork before the first use of a device, or "
                      "start a new program instead (Python: multiprocessing's method \"spawn\")",
                      own, known);
}

bool tconv_process_forked(void)
{
    const long known = atomic_load(&user), own = tconv_os_process();
    /* If this copy of the library has not been used yet, another one may have been. */
    const long first = known != 0 ? known : tconv_os_find_mark(own);
    return first != 0 && first != own;
}

bool tconv_process_entered(void)
{
    return atomic_load(&entered);
}
