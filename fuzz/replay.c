/* SPDX-License-Identifier: Apache-2.0 */
/* Gives every file of the given folders to a fuzz target, without libFuzzer: the corpus as a
 * test. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The bytes get a block of their own size, so that a sanitizer sees what reads past them. */
static void replay(const char *path)
{
    dprintf(STDOUT_FILENO, "%s\n", path); /* the last one before a crash is its input */
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) fuzz_fail("%s cannot be read", path);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size == 0 ? 1 : size);
    if (bytes == NULL || fread(bytes, 1, size, file) != size) fuzz_fail("%s cannot be read", path);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

int main(int argc, char **argv)
{
    LLVMFuzzerInitialize(&argc, &argv);
    int replayed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *directory = opendir(argv[i]);
        if (directory == NULL) fuzz_fail("the folder %s is not there", argv[i]);
        for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
            if (entry->d_name[0] == '.') continue;
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            replay(path);
            replayed++;
        }
        closedir(directory);
    }
    if (replayed == 0) fuzz_fail("there was nothing to replay");
    return 0;
}
