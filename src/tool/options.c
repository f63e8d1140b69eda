/* SPDX-License-Identifier: Apache-2.0 */
/* Reading options, and building a problem from them. */
#include "model.h"
#include "out_file.h"
#include "system.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_OPTION(flags)                                                                       \
    {                                                                                              \
        "device", 'd', POPT_ARG_STRING | (flags), &options.device, 0,                              \
            "number of the device, as `tconv-cl devices` lists them, or gpu, cpu or a part of "    \
            "its name; run: several numbers, as 0,1",                                              \
            "N"                                                                                    \
    }
const struct poptOption device_table[] = {DEVICE_OPTION(0), POPT_TABLEEND};
const struct poptOption refused_table[] = {DEVICE_OPTION(POPT_ARGFLAG_DOC_HIDDEN), POPT_TABLEEND};

const struct poptOption common_table[] = {
    {"json", 'j', POPT_ARG_STRING, &options.json, 0, "write the results as JSON; - is stdout",
     "FILE"},
    {"quiet", 'q', POPT_ARG_NONE, &options.quiet, 0,
     "no progress, no notices, no summary; with --json nothing on stdout but JSON", NULL},
    POPT_TABLEEND,
};

const struct poptOption shape_table[] = {
    {"data-shape", 0, POPT_ARG_STRING, &options.data_shape, 0,
     "extents of the data, for example 1,20,224,224", "N,C,..."},
    {"filter-shape", 0, POPT_ARG_STRING, &options.filter_shape, 0,
     "extents of the filter, for example 20,10,3,3", "CI,CO,..."},
    POPT_TABLEEND,
};

const struct poptOption attribute_table[] = {
    {"strides", 0, POPT_ARG_STRING, &options.strides, 0,
     "one number for each spatial axis, or one for all; default 1", "LIST"},
    {"dilations", 0, POPT_ARG_STRING, &options.dilations, 0, "default 1", "LIST"},
    {"pads-begin", 0, POPT_ARG_STRING, &options.pads_begin, 0, "default 0", "LIST"},
    {"pads-end", 0, POPT_ARG_STRING, &options.pads_end, 0, "default 0", "LIST"},
    {"auto-pad", 0, POPT_ARG_STRING, &options.auto_pad, 0,
     "explicit (or notset), valid, same_upper, same_lower; default explicit", "MODE"},
    {"output-padding", 0, POPT_ARG_STRING, &options.output_padding, 0, "default 0", "LIST"},
    {"output-shape", 0, POPT_ARG_STRING, &options.output_shape, 0,
     "spatial extents of the output; default: computed", "LIST"},
    {"groups", 0, POPT_ARG_STRING, &options.groups, 0,
     "groups of the oneAPI form, default 1; this and the next two select that form", "G"},
    {"data-format", 0, POPT_ARG_STRING, &options.data_format, 0,
     "NCX or NXC, also for every layer of a suite; default NXC in the oneAPI form, else NCX",
     "FORMAT"},
    {"filter-format", 0, POPT_ARG_STRING, &options.filter_format, 0,
     "OIX or XIO; default XIO in the oneAPI form", "FORMAT"},
    {"rules", 0, POPT_ARG_STRING, &options.rules, 0,
     "how pads and output shape are resolved: spec, openvino, onnx; default spec, for models "
     "openvino",
     "RULES"},
    {"type", 0, POPT_ARG_STRING, &options.type, 0,
     "element type where files do not say it; default f32", "TYPE"},
    POPT_TABLEEND,
};

const struct poptOption algorithm_table[] = {
    {"algorithm", 'a', POPT_ARG_STRING, &options.algorithm, 0,
     "force an algorithm, or one with a tile, as --why prints it: \"thin_vector vw=16 nx=2\"; "
     "`list` "
     "prints the names; default auto",
     "NAME"},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)math_table, 0, NULL, NULL},
    POPT_TABLEEND,
};

const struct poptOption math_table[] = {
    {"math", 0, POPT_ARG_STRING, &options.math, 0,
     "exact, or fast: also algorithms with fewer multiplies and a larger error bound; default "
     "exact",
     "exact|fast"},
    POPT_TABLEEND,
};

