/* SPDX-License-Identifier: Apache-2.0 */
/* What the cost model knows about a machine: sizes and speeds of its hardware, and how long each
 * kernel's steps take on it. The only place with such numbers. docs/selection.md tells where they
 * come from and how to fit them. */
#ifndef TCONV_ALGORITHM_MACHINE_H
#define TCONV_ALGORITHM_MACHINE_H

#include "algorithm/cost/fields.h"
#include "tconv_cl/device_info.h"

#include <stdbool.h>
#include <stddef.h>

struct tconv_reason; /* algorithm.h */

struct tconv_machine {
#define FIELD(name, value, least, unit, text) double name;
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
};

/* The machine that a device is, for layers whose products are added up in `acc_bytes` bytes: what
 * OpenCL reports, and for the rest the values of its kind. */
struct tconv_machine tconv_machine_of(const tconv_device_info *device, size_t acc_bytes);

/* Sets fields from a text "NAME=VALUE ...", with spaces or lines between. False with a reason where
 * a field does not exist, `units` and `lanes` among them, which are the device's, or where a value
 * is no number in the range of its field; then some may have been set. */
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

/* What a cost becomes on a device that the algorithm is not made for: so much, for tiny layers too,
 * that the algorithm is taken only by name. */
double tconv_machine_unsuited(const tconv_device_info *device, double cost);

/* A cost in milliseconds. */
double tconv_machine_ms(const struct tconv_machine *machine, double cost);

#endif
