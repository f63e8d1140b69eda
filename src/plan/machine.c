/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the cost model that a device object keeps, and the machine with them. */
#include "plan/machine.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

/* The key of the stored fields. A sub-device has fields of its own. */
struct key {
    char text[24];
};

static struct key key_of(const tconv_device *device)
{
    struct key key = {"whole"};
    const uint32_t units = tconv_device_part_units(device);
    if (units != 0) snprintf(key.text, sizeof key.text, "%u units", (unsigned)units);
    return key;
}

/* Makes the machine of `info` with the stored fields, and returns these. From malloc; NULL: there
 * are none that can be read. */
static char *read_fields(tconv_device *device, const tconv_device_info *info, size_t acc_bytes,
                         struct tconv_machine *machine)
{
    struct tconv_reason reason;
    char *text = tconv_store_text(&device->store, TCONV_STORED_MACHINE, key_of(device).text);
    static const double awake = 8e3; /* cycles until a thread that waits awake takes a share */
    struct tconv_machine usual = tconv_machine_of(info, acc_bytes);
    if (device->crew != NULL) usual.wake = awake;
    *machine = usual;
    if (text == NULL || tconv_machine_read(machine, text, &reason)) return text;
    *machine = usual;
    free(text);
    return NULL;
}

struct tconv_machine tconv_machine_for(tconv_device *device, const tconv_device_info *info,
                                       size_t acc_bytes)
{
    struct tconv_machine machine;
    free(read_fields(device, info, acc_bytes, &machine));
    return machine;
}

tconv_status tconv_device_set_machine(tconv_device *device, const char *fields, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || fields == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "fields");
    struct tconv_reason reason;
    struct tconv_machine machine = tconv_machine_of(&device->info, sizeof(float));
    if (!tconv_machine_read(&machine, fields, &reason))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "fields: %s", reason.text);
    struct tconv_store *store = &device->store;
    struct tconv_os_reason why = {""};
    return tconv_store_keep_text(store, TCONV_STORED_MACHINE, key_of(device).text, fields, &why)
               ? TCONV_OK
               : tconv_fail(error, TCONV_ERROR_FILE, "fields of the cost model cannot be %s %s: %s",
                            fields[0] == '\0' ? "removed from" : "stored in",
                            store->folder == NULL ? "memory" : store->folder, why.text);
}

int tconv_device_machine_fields(tconv_device *device, char *text, size_t size)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_text fields = tconv_text_begin(text, size);
    if (device == NULL) return 0;
    struct tconv_machine machine;
    char *own = read_fields(device, &device->info, sizeof(float), &machine);
    if (own != NULL) tconv_text_add(&fields, "%s", own);
    free(own);
    return (int)fields.length;
}

int tconv_device_machine(tconv_device *device, char *text, size_t size)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_text lines = tconv_text_begin(text, size);
    if (device == NULL) return 0;
    struct tconv_machine machine = tconv_machine_for(device, &device->info, sizeof(float));
    for (int i = 0; tconv_machine_field_at(i) != NULL; i++) {
        const struct tconv_machine_field *f = tconv_machine_field_at(i);
        const double *value = (const double *)((const char *)&machine + f->offset);
        tconv_text_add_line(&lines, "%s %s %s: %s", f->name, tconv_number(*value, 6).text, f->unit,
                            f->text);
    }
    return (int)lines.length;
}
