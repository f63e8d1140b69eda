/* SPDX-License-Identifier: Apache-2.0 */
/* A layer between the library and OpenCL, and between the library and malloc, put there by the
 * linker: it makes the n-th call fail, and counts what is alive. */
#ifndef TCONV_DEVICE_TESTS_FAULTS_H
#define TCONV_DEVICE_TESTS_FAULTS_H

#include "tconv_cl/tconv_cl.h"

/* What can be alive. */
enum fault_kind {
    DEVICES,
    CONTEXTS,
    QUEUES,
    BUFFERS,
    PROGRAMS,
    KERNELS,
    EVENTS,
    BLOCKS,
    LOCKS,
    KINDS
};

/* A call that can fail: a name of OpenCL's, or one of malloc's, and its codes, 0 at the end. */
struct fault_call {
    const char *name;
    const cl_int *codes;
    bool releases; /* what it releases is gone even if it says that it failed */
};

/* All of them; a NULL name ends the list. */
extern const struct fault_call fault_calls[];

/* The number of the call with that name, which must exist. */
int fault_call_named(const char *name);

/* From now on the n-th call of that number fails with `code`; n from 1 on, 0: none fails. */
void fault_arm(int call, int n, cl_int code);

/* The same, and so do the calls behind it, `times` in all. */
void fault_arm_times(int call, int n, int times, cl_int code);

/* From now on the device says of kernels with that name that they run in work-groups of
 * `work_group` work-items at most and take `local_memory` bytes of local memory; NULL, the state at
 * first: of none. */
void fault_limit(const char *kernel, size_t work_group, cl_ulong local_memory);

/* From now on the next `answers` questions how much private memory a kernel has are answered with
 * 64 bytes, and all later ones with 0; negative, the state at first: as the device answers. */
void fault_spill(int answers);

/* From now on programs with that option among their build options fail to build, with `code`; NULL,
 * the state at first: none. How many have failed since. */
void fault_refuse(const char *option, cl_int code);
int fault_refusals(void);

/* No call fails any more. True where one did. */
bool fault_disarm(void);

/* How many are alive now. */
void fault_alive(long alive[KINDS]);

const char *fault_kind_name(int kind);

#endif
