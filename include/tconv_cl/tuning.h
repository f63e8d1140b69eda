/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored for a device, in a folder: the results of searches for the fastest algorithm
 * (plan.h), those that were measured elsewhere and imported, lists of prepared programs, fields of
 * the cost model, and compiled programs, which can also be exported as a blob.
 *
 * The key of a program is a text with everything that it depends on: the library's version and
 * kernel sources, the options, the platform with its version, the device and its driver. A kept
 * program is used only if the whole key is equal and its checksum is right. A program that is
 * damaged, cut off, of another version or refused by the driver is compiled again; that is never an
 * error.
 *
 * The folder is $XDG_CACHE_HOME/tconv-cl or ~/.cache/tconv-cl, and %LOCALAPPDATA%\tconv-cl on
 * Windows. It is made with permissions 0700. It is not used if it belongs to another user or if
 * others may write to it, because a kept program runs like a compiled one. On Windows a folder that
 * is made permits nothing to others, and of one that exists only the owner is examined. Processes
 * share it safely: files are renamed into place. Beyond its limit, the least recently used files
 * are removed. If it cannot be written, compiled programs are simply not kept;
 * tconv_plan_not_stored reports a search, and tconv_device_prepare and tconv_device_set_machine
 * return TCONV_ERROR_FILE. The environment is read when a device object is created:
 *
 *   TCONV_CL_CACHE=off        or 0: keep nothing on disk; "on", 1, empty or not set: keep
 *   TCONV_CL_CACHE_DIR=PATH   another folder
 *   TCONV_CL_CACHE_MIB=N      its limit; without it 256 MiB
 *
 * Other values are an error of tconv_device_create, which reads them.
 *
 * With TCONV_CL_KERNEL_DIR nothing is kept. PoCL has a cache of its own, so its programs are kept
 * only if a folder is named; results of searches are always kept. */
#ifndef TCONV_CL_TUNING_H
#define TCONV_CL_TUNING_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the folder in which a device object keeps programs from now on, instead of the one above;
 * NULL: none. It is created when the first record is kept. `limit` is in bytes, for all records in
 * it; 0: 256 MiB. Fields of tconv_device_set_machine are then those stored there, or none. Returns
 * TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Ownership: the text is copied. Threads: no other thread may
 * use the object during the call. */
TCONV_API tconv_status tconv_device_set_cache(tconv_device *device, const char *folder,
                                              uint64_t limit, tconv_error *error);

/* The folder in which the device object keeps programs; NULL if it keeps none. Valid until the
 * folder is set or the object is released. */
TCONV_API const char *tconv_device_cache(const tconv_device *device);

/* The folder of search results, of fields of the cost model and of lists of prepared programs
 * (tconv_device_prepare). It is the folder of programs; with PoCL there is one even if
 * tconv_device_cache is NULL. NULL if nothing is stored. Valid as that of tconv_device_cache. */
TCONV_API const char *tconv_device_search_folder(const tconv_device *device);

/* Sets fields of the cost model for this device, in place of what OpenCL reports and of the
 * library's own values. `fields` is a text "NAME=VALUE ...", with spaces or lines between; "" sets
 * none. The text replaces an earlier one. It is stored beside the results of searches, so that
 * later processes use it, too, and "" removes it there; without a folder only this object knows it.
 * Existing plans do not change. Returns TCONV_ERROR_ARGUMENT (`fields` is NULL, a field does not
 * exist or cannot be set, a value is out of range, or the fields contradict each other),
 * _HOST_MEMORY, _FILE (the folder cannot be written: fields stay as they were, in the folder and in
 * this object). Ownership: the text is copied. Any thread. */
TCONV_API tconv_status tconv_device_set_machine(tconv_device *device, const char *fields,
                                                tconv_error *error);

/* Writes the fields set by tconv_device_set_machine (now or by an earlier process), in the form
 * that it accepts; an empty text if none are set. Writes at most `size` bytes with the terminating
 * zero, and returns the length of the whole text. Any thread. */
TCONV_API int tconv_device_machine_fields(tconv_device *device, char *text, size_t size);

/* Writes one line for each field that the cost model uses for f32 on this device: "NAME VALUE UNIT:
 * MEANING". Writes at most `size` bytes with the terminating zero, and returns the length of the
 * whole text. Any thread. */
TCONV_API int tconv_device_machine(tconv_device *device, char *text, size_t size);

/* The state of a stored search result. */
typedef enum tconv_record_state {
    TCONV_RECORD_USED = 0, /* plans of this device take it */
    TCONV_RECORD_FOREIGN =
        1, /* of another device, driver or version, or not a file of this library */
    TCONV_RECORD_DAMAGED = 2, /* cut off, changed, or not the user's own file */
    TCONV_RECORD_IMPORTED = 3 /* measured elsewhere (tconv_device_import_search): plans of this
                                 device take it unless there is a result of its own */
} tconv_record_state;

/* A stored search result. Unknown texts are "", unknown numbers 0. */
typedef struct tconv_stored_search {
    tconv_record_state state; /* whether plans use it, and why not */
    int32_t candidates;       /* how many were timed */
    double model_ms;          /* least time of the cost model's choice */
    double best_ms;           /* least time of the algorithm */
    const char *file;         /* its name in the folder */
    const char *device; /* of a foreign result: library, platform, device and driver, a line each */
    const char *problem;   /* everything of the problem that speed depends on: docs/selection.md
                              explains it */
    const char *algorithm; /* with its tile, as tconv_plan_options.algorithm takes it */
    double median_ms;      /* median time of the algorithm */
    /* The problem and the epilogue, as options of tconv-cl tune. "" also of a window, a sub-device
     * and a limited workspace, which these options cannot say. */
    const char *layer;
    const char *origin; /* of an imported result: where it comes from, as its importer said */
} tconv_stored_search;

