/* SPDX-License-Identifier: Apache-2.0 */
/* Writes, reads and checks records. */
#include "store/record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

enum { HEADER = TCONV_RECORD_HEAD, CHECKSUM = 16 };
enum { NAME = 7 /* bytes of the magic number that all formats share */ };
static const char magic[8] = {'t', 'c', 'o', 'n', 'v', 'c', 'l', 1};

static void write_number(unsigned char *to, uint64_t number)
{
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t read_number(const unsigned char *from)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number |= (uint64_t)from[i] << 8 * i;
    return number;
}

/* XXH3-128 in canonical form, which is the same on every machine. */
static void checksum(const void *bytes, size_t size, unsigned char sum[CHECKSUM])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, size));
    memcpy(sum, canonical.digest, CHECKSUM);
}

bool tconv_record_is(const unsigned char head[HEADER])
{
    return memcmp(head, magic, NAME) == 0;
}

bool tconv_record_read_head(const unsigned char head[HEADER], uint64_t *key_size,
                            uint64_t *binary_size)
{
    *key_size = read_number(head + 8);
    *binary_size = read_number(head + 16);
    return memcmp(head, magic, sizeof magic) == 0;
}

size_t tconv_record_size(size_t key_size, size_t binary_size)
{
    size_t size;
    if (__builtin_add_overflow(key_size, binary_size, &size) ||
        __builtin_add_overflow(size, (size_t)(HEADER + CHECKSUM), &size))
        return 0;
    return size;
}

void tconv_record_write(const struct tconv_record *record, void *to)
{
    unsigned char *at = to;
    memcpy(at, magic, sizeof magic);
    write_number(at + 8, record->key_size);
    write_number(at + 16, record->binary_size);
    memcpy(at + HEADER, record->key, record->key_size);
    memcpy(at + HEADER + record->key_size, record->binary, record->binary_size);
    const size_t before = HEADER + record->key_size + record->binary_size;
    checksum(to, before, at + before);
}

bool tconv_record_read(const void *bytes, size_t size, struct tconv_record *record)
{
    const unsigned char *at = bytes;
    uint64_t key_size, binary_size;
    if (size < HEADER + CHECKSUM || !tconv_record_read_head(at, &key_size, &binary_size))
        return false;
    const size_t room = size - HEADER - CHECKSUM;
    if (key_size > room || binary_size > room - key_size) return false;
    const size_t before = HEADER + (size_t)key_size + (size_t)binary_size;
    unsigned char sum[CHECKSUM];
    checksum(at, before, sum);
    if (memcmp(sum, at + before, CHECKSUM) != 0) return false;
    *record = (struct tconv_record){(const char *)at + HEADER, (size_t)key_size,
                                    at + HEADER + key_size, (size_t)binary_size};
    return true;
}

void tconv_record_name(const char *key, size_t key_size, char name[TCONV_RECORD_NAME])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[CHECKSUM];
    checksum(key, key_size, sum);
    for (int i = 0; i < CHECKSUM; i++) {
        name[2 * i] = digits[sum[i] >> 4];
        name[2 * i + 1] = digits[sum[i] & 15];
    }
    name[TCONV_RECORD_NAME - 1] = '\0';
}