const struct poptOption suite_table[] = {
    {"suite", 0, POPT_ARG_STRING, &options.suite, 0,
     "a list of layers with the columns of bench/suite.csv, - is stdin; default: a built-in one",
     "FILE.csv"},
    {"ids", 0, POPT_ARG_STRING, &options.ids, 0, "only these layers of the suite", "B01,B02,..."},
    POPT_TABLEEND,
};

const struct poptOption model_table[] = {
    {"model", 0, POPT_ARG_STRING, &options.model, 0, "transposed convolutions of an OpenVINO model",
     "FILE.xml"},
    {"layer", 0, POPT_ARG_STRING, &options.layer, 0, "which one of the model, by name or number",
     "NAME"},
    POPT_TABLEEND,
};

const struct poptOption file_table[] = {
    {"data", 0, POPT_ARG_STRING, &options.data, 0, "the data", "X.npy"},
    {"filter", 0, POPT_ARG_STRING, &options.filter, 0, "the filter", "W.npy"},
    {"bias", 0, POPT_ARG_STRING, &options.bias, 0, "one number for each output channel", "B.npy"},
    {"scale", 0, POPT_ARG_STRING, &options.scale, 0,
     "one factor for each output channel, f32 (f64 with f64 data)", "S.npy"},
    {"slope", 0, POPT_ARG_STRING, &options.slope, 0,
     "one number for each output channel for --activation prelu and snake, as --scale", "P.npy"},
    {"residual", 0, POPT_ARG_STRING, &options.residual, 0, "added to the output; of its shape",
     "R.npy"},
    {"initial", 0, POPT_ARG_STRING, &options.initial, 0,
     "what the output was before, for --beta; of its shape", "Y0.npy"},
    {"output", 0, POPT_ARG_STRING, &options.output, 0, "where the output goes", "Y.npy"},
    {"memory-limit", 0, POPT_ARG_STRING, &options.memory_limit, 0,
     "MiB of device memory for the tensors of slabs; default: 256 where tensors exceed 512, else "
     "no slabs",
     "MIB"},
    POPT_TABLEEND,
};

const struct poptOption bench_table[] = {
    {"runs", 0, POPT_ARG_STRING, &options.runs, 0,
     "timed runs of each layer; default: as many as fit into half a second, 5 to 100", "N"},
    {"repeat", 0, POPT_ARG_STRING, &options.repeat, 0,
     "computations that are enqueued before each wait, whose mean is the time of a run: without "
     "the time that a single launch takes to begin and to be noticed; default 1",
     "N"},
    {"no-ceilings", 0, POPT_ARG_NONE, &options.no_ceilings, 0,
     "do not measure what the device can do at most: seconds less, and no % floor", NULL},
    {"why", 0, POPT_ARG_NONE, &options.why, 0,
     "print the expected time, or the reason of the rejection, for each algorithm", NULL},
    {"compare", 0, POPT_ARG_STRING, &options.compare, 0,
     "compare with an earlier run, layer by layer; - is stdin", "OLD.json"},
    {"csv", 0, POPT_ARG_STRING, &options.csv, 0, "write the results as CSV; - is stdout", "FILE"},
    {"plot", 0, POPT_ARG_STRING, &options.plot, 0,
     "draw the layers under the roofline, with Python's matplotlib; - is stdout", "FILE.svg"},
    POPT_TABLEEND,
};

const struct poptOption tune_table[] = {
    {"budget", 0, POPT_ARG_STRING, &options.budget, 0,
     "milliseconds of timing for each layer, besides compiling; default 500", "MS"},
    {"records", 0, POPT_ARG_NONE, &options.records, 0,
     "time nothing: list the results that are stored for the device", NULL},
    {"machine", 0, POPT_ARG_NONE, &options.machine, 0,
     "time no layer: measure the device's speeds for the cost model and store them", NULL},
    {"fields", 0, POPT_ARG_STRING, &options.fields, 0,
     "store these fields of the cost model for the device, as scripts/refit.py prints them: "
     "\"packed_tap=500 clock=3200\"; \"\" forgets all",
     "TEXT"},
    POPT_TABLEEND,
};

