/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the devices that --device names, and prints one. */
#include "tool/tool.h"

#include <inttypes.h>
#include <string.h>

enum exit_code default_device(int *number)
{
    tconv_error error, none;
    int there = 0;
    if (tconv_device_default(number, &error) == TCONV_OK) return EXIT_DONE;
    /* Devices exist, so the environment variable is wrong. */
    if (error.status == TCONV_ERROR_NO_DEVICE && tconv_device_count(&there, &none) == TCONV_OK &&
        there > 0)
        return wrong_request("%s", error.message);
    return failed_call(&error);
}

enum exit_code choose_devices(int *numbers, int most, int *count)
{
    tconv_error error;
    *count = 1;
    if (options.device == NULL) return default_device(numbers);
    int64_t wanted[MOST_DEVICES];
    int there;
    if (strspn(options.device, "0123456789,") != strlen(options.device)) {
        if (tconv_device_find(options.device, numbers, &error) == TCONV_OK) return EXIT_DONE;
        if (error.status != TCONV_ERROR_NO_DEVICE || tconv_device_count(&there, NULL) != TCONV_OK ||
            there == 0)
            return failed_call(&error);
        const char *write = foreign_value("device", options.device);
        return wrong_request("--device: %s%s%s", error.message, write == NULL ? "" : "; write ",
                             write == NULL ? "" : write);
    }
    if (options.device[0] == '\0' || (most == 1 && strchr(options.device, ',') != NULL))
        return wrong_request(
            "--device is \"%s\": it must be a number, gpu, cpu or a part of a name; "
            "`run` also takes numbers with commas",
            options.device);
    if (!read_numbers("--device", options.device, wanted, most, count)) return EXIT_REQUEST_WRONG;
    if (tconv_device_count(&there, &error) != TCONV_OK) return failed_call(&error);
    for (int i = 0; i < *count; i++) {
        if (there > 0 && (wanted[i] < 0 || wanted[i] >= there))
            return wrong_request("--device is %" PRId64
                                 ", but there are devices 0 to %d; see tconv-cl devices",
                                 wanted[i], there - 1);
        for (int j = 0; j < i; j++)
            if (wanted[j] == wanted[i])
                return wrong_request("--device names %" PRId64 " twice", wanted[i]);
        numbers[i] = (int)wanted[i];
        cl_device_id device;
        if (tconv_device_at(numbers[i], NULL, &device, &error) != TCONV_OK)
            return failed_call(&error);
    }
    return EXIT_DONE;
}

enum exit_code choose_device(int *number)
{
    int count;
    return choose_devices(number, 1, &count);
}

void print_device(int number, const tconv_device *device)
{
    const tconv_device_info *d = tconv_device_properties(device);
    const int threads = tconv_device_threads(device);
    char text[40] = "";
    if (threads > 0) snprintf(text, sizeof text, ", %d thread%s", threads, plural(threads));
    print_line("device %d: %s (%s)%s", number, d->name, d->platform, text);
}
