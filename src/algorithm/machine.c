/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a device is. */
#include "algorithm/machine.h"

#include <stddef.h>
#include <string.h>

static const struct tconv_machine wide = {
#define FIELD(name, value, unit, text) .name = (value),
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
};

static const struct tconv_machine_field fields[] = {
#define FIELD(name, value, unit, text) {#name, unit, text, offsetof(struct tconv_machine, name)},
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
};

enum { FIELDS = sizeof fields / sizeof *fields };

const struct tconv_machine_field *tconv_machine_field_at(int index)
{
    return index >= 0 && index < FIELDS ? &fields[index] : NULL;
}

static double *value_of(struct tconv_machine *machine, const struct tconv_machine_field *field)
{
    return (double *)((char *)machine + field->offset);
}

bool tconv_machine_set(struct tconv_machine *machine, const char *field, double value)
{
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].name, field) == 0) {
            *value_of(machine, &fields[i]) = value;
            return true;
        }
    return false;
}

struct tconv_machine tconv_machine_of(const tconv_device_info *device, size_t acc_bytes)
{
    struct tconv_machine machine = wide;
    if (device->compute_units > 0) machine.units = device->compute_units;
    if (device->vector_width > 1) machine.lanes = device->vector_width;
    /* AVX-512 has 32 registers of 64 bytes; what has narrower ones mostly has 16. Agner Fog's
     * tables of instructions: four a cycle and fewer on a core with two threads. */
    if (machine.lanes * (double)acc_bytes < 64) {
        machine.registers = 16;
        machine.sums = 12;
        machine.issue = 3.5;
    }
    return machine;
}

double tconv_machine_ms(const struct tconv_machine *machine, double cost)
{
    return cost / (machine->units * machine->lanes * machine->adds * machine->clock * 1e3);
}