/* `stored` is valid during the call. */
typedef void (*tconv_search_visit)(void *context, const tconv_stored_search *stored);

/* Calls `visit` for each search result in tconv_device_search_folder, imported ones included, and
 * for every other file there that is not a program, a machine or a list of prepared programs, in no
 * particular order. Nothing is compiled, and nothing counts as used. Without a folder `visit` is
 * not called. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY (`visit` may have been called before). Any
 * thread. */
TCONV_API tconv_status tconv_device_stored_searches(const tconv_device *device,
                                                    tconv_search_visit visit, void *context,
                                                    tconv_error *error);

/* Stores a search result that was measured elsewhere: with another driver of the same device, on
 * another machine with such a device, or by another version of the library. The caller must know
 * that it comes from such a device: that is not checked. Plans of the problem take it if this
 * device has no result of its own for this driver and version. A search (TCONV_SEARCH_RENEW) makes
 * such a result. A later import for the same problem replaces an earlier one.
 *
 * Of `found`, algorithm, candidates, model_ms, best_ms, median_ms and origin are read; origin is a
 * line of 1 to 200 bytes. `options` may be NULL; its epilogue, workspace_limit, math and window
 * belong to the problem. The algorithm must take the problem on this device with this tile. No
 * kernel is built, but a matrix unit is tested once. If `used` is not NULL, `*used` is false if the
 * device has a result of its own. Without a folder only this object knows the result. All is
 * copied. Returns what tconv_resolve returns, TCONV_ERROR_ARGUMENT (also of times that no search
 * measures), _ALGORITHM (it does not exist, or does not take the problem), _UNSUPPORTED, _DEVICE,
 * _HOST_MEMORY, _DEVICE_MEMORY, _OPENCL, _BUILD, _FILE (the folder cannot be written). Any thread.
 */
TCONV_API tconv_status tconv_device_import_search(tconv_device *device,
                                                  const tconv_problem *problem,
                                                  const tconv_plan_options *options,
                                                  const tconv_stored_search *found, bool *used,
                                                  tconv_error *error);

/* Prepares a layer: compiles what its plans need, for all extents of a range, so that none compiles
 * later. `problem` has the least batch and spatial extents; `most` is the data's shape with the
 * largest ones, with the same channels. NULL: the range is this one problem. If the problem has
 * element steps, they are those of the largest shape; in smaller ones the axes lie in the same
 * order in memory, with as many elements between rows.
 *
 * Few programs serve a range: a plan whose `search` is TCONV_SEARCH_RECORDS, and for which no
 * result is stored, takes a prepared one if the cost model expects at most 1.25 times the time of
 * the best candidate, and for problems that are looked at there is one with 1.1. So results may
 * differ by rounding from those without preparation, but they do not depend on the order of calls.
 * Other plans of the layer, with extents outside of the range, prefer these programs likewise. The
 * list goes into the folder of search results, the programs, with all of their kernels, into that
 * of programs. Later processes with the same folder find both; preparing again takes them about a
 * second for each layer, and writes nothing that is there already. If something cannot be stored,
 * or the folder's limit is too small for all of it, the error is TCONV_ERROR_FILE, and the programs
 * are prepared in this process only. Without a folder nothing is stored, and that is no error.
 *
 * Each program runs once, on scratch buffers as large as one of the problems. Of a range of at most
 * 4096 problems, all are looked at, and none compiles later. Of a larger one, about as many extents
 * of each axis are, with the ends and all small ones: a problem between them compiles if the cost
 * model expects none of the programs to be good enough for it. `search_progress` is called before
 * each group of programs, and once at the end; if it returns false, the call ends, and only the
 * programs are kept. `options` may be NULL. If `programs` is not NULL, it receives how many
 * programs the range takes. Returns also what tconv_plan_create returns. Any thread; with PoCL 3.1,
 * no other thread may run kernels of `device` meanwhile (tconv_device_export_programs).
 */
TCONV_API tconv_status tconv_device_prepare(tconv_device *device, const tconv_problem *problem,
                                            const tconv_shape *most,
                                            const tconv_plan_options *options, int *programs,
                                            tconv_error *error);

/* Writes all programs that the object keeps, the 256 most recently used, to `bytes`, which has room
 * for `*size` bytes. Sets `*size` to the bytes that they take; if `bytes` is NULL, does only this.
 * Programs that the driver does not give are left out. The results of searches for the fastest
 * algorithm that the object used or found follow the programs. Returns TCONV_ERROR_ARGUMENT,
 * _BUFFER (more bytes are needed: `*size` says how many, nothing was written), _HOST_MEMORY. Any
 * thread; programs that others build meanwhile may be missing. PoCL 3.1 may abort if kernels of
 * these programs run meanwhile. */
TCONV_API tconv_status tconv_device_export_programs(tconv_device *device, void *bytes, size_t *size,
                                                    tconv_error *error);

/* Imports the programs that tconv_device_export_programs wrote, in this process or an earlier one.
 * Programs of other devices, drivers or versions and damaged ones are left out. If `taken` is not
 * NULL, `*taken` says how many were imported. Of more than 256, the object keeps the last ones. The
 * bytes are not used after the call. Returns TCONV_ERROR_ARGUMENT, _HOST_MEMORY. Any thread. */
TCONV_API tconv_status tconv_device_import_programs(tconv_device *device, const void *bytes,
                                                    size_t size, int *taken, tconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
