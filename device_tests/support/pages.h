/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that touch inaccessible pages: a kernel that reads or writes beyond one is ended by a
 * signal, at no cost to kernels that do not. POSIX only. */
#ifndef TCONV_DEVICE_TESTS_PAGES_H
#define TCONV_DEVICE_TESTS_PAGES_H

#include "tconv_cl/tconv_cl.h"

/* Whether kernels of this device work on the memory that CL_MEM_USE_HOST_PTR names: a kernel finds
 * its argument at the address of that memory, and the device is a processor, so that the pages are
 * this process's. A map of the buffer shows nothing: a runtime may copy to that address. */
bool pages_work(cl_context context, cl_command_queue queue, tconv_device_kind kind);

/* The end of a tensor that touches inaccessible memory. */
enum touching { NONE, END, BEGIN };

/* From begin to end, a signal for an access to inaccessible memory prints the tensor, the algorithm
 * and the problem, and exits with 1. For one thread at a time. */
void pages_begin(const char *algorithm, const char *problem);
void pages_end(void);

/* Takes accessible memory for a tensor, of whole pages with inaccessible ones around them, until
 * pages_end. `name` is a string literal. The tensor lies at the first byte, or as near to the last
 * as multiples of `unit` from the first byte allow. The test fails where there is no memory. */
struct pages {
    unsigned char *memory;
    size_t bytes;  /* of all accessible pages */
    size_t offset; /* of the tensor */
};
struct pages pages_take(const char *name, size_t bytes, size_t unit, enum touching touching);

#endif
