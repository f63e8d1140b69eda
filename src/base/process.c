/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include "base/error.h"

#include <stdatomic.h>
#include <unistd.h>

static atomic_long user; /* the process that uses OpenCL; 0: none yet */

tconv_status tconv_process_enter(tconv_error *error)
{
    const long own = (long)getpid();
    long known = 0;
    if (atomic_compare_exchange_strong(&user, &known, own) || known == own) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_FORKED,
                      "process %ld was forked from process %ld, which had used OpenCL before: "
                      "OpenCL does not work in a child. Fork before the first use of a device, or "
                      "start a new program instead (Python: multiprocessing's method \"spawn\")",
                      own, known);
}

bool tconv_process_forked(void)
{
    const long known = atomic_load(&user);
    return known != 0 && known != (long)getpid();
}
