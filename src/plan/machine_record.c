/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and stores the fields of the cost model's machine for a device. */
#include "plan/machine_record.h"

#include "algorithm/algorithm.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "tconv_cl/cache.h"

#include <stdlib.h>
#include <string.h>

struct tconv_machine tconv_machine_for(tconv_device *device, const tconv_device_info *info,
                                       size_t acc_bytes)
{
    const struct tconv_machine usual = tconv_machine_of(info, acc_bytes);
    struct tconv_machine machine = usual;
    struct tconv_reason reason;
    char *text = tconv_device_machine_record(device);
    const bool good = text == NULL || tconv_machine_read(&machine, text, &reason);
    free(text);
    return good ? machine : usual;
}

tconv_status tconv_device_set_machine(tconv_device *device, const char *fields, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || fields == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "fields");
    struct tconv_reason reason;
    struct tconv_machine machine = tconv_machine_of(tconv_device_properties(device), sizeof(float));
    if (!tconv_machine_read(&machine, fields, &reason))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "fields: %s", reason.text);
    return tconv_device_keep_machine_record(device, fields, error);
}

int tconv_device_machine_fields(tconv_device *device, char *text, size_t size)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_text fields = tconv_text_begin(text, size);
    if (device == NULL) return 0;
    struct tconv_reason reason;
    struct tconv_machine machine = tconv_machine_of(tconv_device_properties(device), sizeof(float));
    char *own = tconv_device_machine_record(device);
    if (own != NULL && tconv_machine_read(&machine, own, &reason))
        tconv_text_add(&fields, "%s", own);
    free(own);
    return (int)fields.length;
}

int tconv_device_machine(tconv_device *device, char *text, size_t size)
{
    TCONV_WITHOUT_CANCELLATION;
    struct tconv_text lines = tconv_text_begin(text, size);
    if (device == NULL) return 0;
    struct tconv_machine machine =
        tconv_machine_for(device, tconv_device_properties(device), sizeof(float));
    for (int i = 0; tconv_machine_field_at(i) != NULL; i++) {
        const struct tconv_machine_field *f = tconv_machine_field_at(i);
        const double *value = (const double *)((const char *)&machine + f->offset);
        tconv_text_add_line(&lines, "%s %s %s: %s", f->name, tconv_number(*value, 6).text, f->unit,
                            f->text);
    }
    return (int)lines.length;
}
