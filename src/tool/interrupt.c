/* SPDX-License-Identifier: Apache-2.0 */
/* Ending long work early with what there is. */
#include "tool.h"

#include <signal.h>

static const int numbers[] = {SIGINT, SIGTERM};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static struct sigaction before[NUMBERS];
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    (void)number;
    caught = 1;
    for (int i = 0; i < NUMBERS; i++) sigaction(numbers[i], &before[i], NULL);
}

void watch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUMBERS; i++) sigaction(numbers[i], NULL, &before[i]);
    for (int i = 0; i < NUMBERS; i++)
        if (before[i].sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
}

bool interrupted(void)
{
    return caught != 0;
}
