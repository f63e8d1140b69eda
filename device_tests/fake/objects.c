/* SPDX-License-Identifier: Apache-2.0 */
/* The life of objects: who owns them, who uses them, and that nothing uses what was released. */
#include "fake_internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 4096, KEPT = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct object *buckets[BUCKETS];
static struct object *dead[KEPT]; /* released objects, whose handles are still known */
static unsigned deaths;

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void fake_changed(void)
{
    pthread_cond_broadcast(&changed);
}

void fake_wait(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&changed, &lock, &until);
}

API void fake_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("fake OpenCL: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

API void *fake_memory(size_t bytes)
{
    static unsigned char *piece, *all; /* each piece begins with the address of the one before */
    static size_t left;
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER; /* launches call this with the lock */
    enum { PIECE = 1 << 20, UNIT = 16 };
    pthread_mutex_lock(&own);
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    if (bytes > left) {
        left = bytes > PIECE ? bytes : PIECE;
        piece = malloc(UNIT + left);
        if (piece == NULL) fake_die("no memory");
        memcpy(piece, &all, sizeof all);
        all = piece;
        piece += UNIT;
    }
    unsigned char *memory = piece;
    piece += bytes;
    left -= bytes;
    pthread_mutex_unlock(&own);
    return memset(memory, 0, bytes);
}

static const char *name_of(enum fake_kind kind)
{
    switch (kind) {
    case DEVICE_PART: return "part of a device";
    case CONTEXT: return "context";
    case QUEUE: return "queue";
    case BUFFER: return "buffer";
    case PROGRAM: return "program";
    case KERNEL: return "kernel";
    case EVENT: return "event";
    case RECORDING: return "command buffer";
    }
    return "object";
}

static struct object **bucket_of(const void *handle)
{
    return &buckets[(uintptr_t)handle / 16 % BUCKETS];
}

/* At exit: what was not released. */
static void report_living(void)
{
    int count = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (const struct object *o = buckets[b]; o != NULL; o = o->next)
            if (o->owners > 0 && count++ < 5)
                fprintf(stderr, "fake OpenCL: a %s is alive at exit, with %d owners\n",
                        name_of(o->kind), o->owners);
    if (count > 0) _Exit(1);
}

void *fake_new(enum fake_kind kind, size_t bytes)
{
    static bool reports;
    if (!reports) atexit(report_living);
    reports = true;
    struct object *made = calloc(1, bytes);
    if (made == NULL) fake_die("no memory");
    *made = (struct object){kind, 1, 0, *bucket_of(made)};
    *bucket_of(made) = made;
    return made;
}

static struct object *find(const void *handle)
{
    struct object *o = *bucket_of(handle);
    while (o != NULL && o != handle) o = o->next;
    return o;
}

static void bury(struct object *o)
{
    struct object **place = &dead[deaths++ % KEPT], *oldest = *place;
    fake_clear(o);
    *place = o;
    if (oldest == NULL) return;
    struct object **link = bucket_of(oldest);
    while (*link != oldest) link = &(*link)->next;
    *link = oldest->next;
    free(oldest);
}

void fake_use(void *object)
{
    if (object != NULL) ((struct object *)object)->users++;
}

void fake_drop(void *object)
{
    struct object *o = object;
    if (o != NULL && --o->users == 0 && o->owners == 0) bury(o);
}

bool fake_lives(const void *object, enum fake_kind kind, const char *call)
{
    const struct object *o = object == NULL ? NULL : find(object);
    if (o == NULL || o->kind != kind) return false;
    if (o->owners == 0) fake_die("%s gets a %s that was released", call, name_of(kind));
    return true;
}

bool fake_is_buffer(const void *handle, const char *call)
{
    const struct object *o = handle == NULL ? NULL : find(handle);
    return o != NULL && o->kind == BUFFER && fake_lives(handle, BUFFER, call);
}

cl_int fake_retain(void *object, enum fake_kind kind, cl_int code, const char *call)
{
    fake_lock();
    const bool lives = fake_lives(object, kind, call);
    if (lives) ((struct object *)object)->owners++;
    fake_unlock();
    return lives ? CL_SUCCESS : code;
}

cl_int fake_release(void *object, enum fake_kind kind, cl_int code, const char *call)
{
    fake_lock();
    struct object *o = object;
    const bool lives = fake_lives(object, kind, call);
    if (lives && --o->owners == 0) {
        /* A released queue was flushed. */
        if (kind == QUEUE)
            for (cl_event e = ((cl_command_queue)object)->first; e != NULL; e = e->next)
                e->flushed = true;
        if (o->users == 0) bury(o);
    }
    fake_unlock();
    return lives ? CL_SUCCESS : code;
}

cl_int fake_answer(const void *value, size_t bytes, size_t room, void *to, size_t *needed)
{
    if (needed != NULL) *needed = bytes;
    if (to == NULL) return CL_SUCCESS;
    if (room < bytes) return CL_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CL_SUCCESS;
}
