/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a device object, and functions on them for src/device alone. Other folders include
 * device.h. */
#ifndef TCONV_DEVICE_DEVICE_INTERNAL_H
#define TCONV_DEVICE_DEVICE_INTERNAL_H

#include "device/device.h"
#include "device/extensions.h"
#include "device/trace.h"
#include "store/store.h"
#include "tconv_cl/problem.h"

#include <pthread.h>
#include <stdatomic.h>

/* A program that did not build. */
struct tconv_rejection {
    struct tconv_rejection *next; /* an older one */
    int failures;
    bool for_good;      /* it is not built again */
    char *log;          /* of the last failure, or NULL */
    double last, again; /* when it failed last, and when a plan may build it again */
    tconv_error error;  /* of the last failure */
    char key[];
};

/* The verdict of a probe: tconv_device_verdict. */
struct tconv_verdict {
    struct tconv_verdict *next;
    atomic_int right;
    char probe[];
};

/* The callback of tconv_device_set_trace. */
struct tconv_tracing {
    atomic_uint_least32_t kinds; /* that the callback hears; 0: there is none */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a call of a callback has ended */
    tconv_trace_callback callback;
    void *context;
    uint64_t version;                      /* counts the callbacks that were set */
    struct tconv_trace_call *first, *last; /* the calls that run, the oldest first */
};

/* False without memory. */
bool tconv_trace_init(struct tconv_tracing *tracing);
void tconv_trace_destroy(struct tconv_tracing *tracing);

struct tconv_device {
    atomic_int owners;
    cl_context context;
    cl_device_id id;
    bool part;               /* it is a sub-device */
    struct tconv_crew *crew; /* tconv_device_crew */
    size_t in_place; /* alignment in bytes of the host's arrays that kernels may use where they are;
                        0: none */
    tconv_device_info info;
    struct tconv_extensions extensions;
    char *kernel_dir; /* NULL: the sources inside the library */
    struct tconv_store store;
    tconv_search search; /* where TCONV_SEARCH_DEFAULT looks */
    double launch_ms;    /* as the environment sets it, or negative: tconv_device_launch_ms */
    pthread_mutex_t lock;
    struct tconv_rejection *rejections; /* the newest comes first */
    struct tconv_verdict *verdicts;
    struct tconv_workspace *workspaces; /* that no call has taken (workspace.h) */
    struct tconv_lane *lanes;           /* that no call has taken (lane.h) */
    int workspace_count;                /* taken ones included */
    uint64_t workspace_bytes;           /* the same */
    struct tconv_tracing tracing;
};

/* Checks that kernels can run on a device in a context: the context lists it, or makes queues for
 * it. */
tconv_status tconv_check_listed(cl_context context, cl_device_id device, tconv_error *error);

/* A device of the list. */
struct tconv_listed {
    cl_platform_id platform;
    cl_device_id device;
    cl_device_type type;
    cl_device_id threadless; /* of a CPU: itself, or a device beside it, whose kernels run in the
                                thread that enqueues them; NULL: there is none */
};

/* The device with this number, all of one reading of the list: a later one may be another
 * (list.c). */
tconv_status tconv_device_listed(int number, struct tconv_listed *out, tconv_error *error);

/* True for a sub-device. */
bool tconv_is_part(cl_device_id device);

/* The whole device of a sub-device, or of a sub-device of one; itself if it is a whole one. */
cl_device_id tconv_whole_device(cl_device_id device);

/* Index of the device, or of its nearest listed ancestor, else `count`. */
size_t tconv_device_place(const cl_device_id *list, size_t count, cl_device_id device);

/* True if a device's list of extensions has this name. describe.c has it. */
bool tconv_device_has_extension(cl_device_id device, const char *name);

/* Finds the program with this key in the list, retains it and marks it as used. NULL if there is
 * none. */
cl_program tconv_program_find(tconv_device *device, const char *key);

/* True if the logs of two builds say that the compiler rejects the program for good: they tell the
 * same error, or errors at places of the source, and no transient failure. Either may be NULL. */
bool tconv_logs_blame_source(const char *first, const char *second);

/* True if a program may be built now. If it did not build before and may not be built yet, its
 * error is given, and `retry` is told. */
bool tconv_rejection_allows(tconv_device *device, const char *key, struct tconv_retry *retry,
                            tconv_error *error);

/* Notes that a program did not build, its log, and how long that took. Returns true the first time:
 * it is to be built once more. */
bool tconv_rejection_add(tconv_device *device, const char *key, const tconv_error *error,
                         const char *log, double seconds, struct tconv_retry *retry);

/* Forgets a program's failures: it has built. */
void tconv_rejection_remove(tconv_device *device, const char *key);

void tconv_rejections_release(struct tconv_rejection *first);

/* Keeps a program that was just built. If another thread kept the same program first, `*program`
 * becomes that one. If there are too many, the least recently used one is released. Takes ownership
 * of the program on an error. */
tconv_status tconv_program_keep(tconv_device *device, const char *key, cl_program *program,
                                tconv_error *error);

/* Makes the store, without a folder. False without memory. */
bool tconv_device_init_store(tconv_device *device);

/* Makes the device's identity, and finds the folder. */
tconv_status tconv_device_start_cache(tconv_device *device, tconv_error *error);

/* Everything that compiled programs depend on besides their own file and options. From malloc; NULL
 * if it cannot be found out. */
char *tconv_identity_of(const tconv_device *device);

/* Reads the program with this key from the folder and builds it; the caller releases it. NULL if it
 * is not there or cannot be used. */
cl_program tconv_program_load(const tconv_device *device, const char *key);

/* True for PoCL: it compiles a kernel at its first run, for that work-group size, into its own
 * cache. Asking for a binary compiles every kernel for any size and doubles the first call, so it
 * is asked only if a folder is named. The binary is a snapshot of the first request; only a new
 * program object includes kernels compiled since. */
bool tconv_compiles_late(const tconv_device *device);

/* Writes a program into the folder, if there is one for programs. False with a reason, which may be
 * NULL, if that cannot be done. */
bool tconv_program_store(const tconv_device *device, const char *key, cl_program program,
                         struct tconv_os_reason *reason);

#endif
