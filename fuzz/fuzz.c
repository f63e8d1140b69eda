/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in memory, and the tool's messages. */
#include "fuzz.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[40];
static char messages[1 << 16];

_Noreturn void fuzz_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    dprintf(STDERR_FILENO, "\nMISMATCH: ");
    vdprintf(STDERR_FILENO, format, arguments);
    dprintf(STDERR_FILENO, "\n");
    va_end(arguments);
    abort();
}

static void remove_folder(void)
{
    fuzz_clear();
    rmdir(folder);
}

void fuzz_prepare(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *path = argv[i][0] == '-' ? NULL : realpath(argv[i], NULL);
        if (path != NULL) argv[i] = path; /* until the end */
    }
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(folder, sizeof folder, "%s/tconv-fuzz-XXXXXX", places[i]);
        if (mkdtemp(folder) != NULL) break;
    }
    if (chdir(folder) != 0) fuzz_fail("no folder can be made");
    atexit(remove_folder);
    /* glibc lets a program exchange its streams. Descriptor 2 itself stays open for libFuzzer and
     * the sanitizers. */
    stderr = fmemopen(messages, sizeof messages, "w");
    stdout = fopen("/dev/null", "w");
    if (stderr == NULL || stdout == NULL) fuzz_fail("the streams cannot be exchanged");
}

void fuzz_file(const char *name, const void *bytes, size_t size)
{
    if (bytes == NULL) {
        unlink(name);
        return;
    }
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        fuzz_fail("%s cannot be written into %s", name, folder);
}

void fuzz_clear(void)
{
    DIR *directory = opendir(folder);
    if (directory == NULL) return;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
}

void fuzz_check_messages(bool failed)
{
    fflush(stderr);
    const long length = ftell(stderr);
    if (length < 0 || (size_t)length >= sizeof messages) fuzz_fail("too many messages");
    messages[length] = '\0';
    if (failed && length == 0) fuzz_fail("a failure without a message");
    static const char start[] = "tconv-cl: ";
    for (const char *at = messages; *at != '\0';) {
        const char *end = strchr(at, '\n');
        if (end == NULL || strncmp(at, start, strlen(start)) != 0)
            fuzz_fail("a message is not one line: %s", messages);
        at = end + 1;
    }
    if (strlen(messages) != (size_t)length) fuzz_fail("a message has a zero byte");
    rewind(stderr);
}
