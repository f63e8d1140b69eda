/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts that are kept: a case that has passed is not run again while nothing has changed on
 * which its verdict depends. The environment variable TCONV_CL_TEST_VERDICTS names their folder;
 * without it, or if it is "off", every case runs. Only passed cases are kept, of PoCL only.
 *
 * The key of a verdict is a hash of
 *
 *   - all that the library hands to OpenCL: sources and options of programs, kernels, arguments,
 *     contents of buffers, ranges. So a change of a kernel, of a kernel plan, or of what enqueues
 *     it, is another key; a change of the host's code that leaves the calls as they are is none.
 *   - device and versions of driver and compiler, and PoCL's environment variables
 *   - what judges: problem, epilogue, the bound's factor, what the caller wants, and the test
 *     program, in which test and oracle are, but not the library. For a test that links the
 *     library's objects the variable TCONV_CL_TEST_JUDGES lists its own objects instead.
 *
 * To learn the calls without compiling, a case first runs on a device object of its own, whose
 * programs are not built and whose kernels do not run. Keys are kept only of real runs, so that a
 * driver whose answers change the calls costs time, but never hides a case. */
#ifndef TCONV_DEVICE_TESTS_VERDICTS_H
#define TCONV_DEVICE_TESTS_VERDICTS_H

#include "support.h"

/* Like run_algorithm. `*known` says that the case has passed before: it was not run, and there is
 * no output to compare. `wanted`: a hash of what the caller compares with, if that is not in the
 * test program; 0 for none. If the results are right, the caller calls case_passed. */
bool run_case(const struct device *device, const tconv_problem *problem, const char *algorithm,
              bool bias, struct tensors *tensors, unsigned number, uint64_t wanted, bool *known);
void case_passed(void);

uint64_t hash_bytes(uint64_t before, const void *bytes, size_t size);

/* Runs a case and compares it with the oracle. True where the sample has it and the algorithm takes
 * it; then its result is right. */
bool check_algorithm(const struct device *device, const tconv_problem *problem,
                     const char *algorithm, bool bias, struct tensors *tensors, unsigned number);

#endif
