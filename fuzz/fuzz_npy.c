/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file, read from a file and from a pipe, which has no size to be trusted: both
 * must say the same. The input is the file. */
#include "fuzz.h"

#include "tool/io/npy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIPE = 1 << 16 }; /* what a pipe holds while nobody reads it */

/* The bytes of all values, which must be what shape and type say. */
static uint64_t bytes_of(const struct npy *npy)
{
    uint64_t bytes = tconv_type_size(npy->type);
    for (int i = 0; i < npy->shape.rank; i++) bytes *= (uint64_t)npy->shape.dim[i];
    return bytes;
}

/* Where the values of a sound file begin. */
static size_t start_of(const uint8_t *bytes)
{
    const int width = bytes[6] == 1 ? 2 : 4;
    size_t length = 0;
    for (int i = 0; i < width; i++) length |= (size_t)bytes[8 + i] << 8 * i;
    return 8 + (size_t)width + length;
}

/* True if both have the same bytes, in any order. */
static bool same_bytes(const uint8_t *a, const uint8_t *b, size_t count)
{
    int64_t balance[256] = {0};
    for (size_t i = 0; i < count; i++) {
        balance[a[i]]++;
        balance[b[i]]--;
    }
    for (int i = 0; i < 256; i++)
        if (balance[i] != 0) return false;
    return true;
}

static enum exit_code read_from_pipe(const uint8_t *bytes, size_t size, struct npy *npy)
{
    int ends[2];
    char path[40];
    if (pipe(ends) != 0 || write(ends[1], bytes, size) != (ssize_t)size)
        fuzz_fail("a pipe cannot be filled");
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    const enum exit_code code = npy_read("--data", path, npy);
    close(ends[0]);
    return code;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_prepare(*argc, *argv);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_file("x.npy", bytes, size);
    struct npy npy, piped;
    const enum exit_code code = npy_read("--data", "x.npy", &npy);
    fuzz_check_messages(code != EXIT_DONE);
    if (code == EXIT_DONE) {
        const uint64_t values = bytes_of(&npy);
        if (npy.shape.rank > TCONV_MAX_RANK || values > size - start_of(bytes) ||
            !same_bytes(bytes + start_of(bytes), npy.values, (size_t)values))
            fuzz_fail("the values are not those of the file");
    }
    if (size <= PIPE) {
        if (read_from_pipe(bytes, size, &piped) != code) fuzz_fail("a pipe is read otherwise");
        fuzz_check_messages(code != EXIT_DONE);
        if (code == EXIT_DONE && (piped.type != npy.type || bytes_of(&piped) != bytes_of(&npy) ||
                                  memcmp(piped.values, npy.values, (size_t)bytes_of(&npy)) != 0))
            fuzz_fail("a pipe gives other values");
        if (code == EXIT_DONE) npy_free(&piped);
    }
    if (code == EXIT_DONE) npy_free(&npy);
    return 0;
}
