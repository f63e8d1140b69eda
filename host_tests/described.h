/* SPDX-License-Identifier: Apache-2.0 */
/* Devices for tests of selection and kernel plans, which need none: what drivers say of current
 * cards and CPUs, and what small devices could say. What algorithms assume of their numbers is
 * checked by name (described_check.c). */
#ifndef TCONV_HOST_TESTS_DESCRIBED_H
#define TCONV_HOST_TESTS_DESCRIBED_H

#include "tconv_cl/device.h"

struct described_device {
    const char *name; /* of a GPU with tests of its own in scripts/offline_gate.py the vendor's
                         comes first */
    tconv_device_info info;
};

/* A NULL name ends the list. */
extern const struct described_device described_devices[];

/* The device of that name, which must be in the list. */
const tconv_device_info *described_device(const char *name);

/* True if a device contradicts itself, or its machine (tconv_machine_check) does. Writes which
 * members or fields do, their values, and what they must be. */
bool described_wrongly(const tconv_device_info *device, char *text, size_t size);

#endif
