/* SPDX-License-Identifier: Apache-2.0 */
/* What signals do: they end long work early, with the results so far, or remove an unfinished file.
 * ISO C's signal() is enough, which every system has. */
#include "tool/system/system.h"
#include "tool/tool.h"

#include <signal.h>

#if defined(SIGBREAK)
#define CLOSED SIGBREAK /* Windows: Ctrl+Break, or the console is closed */
#else
#define CLOSED SIGHUP
#endif

static const char *volatile to_remove;

void system_remove_unfinished(void)
{
    if (to_remove != NULL) system_remove(to_remove);
}

static void remove_and_end(int number)
{
    system_remove_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

void system_remove_on_signal(const char *path)
{
    static const int numbers[] = {SIGINT, SIGTERM, CLOSED};
    to_remove = path;
    for (size_t i = 0; path != NULL && i < sizeof numbers / sizeof *numbers; i++) {
        void (*old)(int) = signal(numbers[i], remove_and_end);
        if (old != SIG_DFL) signal(numbers[i], old);
    }
}

static const int interrupts[] = {
    SIGINT,
    SIGTERM,
#if defined(SIGBREAK)
    SIGBREAK,
#endif
};
enum { INTERRUPTS = sizeof interrupts / sizeof *interrupts };
static void (*before[INTERRUPTS])(int);
static volatile sig_atomic_t caught;

static void on_interrupt(int number)
{
    (void)number;
    caught = 1;
    for (int i = 0; i < INTERRUPTS; i++) signal(interrupts[i], before[i]);
}

void watch_interrupts(void)
{
    for (int i = 0; i < INTERRUPTS; i++) {
        before[i] = signal(interrupts[i], on_interrupt);
        if (before[i] == SIG_IGN) signal(interrupts[i], SIG_IGN);
    }
}

bool interrupted(void)
{
    return caught != 0;
}
