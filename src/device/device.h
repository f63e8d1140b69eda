/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a device object, and what src/device, src/plan and the tests ask of it. */
#ifndef TCONV_DEVICE_DEVICE_H
#define TCONV_DEVICE_DEVICE_H

#include "device/extensions.h"
#include "device/tracing.h"
#include "store/store.h"
#include "tconv_cl/problem.h"
#include "tconv_cl/tuning.h"

/* The verdict of a probe: plan/unit.h. */
struct tconv_verdict {
    struct tconv_verdict *next;
    atomic_int right; /* above 0 right, below 0 wrong, 0 not asked yet */
    char probe[];
};

struct tconv_device {
    atomic_int owners;
    cl_context context;
    cl_device_id id;
    bool part;               /* it is a sub-device */
    struct tconv_crew *crew; /* the threads that compute (crew.h); NULL: the driver's */
    size_t in_place; /* alignment in bytes of the host's arrays that kernels may use where they are;
                        0: none */
    bool stores_at_once; /* kernels' stores to them are seen without a map, once they have ended */
    tconv_device_info info;
    struct tconv_extensions extensions;
    char *kernel_dir; /* NULL: the sources inside the library */
    char *spirv_dir;  /* modules of SPIR-V; NULL: none */
    struct tconv_store store;
    tconv_search search; /* where TCONV_SEARCH_DEFAULT looks; never TCONV_SEARCH_DEFAULT itself */
    double launch_ms;    /* as the environment sets it, or negative: plan/make.c */
    pthread_mutex_t lock;
    struct tconv_rejection *rejections; /* programs that did not build, the newest first */
    struct tconv_verdict *verdicts;
    struct tconv_workspace *workspaces; /* that no call has taken (workspace.h) */
    struct tconv_lane *lanes;           /* that no call has taken (lane.h) */
    int workspace_count;                /* taken ones included */
    uint64_t workspace_bytes;           /* the same */
    struct tconv_tracing tracing;
};

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

/* The compute units of a sub-device; 0: the device object has a whole device. */
uint32_t tconv_device_part_units(const tconv_device *device);

/* `*is` is true if a device is the other one, or a sub-device of it. Returns OpenCL's code. */
cl_int tconv_device_is_part(cl_device_id part, cl_device_id whole, bool *is);

/* The whole device of a sub-device, or of a sub-device of one; itself if it is a whole one. */
cl_device_id tconv_whole_device(cl_device_id device);

/* Index of the device, or of its nearest listed ancestor, else `count`. */
size_t tconv_device_place(const cl_device_id *list, size_t count, cl_device_id device);

/* Checks that kernels can run on a device in a context: the context lists it, or makes queues for
 * it. */
tconv_status tconv_check_listed(cl_context context, cl_device_id device, tconv_error *error);

/* Makes the device's identity, and finds the folder (cache.c). */
tconv_status tconv_device_start_cache(tconv_device *device, tconv_error *error);

#endif
