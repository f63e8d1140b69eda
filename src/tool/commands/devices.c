/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl devices: prints the flat list of devices. */
#include "base/architectures.h"
#include "base/matrix_units.h"
#include "base/os.h"
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

static const char POCL[] = "Portable Computing Language"; /* its platform */

static const struct poptOption table[] = {
    END_WITHOUT_DEVICE,
};

static const char *kind_name(tconv_device_kind kind)
{
    switch (kind) {
    case TCONV_DEVICE_CPU: return "CPU";
    case TCONV_DEVICE_GPU: return "GPU";
    case TCONV_DEVICE_ACCELERATOR: return "accelerator";
    case TCONV_DEVICE_OTHER: break;
    }
    return "other";
}

static const char *unit_name(tconv_matrix_unit unit)
{
#define NAME(unit, name, ...)                                                                      \
    case TCONV_MATRIX_##unit: return name;
    switch (unit) {
        MATRIX_UNITS(NAME)
    case TCONV_MATRIX_X86_AVX512_VNNI: return "avx512_vnni";
    case TCONV_MATRIX_X86_AVX_VNNI: return "avx_vnni";
    case TCONV_MATRIX_X86_AVX512_BF16: return "avx512_bf16";
    case TCONV_MATRIX_PLAIN_QUADS: return "plain quads";
    case TCONV_MATRIX_NONE: break;
    }
#undef NAME
    return "no";
}

static const char *architecture_name(tconv_architecture architecture)
{
#define NAME(row, name, ...)                                                                       \
    case TCONV_ARCHITECTURE_##row: return name;
    switch (architecture) {
        ARCHITECTURES(NAME)
    case TCONV_ARCHITECTURE_OTHER: break;
    }
#undef NAME
    return "other";
}

json_t *device_json(int number, const tconv_device_info *d, int threads)
{
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:b, s:b, "
        "s:b, s:b, s:b, s:b, s:s, s:s, s:I, s:I, s:o}",
        "number", number, "name", text_json(d->name), "vendor", text_json(d->vendor), "platform",
        text_json(d->platform), "driver", text_json(d->driver), "version", text_json(d->version),
        "kind", kind_name(d->kind), "compute_units", (int)d->compute_units, "vector_width",
        (int)d->vector_width, "work_group_limit", (json_int_t)d->work_group_limit, "local_memory",
        (json_int_t)d->local_memory, "global_memory", (json_int_t)d->global_memory,
        "allocation_limit", (json_int_t)d->allocation_limit, "dedicated_local", d->dedicated_local,
        "fma", d->fma, "half_arithmetic", d->half_arithmetic, "double_arithmetic",
        d->double_arithmetic, "subgroups", d->subgroups, "integer_dot_product",
        d->integer_dot_product, "matrix_unit", unit_name(d->matrix_unit), "architecture",
        architecture_name(d->architecture), "constant_kib", (json_int_t)d->constant_kib,
        "image_pixels", (json_int_t)d->image_pixels, "threads",
        threads < 0 ? json_null() : json_integer(threads));
}

json_t *device_object_json(int number, const tconv_device *device)
{
    return device_json(number, tconv_device_properties(device), tconv_device_threads(device));
}

void describe_device(const tconv_device_info *d, void (*tell)(const char *line))
{
    char line[1500];
    snprintf(line, sizeof line, "%s, %s, driver %s, %s", kind_name(d->kind), d->platform, d->driver,
             d->version);
    tell(line);
    snprintf(line, sizeof line,
             "%u compute unit%s, vectors of %u x f32%s, work-groups of up to %llu",
             d->compute_units, plural(d->compute_units), d->vector_width, d->fma ? " with fma" : "",
             (unsigned long long)d->work_group_limit);
    tell(line);
    snprintf(line, sizeof line, "memory: %.1f GiB, %.1f GiB in one buffer, %llu KiB local%s",
             (double)d->global_memory / (1 << 30), (double)d->allocation_limit / (1 << 30),
             (unsigned long long)(d->local_memory >> 10), d->dedicated_local ? " (dedicated)" : "");
    tell(line);
    snprintf(line, sizeof line,
             "f16 %s, f64 %s, sub-groups %s, integer dot products %s, matrix unit %s",
             d->half_arithmetic ? "yes" : "no", d->double_arithmetic ? "yes" : "no",
             d->subgroups ? "yes" : "no", d->integer_dot_product ? "yes" : "no",
             unit_name(d->matrix_unit));
    tell(line);
}

