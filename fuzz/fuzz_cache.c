/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as kept programs: as records behind one another, as tconv_device_import_programs reads
 * them, and as a file of the folder. A first byte of 1 puts right checksums behind what follows,
 * where its lengths say: no search would find one. */
#include "fuzz.h"

#include "store/folder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 24, CHECKSUM = 16 };
static const char key[] = "k";
static char file_name[TCONV_RECORD_NAME + sizeof ".program"];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_prepare(*argc, *argv);
    char name[TCONV_RECORD_NAME];
    tconv_record_name(key, strlen(key), name);
    snprintf(file_name, sizeof file_name, "%s.program", name);
    return 0;
}

static uint64_t number_at(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--) number = number << 8 | bytes[i];
    return number;
}

static void mend_checksums(uint8_t *bytes, size_t size)
{
    while (size >= HEADER + CHECKSUM) {
        const uint64_t first = number_at(bytes + 8), second = number_at(bytes + 16);
        const size_t room = size - HEADER - CHECKSUM;
        if (first > room || second > room - first) return;
        const size_t before = HEADER + (size_t)(first + second);
        XXH128_canonical_t sum;
        XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, before));
        memcpy(bytes + before, sum.digest, CHECKSUM);
        bytes += before + CHECKSUM;
        size -= before + CHECKSUM;
    }
}

/* A record that was read lies inside the bytes, and written again it is the same. */
static void check_record(const struct tconv_record *record, const uint8_t *bytes, size_t size)
{
    const size_t used = tconv_record_size(record->key_size, record->binary_size);
    if (used == 0 || used > size) fuzz_fail("a record is larger than its bytes");
    uint8_t *again = malloc(used);
    if (again == NULL) fuzz_fail("no memory");
    tconv_record_write(record, again);
    if (memcmp(again, bytes, used) != 0)
        fuzz_fail("a record is written otherwise than it was read");
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    if (size == 0) return 0;
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) return 0;
    memcpy(bytes, input + 1, --size);
    if (input[0] == 1) mend_checksums(bytes, size);

    struct tconv_record record;
    bool own = false; /* the file is a record of the key and nothing else */
    for (size_t at = 0; tconv_record_read(bytes + at, size - at, &record);) {
        check_record(&record, bytes + at, size - at);
        const size_t used = tconv_record_size(record.key_size, record.binary_size);
        if (at == 0)
            own = used == size && record.key_size == strlen(key) &&
                  memcmp(record.key, key, strlen(key)) == 0;
        at += used;
    }

    fuzz_file(file_name, bytes, size);
    void *loaded;
    const bool found = tconv_folder_load(".", 1 << 20, key, &loaded, &record);
    if (found != own)
        fuzz_fail("a file is %s", found ? "taken that is not of the key" : "not taken");
    if (found) free(loaded);
    free(bytes);
    return 0;
}
