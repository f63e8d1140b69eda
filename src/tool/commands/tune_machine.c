/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl tune --machine: measures the hardware speeds that the cost model uses, and stores them
 * for the device. With --fields it stores the given values. */
#include "base/text.h"
#include "tool/bench/roofline.h"
#include "tool/tool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MEASURED = 8 };

/* A field that was measured. */
struct measured {
    const char *name;
    double before, value;
};

struct measurement {
    char *lines; /* tconv_device_machine's, from malloc */
    struct measured list[MOST_MEASURED];
    int count;
};

/* The line of a field: "NAME VALUE UNIT: MEANING". */
static const char *line_of(const char *lines, const char *name)
{
    const size_t length = strlen(name);
    const char *line;
    for (int whole; (line = next_line(&lines, &whole)) != NULL;)
        if (strncmp(line, name, length) == 0 && line[length] == ' ') return line + length + 1;
    return "0 none: none";
}

static double value_of(const struct measurement *m, const char *name)
{
    return strtod(line_of(m->lines, name), NULL);
}

static void add(struct measurement *m, const char *name, double value)
{
    m->list[m->count++] = (struct measured){name, value_of(m, name), value};
}

/* Adds a CPU's peak and bandwidths in the cost model's units. */
static void add_cpu(struct measurement *m, const struct roofline *r)
{
    const double madds = 1e9 * r->probed_gflops / 2, units = value_of(m, "units");
    const double l2 = units * value_of(m, "l2"), l3 = value_of(m, "l3");
    add(m, "clock", madds / (units * value_of(m, "lanes") * value_of(m, "adds")) / 1e6);
    add(m, "wait_l3", madds / (1e9 * roofline_bandwidth(r, (l2 + l3) / 2)));
    add(m, "wait_memory", madds / (1e9 * roofline_memory_bandwidth(r)));
}

static void add_gpu(struct measurement *m, const struct roofline *r)
{
    const double madds = 1e9 * r->probed_gflops / 2, hertz = 1e6 * value_of(m, "clock");
    const double lanes = madds / (value_of(m, "units") * hertz),
                 issue = lanes / value_of(m, "warp");
    add(m, "unit_lanes", lanes);
    /* A unit that is slower than its family's also issues less. */
    if (issue < value_of(m, "unit_issue")) add(m, "unit_issue", issue);
    add(m, "gpu_launch", 1e-6 * r->queued_us * hertz);
}

/* The fields without those that are stored: the values of OpenCL and of the library. From malloc;
 * NULL if a call fails. */
static char *usual_lines(const struct opened *opened)
{
    tconv_device *device = NULL;
    char *text = NULL;
    if (tconv_device_open(opened->number, &device, NULL) != TCONV_OK) return NULL;
    if (tconv_device_set_cache(device, NULL, 0, NULL) == TCONV_OK) {
        const int length = tconv_device_machine(device, NULL, 0);
        text = malloc((size_t)length + 1);
        if (text != NULL) tconv_device_machine(device, text, (size_t)length + 1);
    }
    tconv_device_release(device);
    return text;
}

static void print_table(const struct measurement *m)
{
    enum { MEANING = 35 }; /* the column of units, behind a blank of their own */
    printf("%-12s %10s %10s", "field", "before", "measured");
    print_wrapped(" unit: meaning", next_part(MEANING));
    for (int i = 0; i < m->count; i++) {
        char text[300];
        const char *unit = strchr(line_of(m->lines, m->list[i].name), ' ');
        printf("%-12s %10.5g %10.5g", m->list[i].name, m->list[i].before, m->list[i].value);
        snprintf(text, sizeof text, "%.*s", unit == NULL ? 0 : (int)strcspn(unit, "\n"),
                 unit == NULL ? "" : unit);
        print_wrapped(text, next_part(MEANING));
    }
}

static json_t *report_json(int number, const tconv_device *device, const char *folder,
                           const struct measurement *m)
{
    json_t *fields = json_array();
    for (int i = 0; i < m->count; i++)
        json_array_append_new(fields,
                              json_pack("{s:s, s:f, s:f}", "name", m->list[i].name, "before",
                                        m->list[i].before, "value", m->list[i].value));
    return json_pack("{s:o, s:o, s:o}", "device", device_object_json(number, device), "folder",
                     text_json(folder), "machine", fields);
}

/* Stores fields in place of the earlier ones, and says so; "" forgets them. */
static enum exit_code store(tconv_device *device, const char *fields)
{
    tconv_error error;
    const char *folder = tconv_device_search_folder(device);
    const bool were_set = tconv_device_machine_fields(device, NULL, 0) > 0;
    if (tconv_device_set_machine(device, fields, &error) != TCONV_OK) return failed_call(&error);
    if (folder == NULL) return EXIT_DONE;
    if (fields[0] != '\0')
        notice("stored in %s; --fields \"\" forgets it", folder);
    else if (were_set)
        notice("forgotten in %s", folder);
    else
        notice("no fields were stored in %s", folder);
    return EXIT_DONE;
}

/* Measures, stores and prints the fields. */
static enum exit_code measure(int number, const struct opened *opened, struct measurement *m)
{
    tconv_device *device = opened->device;
    const tconv_device_info *info = tconv_device_properties(device);
    const char *folder = tconv_device_search_folder(device);
    struct roofline roofline = {0};
    char fields[500];
    progress(0, 1, "measuring the device");
    enum exit_code code = roofline_measure(opened, &roofline);
    progress(0, 0, "");
    if (code != EXIT_DONE) return code;
    m->lines = usual_lines(opened);
    if (m->lines == NULL) return failed_work("the fields need memory that is not there");
    if (info->kind == TCONV_DEVICE_GPU)
        add_gpu(m, &roofline);
    else
        add_cpu(m, &roofline);
    struct tconv_text text = tconv_text_begin(fields, sizeof fields);
    for (int i = 0; i < m->count; i++)
        tconv_text_add(&text, "%s%s=%.6g", i == 0 ? "" : " ", m->list[i].name, m->list[i].value);
    if (table_wanted()) {
        print_device(number, device);
        print_table(m);
    }
    code = store(device, fields);
    const enum exit_code written =
        write_json(with_origin(report_json(number, device, code == EXIT_DONE ? folder : NULL, m)));
    return code == EXIT_DONE ? written : code;
}

enum exit_code tune_machine(void)
{
    int number;
    tconv_error error;
    struct opened opened;
    struct measurement m = {.count = 0};
    enum exit_code code =
        refuse_layers("--machine and --fields are about the device, and time no layer");
    if (code == EXIT_DONE && options.machine && options.fields != NULL)
        code = wrong_request("--machine measures fields and --fields gives them: give one");
    if (code == EXIT_DONE && options.json != NULL && options.fields != NULL)
        code = wrong_request("--json is given, but --fields has no results");
    if (code == EXIT_DONE) code = choose_device(&number);
    if (code != EXIT_DONE) return code;
    if (device_open(number, &opened, &error) != TCONV_OK) return failed_call(&error);
    results_folder(opened.device);
    if (options.fields == NULL)
        code = measure(number, &opened, &m);
    else
        code = store(opened.device, options.fields);
    free(m.lines);
    device_close(&opened);
    return code;
}
