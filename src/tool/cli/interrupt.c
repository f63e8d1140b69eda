/* SPDX-License-Identifier: Apache-2.0 */
/* Lets SIGINT and SIGTERM end long work early, with the results so far. */
#include "tool/system/system.h"
#include "tool/tool.h"

static volatile sig_atomic_t caught;

void watch_interrupts(void)
{
    system_watch_interrupts(&caught);
}

bool interrupted(void)
{
    return caught != 0;
}
