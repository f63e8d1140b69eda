/* SPDX-License-Identifier: Apache-2.0 */
/* What algorithms assume of a described device: relations between its members, and those between
 * the fields of its machine (TCONV_MACHINE_RELATIONS). */
#include "described.h"

#include "algorithm/algorithm.h"
#include "base/matrix_units.h"

#include <stdio.h>

/* True if a number is out of its range. */
static bool outside(const char *name, double value, const char *least_name, double least,
                    const char *most_name, double most, char *text, size_t size)
{
    if (value < least)
        snprintf(text, size, "%s is %.15g, but must be at least %s", name, value, least_name);
    else if (value > most)
        snprintf(text, size, "%s is %.15g, but must be at most %s (%.15g)", name, value, most_name,
                 most);
    return value < least || value > most;
}

/* A matrix unit of GPUs, or of CPUs, on a device of the other kind; an architecture of a CPU. */
static bool of_other_kind(const tconv_device_info *d, char *text, size_t size)
{
    tconv_device_kind kind = TCONV_DEVICE_CPU;
    tconv_architecture family = d->architecture;
    const char *unit_name = "";
#define ROW(unit, name, of_family, ...)                                                            \
    if (d->matrix_unit == TCONV_MATRIX_##unit) {                                                   \
        kind = TCONV_DEVICE_GPU;                                                                   \
        family = TCONV_ARCHITECTURE_##of_family;                                                   \
        unit_name = name;                                                                          \
    }
    MATRIX_UNITS(ROW)
#undef ROW
    if (d->matrix_unit != TCONV_MATRIX_NONE && d->kind != kind)
        snprintf(text, size, "matrix_unit is %d, but kind is %d, and must be %d", d->matrix_unit,
                 d->kind, kind);
    else if (d->architecture != TCONV_ARCHITECTURE_OTHER && d->kind != TCONV_DEVICE_GPU)
        snprintf(text, size, "architecture is %d, but kind is %d, and must be %d", d->architecture,
                 d->kind, TCONV_DEVICE_GPU);
    else if (d->matrix_unit == TCONV_MATRIX_INTEL_DPAS && d->subgroup_least == 0)
        snprintf(text, size, "subgroup_least is 0, but the matrix unit dpas needs sub-groups");
    else if (d->architecture != family)
        snprintf(text, size, "matrix_unit is %s, of the family %d, but architecture is %d",
                 unit_name, family, d->architecture);
    else
        return false;
    return true;
}

bool described_wrongly(const tconv_device_info *device, char *text, size_t size)
{
    const tconv_device_info d = *device;
    const struct tconv_machine m = tconv_machine_of(device, sizeof(float));
    struct tconv_reason reason;
    if (!tconv_machine_check(&m, &reason)) {
        snprintf(text, size, "%s", reason.text);
        return true;
    }
    /* As sentences call them. */
    const double global_memory = (double)d.global_memory, warp = m.warp, unit_warps = m.unit_warps,
                 group_limit = (double)d.work_group_limit,
                 allocation_kib = (double)d.allocation_limit / 1024,
                 item_limits = (double)d.work_item_limit[0] * (double)d.work_item_limit[1] *
                               (double)d.work_item_limit[2];
#define WITHIN(member, least, most)                                                                \
    outside(#member, (double)d.member, #least, least, #most, most, text, size)
    return WITHIN(compute_units, 1, UINT32_MAX) || WITHIN(vector_width, 1, 16) ||
           WITHIN(work_item_limit[0], 1, INT32_MAX) || WITHIN(work_item_limit[1], 1, INT32_MAX) ||
           WITHIN(work_item_limit[2], 1, INT32_MAX) || WITHIN(work_group_limit, 1, item_limits) ||
           (d.kind == TCONV_DEVICE_GPU && WITHIN(work_group_limit, 1, unit_warps * warp)) ||
           WITHIN(local_memory, 1024, global_memory) ||
           WITHIN(allocation_limit, 1, global_memory) || WITHIN(constant_kib, 0, allocation_kib) ||
           WITHIN(subgroup_least, 0, group_limit) || of_other_kind(device, text, size);
#undef WITHIN
}
