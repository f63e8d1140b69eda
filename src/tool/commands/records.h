/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a device's search folder. */
#ifndef TCONV_TOOL_RECORDS_H
#define TCONV_TOOL_RECORDS_H

#include "tool/tool.h"

struct records {
    tconv_stored_search *list; /* by problem, then by state and file; with texts from malloc */
    size_t count;
    bool memory;
};

/* Opens the device that the options name. `why` refuses layers. */
enum exit_code records_open(const char *why, int *number, tconv_device **device);

/* Reads the records of a device. Whatever it returns, records_free follows. */
enum exit_code records_read(const tconv_device *device, struct records *records);
void records_free(struct records *records);

#endif
