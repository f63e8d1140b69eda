/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a device object for other folders: programs, stored records, verdicts and
 * settings. device_members.h has its members. */
#ifndef TCONV_DEVICE_DEVICE_H
#define TCONV_DEVICE_DEVICE_H

#include "base/os.h"
#include "tconv_cl/device.h"
#include "tconv_cl/problem.h"
#include "tconv_cl/tuning.h"

#include <stdatomic.h>

/* True if kernels may use arrays of the host where they are, if these are aligned. */
bool tconv_device_shares_memory(const tconv_device *device);

/* `*is` is true if a device is the other one, or a sub-device of it. Returns OpenCL's code. */
cl_int tconv_device_is_part(cl_device_id part, cl_device_id whole, bool *is);

/* The compute units of a sub-device; 0: it is a whole device. */
uint32_t tconv_device_part_units(const tconv_device *device);

/* What the device has beyond OpenCL 1.2. */
struct tconv_extensions;
const struct tconv_extensions *tconv_device_extensions(const tconv_device *device);

/* What was found out by the probe that is called so (plan/probe.h): above 0 right, below 0 wrong, 0
 * not asked yet. It lives as long as the device. NULL without memory. Any thread. */
atomic_int *tconv_device_verdict(tconv_device *device, const char *probe);

/* The longest expected launch, in ms; 0: no limit. By default GPUs have a limit: drivers abort long
 * launches (Windows after 2 s), and the display freezes meanwhile. */
double tconv_device_launch_ms(const tconv_device *device);

/* True if kernel sources come from a folder, not from the library. */
bool tconv_device_has_own_sources(const tconv_device *device);

/* What the device object keeps, and finds again in a folder. */
struct tconv_store *tconv_device_store(tconv_device *device);

/* The search that TCONV_SEARCH_DEFAULT stands for; never TCONV_SEARCH_DEFAULT itself. */
tconv_search tconv_device_search(const tconv_device *device);

/* Input and result of requests for programs that failed before: rejection.c. Times are those of
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

/* Returns the program of the kernels in the file `name`, built with `options`. Later calls with the
 * same options share the program while the device object keeps it. A program that does not build is
 * built once more, because the compiler may have been interrupted, or short of memory or disk; with
 * TCONV_CL_KERNEL_DIR it is not. The caller releases it. Any thread. */
tconv_status tconv_device_program(tconv_device *device, const char *name, const char *options,
                                  struct tconv_retry *retry, cl_program *program,
                                  tconv_error *error);

/* Stores a program in the folder, if there is one for programs, with its kernels as they were
 * compiled for the work-groups of their first runs: PoCL compiles kernels when they run. False with
 * a reason if it cannot be stored. Any thread. */
bool tconv_device_complete_program(tconv_device *device, const char *name, const char *options,
                                   struct tconv_os_reason *reason);

#endif