/* popt's own --help leaves the process, so that nobody sees whether stdout took it. */
enum { HELP = 1, USAGE, VERSION };
const struct poptOption help_table[] = {
    {"help", 'h', POPT_ARG_NONE, NULL, HELP, "print this text", NULL},
    {NULL, '?', POPT_ARG_NONE | POPT_ARGFLAG_DOC_HIDDEN, NULL, HELP, NULL, NULL},
    {"version", 'V', POPT_ARG_NONE, NULL, VERSION, "print the tool's version", NULL},
    {"usage", 0, POPT_ARG_NONE, NULL, USAGE, "print the options in short", NULL},
    POPT_TABLEEND,
};

const struct poptOption check_table[] = {
    {"with-bias", 0, POPT_ARG_NONE, &options.with_bias, 0, "with a bias for each output channel",
     NULL},
    {"with-scale", 0, POPT_ARG_NONE, &options.with_scale, 0,
     "with a factor for each output channel", NULL},
    {"with-residual", 0, POPT_ARG_NONE, &options.with_residual, 0,
     "with a tensor that is added to the output", NULL},
    POPT_TABLEEND,
};

bool option_takes_value(const char *name, size_t length, char letter)
{
    static const struct poptOption *const tables[] = {
        device_table,   common_table, shape_table, attribute_table, algorithm_table,
        suite_table,    model_table,  file_table,  bench_table,     check_table,
        epilogue_table, math_table,   tune_table};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct poptOption *o = tables[t]; o->longName != NULL; o++) {
            const bool same = name == NULL ? o->shortName == letter && letter != '\0'
                                           : strlen(o->longName) == length &&
                                                 strncmp(o->longName, name, length) == 0;
            if (same) return (o->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE;
        }
    return false;
}

/* A tile may follow the name: it is checked where the plan is made. */
static bool algorithm_exists(const char *text)
{
    char name[64];
    const size_t length = strcspn(text, " ,");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    return strcmp(text, "auto") == 0 || tconv_algorithm_summary(name) != NULL;
}

void print_algorithms(void)
{
    enum { COLUMN = 17 };
    for (int i = 0; tconv_algorithm_name(i) != NULL; i++) {
        const char *name = tconv_algorithm_name(i);
        printf("%-*s", COLUMN, name);
        print_wrapped(tconv_algorithm_summary(name), COLUMN);
    }
}

static enum exit_code list_algorithms(void)
{
    printf("auto             chosen by the cost model, or by a stored result of tconv-cl tune\n");
    print_algorithms();
    return EXIT_DONE;
}

/* No file that is written takes another one's place, and stdin and stdout are of one file each;
 * false after a message. */
static bool files_apart(void)
{
    enum { WRITTEN = 4 }; /* the first ones */
    char *weights = options.model == NULL ? NULL : model_weights_path(options.model);
    const struct {
        const char *option, *path;
    } files[] = {
        {"--json", options.json},
        {"--output", options.output},
        {"--csv", options.csv},
        {"--plot", options.plot},
        {"--data", options.data},
        {"--filter", options.filter},
        {"--bias", options.bias},
        {"--scale", options.scale},
        {"--slope", options.slope},
        {"--residual", options.residual},
        {"--initial", options.initial},
        {"--model", options.model},
        {"the model's weights", weights},
        {"--suite", options.suite},
        {"--compare", options.compare},
        {"the old report", options.arguments[0]},
        {"the new report", options.arguments[1]},
    };
    bool apart = true;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t j = i + 1; j < sizeof files / sizeof *files && apart; j++) {
            if (files[i].path == NULL || files[j].path == NULL) continue;
            const bool stream = strcmp(files[i].path, "-") == 0, written = i < WRITTEN;
            if (stream ? written != (j < WRITTEN) : !written) continue;
            apart = !system_same_file(files[i].path, files[j].path);
            if (!apart)
                wrong_request(
                    "%s and %s are both %s: %s", files[i].option, files[j].option, files[j].path,
                    written ? "the results need a file of their own" : "stdin can be read once");
        }
    if (apart && options.model != NULL && strcmp(options.model, "-") == 0) {
        wrong_request("--model is -: a model needs a name, since its weights are in a file beside "
                      "it");
        apart = false;
    }
    free(weights);
    return apart;
}

static void try_name(const char *name, void *guess)
{
    guess_try(guess, name);
}

