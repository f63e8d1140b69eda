/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs outlive the process: in a folder on disk, or exported as a blob. So do the
 * results of searches for the fastest algorithm (plan.h).
 *
 * A program is known by a text with everything that it depends on: the library's version and kernel
 * sources, the options, the platform with its version, the device and its driver. A kept program is
 * taken only where all of that text is equal and its checksum is right; whatever is damaged, cut
 * off, of another version or refused by the driver is compiled anew, and that is never an error.
 *
 * The folder is $XDG_CACHE_HOME/tconv-cl or ~/.cache/tconv-cl, and %LOCALAPPDATA%\tconv-cl on
 * Windows. It is made with permissions 0700, and is left alone where it belongs to another user or
 * where others may write to it: a program that was kept is as powerful as one that was compiled.
 * Processes share it safely: files are renamed into place. Past its limit, those that were not used
 * for longest are removed. Where it cannot be written, nothing is kept. The environment is read
 * when a device object is created:
 *
 *   TCONV_CL_CACHE=off        keep nothing on disk; "on", empty or not set: keep
 *   TCONV_CL_CACHE_DIR=PATH   another folder
 *   TCONV_CL_CACHE_MIB=N      its limit; without it 256 MiB
 *
 * Other values are an error of tconv_device_create, which reads them.
 *
 * With TCONV_CL_KERNEL_DIR nothing is kept. For PoCL, which keeps what it compiles by itself,
 * programs are kept only where a folder was named; results of searches always. */
#ifndef TCONV_CL_CACHE_H
#define TCONV_CL_CACHE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The folder in which a device object keeps programs from now on, instead of the one above; NULL:
 * none. It is created when something is to be kept. `limit`: bytes of all records in it; 0: 256
 * MiB. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Ownership: the text is copied. Threads: not
 * while another one uses the object. */
TCONV_API tconv_status tconv_device_set_cache(tconv_device *device, const char *folder,
                                              uint64_t limit, tconv_error *error);

/* The folder in which the device object keeps programs; NULL where it keeps none. Valid until the
 * folder is set or the object is released. */
TCONV_API const char *tconv_device_cache(const tconv_device *device);

/* The folder in which the device object stores what searches for the fastest algorithm find
 * (plan.h): the one of programs, with PoCL, too; NULL where nothing is stored. Valid as
 * tconv_device_cache's. */
TCONV_API const char *tconv_device_search_folder(const tconv_device *device);

/* What the cost model assumes of the device from now on in place of what OpenCL reports and of the
 * library's own values: a text "NAME=VALUE ...", spaces or lines between; "" means nothing. It is
 * stored where the results of searches are, so that it is used in later processes, too, and plans
 * that exist keep what they are. Without a folder only this object knows it.
 * Returns TCONV_ERROR_ARGUMENT (`fields` is NULL, a field does not exist or cannot be set, a value
 * is out of range), _HOST_MEMORY. Ownership: the text is copied. Any thread. */
TCONV_API tconv_status tconv_device_set_machine(tconv_device *device, const char *fields,
                                                tconv_error *error);

/* One line for each field that the cost model uses for f32 on this device: "NAME VALUE UNIT:
 * MEANING". Writes at most `size` bytes with the terminating zero; returns the length that the
 * whole text has. Any thread. */
TCONV_API int tconv_device_machine(tconv_device *device, char *text, size_t size);

/* What a stored search result is. */
typedef enum tconv_record_state {
    TCONV_RECORD_USED = 0,    /* plans of this device take it */
    TCONV_RECORD_FOREIGN = 1, /* of another device, driver or version, or no file of this library */
    TCONV_RECORD_DAMAGED = 2  /* cut off, changed, or not the user's own file */
} tconv_record_state;

/* A stored search result. Texts that are not known are "", numbers 0. */
typedef struct tconv_stored_search {
    tconv_record_state state; /* whether plans use it, and why not */
    int32_t candidates;       /* that were timed */
    double model_ms;          /* least time of what the cost model takes */
    double best_ms;           /* least time of the algorithm */
    const char *file;         /* its name in the folder */
    const char *device; /* of a foreign one: library, platform, device and driver, a line each */
    const char
        *problem; /* all of the problem that speed depends on: docs/selection.md explains it */
    const char *algorithm; /* with its tile, as tconv_plan_options.algorithm takes it */
} tconv_stored_search;

/* `stored` is valid during the call. */
typedef void (*tconv_search_visit)(void *context, const tconv_stored_search *stored);

/* Calls `visit` for each search result in tconv_device_search_folder, in no particular order, and
 * for every other file there that is no program and no machine. Nothing is compiled, and nothing
 * counts as used. Without a folder there is none. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY
 * (`visit` may have been called before). Any thread. */
TCONV_API tconv_status tconv_device_stored_searches(const tconv_device *device,
                                                    tconv_search_visit visit, void *context,
                                                    tconv_error *error);

/* Writes all programs that the object keeps, the 256 that were used last, to `bytes`, of which
 * there are `*size`; `*size` becomes what they take. With `bytes` NULL, only that. What the driver
 * does not give is left out. Results of searches for the fastest algorithm that the object used or
 * found follow them. Returns TCONV_ERROR_ARGUMENT, _BUFFER (more bytes are needed: `*size` says how
 * many, nothing was written), _HOST_MEMORY. Any thread; programs that others build meanwhile may be
 * missing. PoCL 3.1 may abort where kernels of these programs run meanwhile. */
TCONV_API tconv_status tconv_device_export_programs(tconv_device *device, void *bytes, size_t *size,
                                                    tconv_error *error);

/* Takes programs from what tconv_device_export_programs wrote, in this process or an earlier one.
 * Those of other devices, drivers or versions and what is damaged are left out; `*taken`, where it
 * is not NULL, says how many were taken. Of more than 256, the object keeps the last ones. The
 * bytes are not used after the call. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Any thread. */
TCONV_API tconv_status tconv_device_import_programs(tconv_device *device, const void *bytes,
                                                    size_t size, int *taken, tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
