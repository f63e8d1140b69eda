/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of records, one a file. Nothing here is ever an error: what cannot be read is not there,
 * and what cannot be written is not kept. Any number of threads and processes may use a folder at
 * once. It may hold files of others: only a file with both a name and first bytes of the library's
 * is replaced or removed. */
#ifndef TCONV_CACHE_FOLDER_H
#define TCONV_CACHE_FOLDER_H

#include "cache/record.h"

#include <stdint.h>

#define TCONV_CACHE_LIMIT (UINT64_C(256) << 20)

/* The record of that key, if it takes at most `limit` bytes or TCONV_CACHE_LIMIT. `*bytes` is from
 * malloc and holds what the record points to; false: there is none. */
bool tconv_folder_load(const char *path, uint64_t limit, const char *key, void **bytes,
                       struct tconv_record *record);

/* Keeps a record, and removes the files that were not used for longest as long as all take more
 * than `limit` bytes. */
void tconv_folder_store(const char *path, uint64_t limit, const struct tconv_record *record);

/* What a file of the folder is. */
enum tconv_file_state {
    TCONV_FILE_RECORD,
    TCONV_FILE_DAMAGED, /* named as a record, but cut off, changed, too large, or not the user's
                           own */
    TCONV_FILE_STRANGE  /* not named as a record */
};

/* `record` is NULL but with TCONV_FILE_RECORD, and valid during the call. */
typedef void tconv_folder_visit(void *context, const char *name, enum tconv_file_state state,
                                const struct tconv_record *record);

/* Tells of every file in no particular order, but for those that are being written. None of them
 * counts as used. Records of more bytes than `limit` and TCONV_CACHE_LIMIT are not read. */
void tconv_folder_list(const char *path, uint64_t limit, tconv_folder_visit *visit, void *context);

#endif
