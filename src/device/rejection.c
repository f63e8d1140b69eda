/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that failed to build. The first failure is retried at once, because it may be transient:
 * a signal interrupts the compiler, or memory, disk or file handles are missing. If both logs blame
 * the source, the program is given up. Else later plans retry, the first at once, the others after
 * pauses of 10, 30, 70... times the build time, 8 times in all, so that a driver that always
 * refuses costs little. A plan that names the algorithm does not wait. */
#include "base/error.h"
#include "base/os.h"
#include "device/device_members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_REJECTIONS = 64, /* kept for a device */
    AT_ONCE = 2,          /* failures without a pause behind them */
    MOST_FAILURES = 10,
    PAUSE = 10 /* times a try, the shortest pause */
};
static const double LEAST_SECONDS = 0.01; /* shortest build time assumed for the pause */

/* True if `text` begins with ":LINE:COLUMN:", as compilers name a place in a source, or as PoCL
 * names one in a macro, with ":LINE:COLUMN <". */
static bool is_place(const char *text)
{
    static const char digits[] = "0123456789";
    if (text[1] < '1' || text[1] > '9') return false;
    const char *column = text + 1 + strspn(text + 1, digits);
    const char *end = column + 1 + (*column == ':' ? strspn(column + 1, digits) : 0);
    return *column == ':' && end > column + 1 && (*end == ':' || strncmp(end, " <", 2) == 0);
}

/* True if a line tells an error at a place of the source: "1:35: error: what", or as PoCL writes
 * it, "error: name:1:35: what". */
static bool is_error_at_place(const char *line, size_t length)
{
    static const char word[] = "error:";
    const char *end = line + length;
    bool error = false, place = false;
    for (const char *at = line; at < end && !(error && place); at++) {
        error = error || strncmp(at, word, strlen(word)) == 0;
        place = place || (*at == ':' && is_place(at));
    }
    return error && place;
}

/* True if a log tells an error at a place of the source. */
static bool has_place(const char *log)
{
    for (const char *line = log; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (is_error_at_place(line, length)) return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* True if a log tells of a transient failure: a file that cannot be opened or written, missing
 * memory or space, a process that ended. */
static bool is_transient(const char *log)
{
    static const char *const words[] = {" file",   "memory",  "space left", "signal", "nterrupt",
                                        "emporar", "esource", "illed",      "Unable", "unable"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(log, words[i]) != NULL) return true;
    return false;
}

bool tconv_logs_blame_source(const char *first, const char *second)
{
    if (first == NULL || second == NULL) return false;
    if (is_transient(first) || is_transient(second)) return false;
    /* PoCL on a full disk says only that it failed to build the program. */
    return (strcmp(first, second) == 0 && strstr(first, "rror") != NULL) ||
           (has_place(first) && has_place(second));
}

/* Under the lock. NULL if the program has not failed. */
static struct tconv_rejection *find(const tconv_device *device, const char *key)
{
    struct tconv_rejection *r = device->rejections;
    while (r != NULL && strcmp(r->key, key) != 0) r = r->next;
    return r;
}

static void note_time(struct tconv_retry *retry, double again)
{
    if (again > 0 && again < INFINITY && (retry->again == 0 || again < retry->again))
        retry->again = again;
}

/* Notes that a plan does without a program, which may build later. */
static void note(struct tconv_retry *retry, const struct tconv_rejection *r)
{
    retry->unsure = true;
    note_time(retry, r->again);
}

void tconv_retry_join(struct tconv_retry *to, const struct tconv_retry *from)
{
    to->waits = to->waits || from->waits;
    to->unsure = to->unsure || from->unsure;
    note_time(to, from->again);
}

bool tconv_rejection_allows(tconv_device *device, const char *key, struct tconv_retry *retry,
                            tconv_error *error)
{
    bool allowed = true;
    pthread_mutex_lock(&device->lock);
    const struct tconv_rejection *r = find(device, key);
    if (r != NULL && r->failures >= AT_ONCE) {
        const bool just_now = r->last >= retry->begun;
        const bool waits = !r->for_good && !just_now && tconv_os_seconds() < r->again;
        allowed = !r->for_good && !just_now && (!waits || retry->insist);
        if (!allowed) *error = r->error;
        if (!allowed && !r->for_good) note(retry, r);
        retry->waits = retry->waits || (!allowed && waits);
    }
    pthread_mutex_unlock(&device->lock);
    return allowed;
}

/* Under the lock: adds a program to the list. NULL without memory. */
static struct tconv_rejection *add(tconv_device *device, const char *key)
{
    struct tconv_rejection *r = calloc(1, sizeof *r + strlen(key) + 1);
    if (r == NULL) return NULL;
    strcpy(r->key, key);
    r->next = device->rejections;
    device->rejections = r;
    struct tconv_rejection **link = &device->rejections;
    for (int i = 0; i < MOST_REJECTIONS && *link != NULL; i++) link = &(*link)->next;
    tconv_rejections_release(*link);
    *link = NULL;
    return r;
}

bool tconv_rejection_add(tconv_device *device, const char *key, const tconv_error *error,
                         const char *log, double seconds, struct tconv_retry *retry)
{
    bool first = false;
    char *own = log == NULL ? NULL : strdup(log);
    pthread_mutex_lock(&device->lock);
    struct tconv_rejection *r = find(device, key);
    if (r == NULL) r = add(device, key);
    if (r != NULL) {
        first = ++r->failures < AT_ONCE;
        r->for_good = !first && tconv_logs_blame_source(r->log, own);
        r->error = *error;
        r->last = tconv_os_seconds();
        const double pause = PAUSE * (seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS);
        const int doubled = r->failures - AT_ONCE; /* how often */
        r->again = r->failures >= MOST_FAILURES ? INFINITY
                   : doubled <= 0               ? r->last
                                                : r->last + pause * ((1 << doubled) - 1);
        if (!first && !r->for_good) note(retry, r);
        char *before = r->log;
        r->log = own;
        own = before;
    }
    pthread_mutex_unlock(&device->lock);
    free(own);
    return first;
}

void tconv_rejection_remove(tconv_device *device, const char *key)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_rejection **link = &device->rejections;
    while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
    struct tconv_rejection *r = *link;
    if (r != NULL) *link = r->next;
    if (r != NULL) r->next = NULL;
    pthread_mutex_unlock(&device->lock);
    tconv_rejections_release(r);
}

void tconv_rejections_release(struct tconv_rejection *first)
{
    for (struct tconv_rejection *r = first, *next; r != NULL; r = next) {
        next = r->next;
        free(r->log);
        free(r);
    }
}
