/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a device object, for this room only. */
#ifndef TCONV_DEVICE_DEVICE_INTERNAL_H
#define TCONV_DEVICE_DEVICE_INTERNAL_H

#include "device/device.h"
#include "tconv_cl/problem.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many programs a device object keeps. device.h and cache.h of include/tconv_cl say the
 * number. */
enum { TCONV_MOST_PROGRAMS = 256 };

struct tconv_program {
    struct tconv_program *next;
    char *key; /* file name and options */
    cl_program program;
};

/* What a search for the fastest algorithm found for a problem. */
struct tconv_search_record {
    struct tconv_search_record *next;
    char *key, *text;
};

/* How many of them a device object keeps in memory. */
enum { TCONV_MOST_SEARCH_RECORDS = 1024 };

/* What a probe found out: tconv_device_verdict. */
struct tconv_verdict {
    struct tconv_verdict *next;
    atomic_int right;
    char probe[];
};

struct tconv_device {
    atomic_int owners;
    cl_context context;
    cl_device_id id;
    tconv_device_info info;
    char *kernel_dir; /* NULL: the sources inside the library */
    char *identity;   /* all that programs depend on besides their key; NULL: nothing is kept */
    char *cache;      /* folder of programs and search records; NULL: none */
    uint64_t cache_limit;
    bool programs_on_disk; /* whether programs go into the folder, too */
    tconv_search search;   /* where TCONV_SEARCH_DEFAULT looks */
    double launch_ms;      /* as somebody set it, or negative: tconv_device_launch_ms */
    pthread_mutex_t lock;
    struct tconv_program *programs;      /* the one used last comes first */
    struct tconv_search_record *records; /* the newest comes first */
    char *machine;      /* fields of the cost model that were stored for the device, or NULL */
    bool machine_known; /* else the folder has not been asked yet */
    struct tconv_verdict *verdicts;
};

/* The program of that key from the list, retained, or NULL. It counts as used. */
cl_program tconv_program_find(tconv_device *device, const char *key);

/* Keeps a program that was just built, unless another thread was faster: then `*program` becomes
 * that thread's. Gives up the program that was not used for longest where there are more than
 * TCONV_MOST_PROGRAMS. It takes the key, and on an error the program too. */
tconv_status tconv_program_keep(tconv_device *device, char *key, cl_program *program,
                                tconv_error *error);

/* Gives up a list of programs. */
void tconv_programs_release(struct tconv_program *first);

/* Finds out who the device is and where programs are kept. */
tconv_status tconv_device_start_cache(tconv_device *device, tconv_error *error);

/* Everything that compiled programs depend on besides their own sources and options: from malloc;
 * NULL where it cannot be found out. */
char *tconv_identity_of(const tconv_device *device);

/* The identity, what kind of record it is (TCONV_KIND_PROGRAM or TCONV_KIND_SEARCH) and its own
 * key: from malloc; NULL without memory. */
#define TCONV_KIND_PROGRAM "program "
#define TCONV_KIND_SEARCH "search 2 " /* the number changes with plan/search_text.c */
char *tconv_whole_key(const tconv_device *device, const char *kind, const char *key);

/* Keeps a search record in memory alone. False without memory. */
bool tconv_search_record_add(tconv_device *device, const char *key, const char *text);

void tconv_search_records_release(struct tconv_search_record *first);

/* The program of that key from the folder, built and retained; NULL: it is not there, or is of no
 * use. */
cl_program tconv_program_load(const tconv_device *device, const char *key);

/* Puts a program that was just built into the folder. */
void tconv_program_store(const tconv_device *device, const char *key, cl_program program);

#endif
