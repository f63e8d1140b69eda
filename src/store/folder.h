/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of records, one in each file. A record that cannot be read counts as missing. Any number
 * of threads and processes may use a folder at once. It may hold other programs' files: only a file
 * whose name and first bytes are the library's is replaced or removed. */
#ifndef TCONV_STORE_FOLDER_H
#define TCONV_STORE_FOLDER_H

#include "base/os.h"
#include "store/record.h"

#include <stdint.h>

#define TCONV_CACHE_LIMIT (UINT64_C(256) << 20)

/* Reads the record with this key, if it has at most `limit` bytes or TCONV_CACHE_LIMIT. `*bytes` is
 * from malloc and holds what the record points to. False if there is none. */
bool tconv_folder_load(const char *path, uint64_t limit, const char *key, void **bytes,
                       struct tconv_record *record);

/* Writes a record. A file that has the same bytes already is left alone, so that this succeeds in a
 * folder that is read-only or full. Then removes the least recently used files while all take more
 * than `limit` bytes. False if the record cannot be written; `reason`, which may be NULL, says
 * why. */
bool tconv_folder_store(const char *path, uint64_t limit, const struct tconv_record *record,
                        struct tconv_os_reason *reason);

/* True if a record with this key is there. This does not count as use. */
bool tconv_folder_has(const char *path, const char *key);

/* Removes the record with this key. True if there is none, also because another program's file has
 * its name. */
bool tconv_folder_forget(const char *path, const char *key, struct tconv_os_reason *reason);

/* The state of a file in the folder. */
enum tconv_file_state {
    TCONV_FILE_RECORD,
    TCONV_FILE_DAMAGED, /* named as a record, but cut off, changed, too large, or not the user's
                           own */
    TCONV_FILE_STRANGE  /* not named as a record */
};

/* `record` is NULL except with TCONV_FILE_RECORD, and valid during the call. */
typedef void tconv_folder_visit(void *context, const char *name, enum tconv_file_state state,
                                const struct tconv_record *record);

/* Calls `visit` for every file except unfinished ones, in no particular order. This does not count
 * as use. Records larger than both `limit` and TCONV_CACHE_LIMIT are not read. */
void tconv_folder_list(const char *path, uint64_t limit, tconv_folder_visit *visit, void *context);

#endif
