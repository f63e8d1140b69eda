/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which process uses OpenCL. OpenCL implementations have threads, which a forked child
 * does not have, and locks, which it may inherit locked: calls hang there. */
#ifndef TCONV_BASE_PROCESS_H
#define TCONV_BASE_PROCESS_H

#include "tconv_cl/status.h" /* also tconv_process_forked: a child must not release anything */

/* Every public function that calls OpenCL calls this first, before it takes a lock. The first call
 * makes this process the one that uses OpenCL. In a process that was forked from it, returns
 * TCONV_ERROR_FORKED. Any thread. */
tconv_status tconv_process_enter(tconv_error *error);

/* True if it was called in this process, or in one that this was forked from. */
bool tconv_process_entered(void);

#endif
