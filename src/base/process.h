/* SPDX-License-Identifier: Apache-2.0 */
/* Which process uses OpenCL. Its implementations have threads and locks, of which a forked child
 * has neither: calls hang there. */
#ifndef TCONV_BASE_PROCESS_H
#define TCONV_BASE_PROCESS_H

#include "tconv_cl/status.h" /* also tconv_process_forked: nothing may be given back in a child */

/* For every public function that calls OpenCL, before it does or takes a lock. The first call makes
 * this process the one that uses OpenCL; in a process that was forked from it, TCONV_ERROR_FORKED.
 * Any thread. */
tconv_status tconv_process_enter(tconv_error *error);

#endif
