/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between the library and the OpenCL calls that compile: counts programs and the seconds
 * that compiling takes, and can refuse to compile, so that a test runs what is compiled already and
 * nothing else. */
#ifndef TCONV_DEVICE_TESTS_COMPILE_WATCH_H
#define TCONV_DEVICE_TESTS_COMPILE_WATCH_H

#include "tconv_cl/tconv_cl.h"

#include <stdbool.h>

/* From now on clBuildProgram fails with CL_BUILD_PROGRAM_FAILURE, or builds again. For one thread
 * at a time. */
void refuse_to_compile(bool refuse);

/* Whether clBuildProgram was refused since the last call of refuse_to_compile(true). */
bool compiling_was_refused(void);

/* Prints what was compiled so far, and appends it as "TEST PROGRAMS SECONDS" to the file that the
 * environment variable TCONV_CL_TEST_REPORT names, if it is set. */
void report_compiling(void);

/* What else watches programs and kernels, or NULL (verdicts.c). */
struct compile_watcher {
    /* A program is about to be built; true: it is not built, and yet in order (dry). */
    bool (*build)(cl_program program, const char *source, const char *options, bool is_probe);
    bool (*is_dry)(cl_program program);
    /* A kernel was made, or NULL for one of a dry program. Returns the caller's. */
    cl_kernel (*kernel)(cl_program program, const char *name, cl_kernel made);
};
extern const struct compile_watcher *compile_watcher;

/* Gives the OpenCL loader's function of a call that a test program defines. */
void find_next_call(const char *name, void *function);

#endif
