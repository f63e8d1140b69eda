/* SPDX-License-Identifier: Apache-2.0 */
/* An implementation of OpenCL for tests of what the host does: buffers are memory, queues are lists
 * of commands, and a kernel is a function of the test program. Nothing is compiled. It is stricter
 * than implementations are:
 *
 *   - A command runs as late as it may: when a wait, or a question for an event's state, needs it.
 *     A queue without an order runs what was enqueued last first, and queues take turns. So an
 *     order that nobody asked for is not kept.
 *   - A command runs only after its queue was flushed. A wait for one that nobody flushes ends the
 *     process.
 *   - Buffers begin with junk. On devices without the host's memory, a buffer over an array is a
 *     copy of the array, which only maps bring up to date.
 *   - The use of an object that was released ends the process. At exit nothing may be alive.
 *
 * It is a shared object of its own, so that what test programs put between themselves and malloc is
 * not seen here. It knows nothing of tconv-cl. */
#ifndef TCONV_DEVICE_TESTS_FAKE_H
#define TCONV_DEVICE_TESTS_FAKE_H

#include <stdbool.h>
#include <stddef.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

/* The name of all its platforms begins with these words. */
#define FAKE_PLATFORM "Fake OpenCL"

/* The devices, by number. */
enum {
    FAKE_CPU,        /* OpenCL 3.0: the host's memory, SVM, recordings that take arguments, parts */
    FAKE_GPU,        /* memory of its own, unified shared memory of Intel, local memory */
    FAKE_PLAIN,      /* an accelerator with nothing beyond OpenCL 1.2, not even f64 */
    FAKE_INTEGRATED, /* a GPU on the host's memory, coarse-grained SVM */
    FAKE_THREADLESS, /* as the CPU, but the name is that of PoCL's device without threads. It exists
                        only if the environment variable FAKE_OPENCL_THREADLESS is set; then
                        platform and CPU are called as PoCL's. If that is "copies", its buffers
                        over arrays are copies of them */
    FAKE_DEVICES
    /* FAKE_OPENCL_LEAST=embedded in the environment gives the last platform's devices the embedded
     * profile, without 64-bit integers; =V3D gives them and the platform Mesa's names for
     * VideoCore. FAKE_OPENCL_DRIVER is the driver version of all devices, read at each question.
     * With FAKE_OPENCL_FIRST_BUFFERS command buffers have version 0.9.0, else 1.0; with
     * FAKE_OPENCL_DOT_FEATURE devices have dot products as a feature, not an extension. */
};

/* Makes the GPU one of NVIDIA's, for devices that are described from then on; NULL: as it was. Its
 * programs' binaries are PTX: for sm_90, with the sources in comments. `how`:
 *
 *   "takes"           it builds such a binary for sm_90a, too
 *   "refuses"         it does not; "refuses TEXT": if the program's options contain the text
 *   "strips"          a binary lacks the sources
 *   "hides"           a binary is not PTX
 *   "wrong"           launches of programs for sm_90a are wrong; "wrong TEXT": as above */
void fake_set_nvidia(unsigned major, unsigned minor, const char *how);

/* A kernel's argument as it was set. */
struct fake_argument {
    enum { FAKE_UNSET, FAKE_VALUE, FAKE_BUFFER, FAKE_POINTER, FAKE_LOCAL } kind;
    size_t size;             /* of the value, of the local memory, or of the buffer */
    unsigned char value[16]; /* FAKE_VALUE; NULL for a buffer is a value of zeros */
    unsigned char *memory;   /* where the kernel sees the buffer, or the pointer */
    cl_mem buffer;
};

/* A launch of a kernel. */
struct fake_launch {
    const char *kernel, *options; /* options: those of its program */
    const struct fake_argument *arguments;
    unsigned count; /* one more than the highest argument that was set */
    size_t offset[3], global[3], local[3];
    bool sm_90a; /* its program is of a binary for that, and the device is not "wrong" */
    void *found; /* what fake_check made of it, for fake_run */
};

/* What the test program defines: whether a launch can run, else why not (a code of
 * clEnqueueNDRangeKernel), and the launch itself. For one thread at a time. */
struct fake_kernels {
    cl_int (*check)(struct fake_launch *launch);
    void (*run)(const struct fake_launch *launch);
};
void fake_set_kernels(const struct fake_kernels *kernels);

/* Memory that malloc does not know. It is never freed. */
void *fake_memory(size_t bytes);

/* Ends the process if a command that has not ended reads or writes what begins at `memory`: its
 * owner is about to free it. */
void fake_expect_unused(const void *memory);

/* Prints why an impossible thing happened, and aborts. */
void fake_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
