/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the cost model's machine from what OpenCL reports of a device. */
#include "algorithm/cost/machine.h"

#include "base/architectures.h"
#include "base/number.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct tconv_machine wide = {
#define FIELD(name, value, least, unit, text) .name = (value),
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
};

static const struct tconv_machine_field fields[] = {
#define FIELD(name, value, least, unit, text)                                                      \
    {#name, unit, text, least, offsetof(struct tconv_machine, name)},
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
};

enum { FIELDS = sizeof fields / sizeof *fields };

const struct tconv_machine_field *tconv_machine_field_at(int index)
{
    return index >= 0 && index < FIELDS ? &fields[index] : NULL;
}

static const struct tconv_machine_field *field_named(const char *name, size_t length)
{
    for (int i = 0; i < FIELDS; i++)
        if (strlen(fields[i].name) == length && strncmp(fields[i].name, name, length) == 0)
            return &fields[i];
    return NULL;
}

/* True for fields that come from the device and cannot be set: all kernels' vectors depend on
 * them. */
static bool is_fixed(const struct tconv_machine_field *field)
{
    return field->offset == offsetof(struct tconv_machine, units) ||
           field->offset == offsetof(struct tconv_machine, lanes);
}

static double most_of(const struct tconv_machine_field *field)
{
    return strcmp(field->unit, "bytes") == 0 ? 1e12 : 1e7;
}

static bool in_range(const struct tconv_machine_field *field, double value)
{
    return value >= field->least && value <= most_of(field); /* and so not NaN */
}

bool tconv_machine_check(const struct tconv_machine *machine, struct tconv_reason *reason)
{
    enum { ROUNDED = 100000 }; /* measured values have six digits */
    for (int i = 0; i < FIELDS; i++) {
        const double value = *(const double *)((const char *)machine + fields[i].offset);
        if (!in_range(&fields[i], value))
            return tconv_refuse(reason, "%s is %s: it must be %s to %s (%s)", fields[i].name,
                                tconv_number(value, 6).text, tconv_number(fields[i].least, 6).text,
                                tconv_number(most_of(&fields[i]), 6).text, fields[i].unit);
    }
#define FIELD(name, value, least, unit, text)                                                      \
    const double name = machine->name;                                                             \
    (void)name;
    TCONV_MACHINE_FIELDS(FIELD)
#undef FIELD
#define RELATION(small, large, why)                                                                \
    if ((small) > (large) * (1 + 1.0 / ROUNDED))                                                   \
        return tconv_refuse(reason, "%s is %s, but must be at most %s, which is %s: %s", #small,   \
                            tconv_number((double)(small), 6).text, #large,                         \
                            tconv_number((double)(large), 6).text, why);
    TCONV_MACHINE_RELATIONS(RELATION)
#undef RELATION
    return true;
}

bool tconv_machine_read(struct tconv_machine *machine, const char *text,
                        struct tconv_reason *reason)
{
    static const char spaces[] = " \n\t,";
    for (text += strspn(text, spaces); *text != '\0'; text += strspn(text, spaces)) {
        const size_t length = strcspn(text, spaces), name = strcspn(text, "= \n\t,");
        const struct tconv_machine_field *field = field_named(text, name);
        char *end = NULL;
        const double value = name + 1 < length ? tconv_number_read(text + name + 1, &end) : NAN;
        if (field == NULL || is_fixed(field))
            return tconv_refuse(reason, "there is no field \"%.*s\" that can be set",
                                (int)(name < 40 ? name : 40), text);
        if (end != text + length || !in_range(field, value))
            return tconv_refuse(reason, "\"%.*s\": %s must be %s to %s (%s)",
                                (int)(length < 60 ? length : 60), text, field->name,
                                tconv_number(field->least, 6).text,
                                tconv_number(most_of(field), 6).text, field->unit);
        *(double *)((char *)machine + field->offset) = value;
        text += length;
    }
    return tconv_machine_check(machine, reason);
}

struct tconv_machine tconv_machine_of(const tconv_device_info *device, size_t acc_bytes)
{
    struct tconv_machine machine = wide;
    enum {
        LEAST_L3 = 4 << 20,
        MOST_L3 = 32 << 20,
        LEAST_CLOCK = 500,
        FEW_SUMS = 16,
        ANY_CHANNELS = 1000000
    };
    if (device->compute_units > 0) machine.units = device->compute_units;
    if (device->vector_width > 1) machine.lanes = device->vector_width;
    /* Some runtimes report a core's second-level cache as the last one, and impossible clocks. A
     * cache larger than the limit is shared by many cores. */
    if (device->clock_mhz >= LEAST_CLOCK) machine.clock = device->clock_mhz;
    if (device->kind == TCONV_DEVICE_CPU && device->cache_bytes >= LEAST_L3)
        machine.l3 = device->cache_bytes < MOST_L3 ? (double)device->cache_bytes : MOST_L3;
    /* AVX-512 has 32 registers of 64 bytes. Processors with narrower registers mostly have 16, and
     * issue fewer instructions in a cycle. */
    if (machine.lanes * (double)acc_bytes < 64) {
        machine.registers = 16;
        machine.sums = 12;
        machine.issue = 3.5;
    }
    switch (device->architecture) {
#define FIELD(name, value) machine.name = (value);
#define ROW(family, name, traits, recognised)                                                      \
    case TCONV_ARCHITECTURE_##family: TCONV_##family##_FIELDS(FIELD) break;
        ARCHITECTURES(ROW)
#undef ROW
#undef FIELD
    case TCONV_ARCHITECTURE_OTHER: break;
    }
    /* Unknown GPUs of this kind (VideoCore, Vivante) have as few registers as Mali, and no tiles in
     * local memory for layers with many channels. */
    if (tconv_emulates_local_memory(device)) {
        machine.item_sums = FEW_SUMS;
        machine.direct_dense = ANY_CHANNELS;
    }
    return machine;
}

bool tconv_emulates_local_memory(const tconv_device_info *device)
{
    return device->kind == TCONV_DEVICE_GPU && !device->dedicated_local;
}

double tconv_machine_unsuited(const tconv_device_info *device, double cost)
{
    /* On GPUs more than any launch costs there (gpu.c). */
    return 20 * cost + (device->kind == TCONV_DEVICE_GPU ? 1e12 : 1e7);
}

double tconv_machine_ms(const struct tconv_machine *machine, double cost)
{
    const double madds = machine->lanes > 1 ? machine->lanes * machine->adds : machine->unit_lanes;
    return cost / (machine->units * madds * machine->clock * 1e3);
}
