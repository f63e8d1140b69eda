/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between the library and the OpenCL calls that compile: counts programs and the seconds
 * that compiling takes, and can refuse to compile, so that a test runs what is compiled already and
 * nothing else. */
#ifndef TCONV_DEVICE_TESTS_COMPILE_WATCH_H
#define TCONV_DEVICE_TESTS_COMPILE_WATCH_H

#include <stdbool.h>

/* From now on clBuildProgram fails with CL_BUILD_PROGRAM_FAILURE, or builds again. For one thread
 * at a time. */
void refuse_to_compile(bool refuse);

/* Whether clBuildProgram was refused since the last call of refuse_to_compile(true). */
bool compiling_was_refused(void);

/* Prints what was compiled so far, and appends it as "TEST PROGRAMS SECONDS" to the file that the
 * environment variable TCONV_CL_TEST_REPORT names, if it is set. */
void report_compiling(void);

#endif