static enum exit_code bad_option(const struct poptOption *table, const char *option, int error,
                                 const char *command)
{
    const char *word = option + strspn(option, "-");
    struct guess guess = guess_begin(word, strcspn(word, "="));
    if (error == POPT_ERROR_BADOPT) visit_option_names(table, try_name, &guess);
    if (guess.best != NULL)
        return wrong_request("%s: %s; did you mean --%s? See %s --help", option,
                             poptStrerror(error), guess.best, command);
    return wrong_request("%s: %s; see %s --help", option, poptStrerror(error), command);
}

static enum exit_code unknown_algorithm(void)
{
    struct guess guess = guess_begin(options.algorithm, strcspn(options.algorithm, " ,"));
    for (int i = 0; tconv_algorithm_name(i) != NULL; i++)
        guess_try(&guess, tconv_algorithm_name(i));
    return guess.best != NULL
               ? wrong_request("--algorithm %s does not exist; did you mean %s? --algorithm list "
                               "prints the names",
                               options.algorithm, guess.best)
               : wrong_request("--algorithm %s does not exist; --algorithm list prints the names",
                               options.algorithm);
}

/* Takes the arguments that are no options; false after a message. */
static bool take_arguments(poptContext context, int most, const char *command)
{
    for (int i = 0; poptPeekArg(context) != NULL; i++) {
        if (i == most) {
            wrong_request("%s is not an option; see %s --help", poptPeekArg(context), command);
            return false;
        }
        options.arguments[i] = strdup(poptGetArg(context));
        if (options.arguments[i] == NULL) {
            failed_work("the options cannot be read: no memory");
            return false;
        }
    }
    return true;
}

/* Whether the files that are to be written can be begun, before long work. */
static enum exit_code check_results(void)
{
    const struct {
        const char *option, *path;
    } files[] = {{"--json", options.json}, {"--csv", options.csv}, {"--plot", options.plot}};
    enum exit_code code = EXIT_DONE;
    for (size_t i = 0; i < sizeof files / sizeof *files && code == EXIT_DONE; i++)
        if (files[i].path != NULL) code = out_file_check(files[i].option, files[i].path);
    return code;
}

enum exit_code read_options(const struct poptOption *table, const char *synopsis, int argc,
                            const char **argv, bool *leave)
{
    return read_arguments(table, synopsis, argc, argv, 0, leave);
}

enum exit_code read_arguments(const struct poptOption *table, const char *synopsis, int argc,
                              const char **argv, int most, bool *leave)
{
    *leave = true;
    if (argc == 2 && strcmp(argv[1], PRINT_MANUAL) == 0) {
        print_manual(argv[0], synopsis, table);
        return EXIT_DONE;
    }
    if (argc == 2 && strcmp(argv[1], PRINT_OPTION_NAMES) == 0) {
        visit_option_names(table, print_option_name, NULL);
        return EXIT_DONE;
    }
    poptContext context = poptGetContext("tconv-cl", argc, argv, table, 0);
    if (context == NULL) return failed_work("the options cannot be read: no memory");
    poptSetOtherOptionHelp(context, synopsis);
    enum exit_code code = EXIT_DONE;
    tconv_math math;
    tconv_epilogue epilogue;
    const int result = poptGetNextOpt(context);
    if (result == HELP)
        poptPrintHelp(context, stdout, 0);
    else if (result == USAGE)
        poptPrintUsage(context, stdout, 0);
    else if (result == VERSION)
        printf("tconv-cl %s\n", TCONV_VERSION_STRING);
    else if (result < -1)
        code = bad_option(table, poptBadOption(context, POPT_BADOPTION_NOALIAS), result, argv[0]);
    else if (!take_arguments(context, most, argv[0]))
        code = EXIT_REQUEST_WRONG;
    else if (options.algorithm != NULL && strcmp(options.algorithm, "list") == 0)
        list_algorithms();
    else if (options.algorithm != NULL && !algorithm_exists(options.algorithm))
        code = unknown_algorithm();
    else if (options.math != NULL && !tconv_math_from_name(options.math, &math))
        code = wrong_request("--math is \"%s\": exact and fast are possible", options.math);
    else if (!read_epilogue(&epilogue))
        code = EXIT_REQUEST_WRONG;
    else if (!files_apart())
        code = EXIT_REQUEST_WRONG;
    else if ((code = check_results()) == EXIT_DONE)
        *leave = false;
    poptFreeContext(context);
    return code;
}

