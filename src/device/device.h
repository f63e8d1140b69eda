/* SPDX-License-Identifier: Apache-2.0 */
/* A device in a context, and the programs that were built for it. */
#ifndef TCONV_DEVICE_DEVICE_H
#define TCONV_DEVICE_DEVICE_H

#include "tconv_cl/cache.h"
#include "tconv_cl/device.h"
#include "tconv_cl/problem.h"

#include <stdatomic.h>

cl_context tconv_device_context(const tconv_device *device);
cl_device_id tconv_device_id_of(const tconv_device *device);

/* What was found out by the probe that is called so (plan/probe.h): above 0 right, below 0 wrong, 0
 * not asked yet. It lives as long as the device. NULL without memory. Any thread. */
atomic_int *tconv_device_verdict(tconv_device *device, const char *probe);

/* The longest launch that may be expected, in ms; 0: there is no limit. By default GPUs have one:
 * drivers end what runs for long (Windows after 2 s), and a display stands still meanwhile. */
double tconv_device_launch_ms(const tconv_device *device);

/* Whether kernel sources come from a folder, not from the library. */
bool tconv_device_has_own_sources(const tconv_device *device);

/* What a search found for a problem, as text: from memory, or from the folder of programs. From
 * malloc; NULL: there is nothing, or it is damaged, or of another device, driver or version. Any
 * thread. */
char *tconv_device_search_record(tconv_device *device, const char *key);

/* Keeps it, instead of an older one. Nothing happens where it cannot be kept. Any thread. */
void tconv_device_keep_search_record(tconv_device *device, const char *key, const char *text);

/* The fields of the cost model's machine that were stored for the device, as text, in the same
 * places. From malloc; NULL: none. Any thread. */
char *tconv_device_machine_record(tconv_device *device);

/* Keeps them in memory, and in the folder where there is one. False without memory. Any thread. */
bool tconv_device_keep_machine_record(tconv_device *device, const char *text);

/* A search record of the folder, or another file there that is no program; texts that are not known
 * are "". `device` is what the key of a foreign record begins with: library, platform, device and
 * driver. */
struct tconv_stored_text {
    tconv_record_state state;
    const char *file, *device, *key, *text;
};

/* Tells of all of them. False where memory is missing. */
typedef void tconv_stored_visit(void *context, const struct tconv_stored_text *stored);
bool tconv_device_list_search_records(const tconv_device *device, tconv_stored_visit *visit,
                                      void *context);

/* What TCONV_SEARCH_DEFAULT stands for; never that one itself. */
tconv_search tconv_device_search(const tconv_device *device);

/* The program of the kernels in the file `name`, built with `options`. Later calls with the same
 * options share it while the device object keeps it. The caller releases it. Any thread. */
tconv_status tconv_device_program(tconv_device *device, const char *name, const char *options,
                                  cl_program *program, tconv_error *error);

#endif
