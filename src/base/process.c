/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* syscall */
#endif
#include "base/process.h"

#include "base/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#endif

static atomic_long user; /* the process that uses OpenCL; 0: none is known yet */

/* A process may hold several copies of this library: of an application, of a Python package, of a
 * runtime's plugin. On Linux they tell each other through a page of memory whose name has the
 * process's id: children inherit it, new programs do not. */
#if defined(__linux__)
static const char page_name[] = "tconv_cl_uses_opencl_in_";

static void leave_page(long own)
{
    char name[64];
    snprintf(name, sizeof name, "%s%ld", page_name, own);
    const int file = (int)syscall(SYS_memfd_create, name, 1u /* MFD_CLOEXEC */);
    if (file < 0) return;
    if (ftruncate(file, 1) == 0) /* never given back: it belongs to the process */
        (void)mmap(NULL, 1, PROT_NONE, MAP_SHARED, file, 0);
    close(file);
}

/* The process that a page names: this one, else a parent, else 0. */
static long find_page(long own)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL) return 0;
    char line[512]; /* the page's line is shorter; of others, parts are read as lines */
    long found = 0;
    while (found != own && fgets(line, sizeof line, file) != NULL) {
        const char *name = strstr(line, page_name);
        if (name != NULL) found = strtol(name + strlen(page_name), NULL, 10);
    }
    fclose(file);
    return found;
}
#else
static void leave_page(long own)
{
    (void)own;
}

static long find_page(long own)
{
    (void)own;
    return 0;
}
#endif

tconv_status tconv_process_enter(tconv_error *error)
{
    const long own = (long)getpid();
    long known = atomic_load(&user);
    if (known == own) return TCONV_OK;
    if (known == 0) {
        const long other = find_page(own);
        if (atomic_compare_exchange_strong(&user, &known, other == 0 ? own : other)) {
            known = other == 0 ? own : other;
            if (other == 0) leave_page(own);
        }
    }
    if (known == own) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_FORKED,
                      "process %ld was forked from process %ld, which had used OpenCL before: "
                      "OpenCL does not work in a child. Fork before the first use of a device, or "
                      "start a new program instead (Python: multiprocessing's method \"spawn\")",
                      own, known);
}

bool tconv_process_forked(void)
{
    const long known = atomic_load(&user);
    return known != 0 && known != (long)getpid();
}