tconv_math chosen_math(void)
{
    tconv_math math = TCONV_MATH_EXACT;
    if (options.math != NULL) tconv_math_from_name(options.math, &math);
    return math;
}

enum exit_code refuse_attributes(const char *why, bool of_suite)
{
    const struct {
        const char *name, *value;
    } given[] = {
        {"--strides", options.strides},
        {"--dilations", options.dilations},
        {"--pads-begin", options.pads_begin},
        {"--pads-end", options.pads_end},
        {"--auto-pad", options.auto_pad},
        {"--output-padding", options.output_padding},
        {"--groups", options.groups},
        {"--data-format", of_suite ? NULL : options.data_format},
        {"--filter-format", options.filter_format},
        {"--filter-shape", options.filter_shape},
        {"--data-shape", of_suite ? options.data_shape : NULL},
        {"--output-shape", of_suite ? options.output_shape : NULL},
        {"--rules", of_suite ? options.rules : NULL},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].value != NULL) return wrong_request("%s is given, but %s", given[i].name, why);
    return EXIT_DONE;
}

enum exit_code refuse_layers(const char *why)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"--suite", options.suite != NULL},
        {"--ids", options.ids != NULL},
        {"--model", options.model != NULL},
        {"--layer", options.layer != NULL},
        {"--data-shape", options.data_shape != NULL},
        {"--output-shape", options.output_shape != NULL},
        {"--rules", options.rules != NULL},
        {"--type", options.type != NULL},
        {"--filter-type", options.filter_type != NULL},
        {"--output-type", options.output_type != NULL},
        {"--math", options.math != NULL},
        {"--budget", options.budget != NULL},
        {"--activation", options.activation != NULL},
        {"--alpha", options.alpha != NULL},
        {"--beta", options.beta != NULL},
        {"--data-zero-point", options.data_zero_point != NULL},
        {"--filter-zero-point", options.filter_zero_point != NULL},
        {"--output-zero-point", options.output_zero_point != NULL},
        {"--requantize", options.requantize != 0},
        {"--with-bias", options.with_bias != 0},
        {"--with-scale", options.with_scale != 0},
        {"--with-residual", options.with_residual != 0},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given) return wrong_request("%s is given, but %s", others[i].name, why);
    return refuse_attributes(why, false);
}

void free_options(void)
{
    char **const texts[] = {&options.device,
                            &options.json,
                            &options.data_shape,
                            &options.filter_shape,
                            &options.strides,
                            &options.dilations,
                            &options.pads_begin,
                            &options.pads_end,
                            &options.output_padding,
                            &options.output_shape,
                            &options.auto_pad,
                            &options.rules,
                            &options.type,
                            &options.groups,
                            &options.data_format,
                            &options.filter_format,
                            &options.algorithm,
                            &options.data,
                            &options.filter,
                            &options.bias,
                            &options.output,
                            &options.model,
                            &options.layer,
                            &options.suite,
                            &options.ids,
                            &options.runs,
                            &options.repeat,
                            &options.budget,
                            &options.fields,
                            &options.csv,
                            &options.compare,
                            &options.plot,
                            &options.arguments[0],
                            &options.arguments[1],
                            &options.math,
                            &options.alpha,
                            &options.beta,
                            &options.activation,
                            &options.filter_type,
                            &options.output_type,
                            &options.data_zero_point,
                            &options.filter_zero_point,
                            &options.output_zero_point,
                            &options.scale,
                            &options.slope,
                            &options.residual,
                            &options.initial,
                            &options.memory_limit};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}

enum exit_code default_device(int *number)
{
    tconv_error error, none;
    int there = 0;
    if (tconv_device_default(number, &error) == TCONV_OK) return EXIT_DONE;
    /* Where there are devices, it is what the environment asks for that is wrong. */
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
        return error.status == TCONV_ERROR_NO_DEVICE &&
                       tconv_device_count(&there, NULL) == TCONV_OK && there > 0
                   ? wrong_request("--device: %s", error.message)
                   : failed_call(&error);
    }
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

bool read_attribute(const char *option, const char *text, int axes, tconv_list *list)
{
    if (text == NULL) return true;
    if (!read_numbers(option, text, list->value, TCONV_MAX_AXES, &list->count)) return false;
    if (list->count == 1 && axes >= 1 && axes <= TCONV_MAX_AXES)
        while (list->count < axes) list->value[list->count++] = list->value[0];
    return true;
}

