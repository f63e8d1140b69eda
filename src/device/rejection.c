/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers programs that did not build. A compiler can fail because of the moment: a signal
 * interrupts it, memory, disk or file handles are missing. So a program that fails is built once
 * more at once. If it fails again, plans do without it, and a later plan tries it again, unless the
 * compiler blames the source. The pauses between tries grow with the time that a try takes and
 * double each time, so that little time is lost where a driver refuses a program for good, and
 * after MOST_FAILURES no plan tries it any more. A plan that names the algorithm always does. */
#include "base/error.h"
#include "base/os.h"
#include "device/device_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_REJECTIONS = 64, /* kept for a device */
    AT_ONCE = 2,          /* failures without a pause behind them */
    MOST_FAILURES = 10,
    PAUSE = 10 /* times a try, the shortest pause */
};
static const double LEAST_SECONDS = 0.01; /* of a try, for its pause */

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

bool tconv_log_blames_source(const char *log)
{
    if (strstr(log, " file") != NULL) return false; /* one is missing, or cannot be written */
    for (const char *line = log; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (is_error_at_place(line, length)) return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* Under the lock. NULL if the program has not failed. */
static struct tconv_rejection *find(const tconv_device *device, const char *key)
{
    struct tconv_rejection *r = device->rejections;
    while (r != NULL && strcmp(r->key, key) != 0) r = r->next;
    return r;
}

/* Notes that a program is to be tried again at a time. */
static void note_time(struct tconv_retry *retry, double again)
{
    if (again < INFINITY && (retry->again == 0 || again < retry->again)) retry->again = again;
}

void tconv_retry_join(struct tconv_retry *to, const struct tconv_retry *from)
{
    to->waits = to->waits || from->waits;
    if (from->again > 0) note_time(to, from->again);
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
        if (!allowed && !r->for_good) note_time(retry, r->again);
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
                         bool blames_source, double seconds, struct tconv_retry *retry)
{
    bool first = false;
    pthread_mutex_lock(&device->lock);
    struct tconv_rejection *r = find(device, key);
    if (r == NULL) r = add(device, key);
    if (r != NULL) {
        first = ++r->failures < AT_ONCE;
        r->blames_source = blames_source && (first || r->blames_source);
        r->for_good = !first && r->blames_source;
        r->error = *error;
        r->last = tconv_os_seconds();
        const double pause = PAUSE * (seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS);
        const int doubled = r->failures - AT_ONCE; /* how often */
        r->again = r->failures >= MOST_FAILURES ? INFINITY
                   : doubled <= 0               ? r->last
                                                : r->last + pause * ((1 << doubled) - 1);
        if (!first && !r->for_good) note_time(retry, r->again);
    }
    pthread_mutex_unlock(&device->lock);
    return first;
}

void tconv_rejection_remove(tconv_device *device, const char *key)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_rejection **link = &device->rejections;
    while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
    struct tconv_rejection *r = *link;
    if (r != NULL) *link = r->next;
    pthread_mutex_unlock(&device->lock);
    free(r);
}

void tconv_rejections_release(struct tconv_rejection *first)
{
    for (struct tconv_rejection *r = first, *next; r != NULL; r = next) {
        next = r->next;
        free(r);
    }
}
