/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of the cost model: sizes and speeds of its hardware, and how long each kernel's steps
 * take on it. These numbers stand nowhere else. docs/selection.md tells where they come from and
 * how to fit them. */
#ifndef TCONV_ALGORITHM_MACHINE_H
#define TCONV_ALGORITHM_MACHINE_H

#include "algorithm/cost/fields.h"
#include "algorithm/reason.h"
#include "tconv_cl/device.h"

#include <stdbool.h>
#include <stddef.h>

struct tconv_machine {
#define FIELD(name, value, least, unit, text) double name;
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
};

/* The machine of a device, for layers with accumulators of `acc_bytes` bytes: what OpenCL reports,
 * and default values of this kind of device for the rest. */
struct tconv_machine tconv_machine_of(const tconv_device_info *device, size_t acc_bytes);

/* False with a reason, which names the fields and their values, if a field is out of its range or
 * the fields contradict each other: algorithms assume what TCONV_MACHINE_RELATIONS lists. */
bool tconv_machine_check(const struct tconv_machine *machine, struct tconv_reason *reason);

/* Sets fields from a text "NAME=VALUE ...", with spaces or lines between. False with a reason if a
 * field does not exist, a value is not a number in the range of its field, or the fields then
 * contradict each other; some fields may then have been set. `units` and `lanes` are the device's
 * and cannot be set. */
bool tconv_machine_read(struct tconv_machine *machine, const char *text,
                        struct tconv_reason *reason);

/* One field, for programs that print all of them. */
struct tconv_machine_field {
    const char *name, *unit, *text;
    double least;  /* that it may be set to */
    size_t offset; /* in struct tconv_machine */
};

/* Field number `index`, or NULL past the last one. */
const struct tconv_machine_field *tconv_machine_field_at(int index);

/* The cost on a device that the algorithm is not made for. It is so high, for tiny layers too, that
 * the algorithm runs only when named. */
double tconv_machine_unsuited(const tconv_device_info *device, double cost);

/* True for a GPU whose local memory is a part of global memory: copies into it take time and save
 * no loads. On CPUs they do, because caches hold it. */
bool tconv_emulates_local_memory(const tconv_device_info *device);

/* Converts a cost to milliseconds. */
double tconv_machine_ms(const struct tconv_machine *machine, double cost);

#endif
