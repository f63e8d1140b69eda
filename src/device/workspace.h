/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of workspaces of a device object: buffers in which executions keep what they compute in
 * between. The public header device.h has its rules. */
#ifndef TCONV_DEVICE_WORKSPACE_H
#define TCONV_DEVICE_WORKSPACE_H

#include "tconv_cl/device.h"

#include <CL/cl.h>

/* The most that a pool keeps. device.h says the number, too. */
enum { TCONV_MOST_WORKSPACES = 4 };

struct tconv_workspace {
    struct tconv_workspace *next; /* in the pool: the one used last comes first */
    cl_mem memory;
    uint64_t bytes;
    cl_event last; /* of the last execution, or NULL */
    bool waits;    /* whether the next one must wait for it */
};

/* Takes a workspace of at least `bytes` for one execution on `queue`, until
 * tconv_workspace_give_back. The execution must wait for `last` if `waits`. Any thread. */
tconv_status tconv_workspace_take(tconv_device *device, uint64_t bytes, cl_command_queue queue,
                                  struct tconv_workspace **out, tconv_error *error);

/* Gives it back. `last` is the event of the execution, which the pool then owns; NULL: commands may
 * use the workspace, but none has an event, so the pool forgets it. Any thread. */
void tconv_workspace_give_back(tconv_device *device, struct tconv_workspace *workspace,
                               cl_event last);

/* Gives it back after an execution that was refused: no further command uses it. Any thread. */
void tconv_workspace_give_back_unused(tconv_device *device, struct tconv_workspace *workspace);

#endif
