/* SPDX-License-Identifier: Apache-2.0 */
/* A device that a command has opened, with an in-order queue. */
#ifndef TCONV_TOOL_OPENED_H
#define TCONV_TOOL_OPENED_H

#include "tool/tool.h"

struct opened {
    int number;
    tconv_device *device;
    cl_command_queue queue; /* if the device has threads, its kernels run in the calling one */
};

/* Opens a device; after an error nothing is open. */
tconv_status device_open(int number, struct opened *opened, tconv_error *error);
void device_close(struct opened *opened);

#endif
