/* SPDX-License-Identifier: Apache-2.0 */
/* What the cost model says of the built-in suite on a described device, for scripts/refit.py and
 * for comparing selections.
 *
 *   usage: costs DEVICE [UNITS]                the candidate that selection takes for each layer,
 *                                              element type and data format
 *          costs DEVICE UNITS CANDIDATES       the milliseconds of each line of a file: an id, an
 *                                              element type, a data format, an algorithm with its
 *                                              tile; for each line of fields from stdin, such as
 *                                              "packed_tap=500 wake=80e3", one line
 *          costs DEVICE UNITS fields           the fields: name, value, unit, meaning */
#include "described.h"
#include "selecting.h"
#include "suite_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A candidate to ask for. */
struct line {
    char id[16], type[16], format[16], algorithm[TCONV_TILE_TEXT + 40];
    struct tconv_layer layer;
    struct tconv_pattern pattern;
};

static void print_fields(const tconv_device_info *device)
{
    struct tconv_machine machine = tconv_machine_of(device, sizeof(float));
    for (int i = 0; tconv_machine_field_at(i) != NULL; i++) {
        const struct tconv_machine_field *f = tconv_machine_field_at(i);
        printf("%s\t%.10g\t%s\t%s\n", f->name, *(double *)((char *)&machine + f->offset), f->unit,
               f->text);
    }
}

static void print_choices(const struct suite *suite, const tconv_device_info *device)
{
    static const tconv_type types[] = {TCONV_F32, TCONV_F16, TCONV_F64, TCONV_I8};
    static const tconv_data_format formats[] = {TCONV_NCX, TCONV_NXC};
    const tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    for (size_t i = 0; i < suite->count; i++)
        for (int v = 0; v < 16; v++) {
            const tconv_type type = types[v / 4];
            const tconv_math math = v % 2 == 1 ? TCONV_MATH_FAST : TCONV_MATH_EXACT;
            struct tconv_layer layer;
            struct tconv_candidate best;
            struct tconv_reason reason;
            struct tconv_pattern any;
            char tile[TCONV_TILE_TEXT];
            if (!suite_layer(&suite->entries[i], type, formats[v / 2 % 2], &layer)) continue;
            const tconv_device_info own = tconv_device_for(device, &layer);
            const struct tconv_request request = request_for(&layer, &own, &epilogue, math);
            if (!tconv_pattern_read("auto", &any, &reason) ||
                !tconv_choose(&request, &any, 0, &best, &reason))
                continue;
            tconv_tile_text(&best, tile, sizeof tile);
            printf("%s %s %s%s %s %s cost %.6g\n", suite->entries[i].id, tconv_type_name(type),
                   v / 2 % 2 == 0 ? "NCX" : "NXC", math == TCONV_MATH_FAST ? " fast" : "",
                   best.algorithm->name, tile, best.cost);
        }
}

/* Reads a candidate; false after a message. */
static bool read_line(const struct suite *suite, const char *text, struct line *line)
{
    struct tconv_reason reason = {"no such layer, element type or data format"};
    tconv_type type;
    if (sscanf(text, "%15s %15s %15s %279[^\n]", line->id, line->type, line->format,
               line->algorithm) == 4 &&
        tconv_type_from_name(line->type, &type))
        for (size_t i = 0; i < suite->count; i++)
            if (strcmp(suite->entries[i].id, line->id) == 0 &&
                suite_layer(&suite->entries[i], type,
                            strcmp(line->format, "NXC") == 0 ? TCONV_NXC : TCONV_NCX,
                            &line->layer) &&
                tconv_pattern_read(line->algorithm, &line->pattern, &reason))
                return true;
    fprintf(stderr, "costs: %s: %s\n", text, reason.text);
    return false;
}

/* One candidate's milliseconds; 0 where it is none with these fields, or they contradict each
 * other. */
static double milliseconds(const struct line *line, const tconv_device_info *device,
                           const char *fields)
{
    const tconv_epilogue epilogue = {.bias = true, .alpha = 1};
    const tconv_device_info own = tconv_device_for(device, &line->layer);
    struct tconv_request request = request_for(
        &line->layer, &own, &epilogue,
        strstr(line->algorithm, "winograd") != NULL ? TCONV_MATH_FAST : TCONV_MATH_EXACT);
    struct tconv_candidate best;
    struct tconv_reason reason;
    if (!tconv_machine_read(&request.machine, fields, &reason)) {
        struct tconv_reason other;
        if (!tconv_machine_check(&request.machine, &other)) return 0; /* a step too far */
        fprintf(stderr, "costs: %s\n", reason.text);
        return -1;
    }
    return tconv_choose(&request, &line->pattern, 0, &best, &reason)
               ? tconv_machine_ms(&request.machine, best.cost)
               : 0;
}

static int print_costs(const struct suite *suite, const tconv_device_info *device, const char *file)
{
    enum { MOST = 1 << 16 };
    static char text[8000];
    size_t count = 0;
    FILE *in = fopen(file, "r");
    struct line *lines = calloc(MOST, sizeof *lines);
    bool good = in != NULL && lines != NULL;
    if (in == NULL) perror(file);
    while (good && count < MOST && fgets(text, sizeof text, in) != NULL)
        good = read_line(suite, text, &lines[count++]);
    if (in != NULL) fclose(in);
    while (good && fgets(text, sizeof text, stdin) != NULL) {
        for (size_t i = 0; i < count && good; i++) {
            const double ms = milliseconds(&lines[i], device, text);
            good = ms >= 0;
            printf("%.6g%c", ms, i + 1 == count ? '\n' : ' ');
        }
        fflush(stdout);
    }
    free(lines);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct suite suite = {0};
    if (argc == 1) {
        fprintf(stderr, "usage: costs DEVICE [UNITS [fields | CANDIDATES]]\n");
        return 2;
    }
    if (suite_read(NULL, &suite) != EXIT_DONE) return 1;
    tconv_device_info device = *described_device(argv[1]);
    if (argc > 2) device.compute_units = (uint32_t)atoi(argv[2]);
    int code = 0;
    if (argc > 3 && strcmp(argv[3], "fields") == 0)
        print_fields(&device);
    else if (argc > 3)
        code = print_costs(&suite, &device, argv[3]);
    else
        print_choices(&suite, &device);
    suite_free(&suite);
    return code;
}
