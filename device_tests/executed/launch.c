/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h explains it. */
#include "executed/launch.h"

#include "base/checked.h"
#include "executed/numbers.h"
#include "tool/io/in_file.h"

#include <stdio.h>
#include <stdlib.h>

char *read_file(const char *path, const char *ending, size_t *size)
{
    enum { LONGEST = 1 << 30 };
    char name[1024];
    bool opened;
    snprintf(name, sizeof name, "%s.%s", path, ending);
    char *content = in_file_text(name, LONGEST, size, &opened);
    char *text = content == NULL ? NULL : realloc(content, *size + 1);
    if (text == NULL)
        free(content);
    else
        text[*size] = '\0';
    return text;
}

void fail_at(struct memory *memory, const char *place, const char *format, va_list arguments)
{
    if (memory->failed[0] != '\0') return;
    const int used = snprintf(memory->failed, sizeof memory->failed, "%s: ", place);
    vsnprintf(memory->failed + used, sizeof memory->failed - (size_t)used, format, arguments);
}

/* ---- work-items ---- */

static int item_count(const struct dispatch *dispatch)
{
    return (int)(dispatch->local[0] * dispatch->local[1] * dispatch->local[2]);
}

int wave_count(const struct dispatch *dispatch, int lanes)
{
    return (item_count(dispatch) + lanes - 1) / lanes;
}

int wave_items(const struct dispatch *dispatch, int lanes, int wave)
{
    const int left = item_count(dispatch) - wave * lanes;
    return left < lanes ? left : lanes;
}

/* The numbers along three dimensions of what is at a place of a box, dimension 0 running fastest.
 */
static void numbers_at(uint64_t place, uint64_t size0, uint64_t size1, uint32_t number[3])
{
    number[0] = (uint32_t)(place % size0);
    number[1] = (uint32_t)(place / size0 % size1);
    number[2] = (uint32_t)(place / size0 / size1);
}

void item_numbers(const struct dispatch *dispatch, int item, uint32_t number[3])
{
    numbers_at((uint64_t)item, dispatch->local[0], dispatch->local[1], number);
}

/* ---- the order of work-groups and waves ---- */

static uint64_t group_count(const struct dispatch *dispatch)
{
    return dispatch->groups[0] * dispatch->groups[1] * dispatch->groups[2];
}

/* With a step that has no divisor in common with their count, each group comes once. */
struct schedule schedule_of(const struct dispatch *dispatch)
{
    struct schedule schedule = {dispatch, dispatch->seed, 0, 1};
    const uint64_t count = group_count(dispatch);
    if (dispatch->seed == 0 || count < 3) return schedule;
    do schedule.step = 1 + random_number(&schedule.random) % (count - 1);
    while (tconv_common_divisor((int64_t)schedule.step, (int64_t)count) != 1);
    return schedule;
}

bool next_group(struct schedule *schedule, uint32_t number[3])
{
    const struct dispatch *dispatch = schedule->dispatch;
    const uint64_t count = group_count(dispatch);
    if (schedule->next == count) return false;
    numbers_at(schedule->next++ * schedule->step % count, dispatch->groups[0], dispatch->groups[1],
               number);
    return true;
}

static void *wave_at(const struct waves *waves, int number)
{
    return (char *)waves->first + (size_t)number * waves->size;
}

static enum wave_state *state_of(const struct waves *waves, int number)
{
    return wave_at(waves, number);
}

int waves_in(const struct waves *waves, enum wave_state state)
{
    int found = 0;
    for (int i = 0; i < waves->count; i++) found += *state_of(waves, i) == state;
    return found;
}

int run_turn(struct schedule *schedule, const struct waves *waves, int first, uint64_t most)
{
    int wave = first % waves->count;
    int others = 0; /* how many RUNNING waves the turn passes over */
    if (schedule->dispatch->seed != 0) {
        const int running = waves_in(waves, RUNNING);
        others = (int)(random_number(&schedule->random) % (uint64_t)running);
        most = 1 + random_number(&schedule->random) % 64;
    }
    while (*state_of(waves, wave) != RUNNING || others-- != 0) wave = (wave + 1) % waves->count;
    waves->run(wave_at(waves, wave), most);
    return wave;
}

void run_waves(struct schedule *schedule, const struct waves *waves, struct memory *memory,
               struct local_memory *local, uint64_t most)
{
    while (memory->failed[0] == '\0') {
        if (waves_in(waves, RUNNING) != 0) {
            run_turn(schedule, waves, 0, most);
            continue;
        }
        const int ended = waves_in(waves, ENDED);
        if (ended == waves->count) return;
        if (ended != 0)
            snprintf(memory->failed, sizeof memory->failed,
                     "a %s ended while others wait at a barrier", waves->name);
        for (int i = 0; i < waves->count; i++) *state_of(waves, i) = RUNNING;
        local->epoch++;
    }
}