static bool unknown_name(const char *option, const char *text, const char *names)
{
    wrong_request("%s is \"%s\": %s are possible", option, text, names);
    return false;
}

bool read_names(tconv_problem *p)
{
    static const char type_names[] = "f32 f16 bf16 f64 i8 i16 i32 i64 u8 u16 u32 u64";
    if (options.auto_pad != NULL && !tconv_auto_pad_from_name(options.auto_pad, &p->auto_pad))
        return unknown_name("--auto-pad", options.auto_pad,
                            "explicit, valid, same_upper and same_lower");
    if (options.rules != NULL && !tconv_rules_from_name(options.rules, &p->rules))
        return unknown_name("--rules", options.rules, "spec, openvino and onnx");
    if (options.type != NULL && !tconv_type_from_name(options.type, &p->data_type))
        return unknown_name("--type", options.type, type_names);
    p->filter_type = p->data_type;
    if (options.filter_type != NULL && !tconv_type_from_name(options.filter_type, &p->filter_type))
        return unknown_name("--filter-type", options.filter_type, type_names);
    if (options.output_type != NULL && !tconv_type_from_name(options.output_type, &p->output_type))
        return unknown_name("--output-type", options.output_type, type_names);

    if (options.data_format != NULL &&
        !tconv_data_format_from_name(options.data_format, &p->data_format))
        return unknown_name("--data-format", options.data_format, "NCX and NXC");
    if (options.filter_format != NULL &&
        !tconv_filter_format_from_name(options.filter_format, &p->filter_format))
        return unknown_name("--filter-format", options.filter_format, "OIX and XIO");
    return true;
}

enum exit_code read_problem(const tconv_shape *data, const tconv_shape *filter, tconv_problem *p)
{
    p->data = *data;
    p->filter = *filter;
    if (options.groups != NULL || options.data_format != NULL || options.filter_format != NULL)
        p->operation = TCONV_ONEAPI_CONV_BACKPROP;
    else
        p->operation = filter->rank == data->rank + 1 ? TCONV_GROUP_CONV_BACKPROP
                                                      : TCONV_CONV_BACKPROP;
    int count;
    const int axes = data->rank - 2;
    if (!read_names(p) ||
        (options.groups != NULL &&
         !read_numbers("--groups", options.groups, &p->groups, 1, &count)) ||
        !read_attribute("--strides", options.strides, axes, &p->strides) ||
        !read_attribute("--dilations", options.dilations, axes, &p->dilations) ||
        !read_attribute("--pads-begin", options.pads_begin, axes, &p->pads_begin) ||
        !read_attribute("--pads-end", options.pads_end, axes, &p->pads_end) ||
        !read_attribute("--output-padding", options.output_padding, axes, &p->output_padding) ||
        !read_attribute("--output-shape", options.output_shape, axes, &p->output_shape))
        return EXIT_REQUEST_WRONG;
    if (options.groups != NULL && p->groups < 1)
        return wrong_request("--groups is %" PRId64 ": at least 1 is needed", p->groups);
    return EXIT_DONE;
}

enum exit_code read_problem_with_shapes(tconv_problem *problem)
{
    if (options.data_shape == NULL || options.filter_shape == NULL)
        return wrong_request("%s is missing: a layer needs --data-shape and --filter-shape",
                             options.data_shape == NULL ? "--data-shape" : "--filter-shape");
    tconv_shape data, filter;
    if (!read_numbers("--data-shape", options.data_shape, data.dim, TCONV_MAX_RANK, &data.rank) ||
        !read_numbers("--filter-shape", options.filter_shape, filter.dim, TCONV_MAX_RANK,
                      &filter.rank))
        return EXIT_REQUEST_WRONG;
    return read_problem(&data, &filter, problem);
}

void tell_notes(const char *layer, const tconv_problem *problem)
{
    char notes[1000];
    tconv_problem_notes(problem, notes, sizeof notes);
    for (char *note = notes, *end; (end = strchr(note, '\n')) != NULL; note = end + 1)
        notice("%s%s%.*s", layer, layer[0] == '\0' ? "" : ": ", (int)(end - note), note);
}