const char *results_folder(const tconv_device *device)
{
    const char *folder = tconv_device_search_folder(device);
    if (folder == NULL)
        notice("nothing is stored: there is no folder for results (TCONV_CL_CACHE, "
               "TCONV_CL_CACHE_DIR)");
    return folder;
}

void describe_threads(const tconv_device_info *d, int threads, void (*tell)(const char *line))
{
    char line[300], own[20] = "", offered[100] = "";
    if (threads > 0) {
        snprintf(
            line, sizeof line,
            "threads: %d of this process, on PoCL's basic device (TCONV_CL_THREADS sets how many)",
            threads);
        tell(line);
        return;
    }
    if (threads < 0 || d->kind != TCONV_DEVICE_CPU || strcmp(d->platform, POCL) != 0) return;
    tconv_os_environment("TCONV_CL_THREADS", own, sizeof own);
    tconv_os_environment("POCL_DEVICES", offered, sizeof offered);
    if (strcmp(own, "off") == 0)
        snprintf(line, sizeof line, "threads: PoCL's own, since TCONV_CL_THREADS is off");
    else
        snprintf(line, sizeof line,
                 "threads: PoCL's own, since it offers no basic device "
                 "(POCL_DEVICES is \"%s\")",
                 offered);
    tell(line);
}

/* Opens a processor to ask for its threads; other devices have none. */
static tconv_status ask_threads(int number, const tconv_device_info *d, int *threads,
                                tconv_error *error)
{
    tconv_device *device = NULL;
    *threads = 0;
    if (d->kind != TCONV_DEVICE_CPU) return TCONV_OK;
    *threads = -1;
    const tconv_status status = tconv_device_open(number, &device, error);
    if (status != TCONV_OK) return status;
    *threads = tconv_device_threads(device);
    tconv_device_release(device);
    return TCONV_OK;
}

static void print_fact(const char *line)
{
    enum { INDENT = 5 };
    printf("%*s", INDENT, "");
    print_wrapped(line, INDENT);
}

enum exit_code command_devices(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(table, "[--json FILE]", argc, argv, &leave);
    if (leave) return code;
    if (options.device != NULL)
        return wrong_request("--device is given, but devices lists them all");
    tconv_error error;
    int count = 0, preferred = -1;
    if (tconv_device_count(&count, &error) != TCONV_OK) return failed_call(&error);
    code = default_device(&preferred);
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        cl_device_id device;
        tconv_device_info info = {.struct_size = sizeof info};
        if (tconv_device_at(i, NULL, &device, &error) != TCONV_OK ||
            tconv_device_describe(device, &info, &error) != TCONV_OK) {
            json_decref(list);
            return failed_call(&error);
        }
        int threads;
        const bool opens = ask_threads(i, &info, &threads, &error) == TCONV_OK;
        if (options.json == NULL) {
            printf("%d%s %s\n", i, i == preferred ? "*" : " ", info.name);
            describe_device(&info, print_fact);
            describe_threads(&info, threads, print_fact);
            if (!opens) print_fact(error.message);
        }
        json_array_append_new(list, device_json(i, &info, threads));
    }
    if (options.json != NULL) {
        const enum exit_code written =
            write_json(json_pack("{s:o, s:o}", "devices", list, "default",
                                 preferred >= 0 ? json_integer(preferred) : json_null()));
        return written != EXIT_DONE ? written : code;
    }
    json_decref(list);
    if (preferred >= 0 && !options.quiet) printf("* is used where no --device is given\n");
    return code;
}
