/* SPDX-License-Identifier: Apache-2.0 */
/* A record: a compiled program (or a text) as bytes with a checksum, so that damage is noticed.
 *
 *   offset    bytes            content
 *   0         8                "tconvcl" and the format's number, 1
 *   8         8                K, bytes of the key
 *   16        8                B, bytes of the binary
 *   24        K                the key: text, without a terminator
 *   24+K      B                the binary
 *   24+K+B    16               XXH3-128 of everything before
 *
 * Numbers are little-endian. Several records may follow each other. */
#ifndef TCONV_STORE_RECORD_H
#define TCONV_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A view of somebody else's bytes. */
struct tconv_record {
    const char *key;
    size_t key_size;
    const void *binary;
    size_t binary_size;
};

/* Bytes of a record's head: magic number and sizes. */
enum { TCONV_RECORD_HEAD = 24 };

/* True if these are the first bytes of a record, in any version of the format. */
bool tconv_record_is(const unsigned char head[TCONV_RECORD_HEAD]);

/* Reads the sizes of key and binary. False if the bytes are not a record's head in this version of
 * the format. */
bool tconv_record_read_head(const unsigned char head[TCONV_RECORD_HEAD], uint64_t *key_size,
                            uint64_t *binary_size);

/* Bytes of a record; 0 if a size_t cannot hold the number. */
size_t tconv_record_size(size_t key_size, size_t binary_size);

/* Writes a record to `to`, which has tconv_record_size bytes. */
void tconv_record_write(const struct tconv_record *record, void *to);

/* Reads the record at the begin of `size` bytes. False if there is no whole record. */
bool tconv_record_read(const void *bytes, size_t size, struct tconv_record *record);

/* A name for a key: 32 hexadecimal digits and a terminator. Different keys may have equal names. */
enum { TCONV_RECORD_NAME = 33 };
void tconv_record_name(const char *key, size_t key_size, char name[TCONV_RECORD_NAME]);

#endif
