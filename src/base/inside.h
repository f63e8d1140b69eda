/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread is inside a callback: of tracing, or about a search. */
#ifndef TCONV_BASE_INSIDE_H
#define TCONV_BASE_INSIDE_H

#include <stdbool.h>

/* True if this thread is inside a callback, of whatever device. Then calls of the library raise no
 * events, so that they cannot go on for ever. Nor may they wait for another thread: it may be
 * inside a callback, too, and wait for this one. */
bool tconv_is_inside(void);

/* Says that this thread enters a callback. Returns what tconv_leave_callback takes. */
bool tconv_enter_callback(void);
void tconv_leave_callback(bool was_inside);

#endif
