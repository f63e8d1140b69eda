/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what is built, kept, or did not build. A program's key is the name of its file of
 * kernels, a space, and its options. */
#ifndef TCONV_DEVICE_PROGRAM_H
#define TCONV_DEVICE_PROGRAM_H

#include "device/device.h"

/* Input and result of requests for programs that failed before. Times are those of
 * tconv_os_seconds. */
struct tconv_retry {
    double begun; /* when the plan began: it builds no program again that failed since */
    bool insist;  /* build those that wait for a later time, too */
    bool waits;   /* a program was not built, because it waits for a later time */
    bool unsure;  /* a program did not build that may build later */
    double again; /* the earliest time for that; 0: there is none */
};

/* Adds what another plan for the same problem learned. */
void tconv_retry_join(struct tconv_retry *to, const struct tconv_retry *from);

/* Returns the program with this key; `error` is not NULL. Later calls with the same key share the
 * program while the device object keeps it. A program that does not build is built once more,
 * because the compiler may have been interrupted, or short of memory or disk; with
 * TCONV_CL_KERNEL_DIR it is not. The caller releases it. Any thread. */
tconv_status tconv_device_program(tconv_device *device, const char *key, struct tconv_retry *retry,
                                  cl_program *program, tconv_error *error);

/* Stores a program in the folder, if there is one for programs, with its kernels as they were
 * compiled for the work-groups of their first runs: PoCL compiles kernels when they run. False with
 * a reason if it cannot be stored. Any thread. */
bool tconv_device_complete_program(tconv_device *device, const char *key,
                                   struct tconv_os_reason *reason);

/* True for PoCL: it compiles a kernel at its first run, for that work-group size, into its own
 * cache. Asking for a binary compiles every kernel for any size and doubles the first call, so it
 * is asked only if a folder is named. The binary is a snapshot of the first request; only a new
 * program object includes kernels compiled since. */
bool tconv_compiles_late(const tconv_device *device);

/* Finds the program with this key in memory, retains it and marks it as used. NULL if there is
 * none. */
cl_program tconv_program_find(tconv_device *device, const char *key);

/* Keeps a program that was just built. If another thread kept the same program first, `*program`
 * becomes that one. If there are too many, the least recently used one is released. Takes ownership
 * of the program on an error. */
tconv_status tconv_program_keep(tconv_device *device, const char *key, cl_program *program,
                                tconv_error *error);

/* Builds the program with this key from a record. NULL if the driver refuses it, or without memory.
 */
cl_program tconv_program_of(const tconv_device *device, const char *key,
                            const struct tconv_record *record);

/* The binary of a program for the device, from malloc. NULL if the driver gives none. */
unsigned char *tconv_program_binary(const tconv_device *device, cl_program program, size_t *size);

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

/* True if a program may be built now. If it did not build before and may not be built yet, its
 * error is given, and `retry` is told. */
bool tconv_rejection_allows(tconv_device *device, const char *key, struct tconv_retry *retry,
                            tconv_error *error);

/* Notes that a program did not build, its log, and how long that took. Returns true the first time:
 * it is to be built once more, unless this failure is `for_good`. */
bool tconv_rejection_add(tconv_device *device, const char *key, const tconv_error *error,
                         const char *log, double seconds, bool for_good, struct tconv_retry *retry);

/* Forgets a program's failures: it has built. */
void tconv_rejection_remove(tconv_device *device, const char *key);

void tconv_rejections_release(struct tconv_rejection *first);

/* True if the logs of two builds say that the compiler rejects the program for good: they tell the
 * same error, or errors at places of the source, and no transient failure. Either may be NULL.
 * build_log.c has it. */
bool tconv_logs_blame_source(const char *first, const char *second);

#endif
